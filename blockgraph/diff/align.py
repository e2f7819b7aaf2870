"""Which unit of one graph is which of the other: the best alignment of two lists, by what the units are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from difflib import SequenceMatcher

from blockgraph.diff.terms import ANONYMOUS, options_of, value_text
from blockgraph.diff.units import Unit, Units
from blockgraph.graph import Repeat

MANY = 1_000_000  # pairs to look at
AKIN = frozenset({"attention", "feed_forward"})  # families whose kinds are each other's variants
Keys = tuple[str, str, str]
"""What a unit is, from exact to coarse: all its ops and options, its kind, its family."""


def keys(units: Units, unit: Unit) -> Keys:
    """The three keys of a unit; symbols have no names in them."""
    if unit.repeat is not None:
        inside = sorted({node.op.name for body in unit.repeat.bodies for node in body.nodes})
        return (f"stack {' '.join(inside)}", f"stack of {len(unit.reads)}", "part stack")
    told = []
    for node in unit.nodes:
        assert not isinstance(node.op, Repeat)
        types = [units.graph.types[value] for value in node.inputs]
        told.append(f"{node.op.name} {value_text(tuple(options_of(node.op, types).items()), ANONYMOUS)}")
    for value in units.bare_operands(unit):
        told.append(f"{units.graph.producers[value].op.name}")
    exact = hashlib.sha256("\n".join(told).encode()).hexdigest()
    family = "norm" if unit.is_norm else "op" if unit.op is not None else "part"
    akin = unit.family if unit.family in AKIN else unit.kind
    return (exact, unit.kind, "norm" if unit.is_norm else f"{family} {akin}")


def align(left: Sequence[Keys], right: Sequence[Keys]) -> list[tuple[int, int]]:
    """Pairs of matched indices, in order."""
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    end = 0
    while end < min(len(left), len(right)) - start and left[-1 - end] == right[-1 - end]:
        end += 1
    pairs = [(n, n) for n in range(start)]
    middle = left[start : len(left) - end], right[start : len(right) - end]
    found = _best(*middle) if len(middle[0]) * len(middle[1]) <= MANY else _blocks(*middle)
    pairs += [(a + start, b + start) for a, b in found]
    return pairs + [(len(left) - n, len(right) - n) for n in range(end, 0, -1)]


def likeness(left: Keys, right: Keys) -> int:
    """How well two units match; 0 if they cannot."""
    return next((score for score, a, b in zip((12, 8, 5), left, right, strict=True) if a == b), 0)


def _best(left: Sequence[Keys], right: Sequence[Keys]) -> list[tuple[int, int]]:
    """The alignment with the highest sum of likenesses; parts weigh more than ops."""
    rows = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        for j in range(len(right) - 1, -1, -1):
            like = likeness(left[i], right[j]) * _weight(left[i])
            rows[i][j] = max(rows[i + 1][j], rows[i][j + 1], rows[i + 1][j + 1] + like if like else 0)
    pairs, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        like = likeness(left[i], right[j]) * _weight(left[i])
        if like and rows[i][j] == rows[i + 1][j + 1] + like:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif rows[i][j] == rows[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _weight(one: Keys) -> int:
    return 4 if one[2].startswith("part") else 2 if one[2] == "norm" else 1


def _blocks(left: Sequence[Keys], right: Sequence[Keys]) -> list[tuple[int, int]]:
    """For lists too long to look at every pair."""
    blocks = SequenceMatcher(None, [one[1] for one in left], [one[1] for one in right], autojunk=False)
    return [(b.a + n, b.b + n) for b in blocks.get_matching_blocks() for n in range(b.size)]
