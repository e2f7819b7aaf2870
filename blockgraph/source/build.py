"""Puts a tree together from what a reader meets, in order; the rules that hold for YAML and JSON alike live here.

Those are: keys are text and stand once, nesting and size are limited, the top is a mapping. Nothing here
recurses, and what an alias repeats is counted without being copied.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, NoReturn, final

from blockgraph.errors import Finding, Place, Position, Related, SpecError, SpecPath, in_file_order, spec_path
from blockgraph.records import dataclass
from blockgraph.source.tree import DEPTH_LIMIT, NODE_LIMIT, Stretch, Tree

BEGINNING = Position(1, 1)

TOO_DEEP = (
    f"the file is nested more than {DEPTH_LIMIT} levels deep",
    "name the inner parts under `blocks:` and use their names",
)


def describe(value: Any) -> str:
    """A value in the user's words: short and on one line, without the contents of a collection."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        line = value.split("\n")[0]
        cut = line[:40] + "..." if len(line) > 40 or line != value else line
        return f'"{cut}"'
    if value is None or isinstance(value, bool):
        return "nothing (null)" if value is None else str(value).lower()
    return str(value)[:40]


@final
@dataclass(frozen=True, slots=True)
class Built:
    """A finished value; `size` and `height` count it with everything that aliases repeat in it."""

    tree: Tree
    size: int = 1
    height: int = 0


@dataclass(slots=True)
class _Frame:
    """A mapping or list that is still open."""

    start: Position
    children: dict[str, Tree] | list[Tree]
    keys: dict[str, Stretch] = field(default_factory=dict)
    key: Tree | None = None
    dropped: bool = False
    end: Position = BEGINNING
    size: int = 1
    height: int = 1

    @property
    def awaits_key(self) -> bool:
        return isinstance(self.children, dict) and self.key is None


