"""Many specs in, pages out: an index with a picture and the facts of each, and a page a spec with its differences.

The pages hold everything they show: no script, no network, no other file. A pair of specs is compared on the pages of
both, each time as what must be done to the page's own spec to get the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from blockgraph.diff import Structure
from blockgraph.errors import Finding
from blockgraph.gallery.exhibit import Exhibit, file_names
from blockgraph.gallery.pages import index_page, spec_page
from blockgraph.gallery.pictures import Studio
from blockgraph.gallery.sheet import differences, sheet

__all__ = ["INDEX", "Exhibit", "file_names", "pages"]

INDEX = "index.html"
DRAWING = 2  # pictures at a time; each is a process of its own


def pages(exhibits: Sequence[Exhibit], findings: list[Finding]) -> Iterator[tuple[str, str]]:
    """File names and pages; what could not be drawn is added to `findings`, one for each cause."""
    studio = Studio()
    with ThreadPoolExecutor(DRAWING) as pool:
        waiting = [pool.submit(studio.picture, one) for one in exhibits]
        structures = [Structure(one.graph) if one.ok and one.graph is not None else None for one in exhibits]
        sheets = [sheet(one, structure) for one, structure in zip(exhibits, structures, strict=True)]
        told = [differences(number, structures) for number in range(len(exhibits))]
        pictures = [one.result() for one in waiting]
    findings += studio.findings
    yield INDEX, index_page(exhibits, sheets, pictures)
    for number, one in enumerate(exhibits):
        yield one.file, spec_page(one, sheets[number], pictures[number], told[number], exhibits)
