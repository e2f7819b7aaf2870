"""A convolution along T with one filter per channel."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from blockgraph.kind import Flag, Kind, Own, Size


class DepthwiseConv(Kind):
    """y[t, c] = sum_k W[k, c] * x[t + k - left, c] + b[c], x zero outside the sequence

    Source: Gulati et al. 2020, arXiv:2005.08100, sec. 2.2.
    """

    name = "depthwise_conv"
    family = "linear"
    title = "Depthwise Convolution"
    inputs = {"x": "... T C"}
    sizes = {"K": "size"}

    size: Size = Field(description="number of taps of a filter")
    causal: Flag = Field(False, description="whether the taps end at the own position instead of lying around it")
    bias: Flag = Field(False, description="whether b is added")

    def params(self) -> Iterator[Own]:
        """W (size, C), b (C,)."""
        yield Own("W", "K, C")
        if self.bias:
            yield Own("b", "C", "zeros")

    def equations(self, given: frozenset[str]) -> str:
        """One convolution."""
        return f"y = depthwise_conv(x, W{', bias=b' if self.bias else ''}, causal={self.causal})"

    def detail(self) -> str:
        """The number of taps."""
        return f"{self.size} taps" + (", causal" if self.causal else "")
