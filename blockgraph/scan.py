"""Equation text before it is parsed: which lines belong together, and what the language has no word for.

Python's own messages about such text speak of Python. Here everything outside the language is found by its
characters, first, so that the message can name it, its column and what to write instead; what remains is plain
ASCII of the same length, in which a column is a character offset.
"""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import field

from blockgraph.records import dataclass
from blockgraph.syntax import Refusal

MAX_LENGTH = 4096
MAX_DEPTH = 100
MAX_NAME = 64
MAX_DIGITS = 40
RESERVED = frozenset({"layer", "tensor"})

_PAIRS = {")": "(", "]": "[", "}": "{"}
_STRING = r"\"[^\"\n]*\"|'[^'\n]*'"
_LAYOUT = re.compile(rf"(?P<string>{_STRING})|#[^\n]*|[()\[\]{{}}\n]")
_KEYWORDS = "|".join(word for word in keyword.kwlist if word not in {"True", "False", "None"})
_NUMBER = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([A-Za-z_]\w*)?", re.ASCII)
_SUSPECT = re.compile(
    rf"(?P<string>{_STRING})|(?P<quote>[\"'])|(?P<prefix>(?<!\w)[A-Za-z_]\w{{0,2}}(?=[\"']))"
    rf"|(?P<keyword>(?<!\w)(?:{_KEYWORDS})(?!\w))|(?P<name>(?<!\w)(?:__\w*|[A-Za-z_]\w{{{MAX_NAME},}}))"
    r"|(?P<number>(?<!\w)(?:(?:\d[\d.]*|\.\d+)[eE][-+]\d\w*|\d[\w.]*|\.\d))|(?P<alien>[^\x20-\x7e])"
    r"|(?P<operator>//=?|->|:=|<<|>>|<>|\\|[%^&|]=?|[~;{}$?`]|!(?!=))",
    re.ASCII,
)
_STEP = re.compile(rf"{_STRING}|\*\*|[-+*/@<>=!]=?|[()\[\],.]")
_SIGNS = re.compile(rf"(?:[-+][ ]*){{{MAX_DEPTH + 1},}}")
_TOKEN = re.compile(
    rf"(?P<value>{_STRING}|[\w.]+)|(?P<open>[(\[])|(?P<close>[)\]])|\*\*|[-+*/@<>=!]=?|[,:]|\S",
    re.ASCII,
)
_EQUALS = re.compile(r"\"[^\"]*\"|'[^']*'|[(\[{]|[)\]}]|(?<![=<>!])=(?!=)")
_UNPLAIN = re.compile(r"[^\x20-\x7e]|\\")

_KEYWORD_HELP = {
    "if": "write `where(condition, a, b)`", "else": "write `where(condition, a, b)`", "is": "write `==`",
    "and": "multiply the two, or use `where`", "or": "use `where`", "not": "use `where`",
    "return": "write `y = ...`; `outputs:` lists what is returned", "for": "write the terms out, or use `einsum`",
    "def": "name a block under `blocks:` and call it", "lambda": "name a block under `blocks:` and call it",
    "import": "only the functions of the library can be called",
    "from": "only the functions of the library can be called",
}  # fmt: skip
_OPERATOR_HELP = {
    "^": "write `**` for a power", "//": "write `/`; in a size it is exact", "{": "write a list, `[a, b]`",
    "}": "write a list, `[a, b]`", ":=": "write `=`, on a line of its own", ";": "write one equation a line",
    "\\": "open a bracket to go on in the next line", "<>": "write `!=`", "!": "write `!=`",
    "&": "write `*`, or use `where`", "|": "use `where`",
}  # fmt: skip
_BINDS_LEFT = re.compile(r"(@|/|\*\*)[ ]*$")  # before `2W`: what would take the 2 alone
_BINDS_RIGHT = re.compile(r"[ ]*(\*\*|[(\[.])")  # after it: what belongs to the W alone
_LOOKALIKES = {
    "*": "\u00d7\u00b7\u22c5\u2217\u2022\u2299", "-": "\u2212\u2013\u2014\u2010\u2011", "/": "\u00f7\u2215\u2044",
    '"': "\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019\u201a", "**2": "\u00b2", "**3": "\u00b3", "<=": "\u2264",
    ">=": "\u2265", "!=": "\u2260", "...": "\u2026",
    "sqrt(...)": "\u221a", ".T": "\u1d40\u22a4", "=": "\u2190", "sum(...)": "\u2211",
}  # fmt: skip
_ALIEN_HELP = {sign: f"write `{plain}`" for plain, signs in _LOOKALIKES.items() for sign in signs}


