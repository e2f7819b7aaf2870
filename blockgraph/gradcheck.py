"""Gradients held against difference quotients of the forward run, for every parameter and every input of floats.

Each is moved along random directions, which see every element, and at single elements: the largest gradient and some
others. A quotient takes four runs, f(x +- h) and f(x +- 2h), and is exact to h**4. Where a run crosses a kink of relu,
abs, max, top_k or a comparison there is no such quotient: the elements that cross are found, left out, and listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from blockgraph.grad import Ends, Tape
from blockgraph.graph import Graph
from blockgraph.lazy import np
from blockgraph.records import dataclass
from blockgraph.run import Call

STEPS: Final = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Relative to the size of what is moved; a smaller one is tried where a larger one crosses a kink or misses."""
SEARCH: Final = 128
"""How many moves may go into finding the elements of one tensor that cross a kink."""
FLOOR: Final = 1e-4
"""Of the largest gradient: below it an error counts as if the gradient were that large, for it is rounding noise."""
Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """An element of a tensor that lies closer to a kink than the step, and where; no index: all of the tensor."""

    name: str
    index: Index | None
    at: str


@dataclass(frozen=True, slots=True)
class Row:
    """What was found for one tensor: the worst relative error, where, and both numbers there."""

    name: str
    kind: str
    shape: Index
    error: float
    where: str
    gradient: float
    quotient: float
    checks: int
    skipped: tuple[Skipped, ...]


@dataclass(slots=True)
class _Worst:
    error: float = 0.0
    where: str = ""
    gradient: float = 0.0
    quotient: float = 0.0
    checks: int = 0

    def consider(self, error: float, where: str, gradient: float, quotient: float) -> None:
        self.checks += 1
        if not error < self.error or not self.where:
            self.error, self.where, self.gradient, self.quotient = error, where, gradient, quotient


@dataclass(frozen=True)
class GradientCheck:
    """One recorded run in float64 and a random cotangent; `rows` does the work, tensor by tensor."""

    flat: Graph
    tape: Tape
    seed: int = 0
    directions: int = 2
    elements: int = 3

    @cached_property
    def dys(self) -> dict[int, Any]:
        """A standard normal cotangent for every output of floats."""
        ends, rng = Ends(self.flat), np.random.default_rng([self.seed, 2])
        outputs = {name: y for name, y in ends.outputs(self.tape.slots).items() if y.dtype.kind == "f"}
        return ends.by_value({name: rng.standard_normal(y.shape) for name, y in outputs.items()})

    @cached_property
    def grads(self) -> dict[int, Any]:
        """What is to be checked."""
        return self.tape.pull_back(self.dys, Ends(self.flat).wanted)

    @property
    def tensors(self) -> list[tuple[str, str, int]]:
        """Name, kind and value of every input of floats and every parameter, in the order they are drawn."""
        found = [(port.name, "input", port.value) for port in self.flat.inputs if port.value in self.grads]
        nodes = self.flat.parameters
        names = (name for name in self.flat.draws if isinstance(name, str))
        return found + [(name, "parameter", nodes[name].outputs[0]) for name in names]

    def rows(self) -> Iterator[Row]:
        """A row for each tensor."""
        sizes = [_norm(grad) for grad in self.grads.values()]
        with np.errstate(all="ignore"):
            for name, kind, value in self.tensors:
                yield _Tensor(self, name, value, FLOOR * max(sizes, default=0.0)).row(kind)


