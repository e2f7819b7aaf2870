"""Turns what PyYAML's scanner and parser complain about into beginners' words, at the place of the fault.

The parser names the token that it missed; most people know neither tokens nor YAML. Each rule below looks at
the text around the fault for the slip behind it. The C parser and the Python one word things differently, so
the patterns match both.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Any, final

from blockgraph.errors import Finding, Place, Position, Related
from blockgraph.records import dataclass
from blockgraph.source.build import TOO_DEEP, Builder
from blockgraph.source.tree import BREAK

QUOTE = "quote the text"
COLON = "write `key: value`, with a space after the colon"
ESCAPE = re.compile(r"\\(u.{1,4}|U.{1,8}|x.{1,2}|.)")
CLOSERS = {"[": "]", "{": "}"}


@final
@dataclass(frozen=True, slots=True)
class Fault:
    """A syntax error before it has a path: what, from where to where, and what to do."""

    message: str
    start: Position
    end: Position
    help: str
    code: str = "BG001"
    opener: Position | None = None

    def finding(self, builder: Builder) -> Finding:
        """The finding, with the path of the value at which reading stopped."""
        place = builder.place(self.start, max(self.end, Position(self.start.line, self.start.column + 1)))
        related: tuple[Related, ...] = ()
        if self.opener is not None:
            end = Position(self.opener.line, self.opener.column + 1)
            related = (Related("opened here", Place(builder.path, self.opener, end)),)
        return Finding(self.code, self.message, place, self.help, related=related)


@final
class Source:
    """The text with its lines, and the ways between offsets and positions."""

    def __init__(self, path: str, text: str) -> None:
        """Find the lines of the text."""
        self.path = path
        self.text = text
        self.lines = BREAK.split(text)
        self.starts = [0, *(match.end() for match in BREAK.finditer(text))]

    def offset(self, at: Position) -> int:
        """The offset in the text of a position."""
        if at.line > len(self.starts):
            return len(self.text)
        return min(self.starts[at.line - 1] + at.column - 1, len(self.text))

    def position(self, offset: int) -> Position:
        """The position of an offset."""
        line = bisect_right(self.starts, offset)
        return Position(line, offset - self.starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line, counted from 1."""
        return self.lines[number - 1] if 1 <= number <= len(self.lines) else ""

    def trimmed(self, start: Position, end: Position) -> Position:
        """The end of a stretch without the blanks and line breaks at its end."""
        first = self.offset(start)
        return self.position(first + len(self.text[first : self.offset(end)].rstrip()))

    def rest(self, at: Position) -> str:
        """What stands on the line from a position on, without a comment."""
        return re.sub(r"\s#.*", "", self.line(at.line)[at.column - 1 :]).rstrip()

    def quoted_rest(self, at: Position) -> str:
        """The rest of the line as it reads when quoted."""
        rest = self.rest(at)[:60]
        if ('"' in rest or "\\" in rest) and "'" not in rest:
            return f"'{rest}'"
        return '"' + rest.replace("\\", "\\\\").replace('"', '\\"') + '"'


@final
@dataclass(frozen=True, slots=True)
class _Complaint:
    source: Source
    problem: str
    at: Position
    context: str
    opened: Position

    @property
    def character(self) -> str:
        """The character at the fault."""
        offset = self.source.offset(self.at)
        return self.source.text[offset : offset + 1]

    @property
    def before(self) -> str:
        """What stands on the line before the fault."""
        return self.source.line(self.at.line)[: self.at.column - 1]

    @property
    def at_end(self) -> bool:
        """Whether the text ends at the fault."""
        return not self.source.text[self.source.offset(self.at) :].strip()

    def fault(self, message: str, help: str, *, opener: Position | None = None) -> Fault:
        """A fault from here to the end of the line."""
        end = Position(self.at.line, self.at.column + len(self.source.rest(self.at)))
        return Fault(message, self.at, end, help, opener=opener)

    def at_opener(self, message: str, help: str) -> Fault:
        """A fault at the bracket, quote or word that began what went wrong."""
        end = Position(self.opened.line, self.opened.column + 1)
        return Fault(message, self.opened, end, help)


