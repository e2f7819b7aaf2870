"""What the commands that compute have in common: sizes, and arrays that are drawn or given."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from blockgraph.cli.arguments import Parser, bytes_of, seed, size
from blockgraph.errors import EnvironmentFailure, Finding, InputError, Place, near
from blockgraph.records import dataclass
from blockgraph.room import free_memory

if TYPE_CHECKING:
    from blockgraph.api import Program
    from blockgraph.cli.specs import Examined
    from blockgraph.cost.memory import MemoryReport

NAMED_ARRAYS = (".npz", ".safetensors")


def add_arguments(parser: Parser, dtype: bool = True) -> None:
    """The options that say what a run works on."""
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="the seed of what is drawn (default: 0)")
    parser.add_argument("--batch", type=size, metavar="B", help="short for --set B=... (default: 2)")
    help = "short for --set T=... (default: 8, as for every other free size)"
    parser.add_argument("--time", type=size, metavar="T", help=help)
    if dtype:
        help = "the type of all floats (default: float64)"
        parser.add_argument("--dtype", choices=("float64", "float32"), default="float64", help=help)
    else:
        parser.set_defaults(dtype="float64")
    help = "an input as an array; with its name if there are several (may be repeated)"
    parser.add_argument("--input", action="append", default=[], metavar="[NAME=]FILE.npy", help=help)
    parser.add_argument("--params", metavar="FILE", help="the parameters by name, as .npz or .safetensors")
    help = "a folder with config.json and *.safetensors; the spec's `checkpoint:` maps sizes and names"
    parser.add_argument("--checkpoint", metavar="DIR", help=help)
    add_max_memory(parser)


def add_max_memory(parser: Parser) -> None:
    """The limit of memory."""
    help = "refuse a run that needs more, as in 800M or 12G (default: three quarters of what is free)"
    parser.add_argument("--max-memory", type=bytes_of, metavar="BYTES", help=help)


def values_of(options: Namespace) -> dict[str, Any]:
    """The values of `--set`, `--batch` and `--time`; a contradiction ends the command."""
    from blockgraph.cli.specs import values

    found = values(options.set)
    for name, option, number in (("B", "--batch", options.batch), ("T", "--time", options.time)):
        if number is not None and found.setdefault(name, number) != number:
            options.usage(f"{option} {number} and --set {name}={found[name]} contradict each other")
    return found


@dataclass(frozen=True)
class Prepared:
    """A program with its arrays by name, and what was found on the way; `spec` is None if nothing can run."""

    one: Examined
    program: Program
    inputs: dict[str, Any]
    params: dict[str, Any]
    findings: tuple[Finding, ...]


def prepare(name: str, options: Namespace) -> Prepared:
    """Read a spec, size it by the checkpoint if there is one, and get its arrays: what is given, the rest drawn.

    Raises Unready, InputError, EnvironmentFailure.
    """
    one, program = compiled(name, values_of(options), options.checkpoint)
    plan, threads = getattr(options, "plan", "on") == "on", getattr(options, "threads", None)
    program = replace(program, plan=plan, threads=threads)
    given = given_inputs(program, options.input)
    inputs, numbers = _bound(program, given, options)
    refuse_size(program, numbers, options)
    drawn, params = _drawn(program, numbers, options)
    read, notes = given_params(one, program, options)
    findings = tuple(dict.fromkeys((*program.findings, *notes)))
    return Prepared(one, program, {**drawn, **inputs}, params if read is None else read, findings)


def compiled(name: str, values: Mapping[str, Any], checkpoint: str | None) -> tuple[Examined, Program]:
    """A spec, and its program with the sizes of a checkpoint. Raises Unready, InputError, EnvironmentFailure."""
    from blockgraph import weights
    from blockgraph.api import Program
    from blockgraph.checking import check
    from blockgraph.cli.specs import examine

    one = examine(name, values)
    if not one.ok or one.checked is None or one.checked.graph is None:
        raise Unready(one)
    written = one.checked.spec
    program = Program(written, one.checked.graph, one.findings)
    if checkpoint:
        spec, _ = weights.spec_of(written, checkpoint)
        checked = check(spec)
        if not checked.ok or checked.graph is None:
            raise Unready(replace(one, checked=checked, findings=checked.findings))
        program = Program(spec, checked.graph, checked.findings)
    return one, program


def given_params(
    one: Examined, program: Program, options: Namespace
) -> tuple[dict[str, Any] | None, tuple[Finding, ...]]:
    """The parameters of `--checkpoint` or `--params` and what is said of them; None if neither is given.

    Raises InputError, EnvironmentFailure.
    """
    from blockgraph import weights
    from blockgraph.cli.array_files import read_arrays

    if options.checkpoint:
        assert one.checked is not None, "what is compiled was checked"
        found = weights.load(one.checked.spec, options.checkpoint, dtype=options.dtype)
        return found.params, found.findings
    if options.params and options.params.endswith(NAMED_ARRAYS):
        found = weights.load(program, options.params, dtype=options.dtype)
        return found.params, found.findings
    if options.params:
        return {name: array.astype(options.dtype) for name, array in read_arrays(options.params).items()}, ()
    return None, ()


class Unready(Exception):
    """A spec that has findings, so that there is nothing to run."""

    def __init__(self, one: Examined) -> None:
        """Keep what was found."""
        self.one = one
        super().__init__(one.path)


def refuse_size(program: Program, numbers: Mapping[str, int], options: Namespace) -> None:
    """Raises EnvironmentFailure (BG904) when a run is estimated to need more memory than is allowed."""
    allowed = allowed_memory(options)
    if allowed is None:
        return
    report = replace(program, plan=False).memory(options.dtype, traced=True, **numbers)
    if program.plan and report.parameters + report.inputs <= allowed:
        report = program.memory(options.dtype, traced=True, **numbers)
    help = "choose smaller sizes with --batch, --time or --set, or raise --max-memory"
    refuse_memory(program.spec.path, report, allowed, help)


def allowed_memory(options: Namespace) -> int | None:
    """The bytes that a run may take: `--max-memory`, or three quarters of what is free where the machine tells."""
    free = free_memory()
    return options.max_memory or (None if free is None else free * 3 // 4)


def refuse_memory(path: str, report: MemoryReport, allowed: int, help: str) -> None:
    """Raises EnvironmentFailure (BG904) for a run that needs more memory than is allowed."""
    if report.total <= allowed:
        return
    largest = report.largest_held or report.largest
    told = f"; the largest tensor is {largest.name}, {largest.bytes:,} bytes" if largest is not None else ""
    message = (
        f"the run needs {report.total:,} bytes ({report.parameters:,} for parameters), "
        f"and {allowed:,} are allowed{told}"
    )
    raise EnvironmentFailure([Finding("BG904", message, Place(path), help)])


def given_inputs(program: Program, texts: Sequence[str]) -> dict[str, Any]:
    """The arrays of `--input` by name. Raises InputError, EnvironmentFailure."""
    from blockgraph.cli.array_files import read_array

    names = [port.name for port in program.graph.inputs]
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not name.isidentifier():
            name, path = names[0] if len(names) == 1 else "", text
        if name not in names:
            raise InputError([_no_such_input(program, name, names, text)])
        if name in found:
            raise InputError([Finding("BG302", f"the input `{name}` is given twice", Place(program.spec.path))])
        found[name] = read_array(path)
    return found


def _no_such_input(program: Program, name: str, names: Sequence[str], text: str) -> Finding:
    guess = near(name, names)
    help = f"did you mean `{guess}`?" if guess else f"the inputs are {', '.join(names)}"
    message = (
        f"there is no input `{name}`"
        if name
        else f"there are {len(names)} inputs, and `{text}` does not say which it is"
    )
    return Finding("BG302", message, Place(program.spec.path), help if name else f"write --input {names[0]}={text}")


def _bound(program: Program, given: Mapping[str, Any], options: Namespace) -> tuple[dict[str, Any], dict[str, int]]:
    """The given inputs, and the numbers of the symbols that their axes tell. Raises InputError."""
    from blockgraph.arrays import bind_inputs
    from blockgraph.lazy import np

    graph = program.graph
    ports = tuple(port for port in graph.inputs if port.name in given)
    bound, numbers = bind_inputs(program.spec, replace(graph, inputs=ports), given, np.dtype(options.dtype))
    symbols = {symbol for port in ports for dim in graph.types[port.value].shape or () for symbol in dim.symbols}
    return bound, {name: numbers[name] for name in symbols if name not in program.spec.dims}


def _drawn(program: Program, numbers: Mapping[str, int], options: Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """All inputs and all parameters, drawn from the seed in the sizes of what is given. Raises InputError."""
    drawn, params = program.sample(options.seed, options.dtype, **numbers)
    return ({program.graph.inputs[0].name: drawn} if len(program.graph.inputs) == 1 else drawn), params
