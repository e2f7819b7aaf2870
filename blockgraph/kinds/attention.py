"""Self-attention: multi-head, grouped-query and multi-query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import Field

from blockgraph.kind import Flag, SizeOrNone, group, word
from blockgraph.kinds.attending import Attending, Rotary
from blockgraph.op import Refusal


class Attention(Attending):
    """merge(softmax(scale * query @ key.T + mask) @ value) @ Wo, with query, key and value cut into heads

    The mask is full unless it says causal. `kv_heads` below `heads` is grouped-query attention: neighbouring
    query heads share a key and a value head. Order: scale, bias, cap, mask, sinks, softmax. A row that sees nothing
    gives zeros. Values it can be given: `keep` (B, S) or (B, T, S), true = visible, and `score_bias`.
    Source: Vaswani et al. 2017, arXiv:1706.03762, eq. 1; Ainslie et al. 2023, arXiv:2305.13245 (groups).
    """

    name = "attention"
    title = "Multi-Head Attention"
    elsewhere = ("mha", "multi_head_attention", "self_attention", "attn", "gqa", "mqa")
    abroad = {
        (key, value): ("mask", word)
        for key in ("causal", "is_causal")
        for value, word in (("true", "causal"), ("false", "full"))
    }
    inputs = {"x": "... T C", "keep": "...", "score_bias": "..."}
    optional = ("keep", "score_bias")
    sizes = {
        "H": "heads",
        "G": "kv_heads = H",
        "D": "head_dim = C/H",
        "E": "value_dim = D",
        "F": "out = C",
        "W": "window",
        "R": "rotary.width = D",
    }
    numbers = {"scale": "scale = D**-0.5", "softcap": "softcap", "theta": "rotary.theta"}

    mask: word("full", "causal") = Field("full", description="which positions a query sees")  # type: ignore[valid-type]
    window: SizeOrNone = Field(None, description="how many keys a query sees, its own position included; none: all")
    rotary: group(Rotary) = Field(None, description="rotary positions: {style, theta, width}")  # type: ignore[valid-type]
    alibi: Flag = Field(False, description="scores fall with the distance, by a fixed slope per head (ALiBi)")

    def _rotated(self, heads: str) -> str:
        if self.rotary is None or self.rotary.theta is None:
            return heads
        return f'rope({heads}, style="{self.rotary.style}", theta=theta, width=R)'

    def options_of_attend(self, given: frozenset[str]) -> Iterator[str]:
        """The mask, then what every attention has."""
        yield f'mask="{self.mask}"'
        yield from super().options_of_attend(given)
        if self.window is not None:
            yield "window=W"
        if self.alibi:
            yield "alibi=True"

    def refusals(self, numbers: Mapping[str, int]) -> Iterator[Refusal]:
        """Rotary features that make no pairs."""
        yield from super().refusals(numbers)
        rotated, width = numbers.get("R"), numbers.get("D")
        if self.rotary is None or rotated is None:
            return
        if rotated % 2:
            option = "head_dim" if self.rotary.width is None else "rotary"
            message = f"rotary positions turn pairs of features, and {rotated} is odd"
            yield Refusal(option, message, "give an even `width` in `rotary`", "BG103")
        elif width is not None and rotated > width:
            yield Refusal("rotary", f"`width` is {rotated}, and a head has {width} features", "leave it out", "BG103")

    def heading(self) -> str:
        """Causal or not."""
        return "Causal Self-Attention" if self.mask == "causal" else "Multi-Head Attention"

    def detail(self) -> str:
        """Heads, groups and window."""
        return super().detail() + (f" · window {self.window}" if self.window is not None else "")
