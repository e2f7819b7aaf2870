"""Reverse mode over the plain interpreter: each op's backward, gradients summed where a value fans out.

Three ways to the same numbers. A `Tape` keeps what the forward computed and may be pulled back any number of times.
`Tape.use_up` goes back once and lets go of every activation as soon as it was used. `recompute` keeps only what goes
from one layer to the next and runs each layer again when the gradient gets there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import groupby
from typing import Any

from blockgraph.graph import Graph, Repeat
from blockgraph.lazy import np
from blockgraph.records import dataclass
from blockgraph.run import Call, Interpreter

Cotangents = Callable[[Mapping[int, Any]], dict[int, Any]]
"""From the arrays of a run to the cotangents of its outputs, both by value: a loss, seen from here."""
Ready = tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, int]]
"""Inputs, parameters and numbers, checked."""


@dataclass(frozen=True, slots=True)
class Gradients:
    """What one pull back gives: `dx, dparams = gradients`; the rest by name.

    `dvalues` holds the gradients of all named values, where they were asked for: that of `attention.query` is called
    `attention.dquery`. `loss` is the number whose gradients these are, None if a cotangent was given instead.
    """

    dx: Any
    dparams: dict[str, Any]
    dvalues: dict[str, Any] = field(default_factory=dict)
    loss: float | None = None

    def __iter__(self) -> Iterator[Any]:
        yield self.dx
        yield self.dparams


@dataclass(frozen=True)
class Ends:
    """Where gradients start and end in an unrolled graph: its outputs; inputs, parameters and, if asked, named values.

    With `by_name` the gradients of inputs come as a dict, as the inputs did.
    """

    graph: Graph
    by_name: bool = False
    named: bool = False

    @cached_property
    def wanted(self) -> frozenset[int]:
        """The values whose gradients are kept."""
        inputs = {port.value for port in self.graph.inputs}
        params = {node.outputs[0] for node in self.graph.parameters.values()}
        return frozenset(inputs | params | (set(self.graph.named.values()) if self.named else set()))

    def outputs(self, slots: Mapping[int, Any]) -> dict[str, Any]:
        """The arrays of the outputs by name."""
        return {port.name: np.asarray(slots[port.value]) for port in self.graph.outputs}

    def by_value(self, dys: Mapping[str, Any]) -> dict[int, Any]:
        """Cotangents of outputs by value; two names of one value add up."""
        found: dict[int, Any] = {}
        for port in self.graph.outputs:
            if port.name in dys:
                dy = dys[port.name]
                found[port.value] = dy if port.value not in found else found[port.value] + dy
        return found

    def gradients(self, grads: Mapping[int, Any], loss: float | None = None) -> Gradients:
        """What was found, by name; ids and booleans have no gradient and are left out."""
        dx = {port.name: grads[port.value] for port in self.graph.inputs if port.value in grads}
        nodes, names = self.graph.parameters, (name for name in self.graph.draws if isinstance(name, str))
        dparams = {name: grads[nodes[name].outputs[0]] for name in names}
        named = self.graph.named if self.named else {}
        dvalues = {gradient_name(name): grads[value] for name, value in named.items() if value in grads}
        return Gradients(dx if self.by_name else next(iter(dx.values()), None), dparams, dvalues, loss)


@dataclass(slots=True)
class _Reverse:
    """One way back: the gradients that have arrived so far, and those to be kept."""

    grads: dict[int, Any]
    keep: frozenset[int]
    found: dict[int, Any] = field(default_factory=dict)

    def through(self, calls: Sequence[Call], slots: Mapping[int, Any], free: bool) -> None:
        """From the last call to the first. With `free` what a call made is dropped once its backward has run.

        Whoever else read it stands behind it in the order, and so has been dealt with before.
        """
        self.expect(slots)
        with np.errstate(all="ignore"):  # what is not finite shows in the numbers
            self._walk(calls, slots, free)

    def _walk(self, calls: Sequence[Call], slots: Mapping[int, Any], free: bool) -> None:
        for call in reversed(calls):
            dys = [self.grads.get(slot) if slot in self.keep else self.grads.pop(slot, None) for slot in call.outputs]
            if not all(dy is None for dy in dys):
                for slot, dx in zip(call.inputs, backward(call, dys, slots), strict=True):
                    self._add(slot, dx)
            if free:
                assert isinstance(slots, dict)
                for slot in call.outputs:
                    slots.pop(slot, None)

    def expect(self, slots: Mapping[int, Any]) -> None:
        """Note shape and type of the values whose gradients are wanted: an array of zeros without memory of its own."""
        for slot in self.keep & slots.keys() - self.found.keys():
            value = np.asarray(slots[slot])
            if value.dtype.kind == "f":
                self.found[slot] = np.broadcast_to(np.zeros((), value.dtype), value.shape)

    def _add(self, slot: int, dx: Any) -> None:
        if dx is not None:
            self.grads[slot] = dx if slot not in self.grads else self.grads[slot] + dx

    def result(self) -> dict[int, Any]:
        """The wanted gradients, each of its value's shape; zeros where nothing arrived."""
        return {
            slot: np.asarray(self.grads[slot]).reshape(like.shape) if slot in self.grads else np.zeros_like(like)
            for slot, like in self.found.items()
        }


def backward(call: Call, dys: Sequence[Any], slots: Mapping[int, Any]) -> tuple[Any, ...]:
    """One op's backward; an output of several that nothing reads has the gradient None."""
    arrays = [slots[slot] for slot in call.inputs]
    ys = [slots[slot] for slot in call.outputs]
    if len(dys) == 1:
        return call.backward(dys[0], ys[0], *arrays)
    return call.backward(tuple(dys), tuple(ys), *arrays)


