"""A picture as a `graphviz.Source`, so that it shows itself in a notebook and saves itself in any format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import graphviz  # noqa: TID253  this module is only loaded when a figure is made

from blockgraph.drawing.program import ENDINGS, Format, draw
from blockgraph.drawing.themes import adaptive
from blockgraph.errors import EnvironmentFailure, Finding, Place, at


class Figure(graphviz.Source):  # type: ignore[misc]  # the package has no types
    """DOT text that is drawn by the program blockgraph finds, also where no `dot` is installed.

    `figure.save("x.svg")` writes the format of the ending (.svg .png .pdf, .gv and .dot for the DOT text),
    `figure.pipe("svg")` gives the picture as bytes, `figure.source` is the DOT text. An SVG that `adapts` is dark on
    a page that prefers dark colours.
    """

    def __init__(self, source: str, *, adapts: bool = False) -> None:
        """A figure of a DOT text."""
        super().__init__(source)
        self.adapts = adapts

    def pipe(self, format: str | None = None, *args: Any, encoding: str | None = None, **options: Any) -> Any:
        """The picture as bytes, or as text with `encoding`. Raises EnvironmentFailure."""
        content = draw(self.source, cast(Format, format or "svg"))
        content = adaptive(content) if self.adapts and format in ("svg", None) else content
        return content if encoding is None else content.decode(encoding)

    def save(self, filename: str | os.PathLike[str] | None = None, directory: str | None = None, **options: Any) -> str:
        """Write a file in the format of its ending, over one that is there; the path.

        Raises EnvironmentFailure: as `pipe`, and BG903 for another ending or a file that cannot be written.
        """
        path = Path(directory or "", filename or self.filename)
        format = ENDINGS.get(path.suffix.lower())
        if format is None:
            help = f"end its name in {', '.join(ENDINGS)}; `bg.render_html` makes a page"
            raise _unwritten(path, f"{path.suffix or 'no ending'} is no format of a picture", help)
        try:
            content = self.source.encode("utf-8", "replace") if format == "dot" else self.pipe(format)
        except EnvironmentFailure as error:
            raise EnvironmentFailure([at(one, Place(str(path))) for one in error.findings]) from None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise _unwritten(path, error.strerror or str(error), "check the name and the folder") from None
        return str(path)

    def render(
        self,
        filename: str | os.PathLike[str] | None = None,
        directory: str | None = None,
        view: bool = False,
        cleanup: bool = False,
        format: str | None = None,
        **options: Any,
    ) -> str:
        """As in graphviz: the picture beside the DOT text, `x.gv` and `x.gv.svg`; the path of the picture.

        A `filename` that ends as a picture does is the picture alone, as in `save`. Raises EnvironmentFailure.
        """
        name = str(filename or self.filename)
        if format is None and ENDINGS.get(Path(name).suffix.lower(), "dot") != "dot":
            path = self.save(name, directory)
        else:
            path = self.save(f"{name}.{format or 'svg'}", directory)
            if not cleanup:
                Path(directory or "", name).write_text(self.source, encoding="utf-8", errors="replace")
        if view:
            graphviz.view(path)
        return path


def _unwritten(path: Path, reason: str, help: str) -> EnvironmentFailure:
    return EnvironmentFailure([Finding("BG903", f"cannot write {path}: {reason}", Place(str(path)), help)])
