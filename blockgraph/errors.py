"""Findings: every complaint blockgraph makes, with its place, both sides of the conflict and a remedy.

Nothing below this module exists: it imports only the standard library, so that every other part can
report without pulling in the rest.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from blockgraph.records import dataclass

Severity = Literal["error", "warning", "note"]
SpecPath = tuple[str | int, ...]

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
MOST: Final = 100
"""So many findings of a file are read by a person; a program gets them all."""


class Position(NamedTuple):
    """A point in a text file; lines and columns count from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a spec file: `start` inclusive, `end` exclusive, and where it is in the data.

    `spec_path` reads like `block.sublayers[2].heads`; it is empty for the file as a whole. An empty `path` is no place:
    what is wrong stands in no file.
    """

    path: str
    start: Position = Position(1, 1)
    end: Position = Position(1, 1)
    spec_path: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.start.line}:{self.start.column}" if self.path else ""


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that belongs to a finding: where an operand was born, the first of two keys."""

    message: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One complaint: what is wrong, where, what stands against what, and what to do.

    `label` is printed beside the caret under the guilty text; `related` are the other operands.
    """

    code: str
    message: str
    place: Place
    help: str = ""
    label: str = ""
    related: tuple[Related, ...] = ()
    severity: Severity = "error"

    @property
    def is_environment(self) -> bool:
        """Whether the machine, not the spec, is at fault (exit code 2)."""
        return self.code.startswith("BG9")

    @property
    def order(self) -> tuple[str, Position, str, str]:
        """The key by which findings are listed: by file, then by place."""
        return (self.place.path, self.place.start, self.code, self.message)


class BlockgraphError(Exception):
    """The base of every error raised on purpose; carries all findings."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = tuple(findings)
        shown = foremost(self.findings)
        left = len(self.findings) - len(shown)
        more = [f"and {left:,} more: `.findings` has them all"] if left else []
        super().__init__("\n".join([*map(_as_text, shown), *more]))


def _as_text(finding: Finding) -> str:
    """A finding for a traceback: no excerpt, but both sides and the remedy."""
    lines = [f"{finding.code} {finding.place}".rstrip() + f"  {finding.message}"]
    lines += [f"  {text}" for text in (finding.label, *(one.message for one in finding.related)) if text]
    return "\n".join([*lines, *([f"  help: {finding.help}"] if finding.help else [])])


class SpecError(BlockgraphError):
    """The spec is wrong: reading it, its equations or its shapes (BG0xx, BG1xx, BG2xx)."""


class InputError(BlockgraphError):
    """What was given to a run does not fit the spec: arrays, parameters, sizes (BG1xx, BG3xx, BG4xx)."""


class DrawingError(BlockgraphError):
    """What was asked for cannot be drawn or written in that form (BG5xx)."""


class EnvironmentFailure(BlockgraphError):
    """The machine lacks something: a program, a package, memory, a file (BG9xx)."""


def spec_path(path: Sequence[str | int]) -> str:
    """The text of a path into the data: `("block", "sublayers", 2)` is `block.sublayers[2]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


_COMPARISONS: ContextVar[list[int] | None] = ContextVar("comparisons", default=None)


@contextmanager
def sparing(comparisons: int = 50_000) -> Iterator[None]:
    """Within it `near` compares at most so many names: a file of thousands of unknown names is answered in time."""
    token = _COMPARISONS.set([comparisons])
    try:
        yield
    finally:
        _COMPARISONS.reset(token)


def near(word: str, choices: Iterable[str]) -> str | None:
    """The one choice that `word` most likely misspells, or None.

    Case, `-` and `_` do not count, so `LayerNorm` and `layer-norm` are near `layer_norm`. None also where there have
    been too many comparisons (see `sparing`).
    """
    plain = {str(choice).replace("_", "").casefold(): choice for choice in choices}
    key = word.replace("_", "").replace("-", "").casefold()
    if key in plain:
        return plain[key]
    left = _COMPARISONS.get()
    if left is not None:
        left[0] -= len(plain)
        if left[0] < 0:
            return None
    found = difflib.get_close_matches(key, plain, n=1, cutoff=0.76)
    if not found and len(key) > 2:
        found = [choice for choice in plain if _one_slip(key, choice)]
    return plain[found[0]] if found else None


def _one_slip(word: str, choice: str) -> bool:
    """Whether one letter is wrong, or two neighbours have changed places."""
    if len(word) != len(choice):
        return False
    wrong = [index for index, (a, b) in enumerate(zip(word, choice, strict=True)) if a != b]
    if len(wrong) == 2:
        first, second = wrong
        return second == first + 1 and word[first] == choice[second] and word[second] == choice[first]
    return len(wrong) == 1


def foremost(findings: Sequence[Finding], most: int = MOST) -> tuple[Finding, ...]:
    """As many findings of each file as a person reads, in their order; errors before warnings, these before notes."""
    if len(findings) <= most:
        return tuple(findings)
    counts: dict[str, int] = {}
    shown = []
    for index, one in sorted(enumerate(findings), key=lambda pair: SEVERITIES.index(pair[1].severity)):
        counts[one.place.path] = counts.get(one.place.path, 0) + 1
        if counts[one.place.path] <= most:
            shown.append(index)
    return tuple(findings[index] for index in sorted(shown))


def in_file_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings sorted by place, each once."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: finding.order))


def at(finding: Finding, place: Place) -> Finding:
    """The same finding at another place."""
    return replace(finding, place=place)
