"""Where each character of a text value stands in the file, through folding, indentation and escapes.

The rules are those of YAML's five ways to write text. The outcome is checked against the value that the
reader got; should they ever differ, there is no answer, and the caller names the whole value.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Literal

from blockgraph.records import dataclass

Style = Literal["plain", "single", "double", "literal", "folded", "json"]
Span = tuple[int, int]

BREAK = re.compile(r"\r\n|\r|\n")
SPACE = re.compile(r"[ \t\r\n]+")
PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
ESCAPE_LENGTH = {"x": 4, "u": 6, "U": 10}
LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")


def spans(text: str, start: int, end: int, style: Style, value: str) -> list[Span] | None:
    """The stretch of `text[start:end]` behind each character of `value`; None if the two do not agree."""
    if style in ("literal", "folded"):
        found = _block(text, start, end, value, folded=style == "folded")
    else:
        inside = 0 if style == "plain" else 1
        found = _flow(text, start + inside, end - inside, style)
    shown = found.shown[: len(value)]
    agree = len(shown) == len(value) and all(a in ("", b) for a, b in zip(shown, value, strict=True))
    return found.where[: len(value)] if agree else None


@dataclass(slots=True)
class _Run:
    """Characters with their stretches; "" stands for a character that an escape spells."""

    shown: list[str] = field(default_factory=list)
    where: list[Span] = field(default_factory=list)

    def put(self, character: str, start: int, end: int) -> None:
        self.shown.append(character)
        self.where.append((start, end))

    def put_all(self, text: str, start: int, end: int) -> None:
        self.shown.extend(text[start:end])
        self.where.extend((i, i + 1) for i in range(start, end))

    def put_breaks(self, breaks: list[Span]) -> None:
        for start, end in breaks:
            self.put("\n", start, end)


def _flow(text: str, start: int, end: int, style: Style) -> _Run:
    """Plain and quoted text: line breaks fold, quotes are doubled in '...', escapes hold in "..."."""
    run = _Run()
    at = start
    while at < end:
        space = SPACE.match(text, at, end)
        if space:
            at = _fold(run, text, at, space.end())
        elif text[at] == "\\" and style in ("double", "json"):
            at = _escape(run, text, at, end, style)
        else:
            width = 2 if style == "single" and text[at] == "'" else 1
            run.put(text[at], at, at + width)
            at += width
    return run


def _fold(run: _Run, text: str, start: int, end: int) -> int:
    """A stretch of blanks: as it is within a line; one line break is a space, each further one a line break."""
    breaks = [match.span() for match in BREAK.finditer(text, start, end)]
    if not breaks:
        run.put_all(text, start, end)
    elif len(breaks) == 1:
        run.put(" ", *breaks[0])
    else:
        run.put_breaks(breaks[1:])
    return end


def _escape(run: _Run, text: str, start: int, end: int, style: Style) -> int:
    """One escape; before a line break it joins the lines, so that only empty lines leave a character."""
    after = text[start + 1 : start + 2]
    if after in ("\r", "\n"):
        space = SPACE.match(text, start + 1, end)
        stop = space.end() if space else start + 2
        run.put_breaks([match.span() for match in BREAK.finditer(text, start + 1, stop)][1:])
        return stop
    pair = PAIR.match(text, start) if style == "json" else None
    stop = pair.end() if pair else start + ESCAPE_LENGTH.get(after, 2)
    run.put("", start, stop)
    return stop


def _block(text: str, start: int, end: int, value: str, *, folded: bool) -> _Run:
    """Text after `|` or `>`: lines without their indentation; in `>` the breaks between ordinary lines are spaces.

    What chomping removes is a tail of line breaks, so the caller only has to cut.
    """
    run = _Run()
    header = LINE.match(text, start)
    lines = _lines(text, header.end() if header else end)
    indent = _indent(text, lines, value)
    pending: list[Span] = []
    blank_before = True
    for first, last, stop in lines:
        if last - first <= indent and not text[first:last].strip(" "):
            pending.append((last, stop))
            continue
        if text[first : first + indent].strip(" "):
            break
        blank = text[first + indent] in " \t"
        _join(run, pending, fold=folded and not blank and not blank_before)
        run.put_all(text, first + indent, last)
        pending = [(last, stop)] if stop > last else []
        blank_before = blank
    run.put_breaks(pending)
    return run


def _join(run: _Run, breaks: list[Span], *, fold: bool) -> None:
    """The line breaks between two lines of text; folded, the first is dropped, or a space if it is the only one."""
    if not fold:
        run.put_breaks(breaks)
    elif len(breaks) == 1:
        run.put(" ", *breaks[0])
    else:
        run.put_breaks(breaks[1:])


def _lines(text: str, start: int) -> list[tuple[int, int, int]]:
    """The lines from an offset on: where each begins, where its text ends, where its break ends."""
    found = [(match.start(), match.end(1), match.end()) for match in LINE.finditer(text, start)]
    return [line for line in found if line[2] > line[0]]


def _indent(text: str, lines: list[tuple[int, int, int]], value: str) -> int:
    """The indentation of a block: by how much its first line with text stands further right in the file."""
    written = next((text[first:last] for first, last, _ in lines if text[first:last].strip(" ")), "")
    read = next((line for line in value.split("\n") if line.strip(" ")), "")
    return len(written) - len(written.lstrip(" ")) - (len(read) - len(read.lstrip(" ")))
