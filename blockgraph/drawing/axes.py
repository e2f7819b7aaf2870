"""Which way a figure runs: it is laid out across and along its spine, and turned onto the page at the end."""

from __future__ import annotations

from typing import Literal

from blockgraph.records import dataclass

Rankdir = Literal["BT", "LR"]
Spot = tuple[float, float]
"""A point or a size: across the spine and along it, or on the page to the right and up."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A rectangle."""

    left: float
    bottom: float
    right: float
    top: float

    def join(self, other: Frame) -> Frame:
        """The rectangle around both."""
        left, bottom = min(self.left, other.left), min(self.bottom, other.bottom)
        return Frame(left, bottom, max(self.right, other.right), max(self.top, other.top))

    def grow(self, margin: float) -> Frame:
        """The rectangle with a margin."""
        return Frame(self.left - margin, self.bottom - margin, self.right + margin, self.top + margin)


@dataclass(frozen=True, slots=True)
class Axes:
    """Upwards (BT), rails on the left; or to the right (LR), rails above. Text is level in both."""

    rankdir: Rankdir = "BT"

    @property
    def upright(self) -> bool:
        """Whether the spine stands upright."""
        return self.rankdir == "BT"

    def turned(self, wide: float, high: float) -> Spot:
        """A size on the page, across and along; or the other way round."""
        return (wide, high) if self.upright else (high, wide)

    def page(self, spot: Spot) -> Spot:
        """Where a spot is on the page."""
        return spot if self.upright else (spot[1], -spot[0])

    def on_page(self, frame: Frame) -> Frame:
        """A frame on the page."""
        return frame if self.upright else Frame(frame.bottom, -frame.right, frame.top, -frame.left)
