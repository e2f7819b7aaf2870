"""Specs that have no steps, refused with the reason: the proof that they are not causal, or what is not proved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from blockgraph.decode.timing import Timing
from blockgraph.decode.views import mentions
from blockgraph.dims import Dim, show
from blockgraph.errors import Finding, InputError, Place, Related, near
from blockgraph.facts import causal, leak, time_axis
from blockgraph.graph import Graph, Port
from blockgraph.wording import show_value

CODE = "BG405"


def refuse_graph(spec: Any, graph: Graph) -> Dim:
    """The axis of time. Raises InputError (BG405) where there is none, or where causality is refuted or not proved."""
    time = time_axis(graph, graph.dims)
    if time is None or time.symbols & graph.dims.keys():
        told = (
            "no input has an axis of positions" if time is None else f"`{time}` is fixed to {time.evaluate(graph.dims)}"
        )
        refuse(spec, told, "positions are a free axis `T` of an input, such as `tokens: {ids: [B, T], below: V}`")
    verdict = causal(graph, graph.dims)
    if verdict == "proved":
        return time
    found = leak(graph, graph.dims) if verdict == "refuted" else None
    if found is not None:
        refuse(spec, str(found), f"`{found.culprit}` reads ahead: give it a causal mask", found.related)
    if verdict == "refuted":
        refuse(spec, "earlier positions of the outputs read later ones", "`blockgraph check` shows what is proved")
    help = "`blockgraph check` shows what is proved; where an axis is cut in pieces, or masked by values, nothing is"
    refuse(spec, "it is not proved that no position of the outputs reads a later one", help)


def refuse_timed_inputs(spec: Any, graph: Graph, time: Dim) -> None:
    """Inputs that do not grow by rows, such as a (T, T) mask. Raises InputError (BG405)."""
    for port in graph.inputs:
        shape = graph.types[port.value].shape or ()
        timed = [dim for dim in shape if mentions(dim, str(time))]
        if timed and timed != [time]:
            told = f"the input `{port.name}` is {show(shape)}, and a step brings new rows along one axis {time}"
            refuse(spec, told, "compute it from inputs with one such axis")


def refuse_outputs(spec: Any, timing: Timing) -> None:
    """Outputs whose earlier rows change with the number of positions. Raises InputError (BG405)."""
    for port in timing.graph.outputs:
        if port.value in timing.timed and not timing.stays(port.value):
            told = f"earlier positions of `{port.name}` change with the number of positions {timing.time}"
            refuse(spec, told, f"no number may depend on {timing.time}, and no position be counted from the end")


def refuse_context(spec: Any, graph: Graph, timed: tuple[Port, ...], context: object) -> None:
    """What is no dict of inputs without an axis of time. Raises InputError (BG302)."""
    fixed = [port.name for port in graph.inputs if port not in timed]
    given = f"give a dict with {', '.join(fixed)}" if fixed else "all inputs come step by step: leave it out"
    if not isinstance(context, Mapping):
        message = f"the context is a dict of inputs by name, not {show_value(context)}"
        raise InputError([Finding("BG302", message, Place(spec.path), given)])
    findings = []
    for name in context:
        if any(port.name == name for port in timed):
            message = f"the input `{name}` has an axis of positions, and comes step by step"
            findings.append(Finding("BG302", message, Place(spec.path), "give it to `decoder.step`"))
        elif name not in fixed:
            found = near(str(name), fixed)
            help = f"did you mean `{found}`?" if found else given
            findings.append(Finding("BG302", f"there is no input `{name}`", Place(spec.path), help))
    if findings:
        raise InputError(findings)


def refuse(spec: Any, told: str, help: str, related: tuple[Related, ...] = ()) -> NoReturn:
    """Raise InputError (BG405)."""
    name = spec.name or "the spec"
    message = f"`{name}` cannot be run step by step: {told}"
    raise InputError([Finding(CODE, message, Place(spec.path), help, related=related)])
