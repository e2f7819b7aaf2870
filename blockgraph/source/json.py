"""Reads JSON by RFC 8259, strictly, with the place of every key and value, and without recursion.

The standard library's reader keeps no places, takes repeated keys and NaN, and recurses.
"""

from __future__ import annotations

import re
from typing import NoReturn, final

from blockgraph.errors import Position, Related
from blockgraph.records import dataclass
from blockgraph.source.build import Builder
from blockgraph.source.faults import Source
from blockgraph.source.scalars import Scalar, decimal, whole
from blockgraph.source.spans import PAIR
from blockgraph.source.tree import Tree

SPACE = re.compile(r"[ \t\r\n]*")
UNENDED = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*')
STRING = re.compile(UNENDED.pattern + '"')
ESCAPE = re.compile(r"\\(.)")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
WORD = re.compile(r"[^\s,:\[\]{}\"']+")
HEX = re.compile(r"[0-9a-fA-F]{4}")
WORDS: dict[str, Scalar] = {"true": True, "false": False, "null": None}
SIMPLE = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
LIKELY = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false", "None": "null", "Null": "null"}
CLOSERS = {"{": "}", "[": "]"}


def read_json(text: str, path: str) -> Tree:
    """The tree of a JSON text. Raises SpecError with every repeated key, or with one syntax error."""
    reader = _Reader(Source(path, text), Builder(path), [])
    reader.read()
    return reader.builder.finish()


