"""`render`: the picture of a spec, or of several beside each other."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from blockgraph.cli.arguments import Parser
from blockgraph.cli.files import refuse_existing, write_file
from blockgraph.cli.terminal import Terminal, exit_code
from blockgraph.errors import BlockgraphError, EnvironmentFailure, Finding, Place, at, near

if TYPE_CHECKING:
    from blockgraph.cli.specs import Examined

SUMMARY = "draw specs as SVG, PNG, PDF or DOT; several beside each other"
EXAMPLES = """\
  blockgraph render specs/pre_norm.yaml -o pre_norm.svg
  blockgraph render specs/pre_norm.yaml specs/post_norm.yaml -o both.png
  blockgraph render specs/pre_norm_stack.yaml --expand --set N=3
  blockgraph render specs/pre_norm.yaml -o - | dot -Tsvg > pre_norm.svg
"""
ENDINGS: Final = {".svg": "svg", ".png": "png", ".pdf": "pdf", ".dot": "dot", ".gv": "dot"}


def arguments(parser: Parser) -> None:
    """The specs, where the picture goes and what it shows."""
    parser.add_argument("specs", nargs="+", metavar="SPEC", help="a spec file, or - for standard input")
    help = "the picture; its ending (.svg .png .pdf .dot) says the format; - writes DOT text to standard output "
    help += "(default: an SVG named after the spec, in the current folder)"
    parser.add_argument("-o", "--output", metavar="FILE", help=help)
    parser.add_argument("--expand", action="store_true", help="draw every layer of a stack by itself")
    help = "tell shapes where they change, on all lines, or nowhere (default: changes)"
    parser.add_argument("--shapes", choices=("changes", "all", "none"), default="changes", help=help)
    parser.add_argument("--force", action="store_true", help="replace the file if it is there already")


def main(options: Namespace, terminal: Terminal) -> int:
    """Draw the specs into one file."""
    from blockgraph.cli.specs import examine, values

    path = options.output or _default_name(options.specs)
    if path == "-" and options.format == "json":
        options.usage("-o - and --format json would both write to standard output: name a file")
    format = "dot" if path == "-" else _format(path, options)
    if path != "-":
        refuse_existing(path, options.force)
    examined = [examine(name, values(options.set)) for name in options.specs]
    for one in examined:
        terminal.findings(one.findings, one.lines)
    findings = [finding for one in examined for finding in one.findings]
    if not all(one.ok for one in examined):
        return _end(terminal, findings, [])
    dot = _dot(examined, options)
    if path == "-":
        terminal.data(dot)
        return _end(terminal, findings, [])
    try:
        _write(path, format, dot, options.force)
    except BlockgraphError as error:
        terminal.findings(error.findings)
        return _end(terminal, [*findings, *error.findings], [])
    terminal.words(f"wrote {terminal.console.shown(path)}\n")
    return _end(terminal, findings, [path])


def _end(terminal: Terminal, findings: Sequence[Finding], written: Sequence[str]) -> int:
    from blockgraph.report import as_data

    code = exit_code(findings)
    if terminal.format == "json":
        terminal.document({"ok": code == 0, "findings": as_data(findings), "files": list(written)})
    return code


def _default_name(names: Sequence[str]) -> str:
    stems = ["stdin" if name == "-" else re.sub(r"[^\w.-]", "_", PurePath(name).stem) for name in names]
    return "-".join(stem.lstrip(".-") or "spec" for stem in stems) + ".svg"


def _format(path: str, options: Namespace) -> str:
    ending = os.path.splitext(path)[1].lower()
    if ending not in ENDINGS:
        found = near(ending, ENDINGS)
        hint = f"; did you mean {found}?" if found else f": the name of the file ends in {', '.join(ENDINGS)}"
        options.usage(f"cannot tell what to draw from the ending of {path}{hint}")
    return ENDINGS[ending]


def _dot(examined: Sequence[Examined], options: Namespace) -> str:
    from blockgraph.drawing import to_dot

    specs = [one.checked.spec for one in examined if one.checked is not None]
    graphs = [one.checked.graph for one in examined if one.checked is not None and one.checked.graph is not None]
    return to_dot(graphs, expand=options.expand, shapes=options.shapes, captions=[spec.source for spec in specs])


def _write(path: str, format: str, dot: str, force: bool) -> None:
    """Write the picture, or at least its DOT text if it cannot be drawn. Raises EnvironmentFailure."""
    from blockgraph.drawing import draw

    content = dot.encode("utf-8", "replace")
    if format != "dot":
        try:
            content = draw(dot, format)  # type: ignore[arg-type]
        except EnvironmentFailure as error:
            raise EnvironmentFailure(_with_dot(error.findings, path, content, force)) from None
    write_file(path, lambda file: file.write(content), force)


def _with_dot(findings: Sequence[Finding], path: str, content: bytes, force: bool) -> list[Finding]:
    """The findings, told about the file that was wanted, and where the DOT text is instead."""
    text = f"{os.path.splitext(path)[0]}.dot"
    try:
        write_file(text, lambda file: file.write(content), force)
        said = f"the DOT text was written to {text}"
    except EnvironmentFailure as error:
        said = f"the DOT text was not written: {error.findings[0].message}"
    first, *rest = (at(finding, Place(path)) for finding in findings)
    return [replace(first, help="\n".join(filter(None, (first.help, said)))), *rest]
