"""The equations of every layout in `specs/layouts`, from the papers, as plain Python over named maps.

A function is called as its spec. `n`, `n1`, `final` ... are norms, `attn`, `ff`, `cross`, `conv`, `moe` sublayers,
`q`, `k`, `v`, `wo`, `w1`, `w2` linear maps; what stands behind a name is in `layout_maps`. Stacks are lists with a
tuple of maps for each layer. Arguments have no types, so that each function reads as the paper does; the tests
change these functions one operation at a time, and every change must show.
"""

from __future__ import annotations

import numpy as np

from tests.hand import silu
from tests.layout_maps import attend, gelu_erf, sigmoid, spread


def pre_norm(x, layers, final):
    for attn, ff, n1, n2 in layers:
        x = x + attn(n1(x))
        x = x + ff(n2(x))
    return final(x)


def post_norm(x, layers):
    for attn, ff, n1, n2 in layers:
        x = n1(x + attn(x))
        x = n2(x + ff(x))
    return x


def sandwich(x, layers, final):
    for attn, ff, n1, n2, n3, n4 in layers:
        x = x + n2(attn(n1(x)))
        x = x + n4(ff(n3(x)))
    return final(x)


def output_norm(x, attn, ff, n1, n2):
    x = x + n1(attn(x))
    x = x + n2(ff(x))
    return x


def parallel_shared_norm(x, attn, ff, n):
    h = n(x)
    x = x + attn(h) + ff(h)
    return x


def parallel_two_norms(x, attn, ff, n1, n2):
    x = x + attn(n1(x)) + ff(n2(x))
    return x


def parallel_branch_norms(x, attn, ff, n1, n2, n3, n4):
    x = x + n2(attn(n1(x))) + n4(ff(n3(x)))
    return x


def deepnorm(x, layers):
    a = (2 * len(layers)) ** 0.25
    for attn, ff, n1, n2 in layers:
        x = n1(a * x + attn(x))
        x = n2(a * x + ff(x))
    return x


def scaled_pre_post(x, layers):
    a = 2 * len(layers)
    for attn, ff, n1, n2, n3, n4 in layers:
        x = n2(a * x + attn(n1(x)))
        x = n4(a * x + ff(n3(x)))
    return x


def residual(x, layers, final):
    d = x
    for attn, ff, n1, n2 in layers:
        u = attn(x)
        x = n1(x + u)
        d = d + u
        u = ff(x)
        x = n2(x + u)
        d = d + u
    return x + final(d)


def sub_ln(x, q, k, v, wo, w1, w2, n1, n2, n3, n4):
    h = n1(x)
    x = x + wo(n2(attend(q(h), k(h), v(h))))
    x = x + w2(n4(gelu_erf(w1(n3(x)))))
    return x


def normformer(x, q, k, v, wo, head_scale, w1, w2, n1, n2, n3, n4):
    h = n1(x)
    x = x + n2(wo(spread(head_scale) * attend(q(h), k(h), v(h), causal=True)))
    x = x + w2(n4(gelu_erf(w1(n3(x)))))
    return x


def rezero(x, attn, ff, a1, a2):
    x = x + a1 * attn(x)
    x = x + a2 * ff(x)
    return x


def layerscale(x, attn, ff, g1, g2, n1, n2):
    x = x + g1 * attn(n1(x))
    x = x + g2 * ff(n2(x))
    return x


def layernorm_scaling(x, layers, final):
    layer = 1
    for attn, ff, n1, n2 in layers:
        x = x + attn(n1(x) / np.sqrt(layer))
        x = x + ff(n2(x) / np.sqrt(layer))
        layer = layer + 1
    return final(x)


def mix_ln(x, layers, final):
    a = 0.25
    for attn, ff, n1, n2 in layers[: round(a * len(layers))]:
        x = n1(x + attn(x))
        x = n2(x + ff(x))
    for attn, ff, n1, n2 in layers[round(a * len(layers)) :]:
        x = x + attn(n1(x))
        x = x + ff(n2(x))
    return final(x)


def hybrid_norm(x, q, k, v, wo, ff, nq, nk, nv, n):
    y = x + wo(attend(nq(q(x)), nk(k(x)), nv(v(x)), causal=True))
    h = n(y)
    x = h + ff(h)
    return x


def residual_multiplier(x, layers, final):
    r = 1.4 / np.sqrt(len(layers))
    for attn, ff, n1, n2 in layers:
        x = x + r * attn(n1(x))
        x = x + r * ff(n2(x))
    return final(x)


