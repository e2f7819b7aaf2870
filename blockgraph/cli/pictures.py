"""Pictures that a command writes: the ending says the format; where nothing can be drawn the DOT text is kept."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from blockgraph.cli.files import refuse_existing, write_file
from blockgraph.cli.terminal import Terminal, exit_code
from blockgraph.errors import EnvironmentFailure, Finding, Place, at, near

MERMAID: Final = {".mmd": "mermaid"}
PAGE: Final = {".html": "html"}
TEXTS: Final = ("dot", "mermaid")


def checked_output(path: str, options: Namespace, more: Mapping[str, str] | None = None) -> str:
    """The format of a picture, before any work is done; ends with a remark on wrong usage, or EnvironmentFailure.

    `more` are endings beside those of Graphviz, with their formats.
    """
    from blockgraph.drawing import ENDINGS

    endings = {**ENDINGS, **(more or {})}
    if path == "-" and options.format == "json":
        options.usage("-o - and --format json would both write to standard output: name a file")
    if path == "-":
        return "dot"
    ending = os.path.splitext(path)[1].lower()
    if ending not in endings:
        found = near(ending, endings)
        hint = f"; did you mean {found}?" if found else f": the name of the file ends in {', '.join(endings)}"
        options.usage(f"cannot tell what to draw from the ending of {path}{hint}")
    refuse_existing(path, options.force)
    return endings[ending]


def write_picture(
    terminal: Terminal, path: str, format: str, dot: str, force: bool, *, adapts: bool = False
) -> tuple[list[str], tuple[Finding, ...]]:
    """Write the picture and say so; returns the files written, none for standard output, and what is to know of them.

    An SVG that `adapts` takes dark colours on a dark page. Raises EnvironmentFailure.
    """
    if path == "-":
        terminal.data(dot)
        return [], ()
    notes = save(path, format, dot, force, adapts=adapts)
    terminal.findings(notes)
    terminal.words(f"wrote {terminal.console.shown(path)}\n")
    return [path], notes


def end(terminal: Terminal, findings: Sequence[Finding], written: Sequence[str]) -> int:
    """The exit code, and the document where one was asked for."""
    from blockgraph.report import as_data

    code = exit_code(findings)
    if terminal.format == "json":
        terminal.document({"ok": code == 0, "findings": as_data(findings), "files": list(written)})
    return code


def save(
    path: str, format: str, dot: str, force: bool, *, adapts: bool = False, keeps: bool = False
) -> tuple[Finding, ...]:
    """Write the picture, or at least its DOT text if it cannot be drawn; returns what is to know of the picture.

    `force` replaces files that are there; with `keeps` the picture alone, not a DOT text. Raises EnvironmentFailure.
    """
    from blockgraph.drawing import adaptive, picture

    content = dot.encode("utf-8", "replace")
    notes: tuple[Finding, ...] = ()
    if format not in TEXTS:
        try:
            content, notes = picture(dot, format)  # type: ignore[arg-type]
        except EnvironmentFailure as error:
            raise EnvironmentFailure(with_dot(error.findings, path, dot, force and not keeps)) from None
        content = adaptive(content) if adapts and format == "svg" else content
    write_file(path, lambda file: file.write(content), force)
    return tuple(at(note, Place(path)) for note in notes)


def with_dot(findings: Sequence[Finding], path: str, dot: str, force: bool) -> list[Finding]:
    """Write the DOT text beside; the findings, told about the file that was wanted, and where the DOT text is."""
    text = f"{os.path.splitext(path)[0]}.dot"
    try:
        write_file(text, lambda file: file.write(dot.encode("utf-8", "replace")), force)
        said = f"the DOT text was written to {text}"
    except EnvironmentFailure as error:
        said = f"the DOT text was not written: {error.findings[0].message}"
    first, *rest = (at(finding, Place(path)) for finding in findings)
    return [replace(first, help="\n".join(filter(None, (first.help, said)))), *rest]
