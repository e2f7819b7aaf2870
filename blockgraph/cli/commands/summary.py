"""`summary`: what a model costs in parameters, FLOPs and bytes, by part and by kind. Nothing is computed."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from blockgraph.cli.arguments import Parser, size
from blockgraph.cli.runs import values_of
from blockgraph.cli.terminal import Terminal, exit_code

if TYPE_CHECKING:
    from blockgraph.cost.memory import MemoryReport
    from blockgraph.graph import Graph

SUMMARY = "count parameters, FLOPs and bytes, as formulas and as numbers"
EXAMPLES = """\
  blockgraph summary specs/pre_norm.yaml
  blockgraph summary specs/pre_norm.yaml --set C=768 --set H=12 --batch 1 --time 1024
  blockgraph summary specs/pre_norm_stack.yaml --time 8192 --dtype bfloat16 --causal
  blockgraph summary specs/pre_norm_stack.yaml --batch 1 --time 8 --format json
"""
DTYPES = ("float64", "float32", "float16", "bfloat16")


def arguments(parser: Parser) -> None:
    """The spec, the sizes, and how to count."""
    parser.add_argument("spec", metavar="SPEC", help="a spec file, or - for standard input")
    parser.add_argument("--batch", type=size, metavar="B", help="short for --set B=...")
    parser.add_argument("--time", type=size, metavar="T", help="short for --set T=...")
    help = "the type of all floats, for sizes in bytes (default: float32)"
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help=help)
    help = "count no pairs of query and key that a causal mask hides (default: count all)"
    parser.add_argument("--causal", action="store_true", help=help)


def main(options: Namespace, terminal: Terminal) -> int:
    """Count, and show what was counted."""
    from blockgraph.cli.cost_tables import CostTables
    from blockgraph.cli.specs import examine
    from blockgraph.cost.memory import WIDTHS
    from blockgraph.cost.report import costs
    from blockgraph.report import as_data

    one = examine(options.spec, values_of(options))
    if not one.ok or one.checked is None or one.checked.graph is None:
        return terminal.failed(one.findings, one.lines)
    graph = one.checked.graph
    tables = CostTables(
        costs(graph, WIDTHS[options.dtype], options.causal), _memory(graph, options.dtype), options.dtype
    )
    terminal.findings(one.findings, one.lines)
    name = one.checked.spec.name or one.path
    if terminal.format == "json":
        document = {"ok": True, "name": name, "findings": as_data(one.findings), **tables.document()}
        terminal.document(document)
    else:
        terminal.data(tables.text(name, terminal.console, terminal.width))
    return exit_code(one.findings)


def _memory(graph: Graph, dtype: str) -> MemoryReport | None:
    """The memory of a run, where all sizes have numbers."""
    from blockgraph.cost.memory import memory
    from blockgraph.dims import DimError

    try:
        return memory(graph, {}, dtype)
    except DimError:
        return None
