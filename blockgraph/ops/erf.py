"""The error function on arrays, which NumPy does not have: full double precision, and a short form for float32.

erf(x) = 2 / sqrt(pi) * integral of exp(-t*t) from 0 to x. Below 0.46875 the odd rational form of Cody keeps
the relative error near zero; above it 1 - exp(-x*x) * ratio(x) does, and from 6 on the result rounds to 1.
Source: W. J. Cody 1969, Rational Chebyshev approximations for the error function, Math. Comp. 23, 631-637.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from blockgraph.lazy import np

CHUNK = 65_536
"""Elements that are taken through a chain of operations at once, so that they stay in the cache."""

# Coefficients from the highest power down.
NEAR_OVER = (
    1.85777706184603153e-1,
    3.16112374387056560,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
NEAR_UNDER = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
FAR_OVER = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
FAR_UNDER = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
# x * ratio(x*x) on [-4, 4], good to three roundings of float32; the coefficients are those of Eigen's float erf.
SINGLE_OVER = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
SINGLE_UNDER = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)


def erf(x: Any) -> Any:
    """erf(x), element by element, in the dtype of `x` (float32 or float64)."""
    x = np.asarray(x)
    return in_chunks(_single if x.dtype == np.float32 else _double, x)


def in_chunks(curve: Callable[..., Any], *arrays: Any) -> Any:
    """`curve` of arrays of one shape, a stretch at a time when they are large; the result is a new array."""
    first = arrays[0]
    if np.size(first) <= CHUNK:
        return curve(*arrays)
    flat = [array.reshape(-1) for array in arrays]
    y = np.empty(first.shape, first.dtype)
    out = y.reshape(-1)
    for start in range(0, out.size, CHUNK):
        stretch = slice(start, start + CHUNK)
        out[stretch] = curve(*(array[stretch] for array in flat))
    return y


def _single(x: Any) -> Any:
    x = np.clip(x, -4.0, 4.0)
    square = x * x
    return np.clip(x * _polynomial(SINGLE_OVER, square) / _polynomial(SINGLE_UNDER, square), -1.0, 1.0)


def _double(x: Any) -> Any:
    size = np.minimum(np.abs(x), 6.0)
    square = size * size
    y = np.asarray(1.0 - np.exp(-square) * _polynomial(FAR_OVER, size) / _polynomial(FAR_UNDER, size))
    near = size <= 0.46875
    small = np.asarray(square)[near]
    y[near] = np.asarray(size)[near] * _polynomial(NEAR_OVER, small) / _polynomial(NEAR_UNDER, small)
    return np.copysign(y, x)


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """Horner's rule, from the highest power down."""
    total = coefficients[0] * x + coefficients[1]
    for coefficient in coefficients[2:]:
        total *= x
        total += coefficient
    return total
