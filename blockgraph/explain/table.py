"""Plain text laid out for reading: titled sections, columns, wrapped docstrings."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 100


def section(title: str, lines: Iterable[str]) -> list[str]:
    """A title with its lines below, indented; nothing when there are none."""
    body = list(lines)
    return ["", f"{title}:", *(f"  {line}".rstrip() for line in body)] if body else []


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with their cells under each other; the last cell is wrapped in its own column."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    lead = sum(widths) + 2 * len(widths)
    lines = []
    for row in rows:
        first = "".join(cell.ljust(width) + "  " for cell, width in zip(row[:-1], widths, strict=True))
        room = max(30, WIDTH - 2 - lead)
        parts = textwrap.wrap(row[-1], room, break_long_words=False, break_on_hyphens=False) or [""]
        lines += [(first + parts[0]).rstrip(), *(" " * lead + part for part in parts[1:])]
    return lines


def docstring(of: type) -> list[str]:
    """A class's docstring as lines, paragraphs kept."""
    return inspect.cleandoc(of.__dict__.get("__doc__") or "").splitlines()


def fenced(text: str) -> list[str]:
    """Lines to be copied as they are."""
    return text.rstrip("\n").splitlines()
