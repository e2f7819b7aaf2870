"""One slip, one finding: every spec of the repository with one key, value or name spoiled at a time.

`python -m tests.slips` spoils all of them in every way and prints how many gave one finding, none, or more.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import blockgraph as bg
from blockgraph.errors import SpecError

SPECS = Path(__file__).parent.parent / "specs"
KEY = re.compile(r'(?<![\w."])([A-Za-z_]{3,})(?=:(\s|$))')
VALUE = re.compile(r'(?<=: )([A-Za-z_0-9.*/+"-]+)(?=[,}\]\s]|$)')
WORD = re.compile(r"(?<=: )([A-Za-z_]{4,})(?=[,}\]\s]|$)")
EQUATION = re.compile(r"\s+[\w, ]+ = ")
CALLED = re.compile(r"\b([A-Za-z_]{2,})\b")
Slip = Callable[[str], Iterator[str]]


def _each(pattern: re.Pattern[str], line: str, new: Callable[[str], str], start: int = 0) -> Iterator[str]:
    for match in pattern.finditer(line, start):
        yield line[: match.start(1)] + new(match[1]) + line[match.end(1) :]


def _shorter(word: str) -> str:
    return word[:-2] + word[-1]


def _strange(word: str) -> str:
    return "qqq" + word[::-1]


def a_misspelt_key(line: str) -> Iterator[str]:
    """A key that lacks a letter."""
    yield from _each(KEY, line, _shorter)


def a_strange_key(line: str) -> Iterator[str]:
    """A key that is near no other."""
    yield from _each(KEY, line, _strange)


def a_list_for_a_value(line: str) -> Iterator[str]:
    """A list where something else stands."""
    yield from _each(VALUE, line, lambda _: "[5]")


def a_mapping_for_a_value(line: str) -> Iterator[str]:
    """A mapping where something else stands."""
    yield from _each(VALUE, line, lambda _: "{a: 5}")


def a_misspelt_word(line: str) -> Iterator[str]:
    """A value that lacks a letter."""
    yield from _each(WORD, line, _shorter)


def a_strange_word(line: str) -> Iterator[str]:
    """A value that is near no other."""
    yield from _each(WORD, line, _strange)


def an_unknown_name(line: str) -> Iterator[str]:
    """A name in an equation with a letter too many."""
    if start := EQUATION.match(line):
        yield from _each(CALLED, line, lambda word: f"{word}q", start.end())


def a_broken_equation(line: str) -> Iterator[str]:
    """An equation that does not hang together."""
    if EQUATION.match(line):
        yield from (f"{line} +", f"{line} )")


SLIPS: tuple[Slip, ...] = (
    a_misspelt_key,
    a_strange_key,
    a_list_for_a_value,
    a_mapping_for_a_value,
    a_misspelt_word,
    a_strange_word,
    an_unknown_name,
    a_broken_equation,
)


@dataclass
class Figures:
    """How many slips gave how many findings, and the texts of those that gave more than one."""

    counts: Counter[str] = field(default_factory=Counter)
    more: list[str] = field(default_factory=list)


def findings(text: str) -> list[tuple[str, str]]:
    """Code and message of all findings."""
    try:
        found = bg.check(text).findings
    except SpecError as error:
        found = error.findings
    return [(one.code, one.message) for one in found]


def spoiled(slip: Slip) -> Iterator[tuple[str, str, str]]:
    """Every spec spoiled in every place: what was done, the text before, and the text after."""
    for path in sorted(SPECS.rglob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        before, _, _ = text.partition("\ncheckpoint:")  # what a file is expected to say is free text
        lines = before.split("\n")
        for number, line in enumerate(lines):
            for new in () if line.startswith(("name:", "source:", "#")) else slip(line):
                after = "\n".join((*lines[:number], new, *lines[number + 1 :]))
                yield f"{path.name}:{number + 1}: {new.strip()}", before, after


def judge(slip: Slip, share: float = 1.0) -> Figures:
    """Count the new findings of every slip of one sort, or of a share of them."""
    figures, rng = Figures(), random.Random(slip.__name__)
    known: dict[str, set[tuple[str, str]]] = {}
    for what, before, after in spoiled(slip):
        if rng.random() > share:
            continue
        if before not in known:
            known[before] = set(findings(before))
        new = set(findings(after)) - known[before]  # what an anchor repeats is told for each use, in the same words
        figures.counts["more" if len(new) > 1 else "one" if new else "none"] += 1
        if len(new) > 1:
            figures.more.append("\n".join((what, *(f"  {code} {message}" for code, message in sorted(new)))))
    return figures


def main() -> int:
    """Everything, with the slips that gave more than one finding."""
    every = {slip.__name__: judge(slip) for slip in SLIPS}
    for name, figures in every.items():
        counts = figures.counts
        print(f"{name:24} one {counts['one']:6,}  none {counts['none']:4,}  more {counts['more']:4,}")
    for figures in every.values():
        print("\n".join(figures.more))
    return 0


if __name__ == "__main__":
    sys.exit(main())
