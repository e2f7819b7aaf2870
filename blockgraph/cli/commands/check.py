"""`check`: does a spec say something that can be built, for all sizes? Nothing is computed."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from blockgraph.cli.arguments import Parser
from blockgraph.cli.terminal import Terminal, exit_code

if TYPE_CHECKING:
    from blockgraph.cli.specs import Examined
    from blockgraph.graph import Condition, Graph, Port

SUMMARY = "check specs: reading, equations, and shapes for all sizes"
EXAMPLES = """\
  blockgraph check specs/pre_norm.yaml
  blockgraph check specs/*.yaml --format concise
  blockgraph check specs/pre_norm.yaml --set H=5
  cat block.yaml | blockgraph check - --format json
"""
LONGEST = 60


def arguments(parser: Parser) -> None:
    """The specs."""
    parser.add_argument("specs", nargs="+", metavar="SPEC", help="a spec file, or - for standard input")


def main(options: Namespace, terminal: Terminal) -> int:
    """Check each spec in turn; the exit code is the highest of all."""
    entries, codes = [], [0]
    for name in options.specs:
        one = _examined(name, options)
        codes.append(exit_code(one.findings))
        terminal.findings(one.findings, one.lines, answer=True)
        if terminal.format == "full":
            terminal.data(_summary(one, terminal))
        entries.append(_entry(one))
    if terminal.format == "json":
        terminal.document({"ok": max(codes) == 0, "specs": entries})
    return max(codes)


def _examined(name: str, options: Namespace) -> Examined:
    """One spec; a fault of our own with it does not keep the others from being checked."""
    from blockgraph.cli.faults import own_fault
    from blockgraph.cli.specs import Examined, examine, values

    try:
        return examine(name, values(options.set))
    except MemoryError:
        raise
    except Exception as error:
        return Examined(name, None, (own_fault(error, options.words),))


def _summary(one: Examined, terminal: Terminal) -> str:
    from blockgraph.report import summary

    show = terminal.console.shown
    verdict = "ok" if one.ok else ""
    found = summary(one.findings) if one.findings else ""
    text = f"{show(one.path)}: {', '.join(filter(None, (verdict, found)))}\n"
    if not one.ok or one.checked is None or one.checked.graph is None:
        return text
    graph = one.checked.graph
    text += f"  {_ports(graph, graph.inputs)} -> {_ports(graph, graph.outputs)}\n"
    text += f"  parameters: {_parameters(graph)}\n"
    for condition in graph.conditions:
        text += f"  {_condition(condition, graph.dims)}\n"
    return text


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
    from blockgraph.cost import count_parameters, number_of_parameters

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
    from blockgraph.cost import number_of_parameters
    from blockgraph.report import as_data

    graph = one.checked.graph if one.checked is not None else None
    return {
        "path": one.path,
        "findings": as_data(one.findings),
        "inputs": _shapes(graph, graph.inputs) if graph else {},
        "outputs": _shapes(graph, graph.outputs) if graph else {},
        "conditions": [condition.text for condition in graph.conditions] if graph else [],
        "parameters": number_of_parameters(graph) if graph and one.ok else None,
    }