@dataclass(frozen=True, slots=True)
class Tape:
    """One forward run: its calls in order and every value they made."""

    calls: tuple[Call, ...]
    slots: Mapping[int, Any]

    def pull_back(self, cotangents: Mapping[int, Any], wanted: Iterable[int]) -> dict[int, Any]:
        """Gradients of `sum over values of <value, cotangent>` for the wanted values; zeros where nothing arrives.

        Values that hold ids or booleans have no gradient and are left out.
        """
        reverse = _Reverse(dict(cotangents), frozenset(wanted))
        reverse.through(self.calls, self.slots, free=False)
        return reverse.result()

    def use_up(self, cotangents: Mapping[int, Any], wanted: Iterable[int]) -> dict[int, Any]:
        """The same gradients, once: activations are freed on the way, and the tape is empty afterwards."""
        reverse = _Reverse(dict(cotangents), frozenset(wanted))
        assert isinstance(self.slots, dict)
        reverse.through(self.calls, self.slots, free=True)
        return reverse.result()


def record(
    interpreter: Interpreter, inputs: Mapping[str, Any], params: Mapping[str, Any], numbers: Mapping[str, int]
) -> Tape:
    """Run forward and keep every value."""
    calls, slots = interpreter.prepare(inputs, params, numbers)
    for call in calls:
        call.run(slots)
    return Tape(tuple(calls), slots)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Calls that follow one another: one layer of a stack, or what stands between stacks.

    `leaving` are the values that calls behind it read; `entering` those it reads that are made before it.
    """

    calls: tuple[Call, ...]
    layer: bool
    leaving: frozenset[int]
    entering: frozenset[int]


def recompute(
    interpreter: Interpreter, ready: Ready, ends: Ends, cotangents: Cotangents, layer_of: Callable[[Call], str | None]
) -> dict[int, Any]:
    """The gradients of a run that keeps only what goes in and out of each layer, and computes layers twice."""
    calls, slots = interpreter.prepare(*ready)
    stretches = _stretches(calls, layer_of, frozenset(port.value for port in ends.graph.outputs))
    for one in stretches:
        for call in one.calls:
            call.run(slots)
        if one.layer:
            _drop(one, slots)
    reverse = _Reverse(cotangents(slots), ends.wanted)
    while stretches:
        one = stretches.pop()
        if one.layer:
            inner = {slot: slots[slot] for slot in one.entering}
            for call in one.calls:
                call.run(inner)
            for slot in one.leaving:
                slots.pop(slot, None)
            reverse.through(one.calls, inner, free=True)
        else:
            reverse.through(one.calls, slots, free=True)
    return reverse.result()


def _drop(one: _Stretch, slots: dict[int, Any]) -> None:
    """Forget what no later call reads."""
    for call in one.calls:
        for slot in call.outputs:
            if slot not in one.leaving:
                slots.pop(slot, None)


def _stretches(
    calls: Sequence[Call], layer_of: Callable[[Call], str | None], outputs: frozenset[int]
) -> list[_Stretch]:
    grouped = [(layer, tuple(group)) for layer, group in groupby(calls, layer_of)]
    found: list[_Stretch] = []
    read = set(outputs)
    for layer, group in reversed(grouped):
        made = {slot for call in group for slot in call.outputs}
        needed = {slot for call in group for slot in call.inputs}
        found.append(_Stretch(group, layer is not None, frozenset(made & read), frozenset(needed - made)))
        read |= needed
    return found[::-1]


def descend(
    interpreter: Interpreter,
    ready: Ready,
    ends: Ends,
    loss: Callable[[Mapping[str, Any]], tuple[float, dict[str, Any]]],
    layer_of: Callable[[Call], str | None] | None = None,
) -> Gradients:
    """The gradients of a loss of the outputs, once: nothing is kept longer than it is needed.

    With `layer_of` layers are computed twice, and only what goes from one to the next is kept.
    """
    value = 0.0

    def start(slots: Mapping[int, Any]) -> dict[int, Any]:
        nonlocal value
        with np.errstate(all="ignore"):
            value, dys = loss(ends.outputs(slots))
        return ends.by_value(dys)

    if layer_of is not None:
        found = recompute(interpreter, ready, ends, start, layer_of)
    else:
        tape = record(interpreter, *ready)
        found = tape.use_up(start(tape.slots), ends.wanted)
    return ends.gradients(found, value)


def layer_names(graph: Graph) -> Callable[[Call], str | None]:
    """For a call of the unrolled graph: the layer of the folded graph's stacks that it belongs to, None outside."""
    stacks = {node.scope or node.op.path for node in graph.nodes if isinstance(node.op, Repeat)}

    def layer_of(call: Call) -> str | None:
        for stack in stacks:
            if call.node.scope.startswith(f"{stack}."):
                number = call.node.scope[len(stack) + 1 :].partition(".")[0]
                if number.isdigit():
                    return f"{stack}.{number}"
        return None

    return layer_of


def gradient_name(name: str) -> str:
    """The name of a value's gradient: `d` before the last word that is no number.

    >>> gradient_name("layers.3.attention.query"), gradient_name("x.2"), gradient_name("layers.0")
    ('layers.3.attention.dquery', 'dx.2', 'dlayers.0')
    """
    words = name.split(".")
    last = max((index for index, word in enumerate(words) if not word.isdigit()), default=0)
    return ".".join([*words[:last], f"d{words[last]}", *words[last + 1 :]])
