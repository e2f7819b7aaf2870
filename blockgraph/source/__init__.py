"""Reads a spec file as plain data in which every key and value knows its place.

YAML and JSON give the same data; what they hold is judged elsewhere. A file that is not well formed, or too
large, is refused here, with findings that name line and column.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal, NoReturn

from blockgraph.collector import paused
from blockgraph.errors import EnvironmentFailure, Finding, Place, Position, SpecError, near
from blockgraph.source.tree import BREAK, BYTE_LIMIT, Document, Tree

__all__ = ["Document", "Tree", "decode", "from_data", "parse", "read"]

Format = Literal["yaml", "json"]
# YAML leaves these out of what may stand in a file; the last three end a line for YAML 1.1 only, so their lines
# would be counted otherwise than in an editor. Most files are in ASCII, and its rule is quick to compile.
UNPRINTABLE_ASCII = re.compile("[^\t\n\r\x20-\x7e]")
UNPRINTABLE = "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
UNPRINTABLE_JSON = "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]"


def read(path: str | os.PathLike[str]) -> Document:
    """Read a spec file; its name ends in `.json` for JSON, anything else is YAML.

    Raises EnvironmentFailure if the file cannot be opened, SpecError if it cannot be read.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            content = file.read(BYTE_LIMIT + 1)
    except (OSError, ValueError) as error:
        raise EnvironmentFailure([_cannot_open(name, error)]) from None
    return parse(decode(content, name), name, None)


def decode(content: bytes, path: str) -> str:
    """The text of a file in UTF-8, without its byte order mark. Raises SpecError with the place of a wrong byte."""
    if len(content) > BYTE_LIMIT:
        _refuse_size(path)
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        _refuse(path, Position(1, 1), "the file is written in UTF-16", "save it as UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The exception counts from behind the byte order mark.
        plain = content.removeprefix(b"\xef\xbb\xbf")
        at = _end_of(plain[: error.start].decode("utf-8"))
        _refuse(path, at, f"the byte 0x{plain[error.start]:02x} is not UTF-8", "save the file as UTF-8")


def parse(text: str, path: str, format: Format | None = None) -> Document:
    """Read a text as YAML or JSON; by default as JSON if the path ends in `.json`, else as YAML.

    Raises SpecError: BG001 to BG009.
    """
    text = text.removeprefix("\ufeff")
    chosen: Format = format or ("json" if path.endswith(".json") else "yaml")
    if len(text) > BYTE_LIMIT or len(text.encode("utf-8", "replace")) > BYTE_LIMIT:
        _refuse_size(path)
    wrong = _unprintable(text, chosen)
    if wrong:
        at = _end_of(text[: wrong.start()])
        _refuse(path, at, f"the character U+{ord(wrong[0]):04X} cannot stand in a spec", "remove it")
    with paused():
        return Document(path, text, _tree(text, path, chosen), chosen)


def _unprintable(text: str, format: Format) -> re.Match[str] | None:
    """The first character that cannot stand in a spec."""
    if format == "json":
        return re.search(UNPRINTABLE_JSON, text)
    return UNPRINTABLE_ASCII.search(text) if text.isascii() else re.search(UNPRINTABLE, text)


def _tree(text: str, path: str, format: Format) -> Tree:
    if format == "json":
        from blockgraph.source.json import read_json

        return read_json(text, path)
    from blockgraph.source.yaml import read_yaml

    return read_yaml(text, path)


def from_data(data: Any, path: str = "<dict>") -> Document:
    """A document from plain Python data, written out as JSON so that findings can show its lines.

    Raises SpecError for what JSON cannot hold.
    """
    from blockgraph.source.write import check_plain, to_json

    check_plain(data, path)
    return parse(to_json(data), path, "json")


def _end_of(text: str) -> Position:
    lines = BREAK.split(text)
    return Position(len(lines), len(lines[-1]) + 1)


def _refuse(path: str, at: Position, message: str, help: str) -> NoReturn:
    raise SpecError([Finding("BG009", message, Place(path, at, Position(at.line, at.column + 1)), help)])


def _refuse_size(path: str) -> NoReturn:
    message = "the file is larger than 1 MiB (1,048,576 bytes), the most a spec may have"
    raise SpecError([Finding("BG007", message, Place(path), "keep numbers and weights in files of their own")])


def _cannot_open(name: str, error: Exception) -> Finding:
    reasons: dict[type[Exception], str] = {
        FileNotFoundError: "there is no such file",
        IsADirectoryError: "it is a folder",
        PermissionError: "you may not read it",
    }
    reason = reasons.get(type(error), getattr(error, "strerror", None) or str(error))
    guess = near(Path(name).name, _siblings(name)) if isinstance(error, FileNotFoundError) else None
    help = f"did you mean {Path(name).parent / guess}?" if guess else "check the name and the folder"
    if isinstance(error, IsADirectoryError):
        help = f'name a file in it; `blockgraph check` takes patterns too: "{Path(name) / "**" / "*.yaml"}"'
    return Finding("BG901", f"cannot open {name}: {reason}", Place(name), help)


def _siblings(name: str) -> list[str]:
    try:
        return os.listdir(Path(name).parent)
    except OSError:
        return []
