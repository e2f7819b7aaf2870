"""`python -m blockgraph` and the program `blockgraph`."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (that of the process by default) and return its exit code."""
    from blockgraph.cli import main as run

    return run(sys.argv[1:] if argv is None else argv)


def program() -> NoReturn:
    """Run the command line of the process and end the process at once.

    All that is written was sent out before. Taking apart what is loaded, as Python does at its end, is a tenth of a
    short command. With BLOCKGRAPH_DEBUG set the end is an ordinary one, so that profilers and debuggers see it.
    """
    code = main()
    if os.environ.get("BLOCKGRAPH_DEBUG"):
        sys.exit(code)
    os._exit(code)


if __name__ == "__main__":
    program()
