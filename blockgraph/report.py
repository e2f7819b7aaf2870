"""Findings as text: for a person at a terminal, one line each for an editor, JSON for a program.

Text out of a spec is printed only after it was made harmless, for a spec comes from a stranger and a terminal
obeys what it prints. Columns are those of the screen, so that the caret stays under the guilty text.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, Final, Literal, TextIO

from blockgraph.errors import SEVERITIES, Finding, Place, Position, Related
from blockgraph.records import dataclass

Format = Literal["full", "concise", "json", "github", "sarif"]
Lines = Callable[[str, int], str | None]
"""Line `n` (from 1) of the file at a path, or None where it cannot be had."""

WIDTH: Final = 100
GUTTER: Final = 5
TAB: Final = 4
INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
COLORS: Final = {"error": "1;31", "warning": "1;33", "note": "1;36", "help": "1;36", "gutter": "2"}
GITHUB_TEXT: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
GITHUB_OPTION: Final = {**GITHUB_TEXT, ord(":"): "%3A", ord(","): "%2C"}
SIMPLER: Final = str.maketrans({"…": "...", "×": "x", "\u2212": "-", "\u2013": "-", "→": "->"})


@dataclass(frozen=True, slots=True)
class Console:
    """What the reader's screen can show: its encoding, and whether it knows colours."""

    encoding: str = "utf-8"
    color: bool = False

    @classmethod
    def of(cls, stream: TextIO) -> Console:
        """The console behind a stream: colours on a terminal only, and never where NO_COLOR is set."""
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb" or os.name == "nt"
        return cls(encoding=_encoding(stream), color=stream.isatty() and not plain)

    @property
    def ellipsis(self) -> str:
        """What stands for text left out."""
        return "…" if _encodable("…", self.encoding) else "..."

    def paint(self, text: str, role: str) -> str:
        """The text in the colour of its role, if there are colours."""
        return f"\x1b[{COLORS[role]}m{text}\x1b[0m" if self.color and text else text

    def shown(self, text: str) -> str:
        """The text as it may be printed, on one line."""
        return escape(_simpler(text, self.encoding), self.encoding)


PLAIN: Final = Console()


def formatted(findings: Iterable[Finding], lines: Lines, form: Format = "full", console: Console = PLAIN) -> str:
    """All findings in one of the formats, in the order given, ending in a newline unless there are none."""
    if form == "json":
        return as_json(findings)
    if form == "github":
        return "".join(f"{github(finding)}\n" for finding in findings)
    if form == "concise":
        return "".join(f"{concise(finding, console)}\n" for finding in findings)
    return "\n".join(f"{full(finding, lines, console)}\n" for finding in findings)


def full(finding: Finding, lines: Lines, console: Console = PLAIN) -> str:
    """The finding with its line, a caret under the guilty text, what stands against it, and the remedy."""
    mark = console.paint(_mark(finding), finding.severity)
    out = [f"{mark} {console.shown(str(finding.place))}".rstrip() + f"  {console.shown(finding.message)}"]
    text = None if _is_whole_file(finding) else lines(finding.place.path, finding.place.start.line)
    if text is not None:
        out += _snippet(finding, text, console)
    elif finding.label:
        out += _paragraph("note", finding.label, console)
    for related in finding.related:
        if text is None or not _same_line(related, finding.place):
            out += _paragraph("note", _with_place(related), console)
    if finding.help:
        out += _paragraph("help", finding.help, console)
    return "\n".join(out)


def concise(finding: Finding, console: Console = PLAIN) -> str:
    """`path:line:column: CODE message`, on one line whatever the message holds."""
    place = f"{finding.place}: " if finding.place.path else ""
    return console.shown(f"{place}{_mark(finding)} {finding.message}")


def github(finding: Finding) -> str:
    """A workflow command of GitHub Actions, which shows the finding beside its line in a pull request."""
    level = {"error": "error", "warning": "warning", "note": "notice"}[finding.severity]
    place = finding.place
    where = {"file": place.path, "line": place.start.line, "col": place.start.column, "endLine": place.end.line}
    where |= {"endColumn": place.end.column} if place.end.line == place.start.line else {}
    where = {**(where if place.path else {}), "title": f"blockgraph {finding.code}"}
    options = ",".join(f"{key}={str(value).translate(GITHUB_OPTION)}" for key, value in where.items())
    parts = (finding.message, finding.label, f"help: {finding.help}" if finding.help else "")
    return f"::{level} {options}::" + "\n".join(filter(None, parts)).translate(GITHUB_TEXT)


