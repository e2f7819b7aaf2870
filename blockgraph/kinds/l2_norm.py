"""Unit length."""

from __future__ import annotations

from pydantic import Field

from blockgraph.kind import Kind, RealNumber


class L2Norm(Kind):
    """x / sqrt(sum(x**2) + eps) over the last axis; no parameters

    Source: Loshchilov et al. 2024, arXiv:2410.01131, sec. 2.
    """

    name = "l2_norm"
    family = "norm"
    title = "L2 Norm"
    numbers = {"eps": "eps"}

    eps: RealNumber = Field(0, description="added to the sum of squares, inside the root")

    def equations(self, given: frozenset[str]) -> str:
        """One call."""
        return "y = l2_norm(x, eps=eps)"
