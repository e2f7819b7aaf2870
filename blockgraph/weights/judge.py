"""What a checkpoint lacks, has too much of, or has in another shape than the spec: one finding per kind of fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import final

from blockgraph.dims import show_numbers
from blockgraph.errors import Finding, Place, Related
from blockgraph.graph import Graph
from blockgraph.ops.leaf import Param
from blockgraph.records import dataclass
from blockgraph.solve import Cause, causes
from blockgraph.spec import Spec
from blockgraph.weights import ties
from blockgraph.weights.files import Checkpoint
from blockgraph.weights.mapping import Section
from blockgraph.weights.pairing import Shape, Source, kind_of, starred
from blockgraph.weights.ties import Tie


@final
@dataclass(frozen=True, slots=True)
class Misshape:
    """A parameter whose tensor has another shape: what the file has, and what it should have there.

    `taken` is the shape after a `take`, where there is one.
    """

    source: Source
    found: Shape
    expected: Shape


@final
@dataclass(slots=True)
class Judgement:
    """A checkpoint held against a flat graph. `sources` say which tensors each parameter wants."""

    spec: Spec
    section: Section
    flat: Graph
    checkpoint: Checkpoint
    sources: Mapping[str, Source]
    params: Mapping[str, Param]
    missing: list[Source] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)

    def compare_names(self) -> list[Finding]:
        """Missing and unexpected tensors; what has been found stays in `missing` and `unexpected`."""
        tensors = self.checkpoint.tensors
        used = {name for source in self.sources.values() for name in source.tensors}
        self.missing = [one for one in self.sources.values() if any(name not in tensors for name in one.tensors)]
        self.unexpected = [name for name in tensors if name not in used and not self.section.ignores(name)]
        prefix = prefix_between(self._wanted(), self.unexpected)
        if prefix:
            return [self._about_prefix(prefix)]
        tied = {one.parameter: tie for one in self.missing if (tie := self._tie(one))}
        gaps = [one for one in self.missing if one.parameter not in tied]
        findings = self._not_tied(tied)
        findings += [self._absent(gaps)] if gaps else []
        return findings + ([self._too_much()] if self.unexpected else [])

    @property
    def place(self) -> Place:
        """The checkpoint as a whole."""
        return Place(self.checkpoint.path)

    def _wanted(self) -> list[str]:
        tensors = self.checkpoint.tensors
        return [name for one in self.missing for name in one.tensors if name not in tensors]

    def _about_prefix(self, prefix: tuple[str, str]) -> Finding:
        verb, start = prefix
        wanted = self._wanted()
        message = (
            f"{counted(len(self.missing), 'parameter')} missing: {first([one.parameter for one in self.missing])}; "
            f"{counted(len(self.unexpected), 'tensor')} unexpected: {first(self.unexpected)}"
        )
        written = f"`{start}{wanted[0]}`" if verb == "strip" else f"`{wanted[0].removeprefix(start)}`"
        action = f"strip `{start}` from the names in the file" if verb == "strip" else f"add `{start}` to those names"
        help = f"{action}, and all of them match; or write {written} for `{wanted[0]}` under `checkpoint: weights:`"
        return Finding("BG301", message, self.place, help)

    def _absent(self, gaps: Sequence[Source]) -> Finding:
        message = f"{counted(len(gaps), 'parameter')} missing: {first([one.parameter for one in gaps])}"
        related = []
        for one in self._examples(gaps):
            name = next(name for name in one.tensors if name not in self.checkpoint.tensors)
            place = self.spec.document.key(one.rule.path) if one.rule else None
            what = "by this rule" if one.rule else "no rule names it, and so its own name counts"
            related.append(Related(f"`{one.parameter}` wants the tensor `{name}`: {what}", place))
        help = "add a rule under `checkpoint: weights:`, or load what is there with partial=True"
        return Finding("BG301", message, self.place, help, related=tuple(related))

    @staticmethod
    def _examples(gaps: Sequence[Source]) -> Iterator[Source]:
        """The first of each pattern, three at most."""
        patterns = {starred(one.parameter): one for one in reversed(gaps)}
        yield from list(reversed(patterns.values()))[:3]

    def _too_much(self) -> Finding:
        message = f"{counted(len(self.unexpected), 'tensor')} unexpected: {first(self.unexpected)}"
        help = "map each to a parameter, or list it under `checkpoint: ignore:`"
        again = self._again()
        if again:
            tensor, parameter = again
            help = (
                f"`{tensor}` has the shape of `{parameter}`, which this spec uses more than once (tied): "
                "give the output parameters of its own, or list the tensor under `ignore` if it is a copy"
            )
        return Finding("BG305", message, self.place, help)

    def _again(self) -> tuple[str, str] | None:
        """An unexpected tensor that the spec's tie leaves without a use."""
        shapes = self.checkpoint.shapes
        for tensor in self.unexpected:
            for parameter in ties.used_again(self.flat).values():
                wanted = self.shape(parameter)
                if len(wanted) > 1 and shapes[tensor] in (wanted, wanted[::-1]):
                    return tensor, parameter
        return None

    def shape(self, parameter: str) -> Shape:
        """The numbers of a parameter's shape."""
        return tuple(int(dim.evaluate(self.flat.dims)) for dim in self.params[parameter].dims)

    def _tie(self, source: Source) -> Tie | None:
        known = ties.recorded(self.checkpoint.notes)
        if ties.says_tied(self.checkpoint.config):
            known += [
                Tie(array, "the output", name)
                for name in ties.tables(self.flat)
                for array in self.sources[name].tensors
            ]
        return ties.tie_of(source.parameter, self.shape(source.parameter), known, self.checkpoint.shapes)

    def _not_tied(self, tied: Mapping[str, Tie]) -> list[Finding]:
        """One finding for all that layers share in the file, and one for each further use of an array."""
        findings = []
        shared = [name for name, tie in tied.items() if tie.by_layer]
        if shared:
            message = f"{counted(len(shared), 'parameter')} missing: {first(shared)}; in the file "
            message += f"`{shared[0]}` and `{tied[shared[0]].array}` are one array, and this spec does not share it"
            findings.append(Finding("BG307", message, self.place, "write `share: true` in the spec too"))
        for name, tie in tied.items():
            if not tie.by_layer:
                use = tie.use if " " in tie.use else f"`{tie.use}`"
                message = f"`{name}` is missing: in the file it is tied to `{tie.array}`, which serves as {use} too"
                help = f"tie the spec too, as in `x @ {tie.parameter}.T`, or give the file an array for `{name}`"
                findings.append(Finding("BG307", message, self.place, help))
        return findings

    def compare_shapes(self, wrong: Sequence[Misshape]) -> list[Finding]:
        """One finding for all that fit when transposed, one per dim of another number, one per shape for the others."""
        turned = [one for one in wrong if one.found[::-1] == one.expected and len(one.found) > 1]
        rest = {one.source.parameter: one for one in wrong if one not in turned}
        by_dim = self._by_dim(rest, wrong)
        others = [one for name, one in rest.items() if not any(name in names for names in by_dim.values())]
        groups: dict[tuple[str, Shape, Shape], list[Misshape]] = {}
        for one in others:
            groups.setdefault((starred(one.source.parameter), one.found, one.expected), []).append(one)
        findings = [self._transposed(turned)] if turned else []
        findings += [self._resized(cause, [rest[name] for name in names]) for cause, names in by_dim.items()]
        return findings + [self._misshapen(group) for group in groups.values()]

    def _by_dim(self, wrong: Mapping[str, Misshape], all_wrong: Sequence[Misshape]) -> dict[Cause, list[str]]:
        """The parameters whose shapes other numbers of dims explain, by dim and its number in the file."""
        unfit = {one.source.parameter for one in all_wrong} | {one.parameter for one in self.missing}
        right = {s for name, op in self.params.items() if name not in unfit for dim in op.dims for s in dim.symbols}
        shapes = {name: self._as_declared(one) for name, one in wrong.items()}
        sized = {name: (self.params[name].dims, shape) for name, shape in shapes.items() if shape is not None}
        return causes(sized, right, self.flat.dims)

    def _as_declared(self, one: Misshape) -> Shape | None:
        """The shape in the file, as the spec counts its axes; None where they do not stand for each other."""
        own = self.shape(one.source.parameter)
        if len(one.found) != len(own) or one.expected not in (own, own[::-1]):
            return None
        return one.found if one.expected == own else one.found[::-1]

    def _resized(self, cause: Cause, group: Sequence[Misshape]) -> Finding:
        name, number = cause
        here = self.flat.dims[name]
        message = f"`{name}` is {here} in the spec and {number} in the file: {self._told(group)}"
        hints = [_ratio(number, here)] if _ratio(number, here) else []
        if hints and all(self._is_gated(one.source.parameter) for one in group):
            hints.append("the width here means each of gate and up")
        hints.append(f"if these are the right weights: `--set {name}={number}`, or {name}={number} in Python")
        related = (Related(f"`{name}` is declared here", self.spec.document.key(("dims", name))),)
        return Finding("BG306", message, self._at(group[0].source), "; ".join(hints), related=related)

    def _told(self, group: Sequence[Misshape]) -> str:
        one = group[0]
        op = self.params[one.source.parameter]
        taken = "what is taken from " if one.source.take else ""
        more = f" (and {len(group) - 1} more)" if len(group) > 1 else ""
        return (
            f"{taken}`{one.source.pattern}` has shape {one.found} in the file, and {one.expected} is expected there: "
            f"`{one.source.parameter}` is {show_numbers(op.dims, self.flat.dims)}{more}"
        )

    def _transposed(self, group: Sequence[Misshape]) -> Finding:
        other = "in_out" if group[0].source.swapped else "out_in"
        linear = any(one.source.swapped for one in group) or self.section.layout is None
        help = f"the transposed shape fits; set `layout: {other}` under `checkpoint:`" if linear else ""
        help = help or 'the transposed shape fits; write `take: "tensor.T"` for it'
        return Finding("BG306", self._told(group), self._at(group[0].source), help)

    def _misshapen(self, group: Sequence[Misshape]) -> Finding:
        one = group[0]
        hints = []
        if len(one.found) == len(one.expected):
            hints = [text for pair in zip(one.found, one.expected, strict=True) if (text := _ratio(*pair))]
        if hints and self._is_gated(one.source.parameter):
            hints.append("the width here means each of gate and up")
        return Finding("BG306", self._told(group), self._at(one.source), "; ".join(hints))

    def _is_gated(self, parameter: str) -> bool:
        return kind_of(self.flat, self.flat.parameters[parameter]) == "gated_feed_forward"

    def _at(self, source: Source) -> Place:
        return self.spec.document.key(source.rule.path) if source.rule else self.place


def _ratio(found: int, expected: int) -> str:
    small, large = sorted((found, expected))
    return f"{large} = {large // small} x {small}" if 0 < small < large and large % small == 0 else ""


def first(names: Sequence[str]) -> str:
    """The first three of some names."""
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def counted(count: int, noun: str) -> str:
    """`1 tensor is`, `3 tensors are`."""
    return f"{count} {noun} is" if count == 1 else f"{count} {noun}s are"


def prefix_between(wanted: Sequence[str], extra: Sequence[str]) -> tuple[str, str] | None:
    """`strip` or `add`, and the one prefix with which every wanted name is one of the extra ones."""
    there = set(extra)
    for name in extra if wanted else ():
        if name.endswith(wanted[0]) and (start := name.removesuffix(wanted[0])):
            if all(start + one in there for one in wanted):
                return "strip", start
        elif wanted[0].endswith(name) and (start := wanted[0].removesuffix(name)):
            if all(one.startswith(start) and one.removeprefix(start) in there for one in wanted):
                return "add", start
    return None