def as_data(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The findings as plain data; what stands in no file, or in one that is not known, has the path and range None."""
    return [
        {
            "code": finding.code,
            "severity": finding.severity,
            "message": finding.message,
            "label": finding.label,
            "help": finding.help,
            **_where(finding.place),
            "spec_path": finding.place.spec_path,
            "related": [{"message": one.message, **_where(one.place)} for one in finding.related],
        }
        for finding in findings
    ]


def as_json(findings: Iterable[Finding]) -> str:
    """The findings as a JSON list, in ASCII, so that any console and any pipe can carry it."""
    import json

    return json.dumps(as_data(findings), indent=2) + "\n"


def summary(findings: Iterable[Finding]) -> str:
    """`2 errors, 1 warning`, or `no findings`."""
    count = Counter(finding.severity for finding in findings)
    return ", ".join(f"{count[k]} {k}{'s' * (count[k] > 1)}" for k in SEVERITIES if count[k]) or "no findings"


def write(stream: TextIO, text: str) -> None:
    """Write text to a stream of any encoding: what it cannot carry is spelled simpler or as an escape."""
    encoding = _encoding(stream)
    stream.write(_simpler(text, encoding).encode(encoding, "backslashreplace").decode(encoding))


def escape(text: str, encoding: str = "utf-8") -> str:
    r"""The text with whatever is invisible or steers a terminal spelled out: `\x1b`, `\u202e`, `\n`."""
    return "".join(_visible(character, encoding) for character in text)


def columns(text: str) -> int:
    """How many columns of a terminal the text fills: wide characters two, combining ones none."""
    return sum(map(_column_count, text))


# Characters


def _encoding(stream: TextIO) -> str:
    # An io.StringIO has no encoding, and a replaced sys.stderr need not have the attribute.
    return getattr(stream, "encoding", None) or "utf-8"


@cache
def _encodable(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _simpler(text: str, encoding: str) -> str:
    return text if text.isascii() else "".join(c if _encodable(c, encoding) else c.translate(SIMPLER) for c in text)


@cache
def _visible(character: str, encoding: str) -> str:
    if unicodedata.category(character) not in INVISIBLE and _encodable(character, encoding):
        return character
    return character.encode("unicode_escape").decode("ascii")


@cache
def _column_count(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


# Parts of the full format


def _mark(finding: Finding) -> str:
    return finding.code if finding.severity == "error" else f"{finding.severity} {finding.code}"


def _is_whole_file(finding: Finding) -> bool:
    place = finding.place
    return not place.path or (place.start == place.end == Position(1, 1) and not finding.label)


def _same_line(related: Related, place: Place) -> bool:
    other = related.place
    return other is not None and (other.path, other.start.line) == (place.path, place.start.line)


def _with_place(related: Related) -> str:
    if related.place is None or not related.place.path:
        return related.message
    return f"{related.message} ({related.place.path}:{related.place.start.line})"


def _where(place: Place | None) -> dict[str, Any]:
    if place is None or not place.path:
        return {"path": None, "range": None}
    start, end = ({"line": one.line, "column": one.column} for one in (place.start, place.end))
    return {"path": place.path, "range": {"start": start, "end": end}}


def _snippet(finding: Finding, text: str, console: Console) -> list[str]:
    start, end = _span(finding.place, text)
    excerpt = _excerpt(text, start, end, WIDTH - GUTTER - 3, console)
    caret, stop = excerpt.column(start), excerpt.column(end)
    carets = "^" * max(1, stop - caret)
    label = console.shown(finding.label)
    beside = caret + len(carets) + 1 + columns(label) <= excerpt.room
    below = [] if beside or not label else [_aligned(label, caret, excerpt.room)]
    for related in finding.related:
        if related.place is not None and _same_line(related, finding.place):
            at = excerpt.column(related.place.start.column - 1)
            below.append(_aligned(console.shown(related.message), at, excerpt.room))
    carets = console.paint(carets, finding.severity)
    under = " " * caret + (f"{carets} {label}".rstrip() if beside else carets)
    number = str(finding.place.start.line).rjust(GUTTER)
    return [_row(number, excerpt.text, console), *(_row(" " * GUTTER, line, console) for line in (under, *below))]


def _span(place: Place, text: str) -> tuple[int, int]:
    """The guilty characters of the place's first line, counted from 0; empty at a point."""
    start = min(max(place.start.column - 1, 0), len(text))
    end = place.end.column - 1 if place.end.line == place.start.line else len(text)
    return start, min(max(end, start), len(text))


def _row(number: str, text: str, console: Console) -> str:
    return f"{console.paint(f'{number} |', 'gutter')} {text}".rstrip()


def _aligned(text: str, column: int, room: int) -> str:
    """The text from a column on, moved left as far as it must be to fit."""
    return " " * max(0, min(column, room - columns(text))) + text


@dataclass(frozen=True, slots=True)
class _Excerpt:
    """A line as printed; `at[i]` is the column of character `first + i`, whose last is the end."""

    text: str
    room: int
    first: int
    at: tuple[int, ...]

    def column(self, index: int) -> int:
        return self.at[min(max(index - self.first, 0), len(self.at) - 1)]


def _excerpt(text: str, start: int, end: int, room: int, console: Console) -> _Excerpt:
    """As much of a line as fits, around its guilty characters."""
    text = text.rstrip("\r\n")
    base = max(0, start - room)  # a line may be a megabyte long: look only at what could be shown
    near = text[base : start + 2 * room]
    cells = _cells(near, start - base, end - base, console)
    widths = [columns(cell) for cell in cells]
    whole = len(near) == len(text) and sum(widths) <= room
    spare = room if whole else room - 2 * len(console.ellipsis)
    low, high = _window(widths, start - base, end - base, spare)
    before = console.ellipsis if base + low > 0 else ""
    after = console.ellipsis if base + high < len(text) else ""
    at = tuple(accumulate(widths[low:high], initial=len(before)))
    return _Excerpt(before + "".join(cells[low:high]) + after, room, base + low, at)


def _cells(text: str, start: int, end: int, console: Console) -> list[str]:
    """What each character looks like: a guilty tab is spelled out, any other goes to its stop."""
    cells: list[str] = []
    column = 0
    for index, character in enumerate(text):
        if character == "\t" and not start <= index < max(end, start + 1):
            cells.append(" " * (TAB - column % TAB))
        else:
            cells.append(console.shown(character))
        column += columns(cells[-1])
    return cells


def _window(widths: Sequence[int], start: int, end: int, room: int) -> tuple[int, int]:
    """The stretch to show, [low, high): the guilty characters first, then as much on both sides."""
    low = high = min(start, len(widths))
    while high < min(end, len(widths)) and widths[high] <= room:
        room -= widths[high]
        high += 1
    growing = True
    while growing:
        growing = False
        if high < len(widths) and widths[high] <= room:
            room, high, growing = room - widths[high], high + 1, True
        if low > 0 and widths[low - 1] <= room:
            room, low, growing = room - widths[low - 1], low - 1, True
    return low, high


def _paragraph(title: str, text: str, console: Console) -> list[str]:
    """`  title: text`, wrapped, its further lines indented alike; a newline in the text is kept."""
    indent = " " * (len(title) + 4)
    rows = [row for line in text.split("\n") for row in _wrapped(console.shown(line), WIDTH - len(indent))]
    first = f"  {console.paint(f'{title}:', title)} {rows[0]}"
    return [first, *(f"{indent}{row}".rstrip() for row in rows[1:])]


def _wrapped(text: str, room: int) -> list[str]:
    """The text broken at spaces, but not at one inside backquotes: code is to be copied."""
    body = text.lstrip(" ")
    rows = [" " * (len(text) - len(body))]
    for word in re.findall(r"(?:`[^`]*`|[^ `]|`)+ *", body):
        if rows[-1].strip() and columns(rows[-1] + word.rstrip()) > room:
            rows.append("")
        rows[-1] += word
    return [row.rstrip() for row in rows]
