"""`python -m blockgraph` and the program `blockgraph`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (that of the process by default) and return its exit code."""
    from blockgraph.cli import main as run

    return run(sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
