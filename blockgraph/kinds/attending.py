"""What self-attention and cross-attention have in common: projections, heads, scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from blockgraph.errors import near
from blockgraph.kind import (
    Flag,
    Kind,
    Marker,
    Own,
    RealNumber,
    RealOrNone,
    Size,
    refuse,
    word,
)
from blockgraph.op import Refusal

PROJECTIONS = ("q", "k", "v", "o")
OVER = ("head", "each_head", "width")


def _biases(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, str) and value.isidentifier()):
        return value
    if isinstance(value, list) and value and all(one in PROJECTIONS for one in value):
        return value
    raise refuse("true, false or a list of q, k, v, o", value)


def _norm_use(value: object) -> object:
    if not isinstance(value, dict) or "kind" not in value:
        raise refuse("a norm", value, "for example {kind: rms_norm, over: head}")
    if value.get("over", OVER[0]) not in OVER:
        raise refuse(f"one of {', '.join(OVER)} for `over`", value["over"], _nearest(value["over"]), ("over",))
    if value.get("over") == "each_head":
        _refuse_for_each_head(value)
    return value


def _nearest(word: object) -> str:
    found = near(word, OVER) if isinstance(word, str) else None
    return f"did you mean `{found}`?" if found else ""


def _refuse_for_each_head(use: dict[str, Any]) -> None:
    """A norm with a scale for each head has that scale alone: refuse what it would leave out in silence."""
    if use["kind"] not in ("layer_norm", "rms_norm"):
        raise refuse("layer_norm or rms_norm for `over: each_head`", use["kind"], at=("kind",))
    for option in ("bias", "affine", "offset", "init"):
        if option in use:
            help = "it has one scale per head, from ones"
            raise refuse(f"no `{option}` beside `over: each_head`", use[option], help, (option,))


BIAS_SCHEMA: dict[str, Any] = {"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"enum": list(PROJECTIONS)}}]}
NORM_SCHEMA: dict[str, Any] = {"type": "object", "required": ["kind"], "properties": {"over": {"enum": list(OVER)}}}
Biases = Annotated[Any, BeforeValidator(_biases), Marker("flag"), WithJsonSchema(BIAS_SCHEMA)]
NormUse = Annotated[Any, BeforeValidator(_norm_use), Marker("use"), WithJsonSchema(NORM_SCHEMA)]


class Rotary(BaseModel):
    """Rotary positions: pairs of features of queries and keys are turned by an angle that grows with the position."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    style: word("half", "pairs") = Field(  # type: ignore[valid-type]
        description="half: feature m is paired with m + width/2; pairs: neighbours"
    )
    theta: RealOrNone = Field(10000, description="base of the frequencies; none: no rotary positions in this layer")
    width: Size = Field(None, description="how many features are turned, from the first (default: all of head_dim)")


