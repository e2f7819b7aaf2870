"""`check`: does a spec say something that can be built, for all sizes? Nothing is computed."""

from __future__ import annotations

import gc
from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from blockgraph.cli.arguments import Parser, add_level
from blockgraph.cli.selecting import add_arguments, chosen
from blockgraph.cli.terminal import Terminal, exit_code

if TYPE_CHECKING:
    from blockgraph.cli.specs import Examined
    from blockgraph.graph import Condition, Graph, Port

SUMMARY = "check specs: reading, equations, and shapes for all sizes"
EXAMPLES = """\
  blockgraph check specs/pre_norm.yaml
  blockgraph check specs/*.yaml --format concise
  blockgraph check specs/pre_norm.yaml --set H=5
  cat block.yaml | blockgraph check - --format json --stdin-filename block.yaml
  blockgraph check "specs/**/*.yaml" --ignore BG203 --format sarif
  blockgraph check mine.yaml --fix
  blockgraph check mine.yaml --watch --draw mine.svg
"""
FORMATS = ("full", "concise", "json", "github", "sarif")
LONGEST = 60


def arguments(parser: Parser) -> None:
    """The specs, what is told of them, and what else is done."""
    help = 'a spec file, a pattern such as "specs/**/*.yaml", or - for standard input'
    parser.add_argument("specs", nargs="+", metavar="SPEC", help=help)
    help = "what standard input is called in findings; an ending .json says that it is JSON"
    parser.add_argument("--stdin-filename", metavar="NAME", help=help)
    add_arguments(parser)
    help = "tell every finding; else full and concise tell the first 100 of a file, errors first, and how many more "
    help += "there are (json, sarif and github always tell all)"
    parser.add_argument("--all", action="store_true", help=help)
    help = "mend what can be meant in one way only (a misspelt name, 4C, +=), in the file; comments and layout stay; "
    help += "what comes from standard input goes to standard output"
    parser.add_argument("--fix", action="store_true", help=help)
    parser.add_argument("--watch", action="store_true", help="check again whenever a file is saved, until Ctrl-C")
    help = "with --watch: draw the specs into this file (.svg .png .pdf .dot) each time they are without error"
    parser.add_argument("--draw", metavar="FILE", help=help)
    add_level(parser)
    parser.add_argument("--force", action="store_true", help="with --draw: replace the file if it is there already")


def main(options: Namespace, terminal: Terminal) -> int:
    """Check each spec in turn; the exit code is the highest of all."""
    from blockgraph.cli.specs import expanded

    _refuse_contradictions(options)
    terminal.everything = options.all
    if options.draw:
        from blockgraph.cli.watching import refuse_picture

        refuse_picture(options.draw, options.force, options.usage)
    if options.watch:
        from blockgraph.cli.watching import watch

        return watch(lambda: expanded(options.specs), lambda: _check(options, terminal))
    return _check(options, terminal)


def _refuse_contradictions(options: Namespace) -> None:
    if options.watch and ("-" in options.specs or options.format in ("json", "sarif")):
        options.usage("--watch is for files, and for reading: it goes neither with - nor with json and sarif")
    if options.draw and not options.watch:
        options.usage("--draw goes with --watch; to draw once, use `blockgraph render`")
    if options.fix and "-" in options.specs and (options.format != "full" or len(options.specs) > 1):
        options.usage(
            "--fix writes what came from standard input to standard output: leave out --format and other files"
        )


def _check(options: Namespace, terminal: Terminal) -> int:
    from blockgraph.cli.specs import expanded

    names = expanded(options.specs)
    entries, codes, examined = [], [0], []
    for name in names:
        one = _examined(name, options, terminal)
        codes.append(exit_code(one.findings))
        terminal.findings(one.findings, one.lines, answer=True)
        if terminal.format == "full" and not (options.fix and name == "-"):
            terminal.data(_summary(one, terminal))
        entries += [_entry(one)] if terminal.format == "json" else []
        examined += [one] if options.draw or terminal.format == "sarif" else []
        if len(codes) == 2 < len(names):
            gc.freeze()  # what is loaded stays: the collector need not look through it for each further file
    if terminal.format == "json":
        terminal.document({"ok": max(codes) == 0, "specs": entries})
    if terminal.format == "sarif":
        terminal.sarif(finding for one in examined for finding in one.findings)
    if options.draw:
        codes.append(_draw(examined, options, terminal))
    return max(codes)