def outside(start: int, end: int, what: str, help: str = "") -> Refusal:
    """The refusal of something the language does not have."""
    return Refusal(start, end, f"{what} is not part of the equation language", help, "BG010")


def broken(start: int, end: int, message: str, help: str = "") -> Refusal:
    """The refusal of text that does not hang together."""
    return Refusal(start, end, message, help, "BG016")


def too_long(start: int, end: int) -> Refusal:
    """The refusal of an equation past the limit of characters."""
    message = f"the equation has {end - start:,} characters; {MAX_LENGTH:,} are allowed"
    return Refusal(start, end, message, "give parts of it names of their own", "BG014")


@dataclass(slots=True)
class Layout:
    """A text with comments blanked and its continued lines joined, all of the same length as before."""

    code: str
    ends: list[int]
    unpaired: dict[int, Refusal]

    def lines(self) -> Iterator[tuple[int, int]]:
        """Start and end of each equation that is not blank, surrounding spaces left out."""
        start = 0
        for end in (*self.ends, len(self.code)):
            line = self.code[start:end]
            if kept := line.strip(" \t\r"):
                first = start + len(line) - len(line.lstrip(" \t\r"))
                yield first, first + len(kept)
            start = end + 1


def lay_out(text: str) -> Layout:
    """Pair the brackets of a text: a line that ends inside a pair goes on in the next one."""
    tokens = list(_LAYOUT.finditer(text))
    partner, unpaired = _pair(tokens)
    parts: list[str] = []
    ends: list[int] = []
    done = depth = 0
    for token in tokens:
        start, first = token.start(), text[token.start()]
        if first in "([{":
            depth += start in partner
        elif first in ")]}":
            depth -= start in partner
        elif first == "\n" and not depth:
            ends.append(start)
        elif first in "#\n":
            parts += text[done:start], " " * (token.end() - start)
            done = token.end()
    return Layout("".join((*parts, text[done:])), ends, unpaired)


def _pair(tokens: list[re.Match[str]]) -> tuple[set[int], dict[int, Refusal]]:
    """The places of all paired brackets, and a refusal for each of the others."""
    paired: set[int] = set()
    unpaired: dict[int, Refusal] = {}
    waiting: list[re.Match[str]] = []
    for token in tokens:
        bracket, start = token[0], token.start()
        if bracket in _PAIRS.values():
            waiting.append(token)
        elif bracket in _PAIRS:
            if waiting and waiting[-1][0] == _PAIRS[bracket]:
                paired |= {start, waiting.pop().start()}
            else:
                help = f"remove it, or open `{_PAIRS[bracket]}`"
                unpaired[start] = broken(start, start + 1, f"`{bracket}` closes no bracket", help)
    for token in waiting:
        closing = next(close for close, opening in _PAIRS.items() if opening == token[0])
        unpaired[token.start()] = broken(*token.span(), f"`{token[0]}` is never closed", f"add `{closing}`")
    return paired, unpaired


@dataclass(slots=True)
class Scanned:
    """One equation's text made ready for parsing.

    `code` is ASCII; `inserted` are the offsets in it of the `signs` that were put in: a `*`, and brackets where it
    would bind otherwise than `4C` reads. `fatal` says why it cannot be read.
    """

    code: str
    base: int
    inserted: list[int] = field(default_factory=list)
    signs: list[str] = field(default_factory=list)
    mended: list[Refusal] = field(default_factory=list)
    fatal: Refusal | None = None

    def place(self, offset: int) -> int:
        """The offset into the text given that belongs to an offset into `code`."""
        return self.base + offset - (bisect_left(self.inserted, offset) if self.inserted else 0)


def scan(code: str, base: int, unpaired: Mapping[int, Refusal]) -> Scanned:
    """Find what the language has no word for; `base` is the offset of `code` in the text given."""
    found = Scanned(code, base)
    if len(code) > MAX_LENGTH:
        found.fatal = too_long(base, base + len(code))
        return found
    found.fatal = _first_alien(found)
    if unpaired:
        bracket = next((unpaired[at] for at in range(base, base + len(code)) if at in unpaired), None)
        if bracket and (found.fatal is None or bracket.start < found.fatal.start):
            found.fatal = bracket
    _mend(found)
    return found


def _first_alien(found: Scanned) -> Refusal | None:
    """The first thing outside the language; missing `*` are noted in `found` on the way."""
    previous = -1
    for match in _SUSPECT.finditer(found.code):
        start, end = found.base + match.start(), found.base + match.end()
        refusal: Refusal | None = None
        match match.lastgroup:
            case "string":
                if previous >= 0 and not found.code[previous : match.start()].strip():
                    refusal = broken(start, end, "two quoted texts stand side by side", "put a comma between them")
                previous = match.end()
            case "number":
                refusal = _check_number(found, match.start())
            case _:
                refusal = _refuse(str(match.lastgroup), match[0], start, end)
        if refusal:
            return refusal
    return None


