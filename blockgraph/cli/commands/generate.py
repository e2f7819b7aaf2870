"""`generate`: a prompt is continued token by token, with what earlier positions left behind."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

from blockgraph.cli.arguments import Parser, seed, size
from blockgraph.cli.terminal import Terminal
from blockgraph.errors import Finding, InputError, Place

if TYPE_CHECKING:
    from blockgraph.api import Program
    from blockgraph.decode.decoder import Decoder
    from blockgraph.dims import Dim
    from blockgraph.op import Type

SUMMARY = "continue a prompt token by token, with a cache derived from the graph"
EXAMPLES = """\
  blockgraph generate specs/models/gpt2.yaml --checkpoint DIR --input ids.npy --tokens 32
  blockgraph generate specs/models/gpt2.yaml --checkpoint DIR --text "The sea" --temperature 0.8 --top-k 40 --seed 1
  blockgraph generate specs/models/t5.yaml --checkpoint DIR --input source=ids.npy --input target=start.npy

what comes out:
  The new ids, a line for each row of the prompt; with --text the new text. -o keeps the prompt's ids and the new
  ones as one array (B, T). Without --temperature the best id is taken each time.
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
    help = "draw ids from softmax(scores / X) instead of taking the best (default: 0)"
    parser.add_argument("--temperature", type=temperature, default=0.0, metavar="X", help=help)
    parser.add_argument("--top-k", type=size, metavar="K", help="draw among the K best only (default: all)")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="the seed of what is drawn (default: 0)")
    help = "the type of all floats (default: float32)"
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float32", help=help)
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
    from blockgraph.decode.sampling import Choice, generate
    from blockgraph.lazy import np

    one, program = compiled(options.spec, values(options.set), options.checkpoint)
    schedule = program.schedule
    params, notes = given_params(one, program, options)
    if params is None:
        message = "no weights are given, and what is drawn has nothing to say"
        raise InputError([Finding("BG301", message, Place(one.path), "add --checkpoint DIR, or --params FILE")])
    prompt, decoder = _prompt(program, schedule.timing.time, params, options)
    choice = Choice(options.temperature, options.top_k, options.seed)
    steps = generate(decoder, prompt, options.tokens, choice)
    new = np.stack(list(tracked(steps, options.tokens, "tokens", terminal)), axis=1)
    findings = tuple(dict.fromkeys((*program.findings, *notes)))
    terminal.findings(findings, one.lines)
    _show(np.concatenate([prompt, new], axis=1), new, findings, options, terminal)
    return 0


def _prompt(program: Program, time: Dim, params: dict[str, Any], options: Namespace) -> tuple[Any, Decoder]:
    """The ids that are continued, and a decoder that knows all else. Raises InputError, EnvironmentFailure."""
    from blockgraph.cli.runs import given_inputs
    from blockgraph.cli.tokens import encode
    from blockgraph.decode.sampling import vocabulary
    from blockgraph.lazy import np

    graph = program.graph
    types = {port.name: graph.types[port.value] for port in graph.inputs}
    given = {name: _in_a_batch(array, types[name]) for name, array in given_inputs(program, options.input).items()}
    timed = [name for name, one in types.items() if time in (one.shape or ())]
    if options.text is not None:
        names = [name for name, one in types.items() if one.dtype == "int" and name not in given]
        if not names:
            options.usage("--text is one prompt too many: --input gives all ids")
        given[names[0]] = np.asarray([encode(options.checkpoint, options.text)], dtype=np.int64)
    context = {name: array for name, array in given.items() if name not in timed}
    context |= _masks(program, context)
    decoder = program.decoder(params, context)
    ids, _ = vocabulary(decoder)
    if ids.name not in given:
        message = f"no prompt is given: the input `{ids.name}` is missing"
        help = f"add --input {ids.name}=FILE.npy" + (", or --text TEXT" if len(types) == 1 else "")
        raise InputError([Finding("BG302", message, Place(program.spec.path), help)])
    return given[ids.name], decoder


def _in_a_batch(array: Any, given: Type) -> Any:
    """Ids (T) as a batch of one."""
    return array[None] if given.dtype == "int" and array.ndim == 1 and len(given.shape or ()) == 2 else array


def _masks(program: Program, context: dict[str, Any]) -> dict[str, Any]:
    """Masks over the context that are not given hide nothing."""
    from blockgraph.lazy import np

    graph, numbers = program.graph, dict(program.graph.dims)
    for port in graph.inputs:
        if port.name in context:
            shape = graph.types[port.value].shape or ()
            numbers.update({str(dim): size for dim, size in zip(shape, context[port.name].shape, strict=False)})
    found = {}
    for port in graph.inputs:
        shape = graph.types[port.value].shape or ()
        known = all(dim.symbols <= numbers.keys() for dim in shape)
        if graph.types[port.value].dtype == "bool" and port.name not in context and known:
            found[port.name] = np.ones(tuple(int(dim.evaluate(numbers)) for dim in shape), bool)
    return found


def _show(whole: Any, new: Any, findings: tuple[Finding, ...], options: Namespace, terminal: Terminal) -> None:
    """Print the ids or the text, and write the file."""
    from blockgraph.cli.files import write_file
    from blockgraph.cli.tokens import decode
    from blockgraph.lazy import np
    from blockgraph.report import as_data

    texts = None if options.text is None else decode(options.checkpoint, new.tolist())
    if options.output:
        write_file(options.output, lambda file: np.save(file, whole, allow_pickle=False), options.force)
    if terminal.format == "json":
        document = {"ok": True, "findings": as_data(findings), "ids": new.tolist()}
        terminal.document({**document, "text": texts} if texts is not None else document)
    elif texts is not None:
        terminal.data("".join(f"{terminal.console.shown(text)}\n" for text in texts))
    else:
        terminal.data("".join(" ".join(map(str, row)) + "\n" for row in new.tolist()))
    if options.output:
        shape = "x".join(map(str, whole.shape))
        terminal.words(f"wrote {terminal.console.shown(options.output)}: ids {shape}\n")
