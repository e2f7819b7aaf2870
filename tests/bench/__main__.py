"""`python -m tests.bench [table | startup | check | checkers | memory | estimates] ...`: one, by default the table."""

from __future__ import annotations

import sys

from tests.bench import check, checkers, estimates, memory, startup, table

COMMANDS = {
    "table": table.main,
    "startup": lambda words: startup.main(),
    "check": lambda words: check.main(),
    "checkers": lambda words: checkers.main(),
    "memory": memory.main,
    "estimates": estimates.main,
}

if __name__ == "__main__":
    first, *rest = sys.argv[1:] or ["table"]
    if first not in COMMANDS:
        sys.exit(f"there is no `{first}`; there are {', '.join(COMMANDS)}")
    COMMANDS[first](rest)
