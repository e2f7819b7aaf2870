"""What the numbers of a run give away: the first value that is not finite, and queries that see no key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blockgraph.arrays import numbers_told
from blockgraph.errors import Finding, InputError, Place
from blockgraph.graph import Node, Step
from blockgraph.lazy import np
from blockgraph.ops.attend import Attend
from blockgraph.spec import Spec
from blockgraph.trace import Trace

SHOWN = 5


def numeric_findings(trace: Trace, params: Mapping[str, Any]) -> tuple[Finding, ...]:
    """BG402 for the first step with infinity or something that is no number, BG403 for rows that see nothing."""
    return (*_not_finite(trace, params), *_unseeing(trace))


def refuse_not_finite(spec: Spec, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    """Raises InputError (BG402) with each array given to a run that is not finite itself."""
    named = [("input", name, array) for name, array in inputs.items()]
    named += [("parameter", name, array) for name, array in params.items()]
    wrong = [(what, name) for what, name, array in named if not np.isfinite(array).all()]
    if wrong:
        help = "difference quotients need finite numbers; look at where they come from"
        raise InputError(
            Finding(
                "BG402", f"the {what} `{name}` holds infinity or values that are no numbers", Place(spec.path), help
            )
            for what, name in wrong
        )


def _not_finite(trace: Trace, params: Mapping[str, Any]) -> Iterator[Finding]:
    steps: dict[int, Step] = {}
    for step in trace.graph.steps:
        old = steps.get(step.value)
        if old is None or len(step.name) < len(old.name):
            steps[step.value] = step
    for value in sorted(steps):
        step = steps[value]
        array = trace[step.name]
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            message = f"`{step.name}` holds infinity or values that are no numbers, and no step before it does"
            yield Finding("BG402", message, step.place or Place(""), _cause(step, params))
            return


def _cause(step: Step, params: Mapping[str, Any]) -> str:
    """A parameter of the step or of its part that is not finite itself, or where else to look."""
    wrong = [name for name, array in params.items() if not np.isfinite(array).all()]
    for scope in (f"{step.name}.", f"{step.name.rpartition('.')[0]}.".lstrip("."), ""):
        for name in wrong:
            if name.startswith(scope):
                return f"the parameter {name} is not finite itself"
    return "look at the scales and divisions that lead there"


def _unseeing(trace: Trace) -> Iterator[Finding]:
    arrays = {step.value: trace[step.name] for step in trace.graph.steps}
    numbers = numbers_told(trace.graph, arrays)
    for node in trace.graph.nodes:
        if isinstance(node.op, Attend) and all(value in arrays for value in node.inputs[:2]):
            yield from _blind(node, node.op.bind(numbers), arrays)


def _blind(node: Node, op: Attend, arrays: Mapping[int, Any]) -> Iterator[Finding]:
    if "keep" in op.given and node.inputs[3 + op.given.index("keep")] not in arrays:
        return
    given = [arrays.get(value) for value in node.inputs]
    rows = np.argwhere(op.unseeing(*given))
    if len(rows):
        told = ", ".join(str(tuple(int(index) for index in row)) for row in rows[:SHOWN])
        more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        those = f"1 query of `{node.scope}` sees" if len(rows) == 1 else f"{len(rows)} queries of `{node.scope}` see"
        message = f"{those} no key, (batch, row): {told}{more}"
        help = "their weights and results are zero"
        yield Finding("BG403", message, node.place or Place(""), help, severity="note")
