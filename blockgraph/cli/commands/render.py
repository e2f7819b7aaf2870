"""`render`: the picture of a spec, or of several beside each other."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from blockgraph.cli.arguments import Parser, add_level, add_rankdir, add_theme
from blockgraph.cli.files import write_file
from blockgraph.cli.pictures import MERMAID, PAGE, checked_output, end, with_dot, write_picture
from blockgraph.cli.terminal import Terminal
from blockgraph.errors import BlockgraphError, EnvironmentFailure, Place, at

if TYPE_CHECKING:
    from blockgraph.cli.specs import Examined

SUMMARY = "draw specs as SVG, PNG, PDF, DOT, Mermaid or a page to explore; several beside each other"
EXAMPLES = """\
  blockgraph render specs/pre_norm.yaml -o pre_norm.svg
  blockgraph render specs/pre_norm.yaml specs/post_norm.yaml -o both.png
  blockgraph render specs/pre_norm_stack.yaml --expand --set N=3
  blockgraph render specs/models/llama.yaml --level op
  blockgraph render specs/post_norm.yaml --rankdir LR
  blockgraph render specs/post_norm.yaml --highway --params --theme auto
  blockgraph render specs/models/gpt2.yaml -o gpt2.html
  blockgraph run specs/pre_norm.yaml --save-trace trace.npz && \
    blockgraph render specs/pre_norm.yaml --trace trace.npz -o pre_norm.html
  blockgraph render specs/pre_norm.yaml -o - | dot -Tsvg > pre_norm.svg
"""
TOLD: Final = ("level", "rankdir", "expand", "shapes", "numbers", "params", "highway")


def arguments(parser: Parser) -> None:
    """The specs, where the picture goes and what it shows."""
    parser.add_argument("specs", nargs="+", metavar="SPEC", help="a spec file, or - for standard input")
    help = "the picture; its ending (.svg .png .pdf .dot .mmd .html) says the format; - writes DOT text to standard "
    help += "output (default: an SVG named after the spec, in the current folder)"
    parser.add_argument("-o", "--output", metavar="FILE", help=help)
    add_level(parser)
    add_rankdir(parser)
    parser.add_argument("--expand", action="store_true", help="draw every layer of a stack by itself")
    help = "tell shapes where they change, on all lines, or nowhere (default: changes)"
    parser.add_argument("--shapes", choices=("changes", "all", "none"), default="changes", help=help)
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--symbols", action="store_true", help="write sizes as symbols (default)")
    sizes.add_argument("--numbers", action="store_true", help="write sizes as numbers where they are known")
    parser.add_argument("--params", action="store_true", help="tell how many parameters each part has")
    help = "draw the residual highway thick and mark the norms and other ops on it"
    parser.add_argument("--highway", action="store_true", help=help)
    add_theme(parser)
    help = "for .html: a run that `run --save-trace` has written, to be gone through step by step"
    parser.add_argument("--trace", metavar="FILE.npz", help=help)
    parser.add_argument("--force", action="store_true", help="replace the file if it is there already")


def main(options: Namespace, terminal: Terminal) -> int:
    """Draw the specs into one file; one with findings as far as it is understood."""
    from blockgraph.cli.specs import examine, values

    path = options.output or _default_name(options.specs)
    format = checked_output(path, options, {**MERMAID, **PAGE})
    if options.trace and format != "html":
        options.usage("--trace is for a page: name a file that ends in .html")
    examined = [examine(name, values(options.set)) for name in options.specs]
    for one in examined:
        terminal.findings(one.findings, one.lines)
    findings = [finding for one in examined for finding in one.findings]
    if format == "html":
        return _page(examined, path, options, terminal)
    if not any(one.checked is not None and one.checked.graph is not None for one in examined):
        return end(terminal, findings, [])
    try:
        text, adapts = _text(examined, options, format), options.theme == "auto"
        written, notes = write_picture(terminal, path, format, text, options.force, adapts=adapts)
    except BlockgraphError as error:
        terminal.findings(error.findings)
        return end(terminal, [*findings, *error.findings], [])
    return end(terminal, [*findings, *notes], written)


def _page(examined: Sequence[Examined], path: str, options: Namespace, terminal: Terminal) -> int:
    """Write the page; of a spec that could not be read it has the findings alone."""
    from blockgraph.cli.array_files import read_arrays
    from blockgraph.depict import subject_of
    from blockgraph.page import Subject, measured, page

    subjects = [
        Subject(one.path, findings=one.findings, lines=one.lines) if one.checked is None else subject_of(one.checked)
        for one in examined
    ]
    findings = [finding for one in examined for finding in one.findings]
    shown: dict[str, Any] = {name: getattr(options, name) for name in TOLD}
    try:
        steps = measured(read_arrays(options.trace)) if options.trace else ()
        try:
            text = page(subjects, steps, **shown)
        except EnvironmentFailure as error:
            dot = _text(examined, options, "dot")
            raise EnvironmentFailure(with_dot(error.findings, path, dot, options.force)) from None
        write_file(path, lambda file: file.write(text.encode()), options.force)
    except BlockgraphError as error:
        told = [one if one.place.path else at(one, Place(options.trace or "")) for one in error.findings]
        terminal.findings(told)
        return end(terminal, [*findings, *told], [])
    terminal.words(f"wrote {terminal.console.shown(path)}\n")
    return end(terminal, findings, [path])


def _default_name(names: Sequence[str]) -> str:
    stems = ["stdin" if name == "-" else re.sub(r"[^\w.-]", "_", PurePath(name).stem) for name in names]
    return "-".join(stem.lstrip(".-") or "spec" for stem in stems) + ".svg"


def _text(examined: Sequence[Examined], options: Namespace, format: str) -> str:
    """The text of all specs that have a graph; of one with errors also the blocks in which they are."""
    from blockgraph.depict import subjects

    found = subjects(one.checked for one in examined if one.checked is not None)
    asked: dict[str, Any] = {name: getattr(options, name) for name in TOLD}
    if format == "mermaid":
        return found.mermaid(**asked)
    return found.dot(theme="light" if options.theme == "auto" else options.theme, **asked)
