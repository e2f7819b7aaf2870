"""Benchmarks: `python -m tests.bench` prints the table of what must be reached; see `tests/bench/table.py`."""