def gated_residual(x, attn, ff, n1, n2, gate1, gate2):
    for f, n, gate in ((attn, n1, gate1), (ff, n2, gate2)):
        wr, ur, wz, uz, bz, wh, uh = gate
        y = f(n(x))
        r = sigmoid(y @ wr + x @ ur)
        z = sigmoid(y @ wz + x @ uz - bz)
        h = np.tanh(y @ wh + (r * x) @ uh)
        x = (1 - z) * x + z * h
    return x


def ngpt(x, attn, ff, r1, r2, l2):
    x = l2(x + np.abs(r1) * (l2(attn(x)) - x))
    x = l2(x + np.abs(r2) * (l2(ff(x)) - x))
    return x


def macaron(x, f1, attn, conv, f2, n1, n2, n3, n4, n5):
    x = x + 0.5 * f1(n1(x))
    x = x + attn(n2(x))
    x = x + conv(n3(x))
    x = n5(x + 0.5 * f2(n4(x)))
    return x


def decoder_cross_attention(x, memory, keep, layers, final):
    for attn, cross, ff, n1, n2, n3 in layers:
        x = x + attn(n1(x))
        x = x + cross(n2(x), memory, keep)
        x = x + ff(n3(x))
    return final(x)


def decoder_cross_attention_post(x, memory, keep, layers):
    for attn, cross, ff, n1, n2, n3 in layers:
        x = n1(x + attn(x))
        x = n2(x + cross(x, memory, keep))
        x = n3(x + ff(x))
    return x


def gated_cross_attention(x, memory, cross, ff, g1, g2, n1, n2):
    x = x + np.tanh(g1) * cross(n1(x), memory)
    x = x + np.tanh(g2) * ff(n2(x))
    return x


def mixture_of_experts(x, attn, moe, n1, n2):
    x = x + attn(n1(x))
    x = x + moe(n2(x))
    return x


def shared_experts(x, attn, moe, always, n1, n2):
    x = x + attn(n1(x))
    h = n2(x)
    x = x + (moe(h) + always(h))
    return x


def dense_moe(x, attn, ff, moe, n1, n2, n3):
    x = x + attn(n1(x))
    x = x + ff(n2(x)) + moe(n3(x))
    return x


def value_residual(x, first, later):
    q, k, v, wo, ff, n1, n2 = first
    h = n1(x)
    v1 = v(h)
    x = x + wo(attend(q(h), k(h), v1, causal=True))
    x = x + ff(n2(x))
    for q, k, v, wo, ff, n1, n2, l1, l2 in later:
        h = n1(x)
        u = l1 * v(h) + l2 * v1
        x = x + wo(attend(q(h), k(h), u, causal=True))
        x = x + ff(n2(x))
    return x


def hyper_connections(x, layers, final):
    streams = np.stack([x, x, x, x], axis=2)
    for attn, ff, n1, n2, read1, mix1, write1, read2, mix2, write2 in layers:
        y = attn(n1(np.einsum("n,btnc->btc", read1, streams)))
        streams = np.einsum("mn,btnc->btmc", mix1, streams) + np.einsum("m,btc->btmc", write1, y)
        y = ff(n2(np.einsum("n,btnc->btc", read2, streams)))
        streams = np.einsum("mn,btnc->btmc", mix2, streams) + np.einsum("m,btc->btmc", write2, y)
    return final(streams.sum(axis=2))


def shared_layers(x, attn, ff, n1, n2, times):
    for _ in range(times):
        x = n1(x + attn(x))
        x = n2(x + ff(x))
    return x


def looped_depth(x, s, prelude, adapter, core, norm, coda, final, rounds):
    for attn, ff, n1, n2, n3, n4 in prelude:
        x = x + n2(attn(n1(x)))
        x = x + n4(ff(n3(x)))
    for _ in range(rounds):
        s = adapter(np.concatenate([s, x], axis=-1))
        for attn, ff, n1, n2, n3, n4 in core:
            s = s + n2(attn(n1(s)))
            s = s + n4(ff(n3(s)))
        s = norm(s)
    for attn, ff, n1, n2, n3, n4 in coda:
        s = s + n2(attn(n1(s)))
        s = s + n4(ff(n3(s)))
    return final(s)


def adaln_zero(x, c, attn, ff, n, s1, b1, g1, s2, b2, g2):
    u = silu(c)[:, None, :]
    x = x + g1(u) * attn((1 + s1(u)) * n(x) + b1(u))
    x = x + g2(u) * ff((1 + s2(u)) * n(x) + b2(u))
    return x


def norm_free(x, attn, ff, a1, g1, b1, a2, g2, b2):
    x = x + attn(g1 * np.tanh(a1 * x) + b1)
    x = x + ff(g2 * np.tanh(a2 * x) + b2)
    return x
