"""Whole processes that check a file: blockgraph against a checker of JSON Schema, one short spec and 500 at once.

check-jsonschema knows only keys and types: it is the least that a checker of the same file could do. It is taken from
the PATH or from `CHECK_JSONSCHEMA`; without it the row is left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.timing import Contenders, interleaved, process, run, table

ROOT = Path(__file__).parent.parent.parent
MANY = 500
NUMERIC = "numpy"
SPEC = """\
name: twenty_lines
source: "Xiong et al. 2020, arXiv:2002.04745"
dims: {C: 64, H: 4, N: 6}
block:
  norm: layer_norm
  placement: pre
  sublayers:
    - kind: attention
      heads: H
      mask: causal
      bias: true
    - kind: feed_forward
      hidden: 4*C
      activation: gelu_tanh
model:
  parts:
    layers: {kind: stack, of: block, repeat: N}
    final_norm: layer_norm
  equations: |
    x = final_norm(layers(x))
"""


def schema_checker() -> list[str]:
    """The command of check-jsonschema with the committed schema; empty if it is not installed."""
    program = os.environ.get("CHECK_JSONSCHEMA") or shutil.which("check-jsonschema")
    return [program, "--schemafile", str(ROOT / "blockgraph" / "schema.json")] if program else []


def contenders(files: list[str]) -> Contenders:
    """The programs, each to check the same files in one call."""
    found = {"blockgraph check": process("-m", "blockgraph", "check", *files)}
    checker = schema_checker()
    if checker:
        found["check-jsonschema"] = run(*checker, *files)
    return found


def imported() -> list[str]:
    """The numeric packages that a whole `check` loads: there should be none."""
    code = "import sys, blockgraph.__main__ as p; p.main(sys.argv[1:]); print(*sys.modules)"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", code, "check", *_files(Path(folder), 1)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [name for name in done.stdout.split() if name.partition(".")[0] == NUMERIC]


def _files(folder: Path, count: int) -> list[str]:
    """Specs of twenty lines that differ in their name and width."""
    for number in range(count):
        text = SPEC.replace("twenty_lines", f"spec_{number}").replace("C: 64", f"C: {64 + 4 * number}")
        (folder / f"spec_{number}.yaml").write_text(text, encoding="utf-8")
    return [str(folder / f"spec_{number}.yaml") for number in range(count)]


def main(rounds: int = 7) -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        files = _files(Path(folder), MANY)
        table("One spec of 20 lines, whole process", interleaved(contenders(files[:1]), rounds), "blockgraph check")
        table(f"{MANY} specs in one call", interleaved(contenders(files), 3), "blockgraph check")
    print(f"\nNumPy modules loaded by check: {len(imported())}")


if __name__ == "__main__":
    main()
