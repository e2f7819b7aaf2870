"""Root-mean-square normalisation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import Field

from blockgraph.kind import Flag, Kind, Own, RealNumber
from blockgraph.op import Refusal


class RmsNorm(Kind):
    """x / sqrt(mean(x**2) + eps) * (offset + gamma) over the last axis.

    With `offset: 1` the stored weight is the distance from one, and starts at zero.
    Source: Zhang & Sennrich 2019, arXiv:1910.07467, eq. 4.
    """

    name = "rms_norm"
    family = "norm"
    title = "RMSNorm"
    elsewhere = ("t5_layer_norm",)
    numbers = {"eps": "eps", "offset": "offset"}

    eps: RealNumber = Field(1e-6, description="added to the mean square, inside the root")
    offset: RealNumber = Field(0, description="added to gamma before it multiplies")
    affine: Flag = Field(True, description="whether gamma is there at all")

    def params(self) -> Iterator[Own]:
        """gamma, (C,)."""
        if self.affine:
            yield Own("gamma", "C", "1 - offset")

    def refusals(self, numbers: Mapping[str, int]) -> Iterator[Refusal]:
        """An offset without gamma."""
        if not self.affine and self.offset.value != 0:
            yield Refusal("offset", "`offset` has no effect beside `affine: false`", "leave it out", "BG033")

    def equations(self, given: frozenset[str]) -> str:
        """One call."""
        return "y = rms_norm(x, gamma, eps=eps, offset=offset)" if self.affine else "y = rms_norm(x, eps=eps)"
