"""`diff`: what is different between two specs, matched by structure and not by name."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from blockgraph.cli.arguments import Parser, add_level, add_rankdir, add_theme
from blockgraph.cli.terminal import Terminal, exit_code

if TYPE_CHECKING:
    from blockgraph.cli.specs import Examined
    from blockgraph.diff import Difference
    from blockgraph.errors import Finding
    from blockgraph.graph import Graph

SUMMARY = "say what is different between two specs, matched by structure, not by name"
EXAMPLES = """\
  blockgraph diff specs/pre_norm.yaml specs/post_norm.yaml
  blockgraph diff specs/models/llama.yaml specs/models/mistral.yaml --format json
  blockgraph diff specs/pre_norm.yaml specs/sandwich.yaml -o difference.svg
"""


def arguments(parser: Parser) -> None:
    """The two specs, and where a picture of the difference goes."""
    parser.add_argument("left", metavar="A", help="a spec file, or - for standard input")
    parser.add_argument("right", metavar="B", help="the spec it is compared with")
    help = "draw both specs with what is removed, added and changed marked; the ending (.svg .png .pdf .dot .mmd) says "
    help += "the format, - writes DOT text to standard output in place of the words"
    parser.add_argument("-o", "--output", metavar="FILE", help=help)
    add_level(parser)
    add_rankdir(parser)
    add_theme(parser)
    parser.add_argument("--force", action="store_true", help="replace the file if it is there already")


def main(options: Namespace, terminal: Terminal) -> int:
    """Say what differs; exit with 0 when nothing does, with 1 when something does."""
    from blockgraph.cli.pictures import MERMAID, checked_output, end, write_picture
    from blockgraph.cli.specs import examine, values
    from blockgraph.diff import diff
    from blockgraph.errors import BlockgraphError

    if options.left == options.right == "-":
        options.usage("standard input can be read only once: name a file for one of the two")
    path = options.output
    format = checked_output(path, options, MERMAID) if path else ""
    examined = [examine(name, values(options.set)) for name in (options.left, options.right)]
    for one in examined:
        terminal.findings(one.findings, one.lines)
    findings = [finding for one in examined for finding in one.findings]
    graphs = [one.checked.graph for one in examined if one.ok and one.checked is not None]
    left, right = (*graphs, None, None)[:2]
    if left is None or right is None:
        return end(terminal, findings, [])
    found = diff(left, right)
    written: list[str] = []
    if path:
        try:
            text, adapts = _text(examined, found, format, options), options.theme == "auto"
            written, notes = write_picture(terminal, path, format, text, options.force, adapts=adapts)
            findings += notes
        except BlockgraphError as error:
            terminal.findings(error.findings)
            return end(terminal, [*findings, *error.findings], [])
    if path != "-":
        _answer(terminal, found, left, right, findings, written)
    return 0 if found.same else 1


def _answer(
    terminal: Terminal, found: Difference, left: Graph, right: Graph, findings: Sequence[Finding], written: list[str]
) -> None:
    """The difference as lines, as one line with `--format concise`, or as a document."""
    from blockgraph.diff import fingerprint
    from blockgraph.report import as_data, escape

    if terminal.format != "json":
        lines = [str(found)] if terminal.format == "concise" else found.lines()
        terminal.data("".join(f"{escape(line)}\n" for line in lines))
        return
    changes = [
        {"sign": c.sign, "text": c.text, "names": list(c.names), "stack": c.stack, "layers": list(c.layers)}
        for c in found.changes
    ]
    terminal.document(
        {
            "ok": found.same and exit_code(findings) == 0,
            "same": found.same,
            "same_architecture": found.same_architecture,
            "text": str(found),
            "changes": changes,
            "sizes": list(found.sizes),
            "fingerprints": [fingerprint(left), fingerprint(right)],
            "findings": as_data(findings),
            "files": written,
        }
    )


def _text(examined: Sequence[Examined], found: Difference, format: str, options: Namespace) -> str:
    """Both specs side by side, with what is removed, added and changed marked."""
    from blockgraph.diff.marks import marks
    from blockgraph.drawing import Told, to_dot, to_mermaid

    graphs = [one.checked.graph for one in examined if one.checked is not None and one.checked.graph is not None]
    legend = (found.same and ["same architecture"] * 2) or ["\N{MINUS SIGN} removed, ~ changed", "+ added, ~ changed"]
    shown: Told = {"captions": legend, "marks": marks(found), "level": options.level, "rankdir": options.rankdir}
    if format == "mermaid":
        return to_mermaid(graphs, **shown)
    return to_dot(graphs, theme="light" if options.theme == "auto" else options.theme, **shown)
