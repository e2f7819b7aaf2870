"""Reverse mode over the plain interpreter: each op's backward, gradients summed where a value fans out.

A `Tape` keeps what the forward computed; it may be pulled back any number of times, each time anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from blockgraph.lazy import np
from blockgraph.run import Call, Interpreter


@dataclass(frozen=True, slots=True)
class Tape:
    """One forward run: its calls in order and every value they made."""

    calls: tuple[Call, ...]
    slots: Mapping[int, Any]

    def pull_back(self, cotangents: Mapping[int, Any], wanted: Iterable[int]) -> dict[int, Any]:
        """Gradients of `sum over values of <value, cotangent>` for the wanted values; zeros where nothing arrives.

        Values that hold ids or booleans have no gradient and are left out.
        """
        grads: dict[int, Any] = dict(cotangents)
        keep = set(wanted)
        for call in reversed(self.calls):
            dys = [grads.get(slot) if slot in keep else grads.pop(slot, None) for slot in call.outputs]
            if all(dy is None for dy in dys):
                continue
            for slot, dx in zip(call.inputs, self._backward(call, dys), strict=True):
                if dx is not None:
                    grads[slot] = dx if slot not in grads else grads[slot] + dx
        found = {}
        for slot in keep:
            value = np.asarray(self.slots[slot])
            if value.dtype.kind == "f":
                found[slot] = np.asarray(grads[slot]).reshape(value.shape) if slot in grads else np.zeros_like(value)
        return found

    def _backward(self, call: Call, dys: list[Any]) -> tuple[Any, ...]:
        """One op's backward; an output of several that nothing reads has the gradient None."""
        arrays = [self.slots[slot] for slot in call.inputs]
        ys = [self.slots[slot] for slot in call.outputs]
        if len(dys) == 1:
            return call.backward(dys[0], ys[0], *arrays)
        return call.backward(tuple(dys), tuple(ys), *arrays)


def record(
    interpreter: Interpreter, inputs: Mapping[str, Any], params: Mapping[str, Any], numbers: Mapping[str, int]
) -> Tape:
    """Run forward and keep every value."""
    calls, slots = interpreter.prepare(inputs, params, numbers)
    for call in calls:
        call.run(slots)
    return Tape(tuple(calls), slots)