def explain(source: Source, error: Any, bracket: Position | None = None) -> Fault:
    """The fault behind an error of PyYAML; `bracket` is where the innermost bracket still open stands."""
    at = _position(source, error.problem_mark or error.context_mark)
    opened = _position(source, error.context_mark or error.problem_mark)
    complaint = _Complaint(source, str(error.problem), at, str(error.context), opened)
    if bracket and complaint.at_end:
        return _unclosed_bracket(replace(complaint, opened=bracket))
    tab = _tab(complaint)
    if tab:
        return tab
    for pattern, rule in RULES:
        if re.search(pattern, f"{complaint.context}: {complaint.problem}"):
            return rule(complaint)
    message = f"this cannot be read as YAML: {complaint.problem}"
    return complaint.fault(message, "check quotes, brackets and indentation")


def _position(source: Source, mark: Any) -> Position:
    """The position of a mark, within the text even where the parser counts a line after its end."""
    if mark is None:
        return Position(1, 1)
    at = Position(mark.line + 1, mark.column + 1)
    return source.position(source.offset(at))


def _tab(c: _Complaint) -> Fault | None:
    line = c.source.line(c.at.line)
    indentation = line[: len(line) - len(line.lstrip())]
    if "\t" in indentation:
        column = indentation.index("\t") + 1
        message = "a tab (`\\t`) indents this line; YAML asks for spaces"
    elif c.character == "\t":
        column = c.at.column
        message = "a tab (`\\t`) stands where YAML asks for a space"
    else:
        return None
    at = Position(c.at.line, column)
    return Fault(message, at, Position(at.line, column + 1), "replace each tab by two spaces", "BG003")


def _strange_start(c: _Complaint) -> Fault:
    return c.fault(f"a value cannot begin with {c.character}", f"{QUOTE}: {c.source.quoted_rest(c.at)}")


def _unclosed_bracket(c: _Complaint) -> Fault:
    bracket = c.source.text[c.source.offset(c.opened)] if c.source.offset(c.opened) < len(c.source.text) else "["
    closer = CLOSERS.get(bracket, "]")
    if c.at_end:
        return c.at_opener(f"this `{bracket}` is never closed", f"add the missing `{closer}`")
    return c.fault(
        f"a `,` or `{closer}` is missing before this, in the `{bracket}` opened in line {c.opened.line}",
        f"close the `{bracket}` with `{closer}`, or separate its entries with `,`",
        opener=c.opened,
    )


def _mapping_value(c: _Complaint) -> Fault:
    key = c.before.strip()
    above = c.source.line(c.at.line - 1).strip()
    if ": " in c.before:
        help = f"if the value is text, {QUOTE}; a mapping goes on lines of its own"
        return c.fault("a second `: ` stands in this line", help)
    if c.at.line > 1 and (tight := re.match(r"[\w-]+:(?=\S)", above)) and not re.search(r":(\s|$)", above):
        first = Position(c.at.line - 1, 1 + c.source.line(c.at.line - 1).index(above[0]))
        message = f"a space is missing after `{tight[0][:40]}`"
        return Fault(message, first, Position(first.line, first.column + len(above)), COLON)
    if c.at.line > 1 and above and ":" not in above:
        return c.fault(f'the line above, "{above[:40]}", has no `:`', COLON)
    message = f"`{key[:40]}` is indented below a line that already has a value"
    return c.fault(message, "give both lines the same indentation")


def _stray(c: _Complaint) -> Fault:
    before = c.before.strip()
    if not before or re.fullmatch(r"(- *)+", before):
        return _indentation(c)
    if c.character and c.character in "]},":
        return c.fault(f"`{c.character}` has no opening bracket", f"remove it, or {QUOTE}")
    help = f"{QUOTE} as a whole: put it all between \" and \", and inside '...' write '' for one '"
    return c.fault(f'"{c.source.rest(c.at)[:40]}" follows a value that is already complete', help)


