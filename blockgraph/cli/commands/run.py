"""`run`: the numbers of a spec on sampled or given arrays, step by step."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from blockgraph.cli.arguments import Parser
from blockgraph.cli.runs import add_arguments, arrays_of, values_of
from blockgraph.cli.terminal import Terminal, exit_code
from blockgraph.errors import InputError

if TYPE_CHECKING:
    from blockgraph.api import Trace
    from blockgraph.cli.specs import Examined

SUMMARY = "run a spec and show each step, its shape and the size of its numbers"
EXAMPLES = """\
  blockgraph run specs/pre_norm.yaml --seed 42 --batch 1 --time 6
  blockgraph run specs/pre_norm_stack.yaml --set N=12 --format json
  blockgraph run specs/pre_norm.yaml --input x.npy --params weights.npz
  blockgraph run specs/pre_norm.yaml --save-trace trace.npz

what is drawn:
  One generator, default_rng(seed), gives first the inputs, in order, then the parameters, in order. An input
  that is given is drawn all the same, in the sizes of the given array, and put aside: the parameters of a
  seed do not depend on where the inputs come from.
"""


def arguments(parser: Parser) -> None:
    """The spec, the sizes, and where arrays come from and go to."""
    parser.add_argument("spec", metavar="SPEC", help="a spec file, or - for standard input")
    add_arguments(parser)
    parser.add_argument("--save-trace", metavar="FILE.npz", help="save every named value")
    parser.add_argument("--force", action="store_true", help="replace the file of --save-trace if it is there already")


def main(options: Namespace, terminal: Terminal) -> int:
    """Run the spec and show what came out."""
    from blockgraph.api import Program
    from blockgraph.cli.files import refuse_existing
    from blockgraph.cli.specs import examine
    from blockgraph.lazy import np

    if options.save_trace:
        refuse_existing(options.save_trace, options.force)
    one = examine(options.spec, values_of(options))
    if not one.ok or one.checked is None or one.checked.graph is None:
        return terminal.failed(one.findings, one.lines)
    program = Program(one.checked.spec, one.checked.graph, one.findings)
    try:
        inputs, params = arrays_of(program, options)
        with np.errstate(all="ignore"):  # what is not finite is told as a finding
            trace = program.trace(inputs, params)
    except InputError as error:
        return terminal.failed([*one.findings, *error.findings], one.lines)
    return _show(one, trace, options, terminal)


def _show(one: Examined, trace: Trace, options: Namespace, terminal: Terminal) -> int:
    """Print the results and save the trace."""
    from blockgraph.cli.array_files import save_arrays
    from blockgraph.cli.files import write_file
    from blockgraph.cli.results import Results
    from blockgraph.report import as_data

    results = Results(one.checked.graph, trace)  # type: ignore[union-attr,arg-type]
    findings = [*one.findings, *results.findings()]
    if options.save_trace:
        write_file(options.save_trace, lambda file: save_arrays(file, trace), options.force)
    terminal.findings(findings, one.lines)
    if terminal.format == "json":
        terminal.document({"ok": True, "findings": as_data(findings), **results.document()})
    else:
        head = f"{one.checked.spec.name or one.path}: seed {options.seed}, {options.dtype}"  # type: ignore[union-attr]
        terminal.data(f"{terminal.console.shown(head)}\n\n{results.text(terminal.console, terminal.width)}")
    if options.save_trace:
        terminal.words(f"wrote {terminal.console.shown(options.save_trace)}: {len(trace)} arrays\n")
    return exit_code(findings)