def _refuse(kind: str, word: str, start: int, end: int) -> Refusal | None:
    if kind == "quote":
        return broken(start, end, "this quote is never closed", f"add {word}")
    if kind == "prefix":
        return outside(start, end, f"`{word}` before a quoted text", "remove it")
    if kind == "keyword":
        return outside(start, end, f"`{word}`", _KEYWORD_HELP.get(word, ""))
    if kind == "name":
        return check_name(word, start)
    if kind == "operator":
        known = _OPERATOR_HELP.get(word) or _OPERATOR_HELP.get(word.rstrip("="), "")
        return outside(start, end, f"`{word}`", known)
    return None if word in "\t\r" else _refuse_character(word, start)


def _refuse_character(character: str, start: int) -> Refusal:
    number = f"U+{ord(character):04X}"
    shown = f"`{character}` ({number})" if character.isprintable() else f"the invisible character {number}"
    if character.isalpha() and character not in _ALIEN_HELP:
        help = "names are made of the letters A to Z and a to z, digits and `_`"
        return Refusal(start, start + 1, f"{shown} cannot stand in a name", help, "BG013")
    plain = "write a plain space" if unicodedata.category(character) == "Zs" else "remove it"
    return outside(start, start + 1, shown, _ALIEN_HELP.get(character, plain))


def check_name(name: str, start: int) -> Refusal | None:
    """The refusal of a name nobody may use, or None."""
    if name.startswith("__"):
        message = f"`{name[:MAX_NAME]}` begins with two underscores"
        return Refusal(start, start + len(name), message, "choose another name", "BG013")
    if len(name) > MAX_NAME:
        message = f"the name `{name[:20]}...` has {len(name):,} characters; {MAX_NAME} are allowed"
        return Refusal(start, start + len(name), message, "choose a shorter name", "BG013")
    return None


def check_target(name: str, start: int) -> Refusal | None:
    """The refusal of a name that cannot be assigned to, or None."""
    if name in RESERVED or keyword.iskeyword(name):
        return Refusal(start, start + len(name), f"`{name}` is reserved", "choose another name", "BG013")
    return check_name(name, start)


def _check_number(found: Scanned, at: int) -> Refusal | None:
    """Refuse a number that is no plain decimal; note `4C` as mended."""
    match = _NUMBER.match(found.code, at)
    if match is None:
        return None
    number, name = match[1], match[2] or ""
    start, end = found.base + at, found.base + match.end()
    if flaw := _flaw_of_number(number, name):
        return Refusal(start, end, *flaw, "BG010")
    if not name:
        return None
    if keyword.iskeyword(name):
        return _refuse("keyword", name, start + len(number), end)
    product = f"{number}*{name[:MAX_NAME]}"
    signs = {at + len(number): "*"}
    if _BINDS_LEFT.search(found.code, 0, at) and not _BINDS_RIGHT.match(found.code, match.end()):
        product = f"({product})"
        signs = {at: "(", **signs, match.end(): ")"}
    found.inserted += signs
    found.signs += signs.values()
    message = f"`*` is missing in `{match[0][:MAX_NAME]}`"
    found.mended.append(Refusal(start, end, message, f"write `{product}`", "BG011"))
    return check_name(name, start + len(number))


def _flaw_of_number(number: str, name: str) -> tuple[str, str] | None:
    """Message and help for a number that cannot be read; `name` are the letters right after it."""
    if number == "0" and re.match(r"[xXbBoO][0-9a-fA-F]", name):
        return f"`{number}{name[:MAX_DIGITS]}` is not a decimal number", "write the number in decimal"
    if re.match(r"_\d", name):
        return "a number has no `_` inside", "write the digits without it"
    if len(number) > MAX_DIGITS:
        return f"the number has {len(number):,} characters; {MAX_DIGITS} are allowed", "write it as a power, or rounded"
    if math.isinf(float(number)):
        return f"the number {number} is too large", "write a smaller one; `float` numbers end at 1.8e308"
    if number.isdigit() and number[0] == "0" and number.strip("0"):
        return f"the number `{number}` begins with 0", f"write `{int(number)}`"
    return None


def _mend(found: Scanned) -> None:
    """Put in the missing `*`, blank what quotes hide, so that the code is ASCII and an offset is a column."""
    if _UNPLAIN.search(found.code):
        found.code = _UNPLAIN.sub(lambda match: " " if match[0] in "\t\r" else "?", found.code)
    for count, (at, sign) in enumerate(zip(found.inserted, found.signs, strict=True)):
        found.code = f"{found.code[: at + count]}{sign}{found.code[at + count :]}"
        found.inserted[count] = at + count


