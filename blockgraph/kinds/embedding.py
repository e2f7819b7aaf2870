"""A table of vectors, looked up by id."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from blockgraph.kind import Kind, Own, Size


class Embedding(Kind):
    """table[x]: the row of each id, (B, T) -> (B, T, C)

    Tie an output head to it by `x @ embed.table.T`.
    Source: Bengio et al. 2003, JMLR 3, sec. 2.
    """

    name = "embedding"
    family = "embedding"
    title = "Embedding"
    inputs = {"x": "..."}
    widths = frozenset()
    sizes = {"V": "size", "C": "width"}

    size: Size = Field(description="number of rows; ids are smaller")
    width: Size = Field(description="width of a row")

    def params(self) -> Iterator[Own]:
        """table (size, width)."""
        yield Own("table", "V, C")

    def equations(self, given: frozenset[str]) -> str:
        """One look-up."""
        return "y = lookup(table, x)"

    def detail(self) -> str:
        """The table's shape."""
        return f"{self.size} × {self.width}"
