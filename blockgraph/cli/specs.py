"""Specs as a command line names them: files, and `-` for standard input, each checked with the values that are set."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from blockgraph.checking import Checked, check
from blockgraph.errors import BlockgraphError, Finding, in_file_order
from blockgraph.records import dataclass
from blockgraph.source import decode, parse, read
from blockgraph.source.tree import BREAK, BYTE_LIMIT
from blockgraph.spec import from_document, setting

STDIN = "<stdin>"


@dataclass(frozen=True)
class Examined:
    """One spec and what was found in it; `checked` is None if it could not be read."""

    path: str
    checked: Checked | None
    findings: tuple[Finding, ...]
    content: bytes | None = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """Whether it can be worked with."""
        return self.checked is not None and self.checked.ok and self.checked.graph is not None

    def lines(self, path: str, number: int) -> str | None:
        """A line of the spec as it was read; of a file that could not be read, as far as it is text."""
        if self.checked is not None:
            return self.checked.line(path, number)
        if path != self.path:
            return None
        lines = self._lines()
        return lines[number - 1] if 0 < number <= len(lines) else None

    def _lines(self) -> Sequence[str]:
        content = self.content
        if content is None and os.path.isfile(self.path):  # a pipe gives its text only once
            with open(self.path, "rb") as file:
                content = file.read(BYTE_LIMIT)
        if content is None or b"\0" in content:
            return ()
        return BREAK.split(content.decode("utf-8-sig", "replace"))


def values(settings: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """`--set` options as values by name; the last of equal names counts."""
    return {name: setting(text) for name, text in settings}


def expanded(names: Iterable[str]) -> list[str]:
    """The names with patterns such as `specs/**/*.yaml` in the place of which stand the files that fit, sorted.

    Some shells leave patterns to the program. A name that fits no file stays, so that it is told that there is none.
    """
    found: list[str] = []
    for name in names:
        is_pattern = glob.has_magic(name) and not os.path.lexists(name)
        files = sorted(filter(os.path.isfile, glob.iglob(name, recursive=True))) if is_pattern else []
        found += files or [name]
    return list(dict.fromkeys(found))


def examine(
    name: str, given: Mapping[str, Any], stdin_name: str | None = None, content: bytes | None = None
) -> Examined:
    """Read and check one spec; what is wrong with it comes in the result.

    `stdin_name` is what standard input is called; `content` is what was read from it already.
    """
    content = _standard_input() if name == "-" and content is None else content
    path = (stdin_name or STDIN) if name == "-" else name
    try:
        document = read(name) if content is None else parse(decode(content, path), path)
        spec = from_document(document)
        checked = check(spec.with_values(given) if given else spec)
    except BlockgraphError as error:
        return Examined(path, None, in_file_order(error.findings), content)
    return Examined(path, checked, checked.findings, content)


def _standard_input() -> bytes:
    if sys.stdin is None:
        return b""
    stream = getattr(sys.stdin, "buffer", None)
    return stream.read(BYTE_LIMIT + 1) if stream is not None else sys.stdin.read().encode("utf-8", "surrogateescape")
