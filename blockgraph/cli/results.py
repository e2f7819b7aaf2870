"""What a run has to show: a row per step and per layer, and the outputs, as a table or as plain data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from blockgraph.dims import show
from blockgraph.graph import Graph, Repeat, Step
from blockgraph.lazy import np
from blockgraph.records import dataclass
from blockgraph.report import Console
from blockgraph.run import rms
from blockgraph.tables import Column, real, table
from blockgraph.trace import Trace

HEAD: Final = 4
TARGET: Final = re.compile(r"^[\w, ]+ = ")
"""What stands before the first `=` of an equation; the step's name says it already."""
COLUMNS: Final = (
    Column("step"),
    Column("equation", wrap=True),
    Column("op", spare=True),
    Column("shape", spare=True),
    Column("sizes"),
    Column("RMS", right=True),
)


@dataclass(frozen=True)
class Results:
    """One run. `graph` has its stacks folded: it says which steps are the main module's own."""

    graph: Graph
    trace: Trace

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the main module."""
        return tuple(step for step in self._flat if step.depth == 0)

    @cached_property
    def layers(self) -> tuple[tuple[Step, ...], ...]:
        """For each stack of the main module: the step that feeds it, then its layers."""
        return tuple(
            tuple(self._layers(node.scope, node.op)) for node in self.graph.nodes if isinstance(node.op, Repeat)
        )

    @property
    def _flat(self) -> tuple[Step, ...]:
        return self.trace.graph.steps

    def _layers(self, scope: str, stack: Repeat) -> Iterator[Step]:
        found = {step.name: step for step in self._flat}
        prefix = f"{scope or stack.path}."
        count = sum(1 for _ in stack.layers(self.trace.graph.dims))
        layers = [found[f"{prefix}{layer}"] for layer in range(count) if f"{prefix}{layer}" in found]
        first = next((step for step in self._flat if step.name.startswith(f"{prefix}0.") and step.op == "input"), None)
        if first is not None:
            feeding = [step for step in self.steps if step.value == first.value]
            yield feeding[-1] if feeding else first
        yield from layers

    def document(self) -> dict[str, Any]:
        """The results as plain data, in full precision."""
        return {
            "outputs": {name: self._output(name, array) for name, array in self.trace.outputs.items()},
            "steps": [{"name": step.name, "op": step.op, **self._measured(step)} for step in self.steps],
            "layers": [
                {"name": s.name, "rms": _number(rms(self.trace[s.name]))} for stack in self.layers for s in stack
            ],
        }

    def _measured(self, step: Step) -> dict[str, Any]:
        array = self.trace[step.name]
        return {"shape": list(array.shape), "symbolic": self._symbolic(step.value), "rms": _number(rms(array))}

    def _output(self, name: str, array: Any) -> dict[str, Any]:
        value = next(port.value for port in self.trace.graph.outputs if port.name == name)
        return {
            "shape": list(array.shape),
            "symbolic": self._symbolic(value),
            "rms": _number(rms(array)),
            "head": [_number(number) for number in first_values(array)],
        }

    def _symbolic(self, value: int) -> str:
        return show(self.trace.graph.types[value].shape)

    def text(self, console: Console, width: int) -> str:
        """The table of steps and layers, and the outputs under it."""
        rows = [self._row(step) for step in self._in_order()]
        text = table(COLUMNS, rows, console, width) + "\n"
        for name, array in self.trace.outputs.items():
            numbers = " ".join(map(_precise, first_values(array)))
            text += f"{console.shown(name)} begins with {numbers or 'nothing'}\n"
        return text

    def _in_order(self) -> Iterator[Step]:
        """The main module's steps, each stack's layers before the step that they lead to."""
        waiting = [step for stack in self.layers for step in stack if step.depth > 0 and step.op != "input"]
        for step in self.steps:
            while waiting and waiting[0].value <= step.value:
                yield waiting.pop(0)
            yield step
        yield from waiting

    def _row(self, step: Step) -> tuple[str, ...]:
        array = self.trace[step.name]
        sizes = f"({', '.join(map(str, array.shape))}{',' * (array.ndim == 1)})"
        return (step.name, TARGET.sub("", step.text), step.op, self._symbolic(step.value), sizes, real(rms(array)))


def first_values(array: Any) -> list[float | int | bool]:
    """The first four numbers of an array's last axis, at the first position."""
    flat = np.atleast_1d(array)
    found: list[float | int | bool] = flat.reshape(-1, flat.shape[-1])[0, :HEAD].tolist() if flat.size else []
    return found


def _precise(number: float | int | bool) -> str:
    return (f"{number:.8f}" if abs(number) < 1e6 else f"{number:.8e}") if isinstance(number, float) else str(number)


def _number(number: float | int | bool) -> float | int | bool | None:
    """A number as JSON can hold it: what is not finite becomes null."""
    return number if math.isfinite(number) else None
