"""`gradcheck`: the gradients of a spec held against difference quotients of its forward run."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from blockgraph.cli.arguments import Parser, whole
from blockgraph.cli.runs import Unready, add_arguments, prepare, refuse_size, values_of
from blockgraph.cli.terminal import Terminal, exit_code
from blockgraph.errors import Finding, Place

if TYPE_CHECKING:
    from blockgraph.api import Program
    from blockgraph.cli.specs import Examined
    from blockgraph.gradcheck import Row

SUMMARY = "hold gradients against difference quotients, for every parameter and input"
EXAMPLES = """\
  blockgraph gradcheck specs/pre_norm.yaml
  blockgraph gradcheck specs/models/gpt2.yaml --rtol 1e-7
  blockgraph gradcheck specs/pre_norm_stack.yaml --full --time 4
  blockgraph gradcheck specs/pre_norm.yaml --params weights.npz --format json

what is checked:
  Everything is computed in float64. Each tensor is moved along random directions and at single elements: the
  largest gradient and some others. Where the step crosses a kink (relu at 0) the element is skipped and listed.
  A large spec is shrunk first, and the report says to what; sizes given by --set stay. Parameters are drawn such
  that no gate starts at zero, unless --params or --checkpoint gives them.
"""
SHOWN = 20


def rate(text: str) -> float:
    """A positive number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ArgumentTypeError(f"a positive number such as 1e-6 is expected, not {text!r}")
    return number


def count(text: str) -> int:
    """How many of something, none included."""
    return whole(text, 0)


def arguments(parser: Parser) -> None:
    """The spec, the sizes, and how close is close enough."""
    parser.add_argument("spec", metavar="SPEC", help="a spec file, or - for standard input")
    add_arguments(parser, dtype=False)
    help = "largest relative error that passes (default: 1e-6)"
    parser.add_argument("--rtol", type=rate, default=1e-6, metavar="R", help=help)
    help = "random directions for each tensor (default: 2)"
    parser.add_argument("--directions", type=count, default=2, metavar="N", help=help)
    help = "single elements of each tensor, the largest gradient among them (default: 3)"
    parser.add_argument("--elements", type=count, default=3, metavar="N", help=help)
    parser.add_argument("--full", action="store_true", help="check the spec in its own sizes, however large")


def main(options: Namespace, terminal: Terminal) -> int:
    """Check and report; exit 1 when a gradient is off."""
    from blockgraph.cli.numeric import numeric_findings, refuse_not_finite
    from blockgraph.cli.progress import tracked
    from blockgraph.gradcheck import GradientCheck
    from blockgraph.trace import Trace

    if not options.directions and not options.elements:
        options.usage("--directions 0 and --elements 0 leave nothing to check")
    try:
        one, program, inputs, params, changes, findings = _ready(options)
    except Unready as unready:
        return terminal.failed(unready.one.findings, unready.one.lines)
    refuse_not_finite(program.spec, _by_name(program, inputs), params)
    tape = program.tape(inputs, params)
    numeric = numeric_findings(Trace(program.flat, tape.slots), params)
    if exit_code(numeric):
        return terminal.failed([*findings, *numeric], one.lines)
    work = GradientCheck(program.flat, tape, options.seed, options.directions, options.elements)
    rows = list(tracked(work.rows(), len(work.tensors), "gradients", terminal))
    found = [*findings, *numeric, *_judge(rows, options.rtol, program)]
    terminal.findings(found, one.lines)
    if terminal.format == "json":
        terminal.document(_document(rows, found, changes, program, options))
    else:
        terminal.data(_text(rows, changes, program, options, terminal))
    return exit_code(found)


def _by_name(program: Program, inputs: Any) -> dict[str, Any]:
    return inputs if isinstance(inputs, dict) else {program.graph.inputs[0].name: inputs}