@final
class Builder:
    """Takes the values of a file in order: `open`, `add`, `close`; `finish` gives the tree or raises all findings."""

    def __init__(self, path: str) -> None:
        """Begin with nothing read; `path` is the file's name in findings."""
        self.path = path
        self.findings: list[Finding] = []
        self._stack: list[_Frame] = []
        self._root: Tree | None = None
        self._met = 0

    def place(self, start: Position, end: Position | None = None) -> Place:
        """A stretch of the file, with the path of the value that is being read."""
        return Place(self.path, start, end or Position(start.line, start.column + 1), spec_path(self.where()))

    def where(self) -> SpecPath:
        """The path of the value that comes next."""
        steps: list[str | int] = []
        for frame in self._stack:
            if isinstance(frame.children, list):
                steps.append(len(frame.children))
            elif frame.key is not None and isinstance(frame.key.value, str):
                steps.append(frame.key.value)
        return tuple(steps)

    def innermost(self) -> Position | None:
        """Where the mapping or list that is still open, the innermost of several, begins."""
        return self._stack[-1].start if self._stack else None

    def complain(self, code: str, message: str, place: Place, help: str = "", label: str = "") -> None:
        """Note a finding and go on."""
        self.findings.append(Finding(code, message, place, help, label))

    def stop(
        self, code: str, message: str, place: Place, help: str = "", related: tuple[Related, ...] = ()
    ) -> NoReturn:
        """Give up with this one finding, because what follows cannot be trusted or would cost too much."""
        raise SpecError([Finding(code, message, place, help, related=related)])

    def open(self, start: Position, *, mapping: bool) -> None:
        """A mapping or list begins."""
        if len(self._stack) >= DEPTH_LIMIT:
            self._too_deep(start)
        self._count(start)
        self._stack.append(_Frame(start, {} if mapping else [], end=start))

    def close(self, end: Position | None = None) -> Built:
        """The innermost mapping or list ends, by default where its last value ends; it is added where it belongs."""
        frame = self._stack.pop()
        children = frame.children
        value: Any = (
            {key: child.value for key, child in children.items()}
            if isinstance(children, dict)
            else [child.value for child in children]
        )
        tree = Tree(value, frame.start, end or frame.end, "plain", children, frame.keys)
        built = Built(tree, frame.size, frame.height)
        self.add(built)
        return built

    def scalar(self, tree: Tree) -> Built:
        """A value without parts, or a key."""
        self._count(tree.start)
        built = Built(tree)
        self.add(built)
        return built

    def add(self, built: Built, at: Stretch | None = None) -> None:
        """Put a value (or a key) where it belongs; `at` is where an alias to it stands."""
        start, end = at or (built.tree.start, built.tree.end)
        if not self._stack:
            self._root = built.tree
            return
        frame = self._stack[-1]
        frame.end = max(frame.end, end)
        if frame.awaits_key:
            self._key(frame, built.tree, (start, end))
            return
        self._measure(frame, built, start)
        if isinstance(frame.children, list):
            frame.children.append(built.tree)
        else:
            self._value(frame, frame.children, built.tree)

    def finish(self) -> Tree:
        """The tree of the whole file, which is a mapping."""
        if self.findings:
            raise SpecError(in_file_order(self.findings))
        root = self._root
        if root is None or (root.value is None and root.start == root.end):
            self.stop("BG008", "the file is empty", self.place(BEGINNING, BEGINNING), "begin with `name: my_block`")
        if not isinstance(root.value, dict):
            shown = "a list" if isinstance(root.value, list) else f"only {describe(root.value)}"
            self.stop(
                "BG008",
                f"the file holds {shown}; a spec is a mapping of keys to values",
                self.place(root.start, root.end),
                "write lines like `name: my_block`, with a space after the colon",
            )
        return root

    def _key(self, frame: _Frame, tree: Tree, at: Stretch) -> None:
        frame.key = Tree(tree.value, *at, tree.style)
        frame.dropped = True
        if tree.value == "<<" and tree.style == "plain":
            self.complain(
                "BG005",
                "merge keys (`<<`) are not part of the language",
                self._key_place(frame),
                "name the block under `blocks:` and use its name, or repeat a whole value: `&norm`, `*norm`",
            )
        elif not isinstance(tree.value, str):
            self.complain(
                "BG006",
                f"a key must be text, got {describe(tree.value)}",
                self._key_place(frame),
                "put the key in quotes" if tree.children == () else "a key is a plain name; is a quote missing?",
            )
        else:
            frame.dropped = False

    def _key_place(self, frame: _Frame) -> Place:
        assert frame.key is not None
        return self.place(frame.key.start, frame.key.end)

    def _value(self, frame: _Frame, children: dict[str, Tree], tree: Tree) -> None:
        key = frame.key
        assert key is not None
        if key.style == "plain" and tree.start == tree.end and isinstance(key.value, str) and ":" in key.value:
            place = self._key_place(frame)
            self.complain("BG001", f"a space is missing after the `:` in `{key.value}`", place, "write `key: value`")
        if not frame.dropped and key.value in children:
            self._repeated(frame, key.value, children[key.value].value, tree.value)
        elif not frame.dropped:
            children[key.value] = tree
            frame.keys[key.value] = (key.start, key.end)
        frame.key = None

    def _repeated(self, frame: _Frame, key: str, old: Any, new: Any) -> None:
        place = self._key_place(frame)
        start, end = frame.keys[key]
        first = Related(f"first {describe(old)}, in line {start.line}", Place(self.path, start, end, place.spec_path))
        self.findings.append(
            Finding(
                "BG002",
                f"the key {describe(key)} stands twice in the same mapping: "
                f"{describe(old)} in line {start.line} and {describe(new)} in line {place.start.line}",
                place,
                "keep one of the two",
                f"then {describe(new)}",
                (first,),
            )
        )

    def _count(self, at: Position) -> None:
        self._met += 1
        if self._met > NODE_LIMIT:
            self._too_large(at)

    def _measure(self, frame: _Frame, built: Built, at: Position) -> None:
        frame.size += built.size + isinstance(frame.children, dict)
        frame.height = max(frame.height, 1 + built.height)
        if frame.size > NODE_LIMIT:
            self._too_large(at)
        if len(self._stack) + built.height > DEPTH_LIMIT:
            self._too_deep(at)

    def _too_large(self, at: Position) -> NoReturn:
        self.stop(
            "BG007",
            f"the file holds more than {NODE_LIMIT:,} keys and values (aliases counted in full)",
            self.place(at),
            "use named blocks and a stack with `repeat` in place of copies",
        )

    def _too_deep(self, at: Position) -> NoReturn:
        message, help = TOO_DEEP
        self.stop("BG007", message, self.place(at), help)
