"""`--fix`: mends a spec file where a finding says beyond doubt what was meant, and leaves the rest of it as it is."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from blockgraph.cli.files import write_file
from blockgraph.cli.specs import Examined, examine
from blockgraph.errors import Finding
from blockgraph.fixes import mend
from blockgraph.source import Document, parse

MARK = b"\xef\xbb\xbf"


def mended(one: Examined, given: Mapping[str, Any]) -> tuple[str, int]:
    """The text of a spec after all safe fixes, and their number; nothing is written."""
    if one.checked is None:
        return "", 0
    document = one.checked.spec.document

    def judge(text: str) -> tuple[Document, Sequence[Finding]]:
        from blockgraph.checking import check
        from blockgraph.spec import from_document

        spec = from_document(parse(text, document.path, document.format))
        return spec.document, check(spec.with_values(given) if given else spec).findings

    return mend(document.text, judge)


def fix(name: str, one: Examined, given: Mapping[str, Any]) -> tuple[Examined, int, str | None]:
    """The spec after its file was mended, the number of fixes, and the mended text if it came from standard input.

    Raises EnvironmentFailure if the file cannot be written.
    """
    text, count = mended(one, given)
    if one.checked is None or name == "-":
        if not count:
            return one, 0, one.checked.spec.document.text if one.checked is not None else None
        return examine(name, given, one.path, text.encode()), count, text
    if count:
        write_file(name, lambda file: _fill(file, name, text), force=True)
        one = examine(name, given)
    return one, count, None


def _fill(file: BinaryIO, name: str, text: str) -> None:
    """The new content, with the byte order mark and the permissions of the old file."""
    with open(name, "rb") as old:
        mark = old.read(len(MARK)) == MARK
    if hasattr(os, "fchmod"):
        os.fchmod(file.fileno(), stat.S_IMODE(os.stat(name).st_mode))
    file.write((MARK if mark else b"") + text.encode())