def _ready(options: Namespace) -> tuple[Examined, Program, Any, Any, list[Any], Sequence[Finding]]:
    """The program and its arrays, shrunk if it is large. Raises Unready, InputError, EnvironmentFailure."""
    from blockgraph.api import Program
    from blockgraph.cli.specs import examine
    from blockgraph.gradcheck import stirred
    from blockgraph.shrink import is_large, shrink, sizes_for

    given = options.params or options.checkpoint
    if not (given or options.input or options.full):
        values = values_of(options)
        one = examine(options.spec, values)
        if not one.ok or one.checked is None or one.checked.graph is None:
            raise Unready(one)
        program = Program(one.checked.spec, one.checked.graph, one.findings)
        if is_large(program):
            program, changes = shrink(program, values)
            sizes = sizes_for(program)
            refuse_size(program, sizes, options)
            inputs, params = program.sample(options.seed, **sizes)
            return one, program, inputs, stirred(params, options.seed), list(changes), one.findings
        if options.spec == "-":
            inputs, params = program.sample(options.seed)
            return one, program, inputs, stirred(params, options.seed), [], one.findings
    ready = prepare(options.spec, options)
    params = ready.params if given else stirred(ready.params, options.seed)
    return ready.one, ready.program, ready.inputs, params, [], ready.findings


def _judge(rows: Sequence[Row], rtol: float, program: Program) -> list[Finding]:
    wrong = [row for row in rows if not row.error <= rtol]
    if not wrong:
        return []
    worst = max(wrong, key=lambda row: row.error)
    message = (
        f"{len(wrong)} of {len(rows)} gradients differ from difference quotients by more than {rtol:g}, most that of "
        f"`{worst.name}` at {worst.where}: {worst.gradient:.9g} against {worst.quotient:.9g}"
    )
    help = "the backward of an op on the way from there to the outputs is wrong, or the run is not accurate there"
    return [Finding("BG404", message, Place(program.spec.path), help)]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _document(
    rows: Sequence[Row], findings: Sequence[Finding], changes: Sequence[Any], program: Program, options: Namespace
) -> dict[str, Any]:
    from blockgraph.report import as_data

    return {
        "ok": exit_code(findings) == 0,
        "findings": as_data(findings),
        "rtol": options.rtol,
        "seed": options.seed,
        "shrunk": {change.name: [change.before, change.after] for change in changes},
        "worst": _number(max((row.error for row in rows), default=0.0)),
        "tensors": [
            {
                "name": row.name,
                "kind": row.kind,
                "shape": list(row.shape),
                "error": _number(row.error),
                "where": row.where,
                "gradient": _number(row.gradient),
                "quotient": _number(row.quotient),
                "checks": row.checks,
                "skipped": [{"index": None if s.index is None else list(s.index), "at": s.at} for s in row.skipped],
                "ok": row.error <= options.rtol,
            }
            for row in rows
        ],
    }


def _text(rows: Sequence[Row], changes: Sequence[Any], program: Program, options: Namespace, terminal: Terminal) -> str:
    from blockgraph.tables import Column, table

    shown = terminal.console.shown
    head = [shown(f"{program.spec.name or program.spec.path}: seed {options.seed}, float64, rtol {options.rtol:g}")]
    if changes:
        told = ", ".join(str(change).replace(" ", "\xa0") for change in changes)  # a change stays on one line
        lines = wrap(f"shrunk for the check: {told}", terminal.width)
        head += [shown(line.replace("\xa0", " ")) for line in lines]
    columns = [Column("tensor"), Column("shape"), Column("checks", right=True), Column("worst error", right=True)]
    columns += [Column("where", wrap=True), Column("")]
    cells = [
        (row.name, _shape(row.shape), str(row.checks), f"{row.error:.1e}", row.where, _verdict(row, options.rtol))
        for row in rows
    ]
    text = "\n".join([*head, "", table(columns, cells, terminal.console, terminal.width)])
    skipped = [one for row in rows for one in row.skipped]
    for one in skipped[:SHOWN]:
        where = "all elements" if one.index is None else str(list(one.index))
        text += f"{shown(f'skipped: {one.name} {where}, closer than the step to a kink of {one.at}')}\n"
    if len(skipped) > SHOWN:
        text += f"skipped: {len(skipped) - SHOWN} more elements\n"
    return text


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def _verdict(row: Row, rtol: float) -> str:
    return "ok" if row.error <= rtol and row.checks else "WRONG" if not row.error <= rtol else "-"
