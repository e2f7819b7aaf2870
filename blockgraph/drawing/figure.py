"""A picture as a `graphviz.Source`, so that it shows itself in a notebook and saves itself in any format."""

from __future__ import annotations

from typing import Any, cast

import graphviz  # noqa: TID253  this module is only loaded when a figure is made

from blockgraph.drawing.program import Format, draw


class Figure(graphviz.Source):  # type: ignore[misc]  # the package has no types
    """DOT text that is drawn by the program blockgraph finds, also where no `dot` is installed.

    `figure.source` is the DOT text, `figure.pipe("svg")` the picture, `figure.save("x.dot")` writes the text.
    """

    def pipe(self, format: str | None = None, *args: Any, encoding: str | None = None, **options: Any) -> Any:
        """The picture as bytes, or as text with `encoding`. Raises EnvironmentFailure."""
        content = draw(self.source, cast(Format, format or "svg"))
        return content if encoding is None else content.decode(encoding)
