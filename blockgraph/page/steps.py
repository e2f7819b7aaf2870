"""A saved trace as steps through the pictures: what was measured of each named value, and the box that makes it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from blockgraph.dims import Shape, show
from blockgraph.drawing import Box, Key
from blockgraph.drawing.fold import folds
from blockgraph.errors import Finding, InputError, Place
from blockgraph.graph import Graph, Node, Repeat
from blockgraph.lazy import np
from blockgraph.records import dataclass
from blockgraph.run import rms

TIMES: Final = re.compile(r"× (\d+)$")
DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Measured:
    """A named value of a run: its shape, and root mean square, least, largest and mean element."""

    name: str
    shape: tuple[int, ...]
    rms: float
    low: float
    high: float
    mean: float


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a named value is made: a value of a graph, and which of the drawn copies of that graph holds it.

    `outer` marks what has the name of a whole stack and is made in its last layer.
    """

    graph: Graph
    value: int
    copy: int = 0
    copies: int = 1
    layer: tuple[int, ...] = ()
    outer: bool = False


def measured(arrays: Mapping[str, Any]) -> list[Measured]:
    """What the page tells of each array, in order."""
    found = []
    for name, array in arrays.items():
        x = np.asarray(array, dtype=np.float64)
        with np.errstate(all="ignore"):
            ends = (float(x.min()), float(x.max()), float(x.mean())) if x.size else (0.0, 0.0, 0.0)
        found.append(Measured(name, x.shape, rms(x), *ends))
    return found


def located(graph: Graph, steps: Sequence[Measured], *, expand: bool = False) -> list[tuple[Measured, Stop]]:
    """The steps that are values of the graph, each value once.

    Raises InputError (BG304) when one is none, or when a shape is another than the graph's.
    """
    finder = _Finder(graph, expand)
    kept: dict[tuple[int, int, tuple[int, ...]], tuple[Measured, Stop]] = {}
    for step in steps:
        stop = finder.stop(step.name)
        if stop is None:
            raise _foreign(f"no value of the spec is called `{step.name}`")
        key = (id(stop.graph), stop.value, stop.layer)
        if not _is_passed(graph, stop) and (key not in kept or kept[key][1].outer):
            kept[key] = step, stop
    found = list(kept.values())
    numbers = sizes(graph, found)
    for step, stop in found:
        shape = stop.graph.types[stop.value].shape
        if shape is not None and not _fits(shape, step.shape, numbers):
            raise _foreign(f"`{step.name}` is {_tuple(step.shape)} there, and {show(shape)} in the spec")
    return found


def _is_passed(graph: Graph, stop: Stop) -> bool:
    """Whether a value is one that a layer was given: it was a step before, under another name."""
    return stop.graph is not graph and any(port.value == stop.value for port in stop.graph.inputs)


def sizes(graph: Graph, found: Sequence[tuple[Measured, Stop]]) -> dict[str, int]:
    """The numbers of the graph's dims, and of the free symbols that the inputs of the trace tell."""
    inputs = {port.value for port in graph.inputs}
    numbers: dict[str, int] = {}
    for step, stop in found:
        if stop.graph is graph and stop.value in inputs:
            for dim, size in zip(graph.types[stop.value].shape or (), step.shape, strict=False):
                numbers |= {str(dim): size} if dim.symbols == {str(dim)} else {}
    return numbers | graph.dims


def as_data(found: Sequence[tuple[Measured, Stop]], boxes: Mapping[str, Mapping[str, Box]]) -> dict[str, Any]:
    """The steps in columns; `boxes` are those of each level, and the box of a step is given by level."""
    return {
        "names": [step.name for step, _ in found],
        "shapes": [_tuple(step.shape) for step, _ in found],
        **{part: [_number(getattr(step, part)) for step, _ in found] for part in ("rms", "low", "high", "mean")},
        "boxes": {level: list(_boxes(found, drawn)) for level, drawn in boxes.items()},
    }