@final
@dataclass(slots=True)
class _Reader:
    source: Source
    builder: Builder
    opened: list[int]
    at: int = 0

    def read(self) -> None:
        """Value after value until the outermost one is complete; then nothing may follow."""
        self._blank()
        if self.at == len(self.source.text):
            return
        while True:
            if self._begin_value():
                continue
            while self.opened and self._end_value():
                pass
            if not self.opened:
                break
        self._blank()
        if self.at < len(self.source.text):
            self._fault(self.at, "the text goes on after its end", "a file holds one value: remove the rest")

    def _begin_value(self) -> bool:
        """Read a scalar, or enter a collection; true if a first member has to follow."""
        text = self.source.text
        if text[self.at : self.at + 1] not in ("{", "["):
            self._scalar()
            return False
        mapping = text[self.at] == "{"
        self.builder.open(self.source.position(self.at), mapping=mapping)
        self.opened.append(self.at)
        self.at += 1
        self._blank()
        if text[self.at : self.at + 1] == ("}" if mapping else "]"):
            self._close()
            return False
        if mapping:
            self._key()
        return True

    def _end_value(self) -> bool:
        """After a value: a comma leads to the next (false), a closing bracket ends the collection (true)."""
        self._blank()
        text = self.source.text
        bracket = text[self.opened[-1]]
        found = text[self.at : self.at + 1]
        if found == CLOSERS[bracket]:
            self._close()
            return True
        if found != ",":
            self._no_comma(bracket)
        comma = self.at
        self.at += 1
        self._blank()
        if text[self.at : self.at + 1] in ("}", "]"):
            self._fault(comma, "JSON has no comma after the last entry", "remove the comma")
        if bracket == "{":
            self._key()
        return False

    def _close(self) -> None:
        self.opened.pop()
        self.at += 1
        self.builder.close(self.source.position(self.at))

    def _key(self) -> None:
        if self.source.text[self.at : self.at + 1] != '"':
            self._no_key()
        self._string()
        self._blank()
        if self.source.text[self.at : self.at + 1] != ":":
            self._fault(self.at, "a `:` is missing after the key", 'write `"key": value`')
        self.at += 1
        self._blank()

    def _scalar(self) -> None:
        text = self.source.text
        if text[self.at : self.at + 1] == '"':
            self._string()
            return
        word = WORD.match(text, self.at)
        if word is None:
            self._no_value()
        number = NUMBER.fullmatch(word[0])
        if not number and word[0] not in WORDS:
            self._bad_word(word[0])
        self._add(self._number(number) if number else WORDS[word[0]], word.end(), quoted=False)

    def _add(self, value: Scalar, stop: int, *, quoted: bool) -> None:
        start, self.at = self.at, stop
        first, last = self.source.position(start), self.source.position(stop)
        self.builder.scalar(Tree(value, first, last, "json" if quoted else "plain"))

    def _number(self, number: re.Match[str]) -> Scalar:
        try:
            return decimal(number[0]) if number[1] or number[2] else whole(number[0], 10)
        except ValueError as reason:
            place = self.builder.place(self.source.position(self.at), self.source.position(self.at + number.end()))
            self.builder.complain("BG007", str(reason), place, "write a number between 1e-300 and 1e300 in size")
            return None

    def _string(self) -> None:
        found = STRING.match(self.source.text, self.at)
        if found is None:
            self._bad_string()
        value = self._unescape(self.at + 1, found.end() - 1) if "\\" in found[0] else found[0][1:-1]
        self._add(value, found.end(), quoted=True)

    def _unescape(self, start: int, stop: int) -> str:
        """The text of a string with escapes; two escapes that make one character count as one."""
        text = self.source.text
        parts: list[str] = []
        escape = ESCAPE.search(text, start, stop)
        while escape:
            parts.append(text[start : escape.start()])
            start = self._escape(parts, escape.start(), stop)
            escape = ESCAPE.search(text, start, stop)
        return "".join(parts) + text[start:stop]

    def _escape(self, parts: list[str], at: int, stop: int) -> int:
        text = self.source.text
        letter = text[at + 1]
        if letter in SIMPLE:
            parts.append(SIMPLE[letter])
            return at + 2
        digits = HEX.match(text, at + 2, stop) if letter == "u" else None
        if digits is None:
            written = text[at : at + 2]
            self._fault(at, f"`{written}` is no escape that JSON knows", "write `\\\\` for a backslash")
        code = int(digits[0], 16)
        pair = PAIR.match(text, at, stop)
        if pair:
            parts.append(chr(0x10000 + ((code & 0x3FF) << 10) + (int(text[at + 8 : at + 12], 16) & 0x3FF)))
            return pair.end()
        if 0xD800 <= code < 0xE000:
            written = text[at : at + 6]
            self._fault(at, f"`{written}` is half of a character", "write both halves, or the character itself")
        parts.append(chr(code))
        return at + 6

    def _blank(self) -> None:
        found = SPACE.match(self.source.text, self.at)
        self.at = found.end() if found else self.at
        text = self.source.text
        if text[self.at : self.at + 1] == "#" or text[self.at : self.at + 2] in ("//", "/*"):
            self._fault(self.at, "JSON has no comments", "remove the comment, or name the file .yaml and use `#`")

    def _no_comma(self, bracket: str) -> NoReturn:
        self._unclosed()
        closer = CLOSERS[bracket]
        line = self.source.position(self.opened[-1]).line
        message = f"a `,` or `{closer}` is missing before this, in the `{bracket}` opened in line {line}"
        self._fault(self.at, message, "put a comma between entries", self.opened[-1])

    def _unclosed(self) -> None:
        """If the text ends here, the innermost open bracket is at fault."""
        if self.at < len(self.source.text) or not self.opened:
            return
        bracket = self.source.text[self.opened[-1]]
        self._fault(self.opened[-1], f"this `{bracket}` is never closed", f"add the missing `{CLOSERS[bracket]}`")

    def _no_key(self) -> NoReturn:
        self._unclosed()
        word = WORD.match(self.source.text, self.at)
        self._single_quote()
        if word is None:
            self._fault(self.at, "a key is missing here", 'write `"key": value`')
        self._fault(self.at, f"the key {word[0][:40]} has no quotes", f'write "{word[0][:40]}"')

    def _no_value(self) -> NoReturn:
        self._unclosed()
        self._single_quote()
        self._fault(self.at, "a value is missing here", "write the value, or null")

    def _single_quote(self) -> None:
        if self.source.text[self.at : self.at + 1] == "'":
            self._fault(self.at, "JSON has no single quotes", 'use double quotes: "..."')

    def _bad_word(self, word: str) -> NoReturn:
        shown = word[:40]
        if word in LIKELY:
            self._fault(self.at, f"JSON writes {LIKELY[word]}, not {shown}", f"write {LIKELY[word]}")
        if re.fullmatch(r"[-+]?(NaN|nan|Infinity|inf)", word):
            self._fault(self.at, f"{shown} is no number in JSON", "write a finite number")
        if re.fullmatch(r"[-+]?[.0-9][-+.0-9eE]*", word):
            help = "write it like 0.5, 10 or 1e-5: no `+`, no leading zeros"
            self._fault(self.at, f"{shown} is no number in JSON", help)
        self._fault(self.at, f"the text {shown} has no quotes", f'write "{shown}"')

    def _bad_string(self) -> NoReturn:
        """A string without an end: a line break or control character stands in it, or its quote is missing."""
        end = UNENDED.match(self.source.text, self.at)
        stop = end.end() if end else self.at
        found = self.source.text[stop : stop + 1]
        if found == "\t":
            self._fault(stop, "a tab stands in the text", "write `\\t`")
        help = 'add the closing `"`; a line break in text is written `\\n`'
        self._fault(self.at, "this quote is not closed in its line", help)

    def _fault(self, at: int, message: str, help: str, opener: int | None = None) -> NoReturn:
        start = self.source.position(at)
        place = self.builder.place(start, Position(start.line, start.column + 1))
        related: tuple[Related, ...] = ()
        if opener is not None:
            begin = self.source.position(opener)
            there = self.builder.place(begin, Position(begin.line, begin.column + 1))
            related = (Related("opened here", there),)
        self.builder.stop("BG001", message, place, help, related)
