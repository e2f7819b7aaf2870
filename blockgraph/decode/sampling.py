"""Ids one after another: the next is chosen from the scores of the last position and goes in as the next step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Final

from blockgraph.decode.decoder import Decoder
from blockgraph.decode.refuse import refuse
from blockgraph.dims import Dim
from blockgraph.errors import Finding, InputError, Place
from blockgraph.graph import Graph, Port
from blockgraph.lazy import np
from blockgraph.records import dataclass
from blockgraph.wording import counted, show_value

PROMPT_ROWS: Final = 512  # positions of a prompt that are fed at once
AHEAD: Final = 4096  # new positions for which room is made before the first, where a row may end sooner


@dataclass(frozen=True)
class Choice:
    """How an id is chosen: the best if `temperature` is 0, else drawn from softmax(scores / temperature).

    With `top_k` only the k best can be drawn. Ids come from one generator, `default_rng(seed)`, row by row. A row ends
    with one of `stop`.
    """

    temperature: float = 0.0
    top_k: int | None = None
    seed: int = 0
    stop: tuple[int, ...] = ()


def vocabulary(spec: Any, graph: Graph, time: Dim) -> tuple[Port, Port]:
    """The input of ids that is continued, and the output whose last axis are scores for it.

    Raises InputError (BG405) where there is none, or more than one.
    """
    timed = [port for port in graph.inputs if time in (graph.types[port.value].shape or ())]
    ids = [port for port in timed if graph.types[port.value].dtype == "int" and port.below is not None]
    if len(ids) != 1:
        told = f"{len(ids) or 'no'} inputs of ids have an axis of positions, and one is continued"
        refuse(spec, told, "an input such as `tokens: {ids: [B, T], below: V}`")
    (port,) = ids
    others = [one.name for one in timed if one is not port and graph.types[one.value].dtype != "bool"]
    if others:
        refuse(spec, f"what the input `{others[0]}` is at later positions is not known", "use `decoder.step` in Python")
    shapes = {one: graph.types[one.value].shape or () for one in graph.outputs}
    scores = [one for one, shape in shapes.items() if time in shape and shape[-1] == port.below]
    if not scores:
        told = f"no output has scores over the {port.below} ids of `{port.name}` in its last axis"
        refuse(spec, told, "let the model return logits, such as `final_norm(x) @ embed.table.T`")
    return port, scores[0]


def generate(decoder: Decoder, prompt: Any, count: int, choice: Choice) -> Iterator[Any]:
    """At most `count` arrays of new ids (B,), each from the scores behind the one before.

    `prompt` holds ids (B, T). It ends early once every row has met an id of `choice.stop`; a row that has ended before
    the others repeats it. Raises InputError: BG405 (see `vocabulary`), BG109 more positions than the spec allows,
    BG302 and BG303 ids that do not fit, BG402 scores that are no numbers.
    """
    ids, scores = vocabulary(decoder.spec, decoder.graph, decoder.time)
    _refuse_choice(decoder, choice)
    prompt = np.asarray(prompt)
    if prompt.ndim != 2 or not prompt.shape[1]:
        message = f"a prompt is ids (B, T) with one position at least, and this has shape {prompt.shape}"
        raise InputError([Finding("BG302", message, Place(decoder.spec.path))])
    if prompt.dtype.kind == "u":
        prompt = prompt.astype(np.int64)  # beside ids without a sign NumPy would make floats of both
    _refuse_stop(decoder, ids, choice.stop)
    _refuse_count(decoder, prompt.shape[1], count)
    ahead = min(count, AHEAD) if choice.stop else count
    decoder.room = max(decoder.room or 0, decoder.length + prompt.shape[1] + ahead - 1)
    return _continued(decoder, ids, scores, prompt, count, choice)


def _continued(decoder: Decoder, ids: Port, scores: Port, prompt: Any, count: int, choice: Choice) -> Iterator[Any]:
    ended = np.zeros(len(prompt), bool)
    rng = np.random.default_rng(choice.seed)
    for start in range(0, prompt.shape[1] - 1, PROMPT_ROWS):
        decoder.feed(_inputs(decoder, ids, prompt[:, start : min(start + PROMPT_ROWS, prompt.shape[1] - 1)]))
    new = prompt[:, -1:]
    for _ in range(count):
        result = decoder.step(_inputs(decoder, ids, new))
        found = result[scores.name] if isinstance(result, Mapping) else result
        chosen = choose(_finite(decoder, scores, found[:, -1].astype(np.float64)), choice, rng)
        chosen = np.where(ended, new[:, -1], chosen)
        yield chosen
        ended |= np.isin(chosen, choice.stop)
        if ended.all():
            return
        new = chosen[:, None]


def until_stop(ids: Iterable[int], stop: Iterable[int]) -> list[int]:
    """One row of new ids up to the first that ends it, with that one."""
    found: list[int] = []
    for one in ids:
        found.append(one)
        if one in stop:
            break
    return found


def _refuse_choice(decoder: Decoder, choice: Choice) -> None:
    """A temperature or seed that is none, or a choice among the best where the best is taken; InputError (BG022)."""
    heat = choice.temperature
    message = help = ""
    if isinstance(heat, bool) or not isinstance(heat, Real) or not 0 <= heat < math.inf:
        message, help = f"`temperature`: number from 0 on expected, got {show_value(heat)}", "for example 0.8"
    elif choice.top_k is not None and not heat:
        message = "`top_k` chooses among what is drawn, and with temperature 0 the best id is taken"
        help = "set a temperature, such as 0.8, or leave top_k out"
    elif isinstance(choice.seed, bool) or not isinstance(choice.seed, Integral) or choice.seed < 0:
        message, help = f"`seed`: whole number from 0 on expected, got {show_value(choice.seed)}", "for example 1"
    if message:
        raise InputError([Finding("BG022", message, Place(decoder.spec.path), help)])


def _refuse_stop(decoder: Decoder, ids: Port, stop: Iterable[int]) -> None:
    """Ids that cannot come. Raises InputError (BG303)."""
    assert ids.below is not None, "what is continued are ids"
    below = int(ids.below.evaluate(decoder.numbers))
    wrong = [one for one in stop if isinstance(one, bool) or not hasattr(one, "__index__") or not 0 <= one < below]
    if wrong:
        message = f"no row ends with {show_value(wrong[0])}: ids of `{ids.name}` run from 0 to {below - 1}"
        help = "name an id that ends a text, as the tokenizer of the checkpoint has it"
        raise InputError([Finding("BG303", message, Place(decoder.spec.path), help)])


def _refuse_count(decoder: Decoder, prompt: int, count: int) -> None:
    """More positions than the spec allows; the last id is not read. Raises InputError (BG109)."""
    try:
        decoder.refuse_length(decoder.length + prompt + count - 1)
    except InputError as error:
        if any(one.code != "BG109" for one in error.findings):
            raise
        most = decoder.left - prompt + 1
        help = f"at most {counted(most, 'new id')} after this prompt: `--tokens {most}`, or count={most} in Python"
        if most < 1:
            help = f"the prompt alone is too long: give {counted(1 - most, 'id')} less"
        raise InputError(replace(one, help=help) for one in error.findings) from None


def choose(scores: Any, choice: Choice, rng: Any) -> Any:
    """Ids (B,) from scores (B, V); of equals the lowest wins where the best are taken."""
    if choice.temperature == 0:
        return scores.argmax(axis=-1)
    order = np.argsort(-scores, axis=-1, kind="stable")[:, : choice.top_k]
    best = np.take_along_axis(scores, order, axis=-1)
    weights = np.exp((best - best[:, :1]) / choice.temperature)
    edges = np.cumsum(weights, axis=-1)
    drawn = rng.random(len(scores))[:, None] * edges[:, -1:]
    at = np.minimum((edges <= drawn).sum(axis=-1), order.shape[1] - 1)
    return np.take_along_axis(order, at[:, None], axis=-1)[:, 0]


def _inputs(decoder: Decoder, ids: Port, new: Any) -> dict[str, Any]:
    """The new ids, and true for whatever masks them."""
    return {port.name: new if port is ids else np.ones(new.shape, bool) for port in decoder.ports}


def _finite(decoder: Decoder, port: Port, scores: Any) -> Any:
    """The scores; minus infinity hides an id. Raises InputError (BG402) for what is no number."""
    if (np.isnan(scores) | np.isposinf(scores)).any() or np.isneginf(scores).all(axis=-1).any():
        message = f"`{port.name}` at position {decoder.length - 1} holds infinity or values that are no numbers"
        raise InputError([Finding("BG402", message, Place(decoder.spec.path), "`blockgraph run` names the first step")])
    return scores
