"""A document as read: plain data beside a tree that remembers where every key and value stands.

Later layers work on the plain data and come back here only to say where a fault is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, final

from blockgraph.errors import Place, Position, SpecPath, spec_path
from blockgraph.records import dataclass
from blockgraph.source.spans import Span, Style, spans

BYTE_LIMIT = 2**20
NODE_LIMIT = 100_000
DEPTH_LIMIT = 64
BREAK = re.compile(r"\r\n|\r|\n")
Stretch = tuple[Position, Position]


@final
@dataclass(frozen=True, slots=True)
class Tree:
    """One value with its place; the same Tree stands wherever an alias repeats it.

    `children` are the values of a mapping by key, or of a list by index; `keys` are the places of a mapping's keys.
    """

    value: Any
    start: Position
    end: Position
    style: Style = "plain"
    children: Mapping[str, Tree] | Sequence[Tree] = ()
    keys: Mapping[str, Stretch] = field(default_factory=dict)

    @property
    def quoted(self) -> bool:
        """Whether this is text written in quotes or as a block, so that it was meant as text."""
        return isinstance(self.value, str) and self.style != "plain"

    def child(self, step: str | int) -> Tree | None:
        """The value under a key or at an index, or None."""
        if isinstance(self.children, Mapping):
            return self.children.get(step) if isinstance(step, str) else None
        inside = isinstance(step, int) and 0 <= step < len(self.children)
        return self.children[step] if inside and isinstance(step, int) else None


@final
class Document:
    """A spec file: its text, its plain data, and the place of everything in it."""

    def __init__(self, path: str, text: str, tree: Tree, format: Literal["yaml", "json"]) -> None:
        """Keep a text and the tree read from it."""
        self.path = path
        self.text = text
        self.tree = tree
        self.format = format
        self.data: Any = tree.value
        self.lines: tuple[str, ...] = tuple(BREAK.split(text))
        self._starts = [0, *(match.end() for match in BREAK.finditer(text))]
        self._spans: dict[int, list[Span] | None] = {}
        self._doubted: set[Position] = set()

    def value(self, path: SpecPath) -> Place:
        """The place of the value at a path; of its nearest ancestor if the file has no such value."""
        tree = self._nearest(path)[-1]
        return Place(self.path, tree.start, tree.end, spec_path(path))

    def key(self, path: SpecPath) -> Place:
        """The place of the key at a path; of the item itself in a list; of the nearest ancestor's key if it is missing.

        A path's own text stays in the place, so that a missing key is still named.
        """
        trees = self._nearest(path)
        if len(trees) == 1:
            return self.value(path)
        step = path[len(trees) - 2]
        if isinstance(step, str):
            return Place(self.path, *trees[-2].keys[step], spec_path(path))
        return Place(self.path, trees[-1].start, trees[-1].end, spec_path(path))

    def within(self, path: SpecPath, start: int, end: int) -> Place:
        """The place in the file of characters `start` to `end` of the text at a path.

        Indentation, folding, escapes and doubled quotes are taken into account. A value that is no text, or
        characters outside it, gives the place of the whole value.
        """
        trees = self._nearest(path)
        tree = trees[-1]
        whole = self.value(path)
        if len(trees) <= len(path) or not isinstance(tree.value, str):
            return whole
        found = self._spans_of(tree)
        if not found or not 0 <= start <= end <= len(found):
            return whole
        first = self._position(found[start][0]) if start < len(found) else self._after(found[-1][1])
        last = self._after(found[end - 1][1]) if end > start else first
        return Place(self.path, first, last, spec_path(path))

    def doubts(self, place: Place) -> bool:
        """Whether a place is that of a value under a misspelt key."""
        return place.start in self._doubted

    def read_as(self, path: SpecPath, key: str, meant: str) -> None:
        """Let a key of the mapping at a path be found by what it was meant to be, too.

        A plain value of it is doubted: it is read on, but judged only when the key is right.
        """
        tree = self._nearest(path)[-1]
        children, keys = tree.children, tree.keys
        if isinstance(children, dict) and isinstance(keys, dict) and key in children:
            children.setdefault(meant, children[key])
            keys.setdefault(meant, keys[key])
            self._doubted |= set() if children[key].children else {children[key].start}

    def is_quoted(self, path: SpecPath) -> bool:
        """Whether the value at a path is text written in quotes or as a block."""
        trees = self._nearest(path)
        return len(trees) > len(path) and trees[-1].quoted

    def joins(self, path: SpecPath) -> bool:
        """Whether the text at a path stands on several lines of which YAML makes one, as it does after `>`."""
        trees = self._nearest(path)
        tree = trees[-1]
        if len(trees) <= len(path) or not isinstance(tree.value, str) or tree.style in ("literal", "json"):
            return False
        lines = self.text[self._offset(tree.start) : self._offset(tree.end)].splitlines()
        return sum(bool(line.strip()) for line in lines) > (2 if tree.style == "folded" else 1)

    def has(self, path: SpecPath) -> bool:
        """Whether the file has a value at a path."""
        return len(self._nearest(path)) > len(path)

    def line(self, number: int) -> str:
        """The text of a line, counted from 1, without its line break; empty outside the file."""
        return self.lines[number - 1] if 1 <= number <= len(self.lines) else ""

    def _nearest(self, path: SpecPath) -> list[Tree]:
        """The trees from the top along a path, as far as they exist."""
        trees = [self.tree]
        for step in path:
            child = trees[-1].child(step)
            if child is None:
                break
            trees.append(child)
        return trees

    def _spans_of(self, tree: Tree) -> list[Span] | None:
        if id(tree) not in self._spans:
            start, end = self._offset(tree.start), self._offset(tree.end)
            self._spans[id(tree)] = spans(self.text, start, end, tree.style, tree.value)
        return self._spans[id(tree)]

    def _offset(self, at: Position) -> int:
        return self._starts[at.line - 1] + at.column - 1

    def _position(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def _after(self, offset: int) -> Position:
        """The position just after the character that ends at an offset, on that character's own line."""
        last = self._position(offset - 1)
        return Position(last.line, last.column + 1)
