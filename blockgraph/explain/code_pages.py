"""The pages about findings, one file per code in `blockgraph/codes`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

ENDING = ".md"


@cache
def codes() -> tuple[str, ...]:
    """All codes that have a page, in order."""
    names = (entry.name for entry in (files("blockgraph") / "codes").iterdir())
    return tuple(sorted(name.removesuffix(ENDING) for name in names if name.endswith(ENDING)))


def page(code: str) -> str:
    """The page of a code."""
    return (files("blockgraph") / "codes" / f"{code}{ENDING}").read_text(encoding="utf-8")
