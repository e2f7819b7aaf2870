"""One spec as a gallery takes it: its file, what was found in it, and the name of its page."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import PurePath

from blockgraph.checking import Checked
from blockgraph.errors import Finding
from blockgraph.graph import Graph
from blockgraph.records import dataclass
from blockgraph.report import Lines

LONGEST = 80
"""Characters of a page's name before its ending."""


@dataclass(frozen=True)
class Exhibit:
    """A spec, checked; `checked` is None if it could not be read. `group` is the folder it stands in."""

    path: str
    group: str
    file: str
    checked: Checked | None
    findings: tuple[Finding, ...]
    lines: Lines

    @property
    def name(self) -> str:
        """The spec's name, else its file's."""
        return (self.checked.spec.name if self.checked is not None else "") or PurePath(self.path).stem

    @property
    def graph(self) -> Graph | None:
        """What is understood of it."""
        return self.checked.graph if self.checked is not None else None

    @property
    def ok(self) -> bool:
        """Whether it can be compared and counted."""
        return self.checked is not None and self.checked.ok and self.graph is not None


def file_names(paths: Sequence[str]) -> list[tuple[str, str]]:
    """For each spec the folder it stands in, as seen from the folder that holds all, and the name of its page.

    No two pages have the same name, whatever a file system thinks of capitals.
    """
    folders = [os.path.dirname(os.path.abspath(path)) for path in paths]
    top = os.path.commonpath(folders) if paths else ""
    taken, found = {"index"}, []
    for path, folder in zip(paths, folders, strict=True):
        group = os.path.relpath(folder, top).replace(os.sep, "/").removeprefix(".")
        plain = re.sub(r"[^A-Za-z0-9_-]+", "_", "-".join(filter(None, [*group.split("/"), PurePath(path).stem])))
        stem, number = plain[:LONGEST], 1
        while stem.lower() in taken:
            number += 1
            stem = f"{plain[:LONGEST]}-{number}"
        taken.add(stem.lower())
        found.append((group, f"{stem}.html"))
    return found