def _boxes(found: Sequence[tuple[Measured, Stop]], drawn: Mapping[str, Box]) -> Iterator[str | None]:
    copies: dict[Key, list[str]] = {}
    for name, box in drawn.items():
        if box.key is not None and box.look != "output":
            copies.setdefault(box.key, []).append(name)
    for _, stop in found:
        names = next((copies[key] for key in _keys(stop) if key in copies), None)
        each = max(len(names) // stop.copies, 1) if names else 1  # an op that is opened has several boxes
        yield names[min((stop.copy + 1) * each, len(names)) - 1] if names else None


def _keys(stop: Stop) -> Iterator[Key]:
    """What a box that makes the value may be drawn for: the op, its part, the parts around it."""
    node = stop.graph.producers[stop.value]
    yield id(stop.graph), node.id
    steps = node.scope.split(".")
    for end in range(len(steps), 0, -1):
        yield id(stop.graph), ".".join(steps[:end])
    yield id(stop.graph), ""


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds named values, through the layers of stacks."""

    graph: Graph
    expand: bool

    def stop(self, name: str) -> Stop | None:
        """Where a name like `layers.3.attention.query` is made."""
        graph, copy, copies, layers = self.graph, 0, 1, list[int]()
        while name not in graph.named:
            found = next(_layer_names(graph, name), None)
            if found is None:
                return None
            node, layer, name = found
            assert isinstance(node.op, Repeat)
            places = _places(node.op, self.graph.dims, self.expand)
            if layer >= len(places):
                return None
            body, place, drawn = places[layer]
            graph, copy, copies = node.op.bodies[body], copy * drawn + place, copies * drawn
            layers.append(layer)
            if not name:
                return self._inside(Stop(graph, graph.outputs[0].value, copy, copies, tuple(layers)))
        return self._inside(Stop(graph, graph.named[name], copy, copies, tuple(layers)))

    def _inside(self, stop: Stop) -> Stop:
        """What comes out of a stack is made in its last layer, or before it if it has none."""
        while isinstance(stack := stop.graph.producers[stop.value].op, Repeat):
            node = stop.graph.producers[stop.value]
            output, places = node.outputs.index(stop.value), _places(stack, self.graph.dims, self.expand)
            if not places:
                stop = replace(stop, value=node.inputs[stack.carried[output] or 0])
                continue
            body, place, drawn = places[-1]
            graph, layers = stack.bodies[body], (*stop.layer, len(places) - 1)
            copy, copies = stop.copy * drawn + place, stop.copies * drawn
            stop = Stop(graph, graph.outputs[output].value, copy, copies, layers, outer=True)
        return stop


def _layer_names(graph: Graph, name: str) -> Iterator[tuple[Node, int, str]]:
    """The stack, the layer and the name inside it that a name may mean."""
    for node in graph.nodes:
        if isinstance(node.op, Repeat):
            stem = f"{node.scope or node.op.path}."
            number, _, rest = name.removeprefix(stem).partition(".")
            if name.startswith(stem) and number.isdecimal():
                yield node, int(number), rest


def _places(stack: Repeat, dims: Mapping[str, int], expand: bool) -> list[tuple[int, int, int]]:
    """For each layer its body, which of the drawn copies of that body it is, and how many copies there are."""
    drawn: dict[int, int] = {}
    found: list[tuple[int, int]] = []
    for fold in folds(stack, dims, expand=expand):
        turn: list[tuple[int, int]] = []
        for body, name in fold.members:
            place = drawn[body] = drawn.get(body, -1) + 1
            turn += [(body, place)] * _times(name)
        found += turn * _times(fold.title)
    return [(body, place, drawn[body] + 1) for body, place in found]


def _times(title: str) -> int:
    found = TIMES.search(title)
    return int(found[1]) if found else 1


def _fits(shape: Shape, sizes: tuple[int, ...], numbers: Mapping[str, int]) -> bool:
    known = [dim.subs(numbers).as_int() for dim in shape]
    return len(known) == len(sizes) and all(a is None or a == b for a, b in zip(known, sizes, strict=True))


def _tuple(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def _number(value: float) -> float | None:
    """A number as JSON can hold it, in a few digits."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def _foreign(reason: str) -> InputError:
    help = "save it with `blockgraph run SPEC --save-trace FILE.npz`, and give the same --set here"
    return InputError([Finding("BG304", f"the trace is not one of this spec: {reason}", Place(""), help)])
