"""The commands, one file each. A module here is a command; nothing is listed by hand.

A command has `SUMMARY` (one line), `EXAMPLES`, `arguments(parser)` and `main(options, terminal) -> exit code`.
It imports what it works with inside its functions, so that `--help` loads none of it.
"""

from __future__ import annotations

import importlib
import pkgutil
from argparse import Namespace
from typing import Protocol, cast

from blockgraph.cli.arguments import Parser
from blockgraph.cli.terminal import Terminal


class Command(Protocol):
    """What the module of a command offers."""

    SUMMARY: str
    EXAMPLES: str

    def arguments(self, parser: Parser) -> None:
        """Add the command's own arguments."""

    def main(self, options: Namespace, terminal: Terminal) -> int:
        """Do the work and return the exit code. Raises BlockgraphError."""


def names() -> list[str]:
    """The commands by name, sorted."""
    return sorted(one.name for one in pkgutil.iter_modules(__path__))


def load(name: str) -> Command:
    """The command called `name`."""
    return cast(Command, importlib.import_module(f"{__name__}.{name}"))
