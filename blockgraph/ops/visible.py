"""Which keys a query sees, and how far away they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blockgraph.lazy import np
from blockgraph.records import dataclass

MAX_ROWS = 256
MAX_SCORES = 1 << 22  # scores held at once, over all heads and batches
MIN_ROWS = 16


@dataclass(frozen=True, slots=True)
class View:
    """T queries at the end of S keys: query i stands at position i + S - T.

    Under the causal mask it sees no key to its right; a window hides keys `window` or more positions away.
    """

    steps: int
    keys: int
    causal: bool
    window: int | None

    @property
    def offset(self) -> int:
        """The position of the first query."""
        return self.keys - self.steps

    def seen(self, rows: slice) -> slice:
        """The stretch of keys that any of these queries sees."""
        low, high = 0, self.keys
        if self.window is not None:
            low = rows.start + self.offset - self.window + 1
            high = rows.stop + self.offset + self.window - 1
        if self.causal:
            high = rows.stop + self.offset
        low = min(max(low, 0), self.keys)
        return slice(low, min(max(high, low), self.keys))

    def hidden(self, rows: slice, keys: slice) -> Any | None:
        """True where a query does not see a key (rows, keys); None if all is seen."""
        if not self.causal and self.window is None:
            return None
        key, query = np.arange(keys.start, keys.stop), np.arange(rows.start, rows.stop)[:, None] + self.offset
        hidden = key > query if self.causal else np.zeros((len(query), len(key)), bool)
        if self.window is not None:
            hidden |= key <= query - self.window
            hidden |= key >= query + self.window
        return hidden

    def ahead(self, rows: slice, keys: slice) -> Any:
        """Position of the key minus that of the query (rows, keys)."""
        return np.arange(keys.start, keys.stop) - np.arange(rows.start, rows.stop)[:, None] - self.offset

    def blocks(self, others: int) -> Iterator[slice]:
        """Rows in blocks, so that the scores of one, for `others` heads and batches, stay within bounds.

        Blocks also let the causal mask skip the upper triangle.
        """
        rows = min(MAX_ROWS, max(MIN_ROWS, MAX_SCORES // max(1, others * self.keys)))
        for start in range(0, self.steps, rows):
            yield slice(start, min(start + rows, self.steps))


def unseeing(view: View, keep: Any | None, per_query: bool) -> Any:
    """True for the queries that see no key: (T), or (B, T) with `keep` (B, S), or (B, T, S) if `per_query`."""
    every = slice(0, view.keys)
    blocks = []
    for rows in view.blocks(1):
        hidden = view.hidden(rows, every)
        seen = np.ones((rows.stop - rows.start, view.keys), bool) if hidden is None else ~hidden
        if keep is not None:
            seen = seen & (keep[..., rows, :] if per_query else keep[..., None, :])
        blocks.append(~seen.any(axis=-1))
    return np.concatenate(blocks, axis=-1)


def alibi_slopes(heads: int) -> list[float]:
    """2**(-8(h+1)/P) for the first P heads, P the largest power of two; the rest take every other one for 2P.

    Source: Press et al. 2022, arXiv:2108.12409, and its published code for other numbers of heads.
    """
    whole = 1 << (heads.bit_length() - 1)
    first = [2.0 ** (-8 * (h + 1) / whole) for h in range(whole)]
    return first + [2.0 ** (-4 * (2 * h + 1) / whole) for h in range(heads - whole)]
