"""A learned score bias per head and distance, distances gathered in buckets."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from blockgraph.kind import Kind, Own, Size, word


class RelativeBias(Kind):
    """table[bucket(j - i)] as a bias on scores, (1, H, T, T), for ids (B, T) or values (B, T, C)

    Half of the buckets hold one distance each, the others grow with its logarithm up to `distance`. Give the result
    to attention as `score_bias`; one such part may serve all layers.
    Source: Raffel et al. 2020, arXiv:1910.10683, sec. 2.1.
    """

    name = "relative_bias"
    family = "embedding"
    title = "Relative Bias"
    inputs = {"x": "..."}
    widths = frozenset()
    sizes = {"H": "heads", "K": "buckets", "L": "distance"}

    heads: Size = Field(description="number of heads")
    buckets: Size = Field(description="number of buckets, even")
    distance: Size = Field(description="from this distance on all share the last bucket")
    direction: word("both", "past") = Field(  # type: ignore[valid-type]
        description="both: half of the buckets for keys on the right; past: all for keys on the left"
    )

    def params(self) -> Iterator[Own]:
        """table (buckets, heads)."""
        yield Own("table", "K, H")

    def equations(self, given: frozenset[str]) -> str:
        """Buckets, look-up, heads in front."""
        return (
            f'bucket = relative_buckets(x, buckets=K, distance=L, direction="{self.direction}")\n'
            'y = rearrange(lookup(table, bucket), "t s h -> 1 h t s")'
        )

    def detail(self) -> str:
        """Buckets and heads."""
        return f"{self.buckets} buckets · {self.heads} heads"
