"""`--watch`: do the work again whenever one of the files was saved, until Ctrl-C."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from blockgraph.cli.files import refuse_existing
from blockgraph.cli.specs import Examined

if TYPE_CHECKING:
    from blockgraph.drawing import Level

PAUSE: Final = 0.25  # seconds between two looks at the files: less than a person notices
PICTURES: Final = (".svg", ".png", ".pdf", ".dot")
Stamp = tuple[tuple[str, int, int], ...]


def watch(files: Callable[[], Sequence[str]], work: Callable[[], int]) -> int:
    """Work once, and again after each change; the last exit code once Ctrl-C is pressed.

    `files` is asked anew each time, so that a new file that fits a pattern is seen too.
    """
    code = 0
    try:
        while True:
            seen = stamp(files())
            code = work()
            while stamp(files()) == seen:
                time.sleep(PAUSE)
    except KeyboardInterrupt:
        return code


def stamp(paths: Sequence[str]) -> Stamp:
    """What tells a changed file: its time and size; -1 where there is none, for editors replace a file by another."""
    return tuple((path, *_state(path)) for path in paths)


def _state(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return -1, -1
    return found.st_mtime_ns, found.st_size


def refuse_picture(path: str, force: bool, usage: Callable[[str], object]) -> None:
    """Say at once what would be wrong with drawing into a file. Raises EnvironmentFailure if it is there already."""
    if not path.endswith(PICTURES):
        usage(f"cannot tell what to draw from the name {path}: it ends in {', '.join(PICTURES)}")
    refuse_existing(path, force)


def redraw(examined: Sequence[Examined], path: str, force: bool, level: Level = "sublayer") -> bool:
    """Draw all specs side by side; False, and nothing drawn, while one of them has an error.

    Raises EnvironmentFailure if it cannot be drawn or written; the DOT text is then written beside, and replaces one
    that is there with `force` only.
    """
    from blockgraph.cli.pictures import save
    from blockgraph.drawing import to_dot

    checked = [one.checked for one in examined if one.ok and one.checked is not None]
    graphs = [one.graph for one in checked if one.graph is not None]
    if not graphs or len(graphs) < len(examined):
        return False
    dot = to_dot(graphs, captions=[one.spec.source for one in checked], level=level)
    save(path, path.rpartition(".")[2], dot, True, keeps=not force)
    return True
