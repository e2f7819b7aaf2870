"""Reads YAML 1.2 by the events of PyYAML's C parser, without its constructors and without recursion.

PyYAML resolves words by YAML 1.1 and builds objects on request of the file; both would be wrong here, so only
its parser is used: words, tags, anchors and aliases are judged in this module. Where the C parser is missing,
the one in Python serves.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any, final

import yaml

from blockgraph.errors import Position, Related, SpecError
from blockgraph.records import dataclass
from blockgraph.source.build import Builder, Built
from blockgraph.source.faults import QUOTE, Source, explain
from blockgraph.source.scalars import Scalar, resolve
from blockgraph.source.spans import Style
from blockgraph.source.tree import Tree

STYLES: dict[str, Style] = {"'": "single", '"': "double", "|": "literal", ">": "folded"}
# What may stand before a value: an anchor or a tag, then blanks, line breaks and comments.
PROPERTY = re.compile(r"(&[^\s,\[\]{}]*|!<[^>]*>|![^\s,\[\]{}]*)((?:\s+(?:#[^\r\n]*)?)*)")
BLANK = " \t\r\n"


def read_yaml(text: str, path: str) -> Tree:
    """The tree of a YAML text. Raises SpecError with every repeated key, tag and merge key, or one syntax error."""
    reader = _Reader(Source(path, text), Builder(path))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for event in yaml.parse(text, Loader=loader):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        bracket = reader.builder.innermost() if reader.names and reader.names[-1][1] else None
        fault = explain(reader.source, error, bracket)
        raise SpecError([fault.finding(reader.builder)]) from None
    return reader.builder.finish()


@final
@dataclass(slots=True)
class _Reader:
    source: Source
    builder: Builder
    anchors: dict[str, Built | None] = field(default_factory=dict)
    names: list[tuple[str | None, bool]] = field(default_factory=list)
    documents: int = 0

    def take(self, event: Any) -> None:
        """One event of the parser."""
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            start = self._skip_properties(event)
            self.names.append((event.anchor, bool(event.flow_style)))
            self.builder.open(start, mapping=isinstance(event, yaml.MappingStartEvent))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, flow = self.names.pop()
            # A block's end mark is the beginning of whatever comes next, so its last value decides.
            built = self.builder.close(_position(event.end_mark) if flow else None)
            self._remember(anchor, built)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._document(event)

    def _document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            self.builder.stop(
                "BG001",
                "a second document begins here; a spec file holds one",
                self.builder.place(_position(event.start_mark), _position(event.end_mark)),
                "remove the line `---`, or put each document in a file of its own",
            )

    def _scalar(self, event: Any) -> None:
        start = self._skip_properties(event)
        style = STYLES.get(event.style or "", "plain")
        end = _position(event.end_mark)
        if style in ("literal", "folded"):
            end = self.source.trimmed(start, end)
        value: Scalar = event.value
        if style == "plain":
            value = self._resolve(event.value, start, end)
        self._remember(event.anchor, self.builder.scalar(Tree(value, start, max(start, end), style)))

    def _resolve(self, word: str, start: Position, end: Position) -> Scalar:
        try:
            return resolve(word)
        except ValueError as reason:
            self.builder.complain(
                "BG007", str(reason), self.builder.place(start, end), "write a number between 1e-300 and 1e300 in size"
            )
            return None

    def _skip_properties(self, event: Any) -> Position:
        """Where the value itself begins, after its anchor and tag; a tag is a finding, an anchor is noted as open."""
        start = _position(event.start_mark)
        if event.anchor is None and event.tag is None:
            return start
        offset = self.source.offset(start)
        found = PROPERTY.match(self.source.text, offset)
        while found:
            if found[1].startswith("!"):
                self._refuse_tag(found.start(1), found.end(1))
            offset = found.end()
            found = PROPERTY.match(self.source.text, offset)
        if event.anchor is not None:
            self._open_anchor(event.anchor, start)
        stop = self.source.offset(_position(event.end_mark))
        empty = isinstance(event, yaml.ScalarEvent) and not event.style and not event.value
        return self.source.position(stop if empty else offset)

    def _refuse_tag(self, start: int, end: int) -> None:
        place = self.builder.place(self.source.position(start), self.source.position(end))
        tag = self.source.text[start : min(end, start + 60)]
        message = f"tags such as `{tag}` are not part of the language"
        self.builder.complain("BG004", message, place, "remove the tag; to mean text, use quotes")

    def _open_anchor(self, name: str, start: Position) -> None:
        if name in self.anchors:
            self.builder.complain(
                "BG001",
                f"the anchor `&{name}` is set twice",
                self.builder.place(start, Position(start.line, start.column + len(name) + 1)),
                "give the second one another name",
            )
        self.anchors[name] = None

    def _remember(self, anchor: str | None, built: Built) -> None:
        if anchor is not None:
            self.anchors[anchor] = built

    def _alias(self, event: Any) -> None:
        start, end = _position(event.start_mark), _position(event.end_mark)
        name = event.anchor
        if name not in self.anchors:
            self.builder.stop(
                "BG001",
                f"`*{name}` repeats the value of an anchor `&{name}`, but there is none above",
                self.builder.place(start, end),
                f"if this is text, {QUOTE}: {self.source.quoted_rest(start)}",
            )
        built = self.anchors[name]
        if built is None:
            self.builder.stop(
                "BG007",
                f"`*{name}` stands inside the value that it repeats, so it would never end",
                self.builder.place(start, end),
                "move it out of that value",
                (Related(f"`&{name}` is still open here"),),
            )
        self.builder.add(built, (start, end))


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)
