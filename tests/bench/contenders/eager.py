"""PyTorch, eager, with `scaled_dot_product_attention` and linear maps as `nn.Linear` has them, on two threads."""

from __future__ import annotations

from typing import Any

from tests.bench.cases import Arrays, Case
from tests.bench.contenders import Work

THREADS = 2


def gpt(case: Case, params: Arrays) -> Work:
    """A GPT-2 block, or the whole model; one product for queries, keys and values."""
    import torch

    torch.set_num_threads(THREADS)
    p = _weights(params, case.backward)

    def run(x: Any) -> Any:
        given = torch.from_numpy(x)
        if not case.layers:
            return given, _block(given.requires_grad_(case.backward), p, "", case)
        stream = p["embed.table"][given] + p["positions.table"][: case.time]
        for layer in range(case.layers):
            stream = _block(stream, p, f"layers.{layer}.", case)
        stream = _layer_norm(stream, p, "final_norm")
        return given, stream @ p["embed.table"].T

    def forward(x: Any, dy: Any) -> Any:
        with torch.inference_mode():
            return run(x)[1].numpy()

    def forget(x: Any) -> None:
        for weights in p.values():
            weights.grad = None

    def both(x: Any, dy: Any) -> Any:
        forget(x)
        given, y = run(x)
        if case.layers:
            torch.nn.functional.cross_entropy(y.flatten(0, 1), torch.from_numpy(dy).flatten()).backward()
        else:
            y.backward(torch.from_numpy(dy))
        return given

    def named(given: Any) -> dict[str, Any]:
        found = {} if case.layers else {"x": given.grad.numpy()}
        return found | _unfused({name: one.grad for name, one in p.items()})

    return Work(both, forget, named=named) if case.backward else Work(forward)


def _weights(params: Arrays, learn: bool) -> dict[str, Any]:
    """Matrices turned to (out, in); those of queries, keys and values stacked."""
    import torch

    found = {}
    for name, array in params.items():
        letter = name.rpartition(".")[2]
        if letter in ("Wk", "Wv", "bk", "bv"):
            continue
        if letter in ("Wq", "bq"):
            array = _fused(params, name)
        tensor = torch.from_numpy(array)
        turned = tensor.T.contiguous() if letter.startswith("W") else tensor.clone()
        found[name] = turned.requires_grad_(learn)
    return found


def _fused(params: Arrays, name: str) -> Any:
    import numpy as np

    return np.concatenate([params[name[:-1] + letter] for letter in "qkv"], axis=-1)


def _unfused(grads: Arrays) -> dict[str, Any]:
    """Gradients under the names and in the layout of the parameters."""
    found: dict[str, Any] = {}
    for name, grad in grads.items():
        letter = name.rpartition(".")[2]
        array = (grad.T if letter.startswith("W") else grad).numpy()
        if letter in ("Wq", "bq"):
            width = array.shape[-1] // 3
            found |= {name[:-1] + one: array[..., i * width : (i + 1) * width] for i, one in enumerate("qkv")}
        else:
            found[name] = array
    return found


def _layer_norm(x: Any, p: Arrays, name: str) -> Any:
    import torch

    return torch.nn.functional.layer_norm(x, x.shape[-1:], p[f"{name}.gamma"], p[f"{name}.beta"], 1e-5)


def _block(x: Any, p: Arrays, prefix: str, case: Case, cache: list[Any] | None = None) -> Any:
    from torch.nn.functional import gelu, linear, scaled_dot_product_attention

    h = _layer_norm(x, p, f"{prefix}norm1")
    fused = linear(h, p[f"{prefix}attention.Wq"], p.get(f"{prefix}attention.bq"))
    q, k, v = (one.unflatten(-1, (case.heads, -1)).transpose(1, 2) for one in fused.chunk(3, -1))
    causal = case.causal
    if cache is not None:
        k, v, causal = *_extended(cache, k, v), causal and x.shape[1] > 1
    mixed = scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(-2)
    x = x + linear(mixed, p[f"{prefix}attention.Wo"], p.get(f"{prefix}attention.bo"))
    h = linear(_layer_norm(x, p, f"{prefix}norm2"), p[f"{prefix}feed_forward.W1"], p[f"{prefix}feed_forward.b1"])
    h = gelu(h, approximate="tanh")
    return x + linear(h, p[f"{prefix}feed_forward.W2"], p[f"{prefix}feed_forward.b2"])


def _extended(cache: list[Any], k: Any, v: Any) -> tuple[Any, Any]:
    """The keys and values so far: `cache` is the length and the two buffers of one layer."""
    start, keys, values = cache
    stop = start + k.shape[2]
    keys[:, :, start:stop], values[:, :, start:stop] = k, v
    cache[0] = stop
    return keys[:, :, :stop], values[:, :, :stop]


def token(case: Case, params: Arrays) -> Work:
    """One token after those of the case, with keys and values in buffers made before."""
    import torch

    torch.set_num_threads(THREADS)
    p = _weights(params, False)
    caches: list[list[Any]] = []
    size = len(params["final_norm.gamma"]) // case.heads

    def step(x: Any) -> Any:
        tokens, start = torch.from_numpy(x), caches[0][0]
        stream = p["embed.table"][tokens] + p["positions.table"][start : start + tokens.shape[1]]
        for layer, cache in enumerate(caches):
            stream = _block(stream, p, f"layers.{layer}.", case, cache)
        return _layer_norm(stream[:, -1:], p, "final_norm") @ p["embed.table"].T

    def again(x: Any) -> None:
        shape = (case.batch, case.heads, case.time + 64, size)
        caches[:] = [[0, torch.empty(shape), torch.empty(shape)] for _ in range(case.layers)]
        with torch.inference_mode():
            step(x)

    def call(x: Any, dy: Any) -> Any:
        with torch.inference_mode():
            return step(x[:, -1:]).numpy()

    return Work(call, again, steps=16)


def llama(case: Case, params: Arrays) -> Work:
    """A Llama layer: RMSNorm, rotary positions in halves, grouped heads, a gated feed-forward."""
    import torch
    from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

    torch.set_num_threads(THREADS)
    p = {name: tensor.T.contiguous() if "W" in name else tensor for name, tensor in _tensors(params).items()}
    width = p["norm1.gamma"].numel()
    size = width // case.heads
    angle = torch.outer(torch.arange(case.time), 500000 ** (-torch.arange(0, size, 2) / size)).repeat(1, 2)
    cos, sin = angle.cos(), angle.sin()

    def turned(x: Any) -> Any:
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat((-second, first), -1) * sin

    def heads(x: Any, name: str) -> Any:
        return linear(x, p[f"attention.{name}"]).unflatten(-1, (-1, size)).transpose(1, 2)

    def call(x: Any, dy: Any) -> Any:
        with torch.inference_mode():
            x = torch.from_numpy(x)
            h = rms_norm(x, (width,), p["norm1.gamma"], 1e-5)
            q, k, v = turned(heads(h, "Wq")), turned(heads(h, "Wk")), heads(h, "Wv")
            mixed = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + linear(mixed.transpose(1, 2).flatten(-2), p["attention.Wo"])
            h, name = rms_norm(x, (width,), p["norm2.gamma"], 1e-5), "gated_feed_forward"
            gated = silu(linear(h, p[f"{name}.Wg"])) * linear(h, p[f"{name}.Wu"])
            return (x + linear(gated, p[f"{name}.Wd"])).numpy()

    return Work(call)


def _tensors(params: Arrays) -> dict[str, Any]:
    import torch

    return {name: torch.from_numpy(array) for name, array in params.items()}
