"""The commands, one file each. A module here is a command; nothing is listed by hand.

A command imports what it works with inside its functions, so that its own `--help` loads none of it.
"""

from __future__ import annotations

import importlib

from blockgraph.lazy import modules_in, source_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from blockgraph.cli.command import Command


def names() -> list[str]:
    """The commands by name, sorted."""
    return modules_in(__name__)


def load(name: str) -> Command:
    """The command called `name`."""
    command: Command = importlib.import_module(f"{__name__}.{name}")
    return command


def summary_of(name: str) -> str:
    """The `SUMMARY` of a command; it is read off the file, so that listing all commands loads none."""
    text = source_of(__name__, name).partition('\nSUMMARY = "')[2].partition('"\n')[0]
    return text if text and "\\" not in text else load(name).SUMMARY
