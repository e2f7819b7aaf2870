"""What a spec says, in one form: a module is inputs, parameters, named parts and equations.

Blocks, models and kinds all become a `Module`; placements are already written out as equations. This is
still text and syntax trees; nothing is evaluated and no dim is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

from blockgraph.alike import Shift
from blockgraph.errors import Finding, Place, Related, Severity, SpecPath, in_file_order, spec_path
from blockgraph.op import DType
from blockgraph.records import dataclass
from blockgraph.syntax import Equation, Expr
from blockgraph.wording import wrong_value

CONTENT = frozenset({"equations", "sublayers"})
Way = Callable[[SpecPath], SpecPath]


@dataclass(frozen=True, slots=True)
class SizeText:
    """A size as written: its syntax tree and its place in the spec."""

    expr: Expr
    path: SpecPath

    def moved(self, way: Way) -> SizeText:
        """The same size written elsewhere."""
        return SizeText(self.expr, way(self.path))


@dataclass(frozen=True, slots=True)
class InputDecl:
    """An input: the text of its axes, what it holds, and the bound of ids. `open` allows any leading axes.

    `unread` says that something of it was told to be wrong: `dims` are the axes that could be read.
    """

    name: str
    dims: tuple[SizeText, ...]
    dtype: DType = "float"
    below: SizeText | None = None
    path: SpecPath = ()
    open: bool = False
    optional: bool = False
    unread: bool = False

    def moved(self, way: Way) -> InputDecl:
        """The same input declared elsewhere."""
        below = None if self.below is None else self.below.moved(way)
        return replace(self, dims=tuple(one.moved(way) for one in self.dims), below=below, path=way(self.path))


@dataclass(frozen=True, slots=True)
class ParamDecl:
    """A parameter of the module itself: axes (None after a finding), init as written, whether it is frozen."""

    name: str
    dims: tuple[SizeText, ...] | None
    init: Any = None
    frozen: bool = False
    path: SpecPath = ()

    def moved(self, way: Way) -> ParamDecl:
        """The same parameter declared elsewhere."""
        dims = None if self.dims is None else tuple(one.moved(way) for one in self.dims)
        return replace(self, dims=dims, path=way(self.path))


@dataclass(frozen=True, slots=True)
class PartDecl:
    """A named part: a kind with options, still as written; `path` is where its options stand.

    The kind is empty after a finding: the part takes anything and gives unknown values. With a `guessed` one, or with
    a key that may mean anything, a call that does not fit may fit what is meant.
    """

    name: str
    kind: str
    options: dict[str, Any]
    path: SpecPath
    guessed: bool = False

    def option(self, name: str) -> SpecPath:
        """Where an option stands."""
        return (*self.path, name)


@dataclass(frozen=True, slots=True)
class Line:
    """One equation and how to find a stretch of its text in the file.

    `written` is false when the equation was made from a placement; its place is then the sublayer's.
    """

    equation: Equation
    locate: Callable[[int, int], Place]
    path: SpecPath
    written: bool = True


@dataclass(frozen=True, slots=True)
class Module:
    """A block, a model or an opened kind.

    `unread` are its keys that could not be read: whatever they would have said is unknown, and never told as missing.
    `like` is the first block of the file that reads the same, and the way from there; None for that one itself.
    """

    name: str
    inputs: tuple[InputDecl, ...]
    outputs: tuple[str, ...]
    params: tuple[ParamDecl, ...]
    parts: dict[str, PartDecl]
    lines: tuple[Line, ...]
    path: SpecPath = ()
    causal: bool = False
    residual_normed: bool = False
    unread: frozenset[str] = frozenset()
    like: tuple[Module, Shift] | None = None

    @property
    def original(self) -> Module:
        """The block that this one is equal to up to name and places: the same questions have the same answers."""
        return self.like[0] if self.like is not None else self

    def way_to(self, other: Module) -> Shift:
        """From this block to one that reads the same."""
        return self._shift.onward(other._shift)

    @property
    def _shift(self) -> Shift:
        """From the original."""
        return self.like[1] if self.like is not None else Shift(0, spec_path(self.path), spec_path(self.path))

    def elsewhere(self, name: str, path: SpecPath, shift: Shift) -> Module:
        """The same block under another name, written at another place of the file."""
        before = len(self.path)

        def moved(one: SpecPath) -> SpecPath:
            return path + one[before:]

        return replace(
            self,
            name=name,
            inputs=tuple(one.moved(moved) for one in self.inputs),
            params=tuple(one.moved(moved) for one in self.params),
            parts={key: replace(one, path=moved(one.path)) for key, one in self.parts.items()},
            lines=tuple(replace(one, locate=_Moved(one.locate, shift), path=moved(one.path)) for one in self.lines),
            path=path,
            like=(self, shift),
        )

    @property
    def is_lost(self) -> bool:
        """Whether what it computes is unknown."""
        return not self.lines

    @property
    def hides_names(self) -> bool:
        """Whether a name that seems to be of nothing may be one that could not be read."""
        return bool(self.unread & {"inputs", "params"}) or any(one.unread for one in self.inputs)


@dataclass(frozen=True, slots=True)
class _Moved:
    """`Line.locate` of a block elsewhere."""

    locate: Callable[[int, int], Place]
    shift: Shift

    def __call__(self, start: int, end: int) -> Place:
        return self.shift(self.locate(start, end))


@dataclass(slots=True)
class Report:
    """Findings as they come; the same words at the same place count once, whatever path led there."""

    findings: list[Finding] = field(default_factory=list)
    seen: set[tuple[str, str, str, tuple[int, int]]] = field(default_factory=set)
    unknown_names: set[str] = field(default_factory=set)
    told: int = 0

    def add(
        self,
        code: str,
        message: str,
        place: Place,
        help: str = "",
        *,
        label: str = "",
        related: tuple[Related, ...] = (),
        severity: Severity = "error",
        cause: tuple[str, Place] | None = None,
    ) -> None:
        """Report one finding. `cause` is what is wrong, and where, if the words and the place are those of a use."""
        self.told += 1
        finding = Finding(code, message, place, help, label, related, severity)
        key = (
            (code, message, place.path, place.start)
            if cause is None
            else (code, cause[0], cause[1].path, cause[1].start)
        )
        if key not in self.seen:
            self.seen.add(key)
            self.findings.append(finding)

    def wrong_value(self, expected: str, value: object, place: Place, help: str = "", what: str = "") -> None:
        """Report a value of the wrong form; `what` names the option."""
        message, help = wrong_value(expected, value, help)
        self.add("BG022", f"{what}: {message}" if what else message, place, help)

    @property
    def in_order(self) -> tuple[Finding, ...]:
        """All findings in file order."""
        return in_file_order(self.findings)

    @property
    def failed(self) -> bool:
        """Whether there is an error among them."""
        return any(finding.severity == "error" for finding in self.findings)
