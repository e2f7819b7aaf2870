"""Attention from one sequence to another."""

from __future__ import annotations

from blockgraph.kinds.attending import Attending


class CrossAttention(Attending):
    """As `attention`, with keys and values from `memory` (B, S, M) and no mask of its own

    `keep` (B, S) or (B, T, S), true = visible, hides padding of the memory.
    Source: Vaswani et al. 2017, arXiv:1706.03762, sec. 3.2.3.
    """

    name = "cross_attention"
    title = "Cross-Attention"
    elsewhere = ("encoder_decoder_attention", "xattn")
    inputs = {"x": "... T C", "memory": "... S M", "keep": "...", "score_bias": "..."}
    optional = ("keep", "score_bias")
    widths = frozenset({"C", "M"})
    sizes = {
        "H": "heads",
        "G": "kv_heads = H",
        "D": "head_dim = C/H",
        "E": "value_dim = D",
        "F": "out = C",
    }
    numbers = {"scale": "scale = D**-0.5", "softcap": "softcap"}

    def source(self) -> tuple[str, str]:
        """The memory."""
        return "memory", "M"
