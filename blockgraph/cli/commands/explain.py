"""`explain`: a spec written out in full, or what a kind, a function or a code means."""

from __future__ import annotations

from argparse import Namespace

from blockgraph.cli.arguments import Parser
from blockgraph.cli.terminal import Terminal, exit_code

SUMMARY = "write a spec out in full, or say what a kind, a function or a code means"
EXAMPLES = """\
  blockgraph explain specs/pre_norm.yaml
  blockgraph explain attention
  blockgraph explain rearrange
  blockgraph explain BG101
"""


def arguments(parser: Parser) -> None:
    """What to explain."""
    help = "a spec file, - for standard input, a kind, a function of the equation language, or a code such as BG101; "
    help += "without a topic, a list of all that can be explained"
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=help)


def main(options: Namespace, terminal: Terminal) -> int:
    """Print each explanation; the exit code is the highest of all."""
    from blockgraph.cli.specs import Examined, values
    from blockgraph.errors import BlockgraphError
    from blockgraph.explain import main_text, topics_text
    from blockgraph.report import as_data

    if not options.topics:
        text = topics_text()
        terminal.document({"ok": True, "text": text}) if terminal.format == "json" else terminal.data(text)
        return 0
    entries, codes, printed = [], [0], False
    for topic in options.topics:
        try:
            text, findings = main_text(topic, values(options.set))
        except BlockgraphError as error:
            text, findings = "", error.findings
        codes.append(exit_code(findings))
        entries.append({"topic": topic, "text": text, "findings": as_data(findings)})
        terminal.findings(findings, Examined(topic, None, findings).lines)
        if terminal.format != "json":
            terminal.data(f"\n{text}" if printed else text)
            printed = printed or bool(text)
    if terminal.format == "json":
        terminal.document({"ok": max(codes) == 0, "topics": entries})
    return max(codes)
