"""A bar for work that takes a while: on standard error, and only where a person is looking."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from blockgraph.cli.terminal import Terminal

T = TypeVar("T")


def tracked(work: Iterable[T], total: int, label: str, terminal: Terminal) -> Iterator[T]:
    """The items of `work` one by one, with a bar that shows how many of `total` are done; it vanishes at the end."""
    if terminal.format == "json" or sys.stderr is None or not sys.stderr.isatty():
        yield from work
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(terminal.console.shown(label).replace("[", "\\["), total=total)
        for item in work:
            yield item
            bar.advance(task)
