"""Layer normalisation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import Field

from blockgraph.kind import Flag, Kind, Own, RealNumber
from blockgraph.op import Refusal


class LayerNorm(Kind):
    """(x - mean) / sqrt(var + eps) * gamma + beta over the last axis; var divides by C.

    Source: Ba, Kiros & Hinton 2016, arXiv:1607.06450.
    """

    name = "layer_norm"
    family = "norm"
    title = "LayerNorm"
    elsewhere = ("ln",)
    numbers = {"eps": "eps"}

    eps: RealNumber = Field(1e-5, description="added to the variance, inside the root")
    bias: Flag = Field(True, description="whether beta is added")
    affine: Flag = Field(True, description="whether gamma (and beta) are there at all")

    def params(self) -> Iterator[Own]:
        """gamma and beta, each (C,)."""
        if self.affine:
            yield Own("gamma", "C", "ones")
        if self.affine and self.bias:
            yield Own("beta", "C", "zeros")

    def refusals(self, numbers: Mapping[str, int]) -> Iterator[Refusal]:
        """A bias without gamma."""
        if not self.affine and self.bias and "bias" in self.model_fields_set:
            yield Refusal("bias", "`bias` has no effect beside `affine: false`", "leave it out", "BG033")

    def equations(self, given: frozenset[str]) -> str:
        """One call."""
        names = "".join(f", {own.name}" for own in self.params())
        return f"y = layer_norm(x{names}, eps=eps)"