def _draw(examined: Sequence[Examined], options: Namespace, terminal: Terminal) -> int:
    """Draw what can be drawn; a fault of it is told and ends nothing."""
    from blockgraph.cli.watching import redraw
    from blockgraph.errors import BlockgraphError

    try:
        drawn = redraw(examined, options.draw, options.force, options.level)
    except BlockgraphError as error:
        terminal.findings(error.findings)
        return exit_code(error.findings)
    if drawn:
        terminal.words(f"wrote {terminal.console.shown(options.draw)}\n")
    return 0


def _examined(name: str, options: Namespace, terminal: Terminal) -> Examined:
    """One spec; a fault of our own with it does not keep the others from being checked."""
    from blockgraph.cli.specs import Examined, examine, values
    from blockgraph.errors import BlockgraphError

    try:
        one = examine(name, values(options.set), options.stdin_filename)
        one = _fixed(name, one, options, terminal) if options.fix else one
        return replace(one, findings=chosen(one.findings, options.select, options.ignore))
    except (MemoryError, BlockgraphError):
        raise
    except Exception as error:
        from blockgraph.cli.faults import own_fault

        return Examined(name, None, (own_fault(error, options.words),))


def _fixed(name: str, one: Examined, options: Namespace, terminal: Terminal) -> Examined:
    """The spec after its safe fixes. Raises EnvironmentFailure if the file cannot be written."""
    from blockgraph.cli.mending import fix
    from blockgraph.cli.specs import values

    one, count, text = fix(name, one, values(options.set))
    if text is not None:
        terminal.data(text)
    if count:
        terminal.words(f"{terminal.console.shown(one.path)}: {count} fixed\n")
    return one


def _summary(one: Examined, terminal: Terminal) -> str:
    from blockgraph.cli.arguments import indented
    from blockgraph.facts import prove, told
    from blockgraph.report import summary

    show = terminal.console.shown
    verdict = "ok" if one.ok else "" if exit_code(one.findings) else "its errors are not selected"
    found = summary(one.findings) if one.findings else ""
    text = f"{show(one.path)}: {', '.join(filter(None, (verdict, found)))}\n"
    if not one.ok or one.checked is None or one.checked.graph is None:
        return text
    graph = one.checked.graph
    lines = [
        f"{_ports(graph, graph.inputs)} -> {_ports(graph, graph.outputs)}",
        f"parameters: {_parameters(graph)}",
        *(_condition(condition, graph.dims) for condition in graph.conditions),
        *told(prove(graph)),
    ]
    return text + "".join(f"{row}\n" for line in lines for row in indented(line, terminal.width))


def _condition(condition: Condition, numbers: dict[str, int]) -> str:
    if not condition.holds(numbers):
        return f"needs: {condition.text}"
    symbols = sorted(condition.smaller.symbols | condition.larger.symbols)
    return f"holds: {condition.text} ({', '.join(f'{name} = {numbers[name]}' for name in symbols)})"


def _ports(graph: Graph, ports: Iterable[Port]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in _shapes(graph, ports).items()) or "nothing"


def _shapes(graph: Graph, ports: Iterable[Port]) -> dict[str, str]:
    from blockgraph.dims import show

    return {port.name: show(graph.types[port.value].shape) for port in ports}


def _parameters(graph: Graph) -> str:
    from blockgraph.cost.parameters import count_parameters, number_of_parameters

    number = number_of_parameters(graph)
    if number is not None:
        return f"{number:,}"
    count = count_parameters(graph)
    if count is None:
        return "depends on the number of layers"
    text = str(count)
    return text if len(text) <= LONGEST else f"depends on {', '.join(sorted(count.symbols))}"


def _entry(one: Examined) -> dict[str, Any]:
    """What JSON says about one spec."""
    from blockgraph.checking import proofs
    from blockgraph.cost.parameters import number_of_parameters
    from blockgraph.report import as_data

    graph = one.checked.graph if one.checked is not None else None
    return {
        "path": one.path,
        "findings": as_data(one.findings),
        "inputs": _shapes(graph, graph.inputs) if graph else {},
        "outputs": _shapes(graph, graph.outputs) if graph else {},
        "conditions": [condition.text for condition in graph.conditions] if graph else [],
        "parameters": number_of_parameters(graph) if graph and one.ok else None,
        "proofs": proofs(one.checked).as_data() if one.checked and graph and one.ok else None,
    }
