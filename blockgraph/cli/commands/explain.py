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
  blockgraph explain --codes
  blockgraph explain specs/pre_norm.yaml --fingerprint
"""


def arguments(parser: Parser) -> None:
    """What to explain."""
    help = "a spec file, - for standard input, a kind, a function of the equation language, or a code such as BG101; "
    help += "without a topic, a list of all that can be explained"
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=help)
    parser.add_argument(
        "--codes", action="store_true", help="a table of all codes that a finding can have, in Markdown"
    )
    help = "of each spec the sha256 of its structure: equal for equal architectures, whatever names and sizes they have"
    parser.add_argument("--fingerprint", action="store_true", help=help)


def main(options: Namespace, terminal: Terminal) -> int:
    """Print each explanation; the exit code is the highest of all."""
    from blockgraph.cli.specs import Examined, values
    from blockgraph.errors import BlockgraphError
    from blockgraph.explain import main_text, topics_text
    from blockgraph.explain.code_pages import codes_table
    from blockgraph.explain.table import WIDTH
    from blockgraph.report import as_data

    if options.codes and options.topics:
        options.usage("--codes is about all codes; leave it out, or the topics")
    if options.fingerprint:
        return _fingerprints(options, terminal)
    width = min(terminal.width, WIDTH)
    if not options.topics:
        text = codes_table() if options.codes else topics_text(width)
        terminal.document({"ok": True, "text": text}) if terminal.format == "json" else terminal.data(text)
        return 0
    entries, codes, printed = [], [0], False
    for topic in options.topics:
        try:
            text, findings = main_text(topic, values(options.set), width)
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


def _fingerprints(options: Namespace, terminal: Terminal) -> int:
    """Print the fingerprint of each spec, with its name where there are several."""
    from blockgraph.cli.specs import examine, values
    from blockgraph.diff import fingerprint
    from blockgraph.report import as_data

    if options.codes or not options.topics:
        options.usage("--fingerprint takes spec files")
    entries, codes = [], [0]
    for topic in options.topics:
        one = examine(topic, values(options.set))
        graph = one.checked.graph if one.checked is not None and one.ok else None
        found = fingerprint(graph) if graph is not None else None
        codes.append(exit_code(one.findings))
        entries.append({"topic": one.path, "fingerprint": found, "findings": as_data(one.findings)})
        terminal.findings(one.findings, one.lines)
        if found is not None and terminal.format != "json":
            name = f"  {terminal.console.shown(one.path)}" if len(options.topics) > 1 else ""
            terminal.data(f"{found}{name}\n")
    if terminal.format == "json":
        terminal.document({"ok": max(codes) == 0, "topics": entries})
    return max(codes)
