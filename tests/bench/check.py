"""What checking costs: a whole process, and how it grows with layers that are equal and with layers that differ."""

from __future__ import annotations

from functools import partial

import blockgraph as bg
from tests.bench.timing import interleaved, process, table

LIBRARIES = "import argparse, pydantic, yaml, networkx"


def repeated(layers: int) -> str:
    """A stack of equal blocks."""
    return f"""
dims: {{C: 64, H: 4}}
blocks:
  b:
    norm: layer_norm
    sublayers: [{{kind: attention, heads: H}}, {{kind: feed_forward, hidden: 4*C, activation: gelu_tanh}}]
model:
  parts: {{layers: {{kind: stack, of: b, repeat: {layers}}}, final_norm: layer_norm}}
  equations: |
    x = final_norm(layers(x))
"""


def written_out(layers: int) -> str:
    """Equal blocks, each a part and an equation of its own."""
    parts = "".join(f"    b{i}: b\n" for i in range(layers))
    calls = "".join(f"    x = b{i}(x)\n" for i in range(layers))
    return repeated(1).partition("model:")[0] + f"model:\n  parts:\n{parts}  equations: |\n{calls}"


def different(layers: int) -> str:
    """A stack in which every block has a hidden width of its own."""
    blocks = "".join(
        f"  b{i}:\n    norm: layer_norm\n    sublayers:\n      - {{kind: attention, heads: H}}\n"
        f"      - {{kind: feed_forward, hidden: {i + 1}*C, activation: gelu_tanh}}\n"
        for i in range(layers)
    )
    names = ", ".join(f"b{i}" for i in range(layers))
    return f"""
dims: {{C: 64, H: 4}}
blocks:
{blocks}
model:
  parts: {{layers: {{kind: stack, of: [{names}], repeat: {layers}}}, final_norm: layer_norm}}
  equations: |
    x = final_norm(layers(x))
"""


COSTLY = {
    "alias bomb": "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)),
    "200,000 brackets": "a: " + "[" * 200_000,
    "a million keys": "".join(f"k{i}: 1\n" for i in range(1_000_000)),
    "100,000 keys": "".join(f"k{i:x}:\n" for i in range(100_000)),
}


def _refuse(text: str) -> None:
    try:
        bg.load(text + "\n")
    except bg.SpecError:
        return
    raise AssertionError("it must be refused")


def main(rounds: int = 7) -> None:
    """Print the tables."""
    whole = {
        "python -c pass": process("-c", "pass"),
        "import argparse, pydantic, yaml, networkx": process("-c", LIBRARIES),
        "blockgraph --version": process("-m", "blockgraph", "--version"),
        "blockgraph --help": process("-m", "blockgraph", "--help"),
        "blockgraph check specs/pre_norm.yaml": process("-m", "blockgraph", "check", "specs/pre_norm.yaml"),
    }
    table("Whole process", interleaved(whole, rounds), "import argparse, pydantic, yaml, networkx")
    equal = {f"{n} equal blocks": partial(bg.check, repeated(n)) for n in (12, 96, 1_000, 10_000)}
    table("Check in process, equal blocks", interleaved(equal, rounds), "12 equal blocks")
    refused = {name: partial(_refuse, text) for name, text in COSTLY.items()}
    table("Refusing costly files", interleaved(refused, 3), "alias bomb")
    distinct = {f"{n} different blocks": partial(bg.check, different(n)) for n in (10, 100, 1_000)}
    table("Check in process, different blocks", interleaved(distinct, 3), "10 different blocks")
