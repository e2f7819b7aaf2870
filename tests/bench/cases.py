"""What is computed: a spec, its sizes, and the arrays that all contenders are given alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import blockgraph as bg

GPT2 = Path(__file__).parent.parent.parent / "specs" / "models" / "gpt2.yaml"
Arrays = Mapping[str, Any]


def gpt_block(mask: str, width: int = 768, heads: int = 12) -> dict[str, Any]:
    """A pre-norm block: layer norm, attention without biases, a feed-forward of four times the width."""
    attention = {"kind": "attention", "heads": "H", "mask": mask}
    feed_forward = {"kind": "feed_forward", "hidden": "4*C", "activation": "gelu_tanh"}
    return {"dims": {"C": width, "H": heads}, "block": {"norm": "layer_norm", "sublayers": [attention, feed_forward]}}


def gpt_block_spelled(mask: str) -> dict[str, Any]:
    """The same block as someone writes it who uses no kinds; its parameters come in the same order."""
    norm = """
    d{0} = x - mean(x, "b t c -> b t 1")
    n{0} = d{0} / sqrt(mean(d{0}*d{0}, "b t c -> b t 1") + 1e-5) * gamma{0} + beta{0}"""
    heads = """
    {0} = rearrange(n1 @ W{0}, "b t (h d) -> b h t d", h=H)"""
    vectors = {"gamma1": "ones", "beta1": "zeros", "gamma2": "ones", "beta2": "zeros", "b2": "zeros"}
    params: dict[str, Any] = {name: {"shape": ["C"], "init": init} for name, init in vectors.items()}
    params |= {f"W{letter}": ["C", "C"] for letter in "qkvo"}
    params |= {"W1": ["C", "F"], "b1": {"shape": ["F"], "init": "zeros"}, "W2": ["F", "C"]}
    order = "gamma1 beta1 Wq Wk Wv Wo gamma2 beta2 W1 b1 W2 b2".split()
    equations = f"""{norm.format(1)}{"".join(map(heads.format, "qkv"))}
    s = einsum("b h t d, b h s d -> b h t s", q, k) / D**0.5
    w = softmax(s{', mask="causal"' if mask == "causal" else ""})
    o = einsum("b h t s, b h s d -> b h t d", w, v)
    x = x + rearrange(o, "b h t d -> b t (h d)") @ Wo{norm.format(2)}
    u = n2 @ W1 + b1
    g = 0.5 * u * (1 + tanh(0.7978845608028654 * (u + 0.044715 * u*u*u)))
    x = x + (g @ W2 + b2)
    """
    block = {"params": {name: params[name] for name in order}, "equations": equations}
    return {"dims": {"C": 768, "H": 12, "D": "C/H", "F": "4*C"}, "block": block}


def llama_block() -> dict[str, Any]:
    """One layer of the Llama 3.2 model of 1B parameters."""
    rotary = {"style": "half", "theta": 500000}
    attention = {"kind": "attention", "heads": "H", "kv_heads": "G", "mask": "causal", "rotary": rotary}
    feed_forward = {"kind": "gated_feed_forward", "hidden": "F", "activation": "silu"}
    norm = {"kind": "rms_norm", "eps": 1e-5}
    block = {"norm": norm, "sublayers": [attention, feed_forward]}
    return {"dims": {"C": 2048, "H": 32, "G": 8, "F": 8192}, "block": block}


@dataclass(frozen=True)
class Case:
    """One computation. `layers` is 0 for a lone block; a model has embeddings, a final norm and a tied head."""

    spec: Mapping[str, Any] | Path
    time: int
    batch: int = 1
    heads: int = 12
    causal: bool = False
    layers: int = 0
    backward: bool = False
    spelled: Mapping[str, Any] | None = field(default=None, compare=False)

    def program(self) -> bg.Program:
        """The spec, compiled."""
        return bg.compile(self.spec)

    def draw(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What goes in, as `x` and `dy` (ids and target ids for a model), and the parameters; nothing is zero."""
        program, rng = self.program(), np.random.default_rng(1)
        x, params = program.sample(0, dtype="float32", B=self.batch, T=self.time)
        for name, array in params.items():
            if array.ndim == 1:  # norms and biases are drawn as ones and zeros
                params[name] = array + np.float32(0.1) * rng.standard_normal(array.shape, dtype=np.float32)
        dy = rng.permuted(x, axis=-1) if self.layers else rng.standard_normal(x.shape, dtype=np.float32)
        return {"x": x, "dy": dy}, params


CASES = {
    "1x128": Case(gpt_block("full"), 128),
    "8x128": Case(gpt_block("full"), 128, batch=8),
    "1x1024": Case(gpt_block("causal"), 1024, causal=True),
    "1x128-both": Case(gpt_block("full"), 128, backward=True),
    "1x1024-both": Case(gpt_block("causal"), 1024, causal=True, backward=True),
    "gpt2": Case(GPT2, 256, causal=True, layers=12),
    "gpt2-both": Case(GPT2, 256, causal=True, layers=12, backward=True),
    "token": Case(GPT2, 256, causal=True, layers=12),
    "llama": Case(llama_block(), 1024, heads=32, causal=True),
    "lesson": Case(gpt_block("full", 64, 4), 6, heads=4),
    "spelled-1x128": Case(gpt_block("full"), 128, spelled=gpt_block_spelled("full")),
    "spelled-1x1024": Case(gpt_block("causal"), 1024, causal=True, spelled=gpt_block_spelled("causal")),
}


def save(case: Case, folder: Path) -> None:
    """Write the arrays of a case where its contenders find them."""
    inputs, params = case.draw()
    np.savez(folder / "inputs.npz", **inputs)
    np.savez(folder / "params.npz", **params)


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `save` wrote: the inputs, and the parameters in their order."""
    with np.load(folder / "inputs.npz") as inputs, np.load(folder / "params.npz") as params:
        return dict(inputs), dict(params)
