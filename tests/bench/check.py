"""What checking costs in process: how it grows with layers that are equal and with layers that differ.

Ninety-six layers are held against ONNX shape inference of as many, if onnx is installed: as a loaded spec, which is
what a model in memory is, and from text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec

import blockgraph as bg
from tests.bench.timing import Contenders, interleaved, table

LAYERS = 96
ONNX = "onnx shape inference"


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


def stacked(layers: int) -> str:
    """A stack of equal blocks, each with a text of its own."""
    return _stack([4] * layers)


def different(layers: int) -> str:
    """A stack in which every block has a hidden width of its own."""
    return _stack(range(1, layers + 1))


def _stack(widths: Sequence[int]) -> str:
    layers = len(widths)
    blocks = "".join(
        f"  b{i}:\n    norm: layer_norm\n    sublayers:\n      - {{kind: attention, heads: H}}\n"
        f"      - {{kind: feed_forward, hidden: {width}*C, activation: gelu_tanh}}\n"
        for i, width in enumerate(widths)
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


def against_onnx() -> Contenders:
    """Checks of 96 layers, and ONNX shape inference of as many."""
    texts = {
        "a stack of blocks written out": stacked(LAYERS),
        "a stack of different blocks": different(LAYERS),
        "as many parts of one block": written_out(LAYERS),
    }
    found: dict[str, Callable[[], object]] = {}
    if find_spec("onnx") is not None:
        from tests.bench.contenders.checking import onnx

        work = onnx(None, {})
        found[ONNX] = lambda: work.call(None, None)
    for name, text in texts.items():
        found[f"{name}, loaded"] = partial(bg.check, bg.load(text))
        found[f"{name}, from text"] = partial(bg.check, text)
    return found


def main(rounds: int = 7) -> None:
    """Print the tables."""
    equal = {f"{n} equal blocks": partial(bg.check, repeated(n)) for n in (1, 12, 96, 1_000, 10_000)}
    table("Check in process, a block repeated", interleaved(equal, 5 * rounds), "1 equal blocks")
    contenders = against_onnx()
    table(f"Check in process, {LAYERS} layers", interleaved(contenders, rounds), next(iter(contenders)))
    refused = {name: partial(_refuse, text) for name, text in COSTLY.items()}
    table("Refusing costly files", interleaved(refused, 3), "alias bomb")
    distinct = {f"{n} different blocks": partial(bg.check, different(n)) for n in (10, 100, 1_000)}
    table("Check in process, different blocks", interleaved(distinct, 3), "10 different blocks")