def first_too_deep(code: str) -> tuple[int, bool] | None:
    """Where a text may pass the depth limit, and whether it certainly does; None if it cannot.

    Each operator, call, subscript and `.T` adds at most one to the depth of what encloses it; a comma starts anew.
    """
    if len(code) <= MAX_DEPTH:
        return None
    if signs := _SIGNS.search(code):
        return signs.start(), True
    levels, total, suspect = [0], 0, -1
    for step in _STEP.finditer(code):
        token = step[0]
        if token in ")]" and len(levels) > 1:
            total -= levels.pop()
        elif token == ",":
            total -= levels[-1]
            levels[-1] = 0
        elif token[0] not in "\"')]":
            levels[-1] += 1
            total += 1
            if token in "([":
                levels.append(1)
                total += 1
        if len(levels) > MAX_DEPTH + 1:
            return step.start(), True
        if total >= MAX_DEPTH and suspect < 0:
            suspect = step.start()
    return None if suspect < 0 else (suspect, False)


def explain_syntax(scanned: Scanned, offset: int) -> Refusal:
    """Why Python cannot parse the code; `offset` is where it stopped reading."""
    equals = open_equals(scanned.code)
    if equals is not None:
        at = scanned.place(equals)
        return outside(at, at + 1, "a second `=`", "write one `=` a line, or `==` to compare")
    start, end, message, help = _explain_broken(scanned.code, offset)
    return broken(scanned.place(start), scanned.place(end), message, help)


def _explain_broken(code: str, offset: int) -> tuple[int, int, str, str]:
    """Why code does not hang together: start, end, message, help; `offset` is where Python stopped reading."""
    wants_value, previous = True, ""
    for token in _TOKEN.finditer(code):
        word, kind = token[0], token.lastgroup
        if kind == "value" and not wants_value:
            help = "write an operator or a comma between them"
            help = f"write `{previous}*{word}`" if previous[:1].isdigit() else help
            return *token.span(), f"an operator is missing before `{word[:MAX_NAME]}`", help
        if wants_value and _needs_left(word, kind, previous):
            return *token.span(), f"a value is missing before `{word}`", "write a name, a number or a call there"
        wants_value, previous = kind not in {"value", "close"}, word
    if wants_value and previous:
        message = f"the equation ends where a value is expected, after `{previous}`"
        return len(code), len(code), message, "write a name, a number or a call there"
    found = _TOKEN.search(code, max(0, min(offset, len(code) - 1)))
    if found is None:
        return 0, len(code), "this cannot be read", ""
    return *found.span(), f"`{found[0][:MAX_NAME]}` cannot stand here", ""


def _needs_left(word: str, kind: str | None, previous: str) -> bool:
    """Whether a token that follows `previous`, which is no value, needs one before it."""
    if kind in {"value", "open"} or word in {"+", "-", ":"}:
        return False
    if kind == "close":
        return previous not in {"(", "[", ",", ":"}
    if word == ",":
        return previous != ":"
    return word not in {"*", "**"} or previous not in {"(", ","}


def explain_no_target(code: str, start: int) -> Refusal:
    """Why a line does not begin with `name =`."""
    equals = open_equals(code)
    if equals is not None:
        return _explain_target(code[:equals].rstrip(), start, start + equals)
    end = start + len(code)
    if colon := re.match(r"[\w ]+(:)", code):
        at = start + colon.start(1)
        return broken(at, at + 1, "`:` cannot stand here", "write `name = expression`")
    return outside(start, end, "an expression without a name", "name the result: `y = ...`")


def _explain_target(target: str, start: int, equals: int) -> Refusal:
    if not target:
        return broken(equals, equals + 1, "a name is missing before `=`", "write `name = expression`")
    end = start + len(target)
    if re.fullmatch(r"\w+[ ]*:.*", target):
        colon = start + target.index(":")
        help = "write `name = expression`; shapes are found by themselves"
        return outside(colon, end, "a type after a name", help)
    what = "a list of names in brackets" if target[0] in "([" else f"assigning to `{target[:40]}`"
    return outside(start, end, what, "write `name = expression`, or `a, b = ...`")


def open_equals(code: str) -> int | None:
    """Where a `=` stands outside all brackets, if anywhere."""
    depth = 0
    for token in _EQUALS.finditer(code):
        depth += (token[0] in "([{") - (token[0] in ")]}")
        if token[0] == "=" and depth == 0:
            return token.start()
    return None
