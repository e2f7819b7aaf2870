"""What starting costs, as whole processes: the version, the help, and the check of a spec of forty lines.

The yardstick is a process that only imports argparse, pydantic, PyYAML and networkx. Python keeps the bytecode of what
it loads, as it does for any user, whatever the environment of the benchmark says.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.bench.timing import interleaved, process, table

LIBRARIES = "import argparse, pydantic, yaml, networkx"
YARDSTICK = "argparse, pydantic, yaml, networkx"
FORTY = """\
name: forty_lines
source: "Radford et al. 2019; Shazeer 2020, arXiv:2002.05202"
dims:
  C: 64
  H: 4
  G: 2
  N: 6
  V: 1000
constants:
  eps: 1e-5
blocks:
  block:
    norm:
      kind: rms_norm
      eps: eps
    placement: pre
    sublayers:
      - kind: attention
        heads: H
        kv_heads: G
        mask: causal
        rotary:
          style: half
          theta: 10000
      - kind: gated_feed_forward
        hidden: 4*C
        activation: silu
model:
  inputs:
    tokens:
      ids: [B, T]
      below: V
  parts:
    embed: {kind: embedding, size: V, width: C}
    layers: {kind: stack, of: block, repeat: N}
    final_norm: {kind: rms_norm, eps: eps}
  equations: |
    x = embed(tokens)
    x = final_norm(layers(x))
    logits = x @ embed.table.T
"""


def main(rounds: int = 11) -> None:
    """Print the tables."""
    quick = {
        "python -c pass": process("-c", "pass"),
        "blockgraph --version": process("-m", "blockgraph", "--version"),
        "blockgraph --help": process("-m", "blockgraph", "--help"),
    }
    table("Whole process: at most 3 times an empty one", interleaved(quick, rounds), "python -c pass")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forty.yaml"
        path.write_text(FORTY, encoding="utf-8")
        whole = {
            YARDSTICK: process("-c", LIBRARIES),
            "check of 40 lines": process("-m", "blockgraph", "check", str(path)),
        }
        table("Whole process: at most 1.2 times the imports", interleaved(whole, rounds), YARDSTICK)


if __name__ == "__main__":
    main()
