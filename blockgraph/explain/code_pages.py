"""The pages about findings, one file per code in `blockgraph/codes`."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from blockgraph.records import dataclass

ENDING = ".md"
HEAD = re.compile(r"# (BG[0-9]{3}): (\S+)\n\nseverity: (\w+)\n\n## What it means\n\n(.*?)\n\n", re.DOTALL)
COLUMNS = ("code", "name", "severity", "what it means")


@dataclass(frozen=True, slots=True)
class Head:
    """What a page says first."""

    code: str
    name: str
    severity: str
    meaning: str


@cache
def codes() -> tuple[str, ...]:
    """All codes that have a page, in order."""
    names = (entry.name for entry in (files("blockgraph") / "codes").iterdir())
    return tuple(sorted(name.removesuffix(ENDING) for name in names if name.startswith("BG")))


def page(code: str) -> str:
    """The page of a code."""
    return (files("blockgraph") / "codes" / f"{code}{ENDING}").read_text(encoding="utf-8")


def head_of(code: str) -> Head:
    """The head of a code's page; `meaning` is its first paragraph as one line."""
    found = HEAD.match(page(code))
    assert found is not None, f"the page of {code} begins otherwise"
    return Head(found[1], found[2], found[3], " ".join(found[4].split()))


def codes_table() -> str:
    """All codes as a table in Markdown, its first columns aligned for reading as plain text."""
    heads = [head_of(code) for code in codes()]
    rows = [(head.code, head.name, head.severity, head.meaning.replace("|", "\\|")) for head in heads]
    widths = [max(len(row[i]) for row in (COLUMNS, *rows)) for i in range(3)]
    lines = [" | ".join([*map(str.ljust, row[:3], widths), row[3]]) for row in (COLUMNS, *rows)]
    rule = " | ".join(["-" * width for width in (*widths, len(COLUMNS[3]))])
    return "".join(f"| {line} |\n" for line in (lines[0], rule, *lines[1:]))
