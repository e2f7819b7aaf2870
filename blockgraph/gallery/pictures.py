"""The pictures of a gallery: SVG to stand inside a page, or the DOT text where none can be drawn."""

from __future__ import annotations

import re
from dataclasses import field
from threading import Lock

from blockgraph.depict import subjects
from blockgraph.drawing import draw
from blockgraph.errors import EnvironmentFailure, Finding, Place, at
from blockgraph.gallery.exhibit import Exhibit
from blockgraph.records import dataclass

FAILURES = 3
"""So many pictures of a program that fails are tried, then no more."""
LEFT_OUT = re.compile(
    r'<\?xml.*?\?>|<!--.*?-->|<title>.*?</title>| id="\w+"| font-family="[^"]*"| xmlns:xlink="[^"]*"', re.S
)
"""What a picture inside a page does without: the page says the font, and there are other pictures beside it."""


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG element, else the DOT text, else nothing at all."""

    svg: str = ""
    dot: str = ""


@dataclass(slots=True)
class Studio:
    """Draws, and remembers what failed: one fault of the machine is one finding, however many pictures it takes."""

    findings: list[Finding] = field(default_factory=list)
    failed: int = 0
    _lock: Lock = field(default_factory=Lock)

    def picture(self, exhibit: Exhibit) -> Picture:
        """The picture of a spec, as far as it is understood."""
        if exhibit.checked is None:
            return Picture()
        found = subjects([exhibit.checked])
        if not found.graphs:
            return Picture()
        dot = found.dot()
        if self.failed >= FAILURES:
            return Picture(dot=dot)
        try:
            return Picture(svg=inside(draw(dot, "svg").decode()))
        except EnvironmentFailure as error:
            self._remember(exhibit, error.findings[0])
            return Picture(dot=dot)

    def _remember(self, exhibit: Exhibit, finding: Finding) -> None:
        with self._lock:
            self.failed += FAILURES if finding.code == "BG950" else 1
            if finding.code not in [one.code for one in self.findings]:
                self.findings.append(at(finding, Place(exhibit.path)))


def inside(svg: str) -> str:
    """An SVG document as an element of a page."""
    return re.sub(r"\s*\n\s*", "", LEFT_OUT.sub("", svg)).strip()
