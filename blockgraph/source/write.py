"""Writes plain data as YAML in the style of the specs, and as JSON; both read back to equal data.

PyYAML's own writer follows YAML 1.1 (it quotes `no` and leaves `1e-5` bare as text) and cannot mix block and
flow style, so the few rules needed are spelled out here.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from blockgraph.errors import Finding, Place, SpecError, SpecPath, spec_path
from blockgraph.source.build import describe
from blockgraph.source.scalars import DIGIT_LIMIT, resolve
from blockgraph.source.tree import DEPTH_LIMIT, NODE_LIMIT

WIDTH = 100
KEY_LIMIT = 1000
# No indicator at the beginning, no blank at either end, nothing that could open a comment or a key.
PLAIN = re.compile(r"[^\s\-?:,\[\]{}#&*!|>'\"%@`]([^\n]*\S)?")
AMBIGUOUS = re.compile(r":( |$)| #|[,\[\]{}]")
# What may stand as it is: no control characters, no line breaks, none that turn the direction of writing.
PRINTED = "\x20-\x7e\xa0-\u200d\u2010-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff"
NOT_PLAIN = re.compile(f"[^{PRINTED}]")
NOT_BLOCK = re.compile(f"[^\n\t{PRINTED}]")
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def to_json(data: Any) -> str:
    """Plain data as indented JSON. Raises SpecError for what JSON cannot hold."""
    check_plain(data, "<dict>")
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def to_yaml(data: Any, width: int = WIDTH) -> str:
    """Plain data as YAML: small lists and mappings in one line of `width`, text of several lines as a block.

    Raises SpecError for what a spec cannot hold.
    """
    check_plain(data, "<dict>")
    if not isinstance(data, dict) or not data:
        return _flow(data, top=True) + "\n"
    lines: list[str] = []
    # Each entry: the text that leads up to a value, the column of its key or dash, the value.
    todo = _entries(data, "", 0)
    while todo:
        lead, column, value = todo.pop()
        if _fits(value, len(lead), width):
            lines.append(f"{lead} {_flow(value)}")
        elif isinstance(value, str):
            lines.append(f"{lead} {_block(value, column)}")
        elif lead.endswith("-"):
            todo.extend(_entries(value, lead + " ", column + 2))
        else:
            lines.append(lead)
            todo.extend(_entries(value, " " * (column + 2), column + 2))
    return "\n".join(lines) + "\n"


def check_plain(data: Any, path: str) -> None:
    """Make sure that data is what a spec can hold: mappings, lists, text, numbers, true, false, null.

    Raises SpecError with every value that is something else, and at the limits of depth and number.
    """
    findings: list[Finding] = []
    todo: list[tuple[SpecPath, Any]] = [((), data)]
    met = 0
    while todo:
        where, value = todo.pop()
        met += 1
        if met > NODE_LIMIT or len(where) > DEPTH_LIMIT:
            limit = f"{NODE_LIMIT:,} values" if met > NODE_LIMIT else f"{DEPTH_LIMIT} levels"
            raise SpecError([_finding("BG007", f"the data holds more than {limit}", path, where[:4])])
        if isinstance(value, dict):
            findings += [_bad_key(key, path, where) for key in value if not _is_key(key)]
            todo += [((*where, key), child) for key, child in value.items() if _is_key(key)]
        elif isinstance(value, list | tuple):
            todo += [((*where, index), child) for index, child in enumerate(value)]
        elif not _is_scalar(value):
            findings.append(_bad_value(value, path, where))
    if findings:
        raise SpecError(findings)


def _is_key(key: Any) -> bool:
    return type(key) is str and len(key) <= KEY_LIMIT and _is_text(key)


def _is_text(text: str) -> bool:
    return not re.search("[\ud800-\udfff]", text)


def _is_scalar(value: Any) -> bool:
    if type(value) is int:
        return value.bit_length() <= DIGIT_LIMIT * 3
    if type(value) is float:
        return math.isfinite(value)
    return value is None or type(value) is bool or (type(value) is str and _is_text(value))


def _bad_key(key: Any, path: str, where: SpecPath) -> Finding:
    shown = describe(key) if type(key) in (str, int, float, bool, type(None)) else f"a {type(key).__name__}"
    return _finding("BG006", f"a key must be text of at most {KEY_LIMIT} characters, got {shown}", path, where)


def _bad_value(value: Any, path: str, where: SpecPath) -> Finding:
    owner = type(value).__module__.split(".")[0]
    got = f"a value of type {type(value).__name__}" + ("" if owner == "builtins" else f" from {owner}")
    if type(value) is str:
        got = "text with half a character"
    elif type(value) in (int, float):
        got = "a number that is too long" if type(value) is int else str(value)
    message = f"a spec holds only mappings, lists, text, finite numbers, true, false and null; got {got}"
    help = "convert it first: int(...), float(...), str(...) or .tolist()"
    return _finding("BG001", message, path, where, help)


def _finding(code: str, message: str, path: str, where: SpecPath, help: str = "") -> Finding:
    return Finding(code, message, Place(path, spec_path=spec_path(where)), help)


def _entries(value: Any, first: str, column: int) -> list[tuple[str, int, Any]]:
    """The entries of a mapping or list for the writer's stack, last one first; `first` leads the first of them."""
    leads = [f"{_text(key)}:" for key in value] if isinstance(value, dict) else ["-"] * len(value)
    values = list(value.values()) if isinstance(value, dict) else list(value)
    before = [first] + [" " * column] * len(values)
    found = [(before[i] + leads[i], column, values[i]) for i in range(len(values))]
    return found[::-1]


