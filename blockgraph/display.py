"""What shows itself in a notebook; `blockgraph.notebook`, loaded when a notebook asks, says how."""

from __future__ import annotations

import importlib
from typing import Any


class Displayed:
    """A base of what has a table and, where it can be drawn, a picture.

    This is the one place where a lower module reaches a higher one: a spec knows neither its graph nor its picture, but
    the person who looks at it wants to see both.
    """

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The table as plain text, and the picture as SVG if there is a Graphviz program."""
        found: dict[str, str] = importlib.import_module("blockgraph.notebook").bundle(self, include, exclude)
        return found

    def _repr_svg_(self) -> str | None:
        """The picture alone, None where there is none."""
        return self._repr_mimebundle_(include={"image/svg+xml"}).get("image/svg+xml")
