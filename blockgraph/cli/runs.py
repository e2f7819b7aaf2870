"""What the commands that compute have in common: sizes, and arrays that are drawn or given."""

from __future__ import annotations

import math
import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from blockgraph.cli.arguments import Parser, seed, size
from blockgraph.errors import EnvironmentFailure, Finding, InputError, Place, near

if TYPE_CHECKING:
    from blockgraph.api import Program


def add_arguments(parser: Parser) -> None:
    """The options that say what a run works on."""
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="the seed of what is drawn (default: 0)")
    parser.add_argument("--batch", type=size, metavar="B", help="short for --set B=... (default: 2)")
    help = "short for --set T=... (default: 8, as for every other free size)"
    parser.add_argument("--time", type=size, metavar="T", help=help)
    help = "the type of all floats (default: float64)"
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64", help=help)
    help = "an input as an array; with its name if there are several (may be repeated)"
    parser.add_argument("--input", action="append", default=[], metavar="[NAME=]FILE.npy", help=help)
    parser.add_argument("--params", metavar="FILE", help="the parameters by name, as .npz or .safetensors")


def values_of(options: Namespace) -> dict[str, Any]:
    """The values of `--set`, `--batch` and `--time`; a contradiction ends the command."""
    from blockgraph.cli.specs import values

    found = values(options.set)
    for name, option, number in (("B", "--batch", options.batch), ("T", "--time", options.time)):
        if number is not None and found.setdefault(name, number) != number:
            options.usage(f"{option} {number} and --set {name}={found[name]} contradict each other")
    return found


def arrays_of(program: Program, options: Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and parameters by name: what is given, the rest drawn. Raises InputError, EnvironmentFailure."""
    from blockgraph.cli.array_files import read_arrays

    given = _given_inputs(program, options.input)
    _refuse_size(program)
    inputs, params = _drawn(program, given, options)
    if options.params:
        params = {name: array.astype(options.dtype, copy=False) for name, array in read_arrays(options.params).items()}
    return inputs, params


def _refuse_size(program: Program) -> None:
    """Raises EnvironmentFailure (BG904) if inputs and parameters alone are larger than the machine's memory."""
    from blockgraph.cost import number_of_parameters

    graph, sizes = program.graph, program.sizes()
    shapes = [graph.types[port.value].shape or () for port in graph.inputs]
    numbers = (number_of_parameters(graph) or 0) + sum(
        math.prod(int(dim.evaluate(sizes)) for dim in shape) for shape in shapes
    )
    memory = _memory()
    if memory is not None and 8 * numbers > memory:
        message = f"inputs and parameters need {8 * numbers:,} bytes, and this machine has {memory:,}"
        help = "choose smaller sizes with --batch, --time or --set"
        raise EnvironmentFailure([Finding("BG904", message, Place(program.spec.path), help)])


def _memory() -> int | None:
    """The bytes of memory that the machine has, where it tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _given_inputs(program: Program, texts: Sequence[str]) -> dict[str, Any]:
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


def _drawn(program: Program, given: Mapping[str, Any], options: Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """All inputs, those that are given in the place of the drawn ones, and the drawn parameters. Raises InputError."""
    from blockgraph.arrays import bind_inputs
    from blockgraph.lazy import np

    graph = program.graph
    ports = tuple(port for port in graph.inputs if port.name in given)
    bound, numbers = bind_inputs(program.spec, replace(graph, inputs=ports), given, np.dtype(options.dtype))
    symbols = {symbol for port in ports for dim in graph.types[port.value].shape or () for symbol in dim.symbols}
    drawn, params = program.sample(options.seed, options.dtype, **{name: numbers[name] for name in symbols})
    if len(graph.inputs) == 1:
        drawn = {graph.inputs[0].name: drawn}
    return {**drawn, **bound}, params