def _indentation(c: _Complaint) -> Fault:
    line = c.source.line(c.at.line).strip()
    if line.startswith("- "):
        return c.fault("a list item (`- `) stands where a key is expected", "indent the list below its key")
    if "collection" in c.context and c.at.column == c.opened.column:
        help = "indent the list deeper than this key, or begin with `- `"
        return c.fault("a key stands where a list item (`- `) is expected", help)
    message = "the indentation of this line fits no line above it"
    return c.fault(message, "give the keys of one mapping the same indentation")


def _unclosed_quote(c: _Complaint) -> Fault:
    return c.at_opener("this quote is never closed", "add the closing quote at the end of the text")


def _no_colon(c: _Complaint) -> Fault:
    line = c.source.rest(c.opened)
    end = Position(c.opened.line, c.opened.column + len(line))
    return Fault(f'"{line[:40]}" has no `:`', c.opened, end, COLON)


def _escape(c: _Complaint) -> Fault:
    line = c.source.line(c.at.line)
    column = line.rfind("\\", 0, c.at.column) + 1
    found = ESCAPE.match(line, column - 1)
    written = found[0] if found else "\\"
    help = "write `\\\\` for a backslash, or use single quotes, which have no escapes"
    start, end = Position(c.at.line, column), Position(c.at.line, column + len(written))
    return Fault(f"`{written}` is no escape that YAML knows", start, end, help)


def _tag(c: _Complaint) -> Fault:
    written = c.source.rest(c.opened).split(" ")[0]
    end = Position(c.opened.line, c.opened.column + len(written))
    message = f"tags such as `{written[:60]}` are not part of the language"
    return Fault(message, c.opened, end, f"remove it, or {QUOTE}", "BG004")


def _directive(c: _Complaint) -> Fault:
    at = Position(c.opened.line, 1)
    end = Position(at.line, 1 + len(c.source.line(at.line)))
    return Fault("lines that begin with `%` are not part of the language", at, end, f"remove the line, or {QUOTE}")


def _name(c: _Complaint) -> Fault:
    begin = c.source.line(c.opened.line)[c.opened.column - 1 : c.opened.column]
    end = Position(c.opened.line, c.opened.column + 1)
    return Fault(f"a text cannot begin with {begin}", c.opened, end, f"{QUOTE}: {c.source.quoted_rest(c.opened)}")


def _block_header(c: _Complaint) -> Fault:
    help = f"begin the text on the next line; or {QUOTE}: {c.source.quoted_rest(c.opened)}"
    return c.fault("nothing may follow `|` or `>` in its line", help)


def _list_inline(c: _Complaint) -> Fault:
    help = "put each `- item` on a line of its own, or write `[a, b]`"
    return c.fault("a list cannot begin in the line of its key", help)


def _no_space(c: _Complaint) -> Fault:
    return c.fault("a space is missing after this `:`", "write `key: value`, or `key: null` for a key without a value")


def _no_content(c: _Complaint) -> Fault:
    if c.at_end:
        return c.fault("the file ends where a value is expected", "write the value")
    return c.fault(f"a value is missing before this `{c.character}`", f"write the value; if this is text, {QUOTE}")


def _too_deep(c: _Complaint) -> Fault:
    return replace(c.fault(*TOO_DEEP), code="BG007")


def _one_document(c: _Complaint) -> Fault:
    return c.fault("the document ended with `...`, but more follows", "remove the line `...`")


RULES: list[tuple[str, Callable[[_Complaint], Fault]]] = [
    ("cannot start any token", _strange_start),
    (r"expected ',' or '[\]}]'", _unclosed_bracket),
    ("mapping values are not allowed", _mapping_value),
    ("entries are not allowed", _list_inline),
    ("unexpected end of stream|unexpected document (indicator|separator)", _unclosed_quote),
    ("could not find expected ':'", _no_colon),
    ("escape (character|code|sequence)|quoted scalar.*hexdecimal", _escape),
    ("tag", _tag),
    ("directive|%YAML|incompatible YAML document", _directive),
    ("scanning an (anchor|alias)", _name),
    ("scanning a block scalar", _block_header),
    ("node content", _no_content),
    ("nesting depth", _too_deep),
    ("unexpected ':'", _no_space),
    ("document start>?", _one_document),
    ("did not find expected (key|'-' indicator)|expected <block end>", _stray),
]
