"""`python -m tests.bench [table | check | checkers | memory | estimates] ...`: print one, by default the table."""

from __future__ import annotations

import sys

from tests.bench import check, checkers, estimates, memory, table

COMMANDS = {
    "table": table.main,
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
