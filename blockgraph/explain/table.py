"""Plain text laid out for reading: titled sections, columns, wrapped docstrings."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 100
NARROW = 30


def section(title: str, lines: Iterable[str]) -> list[str]:
    """A title with its lines below, indented; nothing when there are none."""
    body = list(lines)
    return ["", f"{title}:", *(f"  {line}".rstrip() for line in body)] if body else []


def columns(rows: Sequence[Sequence[str]], width: int = WIDTH) -> list[str]:
    """Rows with their cells under each other, to be indented by two; the last cell is wrapped in its own column.

    Where that would be too narrow for reading, the last cell goes below the others.
    """
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    lead = sum(widths) + 2 * len(widths)
    below = max(len(row[-1]) for row in rows) > width - 2 - lead < NARROW
    lead = 4 if below else lead
    lines = []
    for row in rows:
        first = "".join(cell.ljust(room) + "  " for cell, room in zip(row[:-1], widths, strict=True))
        parts = wrapped_words(row[-1], width - 2 - lead)
        if not below:
            first, parts = first + parts[0], parts[1:]
        lines += [first.rstrip(), *(" " * lead + part for part in parts)]
    return lines


def wrapped_words(text: str, width: int) -> list[str]:
    """A text in lines of at most `width`, broken at blanks only; one empty line for no text."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def docstring(of: type, width: int = WIDTH) -> list[str]:
    """A class's docstring as lines, its paragraphs kept, and broken anew if they are too wide."""
    return reflowed(inspect.cleandoc(of.__dict__.get("__doc__") or ""), width)


def reflowed(text: str, width: int) -> list[str]:
    """The lines of a text; paragraphs of prose with a line that is too wide are broken anew.

    What is indented, between fences, in a table or a heading is to be read as it stands.
    """
    lines: list[str] = []
    prose, fence = [""], False
    for line in [*text.splitlines(), ""]:
        fenced_here = line.startswith("```")
        plain = bool(line) and not fence and not fenced_here and not line.startswith((" ", "|", "#", "- ", "* "))
        if plain and not line.startswith("Source:"):
            prose.append(line)
            continue
        lines += _paragraph(prose[1:], width)
        prose = ["", line] if plain else [""]
        lines += [] if plain else [line]
        fence ^= fenced_here
    return lines[:-1]


def _paragraph(lines: Sequence[str], width: int) -> list[str]:
    return wrapped_words(" ".join(lines), width) if any(len(line) > width for line in lines) else list(lines)


def fenced(text: str) -> list[str]:
    """Lines to be copied as they are."""
    return text.rstrip("\n").splitlines()
