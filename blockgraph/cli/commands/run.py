"""`run`: the numbers of a spec on sampled or given arrays, step by step."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from blockgraph.cli.arguments import Parser, size
from blockgraph.cli.runs import Prepared, Unready, add_arguments, prepare
from blockgraph.cli.terminal import Terminal, exit_code

if TYPE_CHECKING:
    from blockgraph.trace import Trace

SUMMARY = "run a spec and show each step, its shape and the size of its numbers"
EXAMPLES = """\
  blockgraph run specs/pre_norm.yaml --seed 42 --batch 1 --time 6
  blockgraph run specs/pre_norm_stack.yaml --set N=12 --format json
  blockgraph run specs/pre_norm.yaml --input x.npy --params weights.npz
  blockgraph run specs/pre_norm.yaml --save-trace trace.npz
  blockgraph run specs/models/gpt2.yaml --checkpoint DIR --input tokens=ids.npy

what is drawn:
  One generator, default_rng(seed), gives first the inputs, in order, then the parameters, in order. An input
  that is given is drawn all the same, in the sizes of the given array, and put aside: the parameters of a
  seed do not depend on where the inputs come from.
"""


def arguments(parser: Parser) -> None:
    """The spec, the sizes, and where arrays come from and go to."""
    parser.add_argument("spec", metavar="SPEC", help="a spec file, or - for standard input")
    add_arguments(parser)
    help = "off: op by op with the plain interpreter, instead of an execution plan for the sizes"
    parser.add_argument("--plan", choices=("on", "off"), default="on", help=help)
    help = "threads to use at the most (default: $BLOCKGRAPH_THREADS, else all cores)"
    parser.add_argument("--threads", type=size, metavar="N", help=help)
    parser.add_argument("--save-trace", metavar="FILE.npz", help="save every named value")
    parser.add_argument("--force", action="store_true", help="replace the file of --save-trace if it is there already")


def main(options: Namespace, terminal: Terminal) -> int:
    """Run the spec and show what came out."""
    from blockgraph.cli.files import refuse_existing
    from blockgraph.lazy import np

    if options.save_trace:
        refuse_existing(options.save_trace, options.force)
    try:
        ready = prepare(options.spec, options)
        with np.errstate(all="ignore"):  # what is not finite is told as a finding
            trace = ready.program.trace(ready.inputs, ready.params)
    except Unready as unready:
        return terminal.failed(unready.one.findings, unready.one.lines)
    return _show(ready, trace, options, terminal)


def _show(ready: Prepared, trace: Trace, options: Namespace, terminal: Terminal) -> int:
    """Print the results and save the trace."""
    from blockgraph.cli.array_files import save_arrays
    from blockgraph.cli.files import write_file
    from blockgraph.cli.numeric import numeric_findings
    from blockgraph.cli.results import Results
    from blockgraph.report import as_data

    one, results = ready.one, Results(ready.program.graph, trace)
    findings = [*ready.findings, *numeric_findings(trace, ready.params)]
    if options.save_trace:
        write_file(options.save_trace, lambda file: save_arrays(file, trace), options.force)
    terminal.findings(findings, one.lines)
    if terminal.format == "json":
        terminal.document({"ok": exit_code(findings) == 0, "findings": as_data(findings), **results.document()})
    else:
        head = f"{ready.program.spec.name or one.path}: seed {options.seed}, {options.dtype}"
        terminal.data(f"{terminal.console.shown(head)}\n\n{results.text(terminal.console, terminal.width)}")
    if options.save_trace:
        terminal.words(f"wrote {terminal.console.shown(options.save_trace)}: {len(trace)} arrays\n")
    return exit_code(findings)
