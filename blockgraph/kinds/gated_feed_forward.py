"""The gated feed-forward network (SwiGLU, GeGLU and kin)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from blockgraph.kind import Flag, Kind, Own, Size, Use


class GatedFeedForward(Kind):
    """(activation(x @ Wg + bg) * (x @ Wu + bu)) @ Wd + bd

    `hidden` is the width of each of gate and up. The gate is the half that is activated.
    Source: Shazeer 2020, arXiv:2002.05202, eq. 6.
    """

    name = "gated_feed_forward"
    family = "feed_forward"
    title = "Gated Feed Forward"
    elsewhere = ("swiglu", "geglu", "glu", "gated_mlp")
    sizes = {"F": "hidden", "D": "out = C"}

    hidden: Size = Field(description="width of each of gate and up")
    activation: Use = Field(description="an activation function, or a block of this file; applied to the gate")
    out: Size = Field(None, description="width of the output (default: that of the input)")
    bias: Flag = Field(False, description="whether bg, bu and bd are added")

    def params(self) -> Iterator[Own]:
        """Wg (C, hidden), bg, Wu (C, hidden), bu, Wd (hidden, out), bd."""
        for letter, dims in (("g", "C, F"), ("u", "C, F"), ("d", "F, D")):
            yield Own(f"W{letter}", dims)
            if self.bias:
                yield Own(f"b{letter}", dims.rpartition(", ")[2], "zeros")

    def parts(self) -> dict[str, Any]:
        """The activation of the gate."""
        return {"activation": self.activation}

    def equations(self, given: frozenset[str]) -> str:
        """Gate, up, down."""
        gate, up, down = (f" + b{letter}" if self.bias else "" for letter in "gud")
        return f"gate = activation(x @ Wg{gate})\nup = x @ Wu{up}\ny = (gate * up) @ Wd{down}"

    def detail(self) -> str:
        """The hidden width and the activation."""
        act = self.activation if isinstance(self.activation, str) else self.activation.get("kind", "")
        return f"hidden {self.hidden} · {act}"