def stirred(params: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Parameters at which no gradient vanishes for the way they start: gates at zero, scores all but equal.

    Matrices become standard normal / sqrt(rows); vectors and numbers are moved by 0.1 * normal.
    """
    rng = np.random.default_rng([seed, 3])
    drawn = {name: rng.standard_normal(one.shape) for name, one in params.items()}
    return {
        name: noise / np.sqrt(noise.shape[-2]) if noise.ndim > 1 and noise.size else params[name] + 0.1 * noise
        for name, noise in drawn.items()
    }


def _norm(array: Any) -> float:
    return float(np.linalg.norm(np.asarray(array, dtype=np.float64).ravel()))


class _Tensor:
    """The checks of one tensor."""

    def __init__(self, check: GradientCheck, name: str, value: int, floor: float) -> None:
        self.check, self.name, self.value, self.floor = check, name, value, floor
        self.slots: Mapping[int, Any] = check.tape.slots
        self.x = np.asarray(self.slots[value], dtype=np.float64)
        self.grad = check.grads[value]
        self.calls = _downstream(check.tape.calls, value)
        self.unit = float(np.clip(_norm(self.x) / max(self.x.size, 1) ** 0.5 or 1.0, 1e-3, 1e3))
        self.sides = self._sides(self.slots)
        self.rng = np.random.default_rng([check.seed, value])
        self.skipped: dict[Index | None, Skipped] = {}

    def row(self, kind: str) -> Row:
        """All checks."""
        worst = _Worst()
        if self.x.size:
            for number in range(self.check.directions):
                self._direction(number, worst)
            for index in self._chosen():
                self._element(index, worst)
        skipped = tuple(self.skipped.values())
        if not worst.checks:
            worst.where = "all skipped" if self.x.size else "empty"
        found = (worst.error, worst.where, worst.gradient, worst.quotient, worst.checks)
        return Row(self.name, kind, self.x.shape, *found, skipped)

    def _chosen(self) -> list[Index]:
        """The element with the largest gradient and some others."""
        count = min(self.check.elements, self.x.size)
        largest = int(np.argmax(np.abs(np.nan_to_num(self.grad, nan=np.inf))))
        others = self.rng.permutation(self.x.size)[:count]
        flat = dict.fromkeys([largest, *(int(one) for one in others)])
        return [tuple(int(i) for i in np.unravel_index(one, self.x.shape)) for one in list(flat)[:count]]

    def _direction(self, number: int, worst: _Worst) -> None:
        direction = self.rng.standard_normal(self.x.shape)
        if self._moved(direction, STEPS[-1]) is None:
            self._leave_out()
        for index in self.skipped:
            direction[() if index is None else index] = 0.0
        if direction.any():
            gradient = float(np.vdot(self.grad, direction))
            self._compare(direction, gradient, max(_norm(self.grad), self.floor), f"direction {number + 1}", worst)

    def _element(self, index: Index, worst: _Worst) -> None:
        if index in self.skipped or None in self.skipped:
            return
        direction = np.zeros_like(self.x)
        direction[index] = 1.0
        if self._moved(direction, STEPS[-1]) is None:
            self.skipped[index] = Skipped(self.name, index, self._kink(direction))
            return
        gradient = float(self.grad[index])
        scale = max(1e-3 * float(np.abs(self.grad).max()), self.floor)
        self._compare(direction, gradient, scale, f"element {list(index)}", worst)

    def _compare(self, direction: Any, gradient: float, scale: float, where: str, worst: _Worst) -> None:
        """The smallest error of the steps that cross no kink; one that is right needs no other."""
        best: tuple[float, float] | None = None
        for step in STEPS:
            quotient = self._moved(direction, step)
            if quotient is None:
                continue
            error = abs(gradient - quotient) / max(abs(gradient), abs(quotient), scale, 1e-300)
            error = error if np.isfinite(error) else np.inf
            if best is None or error < best[0]:
                best = (error, quotient)
            if best[0] < 1e-8:
                break
        if best is not None:
            worst.consider(best[0], where, gradient, best[1])

    def _moved(self, direction: Any, step: float) -> float | None:
        """The difference quotient along a direction; None where the runs are on different sides of a kink."""
        h = step * self.unit
        ends = {}
        for factor in (2, 1, -1, -2):
            found = self._run(self.x + factor * h * direction)
            if self._sides(found) != self.sides:
                return None
            ends[factor] = found
        total = 0.0
        for value, dy in self.check.dys.items():
            y = {factor: np.asarray(found[value]) for factor, found in ends.items()}
            total += float(np.vdot(dy, 8 * (y[1] - y[-1]) - (y[2] - y[-2])))
        return total / (12 * h)

    def _run(self, x: Any) -> dict[int, Any]:
        slots = {**self.slots, self.value: x}
        for call in self.calls:
            call.run(slots)
        return slots

    def _sides(self, slots: Mapping[int, Any]) -> list[bytes]:
        return [side.tobytes() for _, side in self._kinked(slots)]

    def _kinked(self, slots: Mapping[int, Any]) -> Iterator[tuple[Call, Any]]:
        for call in self.calls:
            ys = [slots[slot] for slot in call.outputs]
            side = call.op.side(ys[0] if len(ys) == 1 else tuple(ys), *[slots[slot] for slot in call.inputs])
            if side is not None:
                yield call, np.ascontiguousarray(side)

    def _kink(self, direction: Any) -> str:
        """The first step at which a move crosses a kink."""
        for factor in (1, 2, -1, -2):
            found = self._run(self.x + factor * STEPS[-1] * self.unit * direction)
            for (call, side), old in zip(self._kinked(found), self.sides, strict=True):
                if side.tobytes() != old:
                    return ": ".join(filter(None, (call.node.scope, call.op.name)))
        return ""

    def _leave_out(self) -> None:
        """Halve the tensor until the elements that cross a kink are found; if there are too many, give it all up."""
        if self.skipped:
            return
        waiting, budget = [np.arange(self.x.size)], SEARCH
        found: list[Index] = []
        while waiting and budget:
            part, budget = waiting.pop(), budget - 1
            moves = np.zeros(self.x.size)
            moves[part] = self.rng.standard_normal(len(part))
            direction = moves.reshape(self.x.shape)
            if self._moved(direction, STEPS[-1]) is not None:
                continue
            if len(part) == 1:
                index = tuple(int(i) for i in np.unravel_index(part[0], self.x.shape))
                self.skipped[index] = Skipped(self.name, index, self._kink(direction))
                found.append(index)
            else:
                waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
        if waiting or not found:
            self.skipped = {None: Skipped(self.name, None, self._kink(self.rng.standard_normal(self.x.shape)))}


def _downstream(calls: tuple[Call, ...], value: int) -> tuple[Call, ...]:
    """The calls that a value has an influence on."""
    reached = {value}
    found = []
    for call in calls:
        if not reached.isdisjoint(call.inputs):
            reached.update(call.outputs)
            found.append(call)
    return tuple(found)
