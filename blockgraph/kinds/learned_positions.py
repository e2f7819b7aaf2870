"""A learned vector per position."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from blockgraph.kind import Count, Kind, Own, Size


class LearnedPositions(Kind):
    """table[offset : T + offset], (1, T, C), for ids (B, T): their last axis tells T

    The table has `length + offset` rows, so sequences run up to `length`.
    Source: Gehring et al. 2017, arXiv:1705.03122, sec. 3.1.
    """

    name = "learned_positions"
    family = "embedding"
    title = "Learned Positions"
    elsewhere = ("position_embedding", "positional_embedding")
    mistaken = "the last axis of what `{part}` is given counts as positions: give it ids (B, T), or `x[..., 0]`"
    inputs = {"x": "... T"}
    widths = frozenset()
    sizes = {"L": "length", "C": "width", "O": "offset"}

    length: Size = Field(description="the longest sequence")
    width: Size = Field(description="width of a row")
    offset: Count = Field(0, description="position p reads row p + offset; the rows before it are not used")

    def params(self) -> Iterator[Own]:
        """table (length + offset, width)."""
        yield Own("table", "L + O, C")

    def bounds(self) -> Iterator[tuple[str, str, str]]:
        """A sequence is at most `length` long."""
        yield "length", "T", "L"

    def equations(self, given: frozenset[str]) -> str:
        """The first T rows behind the offset."""
        return "y = table[O:T + O][None]"

    def detail(self) -> str:
        """The table's shape."""
        return f"{self.length} × {self.width}"
