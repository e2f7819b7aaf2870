"""Lanes for vertical lines: what overlaps gets lanes of its own, and what is outside a plate stays clear of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blockgraph.drawing.diagram import Box, Diagram
from blockgraph.records import dataclass

Span = tuple[int, int]
"""A stretch of the diagram, from box to box."""
Key = tuple[str, int]
Lane = tuple[int, int]
"""Where a vertical line runs: its column (0 is the spine), and its place among the rails left of it (0, -1 ...)."""


@dataclass(frozen=True, slots=True)
class Item:
    """A vertical line or column: over which stretch, and the innermost plate that holds all of it.

    `after` is another one, beyond which it has to be, `follows` one that it may go on from on the same lane.
    """

    key: Key
    span: Span
    plate: int
    after: Key | None = None
    follows: Key | None = None

    def clashes(self, other: Item) -> bool:
        """Whether both cannot be on one lane."""
        return _overlap(self.span, other.span) and self.key != other.follows and self.follows != other.key


def pack(items: Sequence[Item], diagram: Diagram, boxes: Sequence[Box]) -> dict[Key, int]:
    """A lane per item, 0 the nearest to the spine.

    Items in inner plates come first, then short ones, then in the order given, but each after what it has to be
    beyond; items on one lane at most touch.
    """
    extents = _extents(diagram, boxes)
    taken: list[list[Item]] = []
    reach: dict[int, int] = {}  # the outermost lane that each plate holds
    found: dict[Key, int] = {}
    for item in _in_turn(sorted(items, key=lambda item: (-diagram.depth(item.plate), item.span[1] - item.span[0]))):
        around = set(diagram.around(item.plate))
        passed = [reach[plate] for plate in reach if plate not in around and _overlap(extents[plate], item.span)]
        passed += [found[item.after]] if item.after in found else []
        lane = max(passed, default=-1) + 1
        while lane < len(taken) and any(item.clashes(other) for other in taken[lane]):
            lane += 1
        taken += [[] for _ in range(lane + 1 - len(taken))]
        taken[lane].append(item)
        found[item.key] = lane
        reach |= {plate: max(lane, reach.get(plate, 0)) for plate in around}
    return found


def _in_turn(items: Sequence[Item]) -> Iterator[Item]:
    """The items in order, except that one waits for what it has to be beyond."""
    keys, done = {item.key for item in items}, set[Key]()
    behind: dict[Key, list[Item]] = {}
    for item in items:
        if item.after in keys and item.after not in done:
            behind.setdefault(item.after, []).append(item)
            continue
        ready = [item]
        while ready:
            done.add(ready[-1].key)
            yield (one := ready.pop())
            ready += reversed(behind.pop(one.key, []))


def _extents(diagram: Diagram, boxes: Sequence[Box]) -> dict[int, Span]:
    """The first and the last box of each plate."""
    found: dict[int, Span] = {}
    for index, box in enumerate(boxes):
        for plate in diagram.around(box.plate):
            found[plate] = (found.get(plate, (index, index))[0], index)
    return found


def _overlap(left: Span, right: Span) -> bool:
    return left[0] < right[1] and right[0] < left[1]
