"""The matrix products of a case alone: same shapes, outputs allocated before, the best split over the cores.

It is no law of nature, but what the same products cost whoever computes the rest. Under the causal mask only the
blocks of scores that some query sees are counted. Backward takes two products more for each one forward.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tests.bench.cases import Arrays, Case
from tests.bench.contenders import Work

BLOCK = 256
Run = Callable[[], object]


@dataclass(frozen=True)
class Product:
    """out = a @ b, of matrices or of equally many of them."""

    a: Any
    b: Any
    out: Any

    def compute(self) -> None:
        """Compute it."""
        np.matmul(self.a, self.b, out=self.out)

    def rows(self) -> tuple[Product, Product]:
        """Two halves: of the matrices if there are many, else of the rows of `a`."""
        half = len(self.a) // 2
        if self.a.ndim == 3:
            return Product(self.a[:half], self.b[:half], self.out[:half]), Product(
                self.a[half:], self.b[half:], self.out[half:]
            )
        return Product(self.a[:half], self.b, self.out[:half]), Product(self.a[half:], self.b, self.out[half:])

    def columns(self) -> tuple[Product, Product]:
        """Two halves of the columns of `b`; many matrices are halved in number."""
        if self.a.ndim == 3:
            return self.rows()
        half = self.b.shape[1] // 2
        return Product(self.a, self.b[:, :half], self.out[:, :half]), Product(
            self.a, self.b[:, half:], self.out[:, half:]
        )


class Shapes:
    """Arrays of random numbers by name and shape, shared by all layers. No result is read by what made it, so that
    numbers stay finite however often a run is repeated.
    """

    def __init__(self) -> None:
        self._rng = np.random.default_rng(2)
        self._made: dict[tuple[str, tuple[int, ...]], Any] = {}

    def array(self, name: str, *shape: int) -> Any:
        """The array of a name and shape."""
        if (name, shape) not in self._made:
            self._made[name, shape] = self._rng.standard_normal(shape, dtype=np.float32)
        return self._made[name, shape]


def products(case: Case, params: Arrays) -> Iterator[Product]:
    """All products of a run, layer by layer."""
    arrays, rows = Shapes(), case.batch * case.time
    for layer in range(case.layers or 1):
        own = _layer(params, f"layers.{layer}." if case.layers else "")
        yield from _linear(case, arrays, rows, own["qkv"])
        yield from _attention(case, arrays, own["qkv"].shape[0] // case.heads)
        yield from _linear(case, arrays, rows, own["o"])
        for weights in own["feed_forward"]:
            yield from _linear(case, arrays, rows, weights)
    if case.layers:
        yield from _linear(case, arrays, rows, params["embed.table"].T)


def _layer(params: Arrays, prefix: str) -> dict[str, Any]:
    qkv = np.concatenate([params[f"{prefix}attention.W{letter}"] for letter in "qkv"], axis=1)
    weights = [params[name] for name in params if name.startswith(prefix) and ".W" in name and "attention" not in name]
    return {"qkv": qkv, "o": params[f"{prefix}attention.Wo"], "feed_forward": weights}


def _linear(case: Case, arrays: Shapes, rows: int, weights: Any) -> Iterator[Product]:
    x, y = arrays.array("x", rows, weights.shape[0]), arrays.array("y", rows, weights.shape[1])
    yield Product(x, weights, y)
    if case.backward:
        yield Product(y, weights.T, arrays.array("dx", *x.shape))
        yield Product(x.T, y, np.ones_like(weights, order="C"))


def _attention(case: Case, arrays: Shapes, size: int) -> Iterator[Product]:
    """Scores and their use, in blocks of queries under the causal mask."""
    many, time = case.batch * case.heads, case.time
    query, key, value, mixed = (arrays.array(name, many, time, size) for name in ("q", "k", "v", "mixed"))
    step = BLOCK if case.causal else time
    for start in range(0, time, step):
        stop = min(start + step, time)
        seen = stop if case.causal else time
        weights = arrays.array("weights", many, stop - start, seen)
        rows, keys = slice(start, stop), slice(0, seen)
        yield Product(query[:, rows], key[:, keys].transpose(0, 2, 1), weights)
        yield Product(weights, value[:, keys], mixed[:, rows])
        if case.backward:
            dweights, dkey = arrays.array("dweights", *weights.shape), arrays.array("dkey", many, seen, size)
            yield Product(mixed[:, rows], value[:, keys].transpose(0, 2, 1), dweights)
            yield Product(weights.transpose(0, 2, 1), mixed[:, rows], dkey)
            yield Product(dweights, key[:, keys], arrays.array("dquery", many, time, size)[:, rows])
            yield Product(dweights.transpose(0, 2, 1), query[:, rows], dkey)


def floor(case: Case, params: Arrays) -> Work:
    """The products of a whole run."""
    return _fastest(list(products(case, params)))


def token(case: Case, params: Arrays) -> Work:
    """The products of one token more, with the keys and values of those before it."""
    arrays, size, found = Shapes(), len(params["final_norm.gamma"]) // case.heads, []
    for layer in range(case.layers):
        own = _layer(params, f"layers.{layer}.")
        keys = [arrays.array(f"{name}{layer}", case.heads, case.time + 1, size) for name in "kv"]
        query, weights = arrays.array("q", case.heads, 1, size), arrays.array("w", case.heads, 1, case.time + 1)
        found += _linear(case, arrays, 1, own["qkv"])
        found += [
            Product(query, keys[0].transpose(0, 2, 1), weights),
            Product(weights, keys[1], arrays.array("mixed", *query.shape)),
        ]
        for one in (own["o"], *own["feed_forward"]):
            found += _linear(case, arrays, 1, one)
    return _fastest([*found, *_linear(case, arrays, 1, params["embed.table"].T)])


def _fastest(found: Sequence[Product]) -> Work:
    """The best of: threads of the BLAS, or one Python thread for each half of the rows or columns."""
    from threadpoolctl import threadpool_limits

    pool = ThreadPoolExecutor(1)
    splits = {
        "BLAS threads": (2, partial(_all, found)),
        "Python threads, rows": (1, partial(_both, pool, [one.rows() for one in found])),
        "Python threads, columns": (1, partial(_both, pool, [one.columns() for one in found])),
    }
    times = {}
    for name, (threads, run) in splits.items():
        with threadpool_limits(threads, "blas"):
            times[name] = min(_seconds(run) for _ in range(4))
    best = min(times, key=times.__getitem__)
    threads, run = splits[best]
    threadpool_limits(threads, "blas")
    return Work(lambda x, dy: run(), note=best, named=lambda result: {})


def _all(found: Sequence[Product]) -> None:
    for one in found:
        one.compute()


def _both(pool: ThreadPoolExecutor, halves: Sequence[tuple[Product, Product]]) -> None:
    other = pool.submit(_all, [second for _, second in halves])
    _all([first for first, _ in halves])
    other.result()


def _seconds(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
