"""`python -m tests.bench [check] [checkers] [run] [memory]`: print the tables named, or all."""

from __future__ import annotations

import sys

from tests.bench import check, checkers, memory, run

TABLES = {"check": check.main, "checkers": checkers.main, "run": run.main, "memory": memory.main}

if __name__ == "__main__":
    for name in sys.argv[1:] or TABLES:
        TABLES[name]()
