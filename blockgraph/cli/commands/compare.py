"""`compare`: run two specs, or a spec and a saved trace, and name the first value where they part."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from blockgraph.cli.arguments import Parser, tolerance
from blockgraph.cli.runs import Prepared, Unready, add_arguments, prepare
from blockgraph.cli.terminal import Terminal
from blockgraph.errors import Finding, InputError, Place

if TYPE_CHECKING:
    from blockgraph.compare import Comparison, Difference

SUMMARY = "run two specs, or a spec and a saved trace, and name the first value that differs"
EXAMPLES = """\
  blockgraph compare specs/pre_norm.yaml mine.yaml
  blockgraph compare specs/models/gpt2.yaml reference.npz --checkpoint DIR --input tokens=ids.npy
  blockgraph compare a.yaml b.yaml --rtol 1e-6 --format json

Both run on the same inputs and the same parameters. `own` is what is left of a difference when the step is computed
from the other run's values just before it: 0 means that it is inherited.
"""
ARRAYS = (".npz", ".safetensors")
SHOWN = 12
TIGHT = {"float64": 1e-9, "float32": 1e-5}


def arguments(parser: Parser) -> None:
    """The two runs, what they run on, and how close they must be."""
    parser.add_argument("first", metavar="A", help="a spec file")
    parser.add_argument("second", metavar="B", help="a spec file, or a saved trace (.npz or .safetensors)")
    add_arguments(parser)
    help = "largest relative difference that counts as equal (default: 1e-9, in float32 1e-5)"
    parser.add_argument("--rtol", type=tolerance, metavar="R", help=help)


def main(options: Namespace, terminal: Terminal) -> int:
    """Compare and report; exit 1 when they differ, or hold what cannot be compared."""
    from blockgraph.compare import compare

    try:
        ready = prepare(options.first, options)
        reference = _reference(options, ready)
    except Unready as unready:
        return terminal.failed(unready.one.findings, unready.one.lines)
    program = ready.program
    comparison = compare(program.flat, program.tape(ready.inputs, ready.params), reference)
    rtol = TIGHT[options.dtype] if options.rtol is None else options.rtol
    terminal.findings(found := list(_not_finite(comparison)), ready.one.lines)
    return _report(comparison, found, rtol, options, terminal)


def _reference(options: Namespace, ready: Prepared) -> dict[str, Any]:
    """The other run's values by name. Raises Unready, InputError, EnvironmentFailure."""
    from blockgraph.cli.array_files import read_arrays

    if options.second.endswith(ARRAYS):
        return read_arrays(options.second)
    # op by op, as the first is run: what is rounded differently would hide where the two part
    other = prepare(options.second, options)
    _refuse_other_inputs(ready, other, options)
    return dict(replace(other.program, plan=False).trace(ready.inputs, ready.params))


def _refuse_other_inputs(first: Prepared, second: Prepared, options: Namespace) -> None:
    """What takes other inputs cannot run on the same ones. Raises InputError (BG302)."""
    told = [
        ", ".join(f"{name} {array.shape}{' of ids' * (array.dtype.kind in 'iu')}" for name, array in one.inputs.items())
        for one in (first, second)
    ]
    if told[0] != told[1]:
        message = f"the two specs take different inputs: {told[0] or 'none'} against {told[1] or 'none'}"
        help = "compare specs that take the same; `blockgraph diff` tells any two specs apart without running them"
        raise InputError([Finding("BG302", message, Place(options.second), help)])


def _not_finite(comparison: Comparison) -> Iterator[Finding]:
    """BG402 for the first value that is not finite; values that are so in both runs count as equal."""
    one = comparison.not_finite
    if one is not None:
        where = "both runs" if one.in_first and one.in_second else f"the {'first' if one.in_first else 'second'} run"
        message = f"`{one.name}` holds infinity or values that are no numbers in {where}, and no value before it does"
        help = "what is not finite in the same place of both runs counts as equal, so this comparison shows little"
        yield Finding("BG402", message, one.place or Place(""), help)


def _report(
    comparison: Comparison, found: Sequence[Finding], rtol: float, options: Namespace, terminal: Terminal
) -> int:
    first = comparison.first(rtol)
    if not comparison.differences:
        options.usage("the two runs have no named value in common")
    if terminal.format == "json":
        terminal.document(_document(comparison, found, first, rtol))
    elif first is None:
        terminal.data(f"no difference in {len(comparison.differences)} values (rtol {rtol:g})\n")
    else:
        terminal.data(_text(comparison, first, rtol, terminal))
    return 0 if first is None and not found else 1


def _document(
    comparison: Comparison, found: Sequence[Finding], first: Difference | None, rtol: float
) -> dict[str, Any]:
    from blockgraph.report import as_data

    return {
        "ok": first is None and not found,
        "findings": as_data(found),
        "rtol": rtol,
        "first": None if first is None else _row(first),
        "differences": [_row(one) for one in comparison.differences if one.beyond(rtol)],
        "compared": len(comparison.differences),
        "only_first": list(comparison.only_first),
        "only_second": list(comparison.only_second),
    }


def _row(one: Difference) -> dict[str, Any]:
    def number(value: float | None) -> float | str | None:
        return str(value) if value is not None and value == float("inf") else value

    return {
        "name": one.name,
        "op": one.op,
        "absolute": number(one.absolute),
        "relative": number(one.relative),
        "own": number(one.own),
        "shapes": None if one.shapes is None else [list(shape) for shape in one.shapes],
    }


def _text(comparison: Comparison, first: Difference, rtol: float, terminal: Terminal) -> str:
    from blockgraph.tables import Column, table

    beyond = [one for one in comparison.differences if one.beyond(rtol)]
    where = f", line {first.place.start.line}" if first.place is not None else ""
    head = f"the runs part at {first.name} ({first.op}{where})"
    if first.shapes is not None:
        head += f": shapes {first.shapes[0]} and {first.shapes[1]}"
    rows = [
        (one.name, one.op, f"{one.absolute:.3g}", f"{one.relative:.3g}", "?" if one.own is None else f"{one.own:.3g}")
        for one in beyond[:SHOWN]
    ]
    columns = [Column("value"), Column("op"), *(Column(name, right=True) for name in ("absolute", "relative", "own"))]
    more = f"\n{len(beyond) - SHOWN} more values differ\n" if len(beyond) > SHOWN else ""
    shown = terminal.console.shown
    return f"{shown(head)}\n\n{table(columns, rows, terminal.console, terminal.width)}{more}"
