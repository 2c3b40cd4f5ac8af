"""Scales for wide-ranging numbers, such as incomes: the transform that a column declares, and its inverse.

With u the column's `transform_unit`, a number x becomes

    log           sign(x) log(1 + |x| / u)
    square-root   sign(x) (|x| / u)^(1/2)
    fourth-root   sign(x) (|x| / u)^(1/4)

increasing, with 0 at 0, and as good for debts as for incomes. The mean of transformed numbers, brought back, is
not the mean of the numbers (for `log` it is close to a geometric mean); `mean_back` corrects it for normal noise.

`forward` is applied to private rows, so it is row-local to the last bit: every step is one elementary operation
on one element (`stratsynth.questions.sums.base` has the reason), and so the logarithm is written out here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema.columns import Numeric

_TERMS = 13
"""Terms of the series of atanh; with |s| <= 0.172 the first one left out is below 2^-70."""


def forward(column: Numeric, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an array: `numbers` on the scale of a numeric column's `transform`, unchanged without; NaN stays NaN."""
    if column.transform is None:
        return numbers
    size = np.abs(numbers) / float(column.transform_unit)
    if column.transform == "log":
        size = exact_log(size + 1.0)
    else:
        size = np.sqrt(size)
        if column.transform == "fourth-root":
            size = np.sqrt(size)
    return np.copysign(size, numbers)


def backward(column: Numeric, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an array of the numbers whose values on a numeric column's scale are `values`: inverse of `forward`."""
    if column.transform is None:
        return values
    with np.errstate(over="ignore"):
        size = np.abs(values)
        size = np.expm1(size) if column.transform == "log" else size ** (2 if column.transform == "square-root" else 4)
        return np.copysign(size * float(column.transform_unit), values)


def bounds(column: Numeric) -> tuple[float, float]:
    """Return (lower, upper), floats: a numeric column's bounds on the scale of its `transform`."""
    low, high = forward(column, np.array([column.lower, column.upper], dtype=float))
    return float(low), float(high)


def mean_back(column: Numeric, mean: float, spread: float) -> float:
    """Return the mean of numbers normal, `mean` and `spread`, on a numeric column's scale; NaN: infinite `spread`."""
    if column.transform is None or not math.isfinite(spread):
        return mean if column.transform is None else math.nan
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return float((weights * backward(column, mean + spread * nodes)).sum() / weights.sum())


def exact_log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(x) for x >= 1, NaN or infinity, by operations on one element at a time.

    x = 2^e m exactly, and log m = 2 atanh((m - 1) / (m + 1)) by its series.
    """
    m, e = np.frexp(x)
    low = m < math.sqrt(0.5)
    m, exponent = np.where(low, m * 2.0, m), np.where(low, e - 1.0, e.astype(np.float64))
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    series = np.full_like(s, 1.0 / (2 * _TERMS - 1))
    for term in range(_TERMS - 1, 0, -1):
        series = series * square + 1.0 / (2 * term - 1)
    return exponent * math.log(2.0) + 2.0 * (s * series)
