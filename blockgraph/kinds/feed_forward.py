"""The plain feed-forward network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from blockgraph.kind import Flag, Kind, Own, Size, Use


class FeedForward(Kind):
    """activation(x @ W1 + b1) @ W2 + b2

    Source: Vaswani et al. 2017, arXiv:1706.03762, eq. 2.
    """

    name = "feed_forward"
    family = "feed_forward"
    title = "Feed Forward"
    elsewhere = ("mlp", "ffn", "ff")
    sizes = {"F": "hidden", "D": "out = C"}

    hidden: Size = Field(description="width between the two maps")
    activation: Use = Field(description="an activation function, or a block of this file")
    out: Size = Field(None, description="width of the output (default: that of the input)")
    bias: Flag = Field(True, description="whether b1 and b2 are added")

    def params(self) -> Iterator[Own]:
        """W1 (C, hidden), b1, W2 (hidden, out), b2."""
        yield Own("W1", "C, F")
        if self.bias:
            yield Own("b1", "F", "zeros")
        yield Own("W2", "F, D")
        if self.bias:
            yield Own("b2", "D", "zeros")

    def parts(self) -> dict[str, Any]:
        """The activation."""
        return {"activation": self.activation}

    def equations(self, given: frozenset[str]) -> str:
        """Up, activation, down."""
        first, second = (" + b1", " + b2") if self.bias else ("", "")
        return f"hidden = activation(x @ W1{first})\ny = hidden @ W2{second}"

    def detail(self) -> str:
        """The hidden width and the activation."""
        act = self.activation if isinstance(self.activation, str) else self.activation.get("kind", "")
        return f"hidden {self.hidden} · {act}"
