"""`generate`: a prompt is continued token by token, with what earlier positions left behind."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

from blockgraph.cli.arguments import Parser, seed, size
from blockgraph.cli.runs import add_max_memory
from blockgraph.cli.terminal import Terminal
from blockgraph.errors import Finding, InputError, Place

if TYPE_CHECKING:
    from blockgraph.api import Program
    from blockgraph.op import Type

SUMMARY = "continue a prompt token by token, with a cache derived from the graph"
EXAMPLES = """\
  blockgraph generate specs/models/gpt2.yaml --checkpoint DIR --input ids.npy --tokens 32
  blockgraph generate specs/models/gpt2.yaml --checkpoint DIR --text "The sea" --temperature 0.8 --top-k 40 --seed 1
  blockgraph generate specs/models/t5.yaml --checkpoint DIR --input source=ids.npy --input target=start.npy --stop 1

what comes out:
  The new ids, a line for each row of the prompt; with --text the new text. -o keeps the prompt's ids and the new
  ones as one array (B, T). Without --temperature the best id is taken each time. A row ends with the first id of
  --stop; in the array of -o it is repeated until all rows have ended.
"""


def temperature(text: str) -> float:
    """A number from 0 on."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ArgumentTypeError(f"a number from 0 on is expected, as in 0.8, not {text!r}")
    return number


def arguments(parser: Parser) -> None:
    """The spec, its weights, the prompt, and how ids are chosen."""
    parser.add_argument("spec", metavar="SPEC", help="a spec file, or - for standard input")
    help = "a folder with config.json and *.safetensors; the spec's `checkpoint:` maps sizes and names"
    parser.add_argument("--checkpoint", metavar="DIR", help=help)
    parser.add_argument("--params", metavar="FILE", help="the parameters by name, as .npz or .safetensors")
    help = "ids (B, T) or (T); with its name if there are several inputs (may be repeated)"
    parser.add_argument("--input", action="append", default=[], metavar="[NAME=]FILE.npy", help=help)
    help = "the prompt as text, by the checkpoint's tokenizer.json (needs the extra `tokenizers`)"
    parser.add_argument("--text", metavar="TEXT", help=help)
    parser.add_argument("--tokens", type=size, default=32, metavar="N", help="how many new ids (default: 32)")
    help = "an id that ends a row, as the tokenizer has for the end of a text (may be repeated)"
    parser.add_argument("--stop", action="append", type=seed, default=[], metavar="ID", help=help)
    help = "draw ids from softmax(scores / X) instead of taking the best (default: 0)"
    parser.add_argument("--temperature", type=temperature, default=0.0, metavar="X", help=help)
    parser.add_argument("--top-k", type=size, metavar="K", help="draw among the K best only (default: all)")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="the seed of what is drawn (default: 0)")
    help = "the type of all floats (default: float32)"
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float32", help=help)
    add_max_memory(parser)
    parser.add_argument("-o", "--output", metavar="FILE.npy", help="write the prompt's ids and the new ones")
    parser.add_argument("--force", action="store_true", help="replace the file of -o if it is there already")


def main(options: Namespace, terminal: Terminal) -> int:
    """Generate and print."""
    from blockgraph.cli.files import refuse_existing
    from blockgraph.cli.runs import Unready

    if options.top_k is not None and not options.temperature:
        options.usage("--top-k chooses among what is drawn, and without --temperature the best id is taken")
    if options.text is not None and not options.checkpoint:
        options.usage("--text needs --checkpoint: its folder holds the tokenizer.json")
    if options.output:
        refuse_existing(options.output, options.force)
    try:
        return _generate(options, terminal)
    except Unready as unready:
        return terminal.failed(unready.one.findings, unready.one.lines)


def _generate(options: Namespace, terminal: Terminal) -> int:
    from blockgraph.cli.progress import tracked
    from blockgraph.cli.runs import compiled, given_params
    from blockgraph.cli.specs import values
    from blockgraph.decode.sampling import Choice, generate, vocabulary
    from blockgraph.lazy import np

    one, program = compiled(options.spec, values(options.set), options.checkpoint)
    if not (options.checkpoint or options.params):
        message = "no weights are given, and what is drawn has nothing to say"
        raise InputError([Finding("BG301", message, Place(one.path), "add --checkpoint DIR, or --params FILE")])
    ids, _ = vocabulary(program.spec, program.graph, program.schedule.timing.time)
    given = _given(program, ids.name, options)
    prompt = given.pop(ids.name)
    _refuse_memory(program, ids.name, prompt, given, options)
    params, notes = given_params(one, program, options)
    assert params is not None, "weights are given"
    choice = Choice(options.temperature, options.top_k, options.seed, tuple(options.stop))
    steps = generate(program.decoder(params, given), prompt, options.tokens, choice)
    new = np.stack(list(tracked(steps, options.tokens, "tokens", terminal)), axis=1)
    findings = tuple(dict.fromkeys((*program.findings, *notes)))
    terminal.findings(findings, one.lines)
    _show(np.concatenate([prompt, new], axis=1), new, findings, options, terminal)
    return 0


