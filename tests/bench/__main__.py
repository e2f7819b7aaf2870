"""`python -m tests.bench [table | check | checkers | memory] [...]`: print one of them, without a word the table."""

from __future__ import annotations

import sys

from tests.bench import check, checkers, memory, table

COMMANDS = {
    "table": lambda words: table.main(words),
    "check": lambda words: check.main(),
    "checkers": lambda words: checkers.main(),
    "memory": lambda words: memory.main(words),
}

if __name__ == "__main__":
    first, *rest = sys.argv[1:] or ["table"]
    if first not in COMMANDS:
        sys.exit(f"there is no `{first}`; there are {', '.join(COMMANDS)}")
    COMMANDS[first](rest)
