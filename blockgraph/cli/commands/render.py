"""`render`: the picture of a spec, or of several beside each other."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from blockgraph.cli.arguments import Parser, add_level, add_rankdir
from blockgraph.cli.pictures import MERMAID, checked_output, end, write_picture
from blockgraph.cli.terminal import Terminal
from blockgraph.errors import BlockgraphError

if TYPE_CHECKING:
    from blockgraph.cli.specs import Examined

SUMMARY = "draw specs as SVG, PNG, PDF, DOT or Mermaid; several beside each other"
EXAMPLES = """\
  blockgraph render specs/pre_norm.yaml -o pre_norm.svg
  blockgraph render specs/pre_norm.yaml specs/post_norm.yaml -o both.png
  blockgraph render specs/pre_norm_stack.yaml --expand --set N=3
  blockgraph render specs/models/llama.yaml --level op
  blockgraph render specs/post_norm.yaml --rankdir LR
  blockgraph render specs/post_norm.yaml --highway --params --theme auto
  blockgraph render specs/pre_norm.yaml -o - | dot -Tsvg > pre_norm.svg
"""
TOLD: Final = ("level", "rankdir", "expand", "shapes", "numbers", "params", "highway")


def arguments(parser: Parser) -> None:
    """The specs, where the picture goes and what it shows."""
    parser.add_argument("specs", nargs="+", metavar="SPEC", help="a spec file, or - for standard input")
    help = "the picture; its ending (.svg .png .pdf .dot .mmd) says the format; - writes DOT text to standard output "
    help += "(default: an SVG named after the spec, in the current folder)"
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
    help = "the colours: for a light page, a dark one, whichever the reader has (auto, SVG only; else light), or in "
    help += "greys for print (default: light)"
    parser.add_argument("--theme", choices=("light", "dark", "auto", "print"), default="light", help=help)
    parser.add_argument("--force", action="store_true", help="replace the file if it is there already")


def main(options: Namespace, terminal: Terminal) -> int:
    """Draw the specs into one file; one with findings as far as it is understood."""
    from blockgraph.cli.specs import examine, values

    path = options.output or _default_name(options.specs)
    format = checked_output(path, options, MERMAID)
    examined = [examine(name, values(options.set)) for name in options.specs]
    for one in examined:
        terminal.findings(one.findings, one.lines)
    findings = [finding for one in examined for finding in one.findings]
    if not any(one.checked is not None and one.checked.graph is not None for one in examined):
        return end(terminal, findings, [])
    try:
        text, adapts = _text(examined, options, format), options.theme == "auto"
        written, notes = write_picture(terminal, path, format, text, options.force, adapts=adapts)
    except BlockgraphError as error:
        terminal.findings(error.findings)
        return end(terminal, [*findings, *error.findings], [])
    return end(terminal, [*findings, *notes], written)


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