class Attending(Kind):
    """The options of every attention."""

    family = "attention"

    heads: Size = Field(description="number of query heads")
    kv_heads: Size = Field(None, description="number of key and value heads (default: heads)")
    head_dim: Size = Field(None, description="width of one query and key head (default: width / heads)")
    value_dim: Size = Field(None, description="width of one value head (default: head_dim)")
    out: Size = Field(None, description="width of the output (default: that of the input)")
    scale: RealNumber = Field(None, description="factor on the scores (default: head_dim**-0.5)")
    softcap: RealOrNone = Field(
        None, description="scores become cap * tanh(score / cap), before the mask; none: no cap"
    )
    sinks: Flag = Field(False, description="a learned logit per head that takes part in the softmax and is dropped")
    bias: Biases = Field(False, description="biases: true, false, or a list of q, k, v, o")
    qk_norm: NormUse = Field(
        None,
        description="a norm on queries and keys before rotary positions, {kind, over}. over: head (the default) takes "
        "the head_dim features of each head, one scale for all heads; each_head the same with a scale of its own "
        "per head (parameters q_norm and k_norm, no bias); width all heads at once, before they are cut",
    )

    def has_bias(self, letter: str) -> bool:
        """Whether one of the four projections has a bias."""
        return self.bias is True or (isinstance(self.bias, list) and letter in self.bias)

    @property
    def over(self) -> str:
        """What `qk_norm` normalises, or nothing."""
        return "" if self.qk_norm is None else str(self.qk_norm.get("over", OVER[0]))

    def source(self) -> tuple[str, str]:
        """The input that keys and values come from, and the letter of its width."""
        return "x", "C"

    def params(self) -> Iterator[Own]:
        """Wq bq Wk bk Wv bv q_norm k_norm sink Wo bo; weights [in, out]."""
        _, width = self.source()
        for letter, dims in (("q", "C, H*D"), ("k", f"{width}, G*D"), ("v", f"{width}, G*E")):
            yield from self._projection(letter, dims)
        if self.over == "each_head":
            yield Own("q_norm", "H, D", "ones")
            yield Own("k_norm", "G, D", "ones")
        if self.sinks:
            yield Own("sink", "H", "zeros")
        yield from self._projection("o", "H*E, F")

    def _projection(self, letter: str, dims: str) -> Iterator[Own]:
        yield Own(f"W{letter}", dims)
        if self.has_bias(letter):
            yield Own(f"b{letter}", dims.partition(", ")[2], "zeros")

    def parts(self) -> dict[str, Any]:
        """The norms of queries and keys."""
        if self.qk_norm is None:
            return {}
        use = {key: value for key, value in self.qk_norm.items() if key != "over"}
        if self.over == "each_head":
            return {"unit": {**use, "affine": False}}
        return {"q_norm": use, "k_norm": use}

    def option_of(self, part: str) -> str:
        """Both norms are set by one option."""
        return "qk_norm"

    def whole(self) -> Iterator[tuple[str, str, str]]:
        """The width divides into heads, and the heads into groups."""
        if self.head_dim is None:
            yield "heads", "C/H", "head counts"
        if self.kv_heads is not None:
            yield "kv_heads", "H/G", "numbers of key and value heads"

    def refusals(self, numbers: Mapping[str, int]) -> Iterator[Refusal]:
        """More key heads than query heads."""
        heads, groups = numbers.get("H"), numbers.get("G")
        if heads is not None and groups is not None and groups > heads:
            message = f"{groups} key and value heads exceed {heads} query heads"
            yield Refusal("kv_heads", message, "give at most one for each query head", "BG103")

    def equations(self, given: frozenset[str]) -> str:
        """Project, cut into heads, attend, join, project."""
        source, _ = self.source()
        bias = {letter: f" + b{letter}" if self.has_bias(letter) else "" for letter in PROJECTIONS}
        query = self._rotated(self._normed("q", f"x @ Wq{bias['q']}", "H"))
        key = self._rotated(self._normed("k", f"{source} @ Wk{bias['k']}", "G"))
        options = "".join(f", {option}" for option in self.options_of_attend(given))
        return (
            f"query = {query}\n"
            f"key = {key}\n"
            f"value = heads({source} @ Wv{bias['v']}, G)\n"
            f"mixed = merge(attend(query, key, value{options}))\n"
            f"y = mixed @ Wo{bias['o']}"
        )

    def _normed(self, letter: str, projected: str, heads: str) -> str:
        """The heads of a projection, normalised as `qk_norm` says."""
        if self.over == "width":
            return f"heads({letter}_norm({projected}), {heads})"
        cut = f"heads({projected}, {heads})"
        if self.over == "each_head":
            return f'unit({cut}) * rearrange({letter}_norm, "h d -> h 1 d")'
        return f"{letter}_norm({cut})" if self.over == "head" else cut

    def _rotated(self, heads: str) -> str:
        return heads

    def options_of_attend(self, given: frozenset[str]) -> Iterator[str]:
        """The named arguments of `attend`."""
        yield "scale=scale"
        yield from (f"{name}={name}" for name in ("keep", "score_bias") if name in given)
        if self.softcap is not None:
            yield "softcap=softcap"
        if self.sinks:
            yield "sinks=sink"

    def detail(self) -> str:
        """Heads and groups."""
        return f"{self.heads} heads" + (f" · {self.kv_heads} kv" if self.kv_heads is not None else "")
