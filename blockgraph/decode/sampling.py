"""Ids one after another: the next is chosen from the scores of the last position and goes in as the next step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from blockgraph.decode.decoder import Decoder
from blockgraph.decode.refuse import refuse
from blockgraph.errors import Finding, InputError, Place
from blockgraph.graph import Port
from blockgraph.lazy import np
from blockgraph.records import dataclass

PROMPT_ROWS: Final = 512  # positions of a prompt that are fed at once


@dataclass(frozen=True)
class Choice:
    """How an id is chosen: the best if `temperature` is 0, else drawn from softmax(scores / temperature).

    With `top_k` only the k best can be drawn. Ids come from one generator, `default_rng(seed)`, row by row.
    """

    temperature: float = 0.0
    top_k: int | None = None
    seed: int = 0


def vocabulary(decoder: Decoder) -> tuple[Port, Port]:
    """The input of ids that is continued, and the output whose last axis are scores for it.

    Raises InputError (BG405) where there is none, or more than one.
    """
    spec, graph = decoder.spec, decoder.graph
    ids = [port for port in decoder.ports if graph.types[port.value].dtype == "int" and port.below is not None]
    if len(ids) != 1:
        told = f"{len(ids) or 'no'} inputs of ids have an axis of positions, and one is continued"
        refuse(spec, told, "an input such as `tokens: {ids: [B, T], below: V}`")
    (port,) = ids
    others = [one.name for one in decoder.ports if one is not port and graph.types[one.value].dtype != "bool"]
    if others:
        refuse(spec, f"what the input `{others[0]}` is at later positions is not known", "use `decoder.step` in Python")
    shapes = {one: graph.types[one.value].shape or () for one in graph.outputs}
    scores = [one for one, shape in shapes.items() if decoder.time in shape and shape[-1] == port.below]
    if not scores:
        told = f"no output has scores over the {port.below} ids of `{port.name}` in its last axis"
        refuse(spec, told, "let the model return logits, such as `final_norm(x) @ embed.table.T`")
    return port, scores[0]


def generate(decoder: Decoder, prompt: Any, count: int, choice: Choice) -> Iterator[Any]:
    """`count` arrays of new ids (B,), each from the scores behind the one before.

    `prompt` holds ids (B, T). Raises InputError: BG405 (see `vocabulary`), BG109 more positions than the spec allows,
    BG302 and BG303 ids that do not fit, BG402 scores that are no numbers.
    """
    ids, scores = vocabulary(decoder)
    prompt = np.asarray(prompt)
    if prompt.ndim != 2 or not prompt.shape[1]:
        message = f"a prompt is ids (B, T) with one position at least, and this has shape {prompt.shape}"
        raise InputError([Finding("BG302", message, Place(decoder.spec.path))])
    decoder.refuse_length(decoder.length + prompt.shape[1] + count - 1)
    rng = np.random.default_rng(choice.seed)
    for start in range(0, prompt.shape[1] - 1, PROMPT_ROWS):
        decoder.feed(_inputs(decoder, ids, prompt[:, start : min(start + PROMPT_ROWS, prompt.shape[1] - 1)]))
    new = prompt[:, -1:]
    for _ in range(count):
        result = decoder.step(_inputs(decoder, ids, new))
        found = result[scores.name] if isinstance(result, Mapping) else result
        chosen = choose(_finite(decoder, scores, found[:, -1].astype(np.float64)), choice, rng)
        yield chosen
        new = chosen[:, None]


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
