"""Benchmarks: `python -m tests.bench` prints every table, `python -m tests.bench check` one of them."""
