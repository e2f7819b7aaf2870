"""A linear map."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from blockgraph.kind import Flag, Kind, Own, Size


class Linear(Kind):
    """x @ W + b, with W stored [in, out]."""

    name = "linear"
    family = "linear"
    title = "Linear"
    elsewhere = ("dense", "projection")
    sizes = {"D": "out = C"}

    out: Size = Field(None, description="width of the output (default: that of the input)")
    bias: Flag = Field(False, description="whether b is added")

    def params(self) -> Iterator[Own]:
        """W (C, out), b (out,)."""
        yield Own("W", "C, D")
        if self.bias:
            yield Own("b", "D", "zeros")

    def equations(self, given: frozenset[str]) -> str:
        """One product."""
        return "y = x @ W + b" if self.bias else "y = x @ W"
