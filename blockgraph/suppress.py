"""Comments that hide a finding on their line: `# blockgraph: ignore[BG203]`, several codes with commas.

Only warnings and notes can be hidden: a spec with an error cannot be built, whatever its comments say. A comment
that hides nothing is itself reported, so that none outlives what it was written for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, final

from blockgraph.errors import Finding, Place, Position, in_file_order
from blockgraph.records import dataclass
from blockgraph.source import Document, Tree

CODE: Final = "BG206"
_COMMENT = re.compile(r"(?:^|(?<=\s))#\s*blockgraph:\s*ignore\b(\[[^\]#\n]*\]?)?")
_WORD = re.compile(r"[^,\[\]\s]+")
_CODE = re.compile(r"BG[0-9]{3}")


@final
@dataclass(frozen=True, slots=True)
class Ignored:
    """One code in a comment; an empty one if the comment names none."""

    code: str
    place: Place


def suppressed(document: Document, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings without those that a comment hides, in file order, and one for each comment that hides nothing."""
    found = tuple(findings)
    ignored = tuple(ignores(document))
    if not ignored:
        return found
    wanted = {(one.place.start.line, one.code) for one in ignored}
    hidden = {one: _key(one, document) for one in found if one.severity != "error" and _key(one, document) in wanted}
    errors = {_key(one, document) for one in found if one.severity == "error"}
    idle = (one for one in ignored if (one.place.start.line, one.code) not in hidden.values())
    told = (finding for one in idle if (finding := _idle(one, errors)) is not None)
    return in_file_order([*(one for one in found if one not in hidden), *told])


def ignores(document: Document) -> Iterator[Ignored]:
    """The codes in all comments of a YAML file, with their places. JSON has no comments."""
    if document.format == "json" or "blockgraph:" not in document.text:
        return
    quoted = list(_quoted(document.tree))
    for number, line in enumerate(document.lines, start=1):
        for comment in _COMMENT.finditer(line):
            at = Position(number, comment.start() + 1)
            if any(start <= at < end for start, end in quoted):
                continue
            words = list(_WORD.finditer(line, comment.start(1), comment.end(1))) if comment[1] else []
            for word in words:
                yield Ignored(word[0], _place(document, number, word.start(), word.end()))
            if not words:
                yield Ignored("", _place(document, number, comment.start(), comment.end()))


def _place(document: Document, line: int, start: int, end: int) -> Place:
    return Place(document.path, Position(line, start + 1), Position(line, end + 1))


def _quoted(tree: Tree) -> Iterator[tuple[Position, Position]]:
    """The stretches of all text in quotes, where `#` begins no comment."""
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        if one.style in ("single", "double"):
            yield one.start, one.end
        waiting.extend(one.children.values() if isinstance(one.children, Mapping) else one.children)


def _key(finding: Finding, document: Document) -> tuple[int, str]:
    here = finding.place.path == document.path
    return (finding.place.start.line if here else 0, finding.code)


def _idle(one: Ignored, errors: set[tuple[int, str]]) -> Finding | None:
    """What to say of a comment that hides nothing; None where errors kept the file from being looked at in full."""
    if not one.code:
        message, help = "`ignore` does not say what it hides", "name the code: `# blockgraph: ignore[BG203]`"
    elif _CODE.fullmatch(one.code) is None:
        message, help = f"`{one.code}` is no code", "codes look like BG203; `blockgraph explain --codes` lists them"
    elif (one.place.start.line, one.code) in errors:
        message = f"{one.code} is an error here, and a comment hides only warnings and notes"
        help = "mend the error, and leave the comment out"
    elif errors:
        return None
    else:
        message, help = f"`ignore[{one.code}]` hides nothing on this line", "leave it out"
    return Finding(CODE, message, one.place, help, severity="warning")