def _given(program: Program, ids: str, options: Namespace) -> dict[str, Any]:
    """The prompt under the name of its input, and what else is given. Raises InputError, EnvironmentFailure."""
    from blockgraph.cli.runs import given_inputs
    from blockgraph.cli.tokens import encode
    from blockgraph.lazy import np

    types = {port.name: program.graph.types[port.value] for port in program.graph.inputs}
    given = {name: _in_a_batch(array, types[name]) for name, array in given_inputs(program, options.input).items()}
    if options.text is not None:
        names = [name for name, one in types.items() if one.dtype == "int" and name not in given]
        if not names:
            options.usage("--text is one prompt too many: --input gives all ids")
        given[names[0]] = np.asarray([encode(options.checkpoint, options.text)], dtype=np.int64)
    if ids not in given:
        message = f"no prompt is given: the input `{ids}` is missing"
        help = f"add --input {ids}=FILE.npy" + (", or --text TEXT" if len(types) == 1 else "")
        raise InputError([Finding("BG302", message, Place(program.spec.path), help)])
    time = program.schedule.timing.time
    masks = [name for name in given if name != ids and time in (types[name].shape or ())]
    if masks:
        message = f"the input `{masks[0]}` has an axis of positions, and nothing is known of those that come"
        help = "leave it out: all positions are visible; or use `decoder.step` in Python"
        raise InputError([Finding("BG302", message, Place(program.spec.path), help)])
    return {**given, **_masks(program, {name: array for name, array in given.items() if name != ids})}


def _in_a_batch(array: Any, given: Type) -> Any:
    """Ids (T) as a batch of one."""
    return array[None] if given.dtype == "int" and array.ndim == 1 and len(given.shape or ()) == 2 else array


def _sizes(program: Program, given: dict[str, Any]) -> dict[str, int]:
    """The numbers of the dims, and of the symbols that stand alone for an axis of what is given."""
    graph, numbers = program.graph, dict(program.graph.dims)
    for port in graph.inputs:
        if port.name in given:
            shape = graph.types[port.value].shape or ()
            numbers.update({str(dim): size for dim, size in zip(shape, given[port.name].shape, strict=False)})
    return numbers


def _masks(program: Program, context: dict[str, Any]) -> dict[str, Any]:
    """Masks over the context that are not given hide nothing."""
    from blockgraph.lazy import np

    graph, numbers = program.graph, _sizes(program, context)
    found = {}
    for port in graph.inputs:
        shape = graph.types[port.value].shape or ()
        known = all(dim.symbols <= numbers.keys() for dim in shape)
        if graph.types[port.value].dtype == "bool" and port.name not in context and known:
            found[port.name] = np.ones(tuple(int(dim.evaluate(numbers)) for dim in shape), bool)
    return found


def _refuse_memory(program: Program, ids: str, prompt: Any, context: dict[str, Any], options: Namespace) -> None:
    """Raises EnvironmentFailure (BG904) if it is estimated to need more memory than is allowed.

    What does not fit the spec is left to those who tell it.
    """
    from blockgraph.cli.runs import allowed_memory, refuse_memory
    from blockgraph.decode.memory import foresee
    from blockgraph.dims import DimError

    allowed = allowed_memory(options)
    if allowed is None or prompt.ndim != 2:
        return
    numbers = _sizes(program, {**context, ids: prompt})
    total = prompt.shape[1] + options.tokens - 1
    try:
        report = foresee(program.schedule, numbers, prompt.shape[1], total, options.dtype)
    except DimError:
        return
    help = "ask for fewer --tokens, give a shorter prompt or fewer rows, or raise --max-memory"
    refuse_memory(program.spec.path, report, allowed, help)


def _show(whole: Any, new: Any, findings: tuple[Finding, ...], options: Namespace, terminal: Terminal) -> None:
    """Print the ids or the text, and write the file."""
    from blockgraph.cli.files import write_file
    from blockgraph.cli.tokens import decode
    from blockgraph.decode.sampling import until_stop
    from blockgraph.lazy import np
    from blockgraph.report import as_data

    rows = [until_stop(row, options.stop) for row in new.tolist()]
    texts = None if options.text is None else decode(options.checkpoint, rows)
    if options.output:
        write_file(options.output, lambda file: np.save(file, whole, allow_pickle=False), options.force)
    if terminal.format == "json":
        document = {"ok": True, "findings": as_data(findings), "ids": rows}
        terminal.document({**document, "text": texts} if texts is not None else document)
    elif texts is not None:
        terminal.data("".join(f"{terminal.console.shown(text)}\n" for text in texts))
    else:
        terminal.data("".join(" ".join(map(str, row)) + "\n" for row in rows))
    if options.output:
        shape = "x".join(map(str, whole.shape))
        terminal.words(f"wrote {terminal.console.shown(options.output)}: ids {shape}\n")
