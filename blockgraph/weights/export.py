"""Parameters put back into a checkpoint's tensors: each rule's adjoint, summed over the parts of a fused tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, final

from blockgraph.graph import Graph
from blockgraph.lazy import np
from blockgraph.module import Report
from blockgraph.records import dataclass
from blockgraph.spec import Spec
from blockgraph.weights.mapping import Section
from blockgraph.weights.pairing import Shape, Source, sources
from blockgraph.weights.take import Take, Takes

MAX_PERMUTED = 4
Key = tuple[tuple[str, ...], bool, int | None]


def to_tensors(
    spec: Spec,
    section: Section,
    flat: Graph,
    arrays: Mapping[str, Any],
    shapes: Mapping[str, Shape] | None,
    report: Report,
) -> dict[str, Any]:
    """The tensors of a checkpoint from arrays by parameter. `shapes` are those of a checkpoint, if one is at hand."""
    groups: dict[Key, list[Source]] = {}
    for source in sources(section, flat, shapes.keys() if shapes else None).values():
        groups.setdefault((source.tensors, source.stacked, source.index), []).append(source)
    found: dict[str, Any] = {}
    slices: dict[str, dict[int, Any]] = {}
    fusion = _Fusion(spec, arrays, report, Takes(spec, report), Takes(spec, Report()))
    for (names, stacked, index), group in groups.items():
        raw = fusion.raw(group, shapes)
        if raw is None:
            continue
        if stacked:
            found.update(zip(names, raw, strict=True))
        elif index is not None:
            slices.setdefault(names[0], {})[index] = raw
        else:
            found[names[0]] = raw
    for name, parts in slices.items():
        found[name] = _joined(parts, shapes[name][0] if shapes and name in shapes else 0)
    return found


def _joined(parts: Mapping[int, Any], count: int) -> Any:
    """Slices along a new first axis; zeros where there is none."""
    count = max(count, *(index + 1 for index in parts))
    first = next(iter(parts.values()))
    whole = np.zeros((count, *first.shape), first.dtype)
    for index, part in parts.items():
        whole[index] = part
    return whole


@final
@dataclass(slots=True)
class _Fusion:
    """Puts the parts of one tensor together; `tried` are takes over shapes that may not fit, which is no finding."""

    spec: Spec
    arrays: Mapping[str, Any]
    report: Report
    takes: Takes
    tried: Takes

    def raw(self, group: Sequence[Source], shapes: Mapping[str, Shape] | None) -> Any:
        """The sum of the parts' shares; None after a finding."""
        shape = self._shape(group, shapes)
        if shape is None:
            return None
        takes = self._takes(group, shape, self.takes)
        if takes is None:
            return None
        parts = [
            source.backward(self.arrays[source.parameter], take, shape)
            for source, take in zip(group, takes, strict=True)
        ]
        return sum(parts[1:], parts[0])

    def _takes(self, group: Sequence[Source], shape: Shape, takes: Takes) -> list[Take | None] | None:
        """The take of each part for a tensor of a shape; None where one does not fit it."""
        found: list[Take | None] = []
        for source in group:
            take = None
            if source.rule is not None and source.take is not None:
                take = takes.get(source.take, source.rule.take_path, shape)
                if take is None:
                    return None
            if (shape if take is None else take.shape) != self._stored(source):
                self._misfit(source, shape, takes.report)
                return None
            found.append(take)
        return found

    def _stored(self, source: Source) -> Shape:
        return source.stored(self.arrays[source.parameter].shape)

    def _misfit(self, source: Source, shape: Shape, report: Report) -> None:
        message = f"`{source.pattern}` of shape {shape} does not give `{source.parameter}` {self._stored(source)}"
        place = self.spec.document.key(source.rule.path if source.rule else ())
        report.add("BG306", message, place)

    def _shape(self, group: Sequence[Source], shapes: Mapping[str, Shape] | None) -> Shape | None:
        """The raw shape: a checkpoint's, or the one that the parts fill without a gap; None after a finding."""
        first = group[0]
        if shapes is not None and all(name in shapes for name in first.tensors):
            return first.raw_shape(shapes)
        stored = [self._stored(source) for source in group]
        if all(source.take is None for source in group):
            return stored[0]
        for shape in dict.fromkeys(_candidates(stored)):
            if self._is_filled(group, shape):
                return shape
        rule = next(source.rule for source in group if source.rule and source.take)
        message = f"the shape of `{first.pattern}` cannot be told from what is taken of it"
        help = "give a checkpoint with `like=`, so that its shapes are used"
        self.report.add("BG315", message, self.spec.document.key(rule.path), help)
        return None

    def _is_filled(self, group: Sequence[Source], shape: Shape) -> bool:
        """Whether every element of a tensor of this shape goes to one part exactly."""
        takes = self._takes(group, shape, self.tried)
        if takes is None:
            return False
        ones = [
            source.backward(np.ones(self.arrays[source.parameter].shape, np.int8).astype("f4"), take, shape)
            for source, take in zip(group, takes, strict=True)
        ]
        return bool((sum(ones[1:], ones[0]) == 1).all())


def _candidates(parts: Sequence[Shape]) -> Iterator[Shape]:
    """Shapes that parts may have together: side by side along one axis, in any order of axes, or without new ones."""
    first = parts[0]
    if len(parts) == 1 and len(first) <= MAX_PERMUTED:
        yield from permutations(first)
    for axis in range(len(first)):
        rest = {(*part[:axis], *part[axis + 1 :]) for part in parts if len(part) == len(first)}
        if len(rest) == 1 and all(len(part) == len(first) for part in parts):
            joined = sum(part[axis] for part in parts)
            shape = (*first[:axis], joined, *first[axis + 1 :])
            yield from permutations(shape) if len(shape) <= MAX_PERMUTED else (shape,)
    if len(set(parts)) == 1:
        yield (len(parts), *first)
        yield (len(parts), 1, *first)
