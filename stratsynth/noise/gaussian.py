"""The discrete Gaussian N_Z(0, sigma^2): P(x) proportional to exp(-x^2 / (2 sigma^2)) on the integers.

It is the noise of Canonne, Kamath and Steinke (2020): added to an integer vector of L2 sensitivity 1 it gives
zero-concentrated privacy rho = 1 / (2 sigma^2). sigma is a float and stands for exactly the number it stores.

Below 1024 a draw is one lookup in a 128-bit table (`table.py`); from there on, a table of blocks and an
exact rejection (`wide_gaussian.py`). A draw misses N_Z by at most `tv_error(sigma)` < 1e-34 in total variation, of
which docs/privacy.md says in section 8 what it costs.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stratsynth.errors import Unsupported
from stratsynth.noise.entropy import SYSTEM, Entropy
from stratsynth.noise.exponential import half_weights
from stratsynth.noise.table import SamplerTable
from stratsynth.noise.wide_gaussian import WIDEST, sample_wide, wide_error

_WIDE = 1024


def sample(sigma: float, shape: int | tuple[int, ...], entropy: Entropy = SYSTEM) -> NDArray[np.int64]:
    """Return an int64 array of this shape, of draws by `entropy` of the discrete Gaussian N_Z(0, sigma^2)."""
    sigma = _checked(sigma)
    count = math.prod(shape) if isinstance(shape, tuple) else shape
    drawn = sample_wide(sigma, count, entropy) if sigma >= _WIDE else _table(sigma).sample(count, entropy)
    return drawn.reshape(shape)


def tv_error(sigma: float) -> float:
    """Return a bound on the total variation between a draw of `sample` and the exact discrete N_Z(0, sigma^2)."""
    sigma = _checked(sigma)
    return wide_error(sigma) if sigma >= _WIDE else _table(sigma).error


@lru_cache(maxsize=64)
# A symmetric table: the weights of 1, 2, ..., mirrored, stand before those of 0, 1, 2, ....
def _table(sigma: float) -> SamplerTable:
    half, error = half_weights(sigma)
    return SamplerTable.of(1 - len(half), [*half[:0:-1], *half], error)


def _checked(sigma: float) -> float:
    if not 0 < sigma < math.inf:
        raise ValueError(f"sigma must be positive and finite, not {sigma}")
    if sigma > WIDEST:
        raise Unsupported("Gaussian noise goes up to sigma 2^50; use a coarser grid.")
    return float(sigma)
