"""Stretches of a file that read the same: what is worked out for the first holds for the others, at other places.

Generated files write every layer of a model out. Their blocks differ in their names alone, and each is read, checked
and looked through once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from blockgraph.errors import Place, Position, SpecPath, spec_path
from blockgraph.records import dataclass

if TYPE_CHECKING:
    from blockgraph.source import Document, Tree


@dataclass(frozen=True, slots=True)
class Shift:
    """From one stretch of a file to another that reads the same: so many lines on, under another path."""

    lines: int
    old: str
    new: str

    def __call__(self, place: Place) -> Place:
        """The place over there; one outside the stretch stays."""
        if not covers(self.old, place):
            return place
        (first, column), (last, end) = place.start, place.end
        path = self.new + place.spec_path[len(self.old) :]
        return Place(place.path, Position(first + self.lines, column), Position(last + self.lines, end), path)

    def onward(self, other: Shift) -> Shift:
        """From where this one leads to where another leads; both begin at the same stretch."""
        return Shift(other.lines - self.lines, self.new, other.new)


def covers(path: str, place: Place) -> bool:
    """Whether a place is below a path in the data."""
    return place.spec_path.startswith((f"{path}.", f"{path}["))


def shift_between(document: Document, old: SpecPath, new: SpecPath) -> Shift:
    """The way between two values of a file that read the same."""
    here, there = tree_at(document, old), tree_at(document, new)
    assert here is not None
    assert there is not None
    return Shift(there.start.line - here.start.line, spec_path(old), spec_path(new))


def reading(document: Document, path: SpecPath) -> tuple[Any, ...] | None:
    """The text of a value and its first column; None in a file with anchors, where equal texts may differ."""
    tree = tree_at(document, path)
    if tree is None or "&" in document.text:
        return None
    (first, column), (last, end) = tree.start, tree.end
    head, *rest = document.lines[first - 1 : last]
    lines = [head[column - 1 :], *rest]
    lines[-1] = lines[-1][: end - 1 if rest else end - column]
    return (column, tuple(lines))


def tree_at(document: Document, path: SpecPath) -> Tree | None:
    """The value at a path with its place; None where there is none."""
    tree: Tree | None = document.tree
    for step in path:
        tree = tree.child(step) if tree is not None else None
    return tree