def _fits(value: Any, column: int, width: int) -> bool:
    """Whether a value is written in the line of its key: a scalar, or a small collection of small ones."""
    if isinstance(value, str):
        return not _is_block(value)
    if not isinstance(value, dict | list | tuple) or not value:
        return True
    children = list(value.values()) if isinstance(value, dict) else list(value)
    if not isinstance(value, dict) and any(isinstance(child, dict) and child for child in children):
        return False
    grandchildren = [x for child in children for x in _children(child)]
    small = len(children) + len(grandchildren) <= width
    flat = small and not any(_children(x) for x in grandchildren)
    texts = [x for x in (*children, *grandchildren) if isinstance(x, str)]
    return flat and not any(_is_block(x) for x in texts) and column + 1 + len(_flow(value)) <= width


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def _flow(value: Any, *, top: bool = False) -> str:
    """A value in one line; `_fits` keeps the nesting at three, so that this may call itself."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)}: {_flow(child)}" for key, child in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(child) for child in value) + "]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return re.sub(r"e([-+]?)0+(\d)", r"e\1\2", repr(value)).replace("e+", "e")
    return "null" if value is None else str(value).lower()


def _text(text: str) -> str:
    """Text in one line: bare if it reads back as that text anywhere, else in double quotes."""
    bare = PLAIN.fullmatch(text) and not NOT_PLAIN.search(text) and not AMBIGUOUS.search(text)
    if bare and not text.startswith(("...", "<<")) and _stays_text(text):
        return text
    return '"' + re.sub(r'[\\"]|' + NOT_PLAIN.pattern, _escaped, text) + '"'


def _stays_text(text: str) -> bool:
    try:
        return resolve(text) == text
    except ValueError:
        return False


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character in ESCAPES:
        return ESCAPES[character]
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def _is_block(text: str) -> bool:
    return "\n" in text and bool(text.strip()) and not NOT_BLOCK.search(text)


def _block(text: str, column: int) -> str:
    """Text as a literal block below a key or dash in a column; blanks at its head need the indentation spelled out."""
    head = text[: len(text) - len(text.lstrip())]
    indicator = "2" if " " in head or "\t" in head else ""
    chomping = "-" if not text.endswith("\n") else "+" if text.endswith("\n\n") else ""
    lines = text.removesuffix("\n").split("\n")
    return "|" + indicator + chomping + "\n" + "\n".join(" " * (column + 2) + line if line else "" for line in lines)
