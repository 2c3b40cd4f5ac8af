"""The discrete Gaussian N_Z(0, sigma^2): P(x) proportional to exp(-x^2 / (2 sigma^2)) on the integers.

It is the noise of Canonne, Kamath and Steinke (2020): added to an integer vector of L2 sensitivity 1 it gives
zero-concentrated privacy rho = 1 / (2 sigma^2). sigma is a float and stands for exactly the number it stores.

Below 1024 a draw is one lookup in a 128-bit table (`table.py`); from there on it takes a table of blocks, a uniform
offset and an exact rejection, as below. A draw misses N_Z by at most `tv_error(sigma)` < 1e-34 in total variation, of
which docs/privacy.md says in section 8 what it costs.

Write a large sigma = 2^k s with 512 <= s < 1024; scaling by a power of two is exact. One proposal is

    Y >= 0 with probability proportional to exp(-Y^2 / (2 s^2))      the block, from a table
    R uniform on [0, 2^k)                                            the offset, k random bits
    a sign, a fair coin                                              giving x = +-(2^k Y + R)

It is accepted with probability exp(-R (2^(k+1) Y + R) / (2 sigma^2)), unless it is -0. As
(2^k Y)^2 + R (2^(k+1) Y + R) = x^2, an x is proposed and accepted with probability proportional to
exp(-x^2 / (2 sigma^2)), and each integer arises in one way only. What is accepted is N_Z(0, sigma^2).

The acceptance coin is exact (`bernoulli.py`). Within block Y its probability is at least the ratio of
neighbouring weights, exp(-(2Y + 1) / (2 s^2)). So a 16-bit word below `sure[Y]`, that ratio rounded down,
accepts at once. The others, about one in 600, are settled in integers.

Error: only the table of Y, off by at most t in total variation. What follows it is the same with the ideal
Y, so the measures m, m' of accepted values have |m - m'|_1 <= 2t and their masses |a - a'| <= t. The
accepted laws m / a and m' / a' differ in total variation by at most (2t / a + t / a) / 2 = 1.5 t / a, which
is at most 2t since a > 3/4: the -0 loses at most P(Y = 0) < 1/600, the coin at most the mean of
(2Y + 1) / (2 s^2) < 1/500.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stratsynth.errors import Unsupported
from stratsynth.noise.bernoulli import decay, half_weights, settle
from stratsynth.noise.entropy import SYSTEM, Entropy, chunks
from stratsynth.noise.table import SamplerTable

_BLOCK_BITS = 10  # s lies in [2^9, 2^10)
_COIN = np.uint64(47)  # of 64 bits: the sign, 16 for the coin, and up to 47 for the offset
WIDEST = 2.0**50
"""Largest sigma: at most 50 - 9 = 41 bits of offset, and no value beyond 2^54."""


@dataclass(frozen=True, eq=False)
class _Blocks:
    table: SamplerTable
    sure: NDArray[np.uint64]
    """Per block Y the 16-bit word below which the coin accepts whatever the offset."""


@lru_cache(maxsize=16)
def _blocks(s: float) -> _Blocks:
    weights, error = half_weights(s)
    # One unit below the rounded ratio: weights this large (at least 2^-123, off by 2^-290) have ratios right
    # to far less. The last block has no successor and is always settled in full.
    sure = [((after << 16) // here) - 1 for here, after in pairwise(weights)]
    return _Blocks(SamplerTable.of(0, weights, error), np.array([*sure, 0], dtype=np.uint64))


def _split(sigma: float) -> tuple[int, float]:
    """Return an integer k and a float s with sigma = 2^k s exactly and 512 <= s < 1024."""
    mantissa, exponent = math.frexp(sigma)
    return exponent - _BLOCK_BITS, math.ldexp(mantissa, _BLOCK_BITS)


def sample_wide(sigma: float, count: int, entropy: Entropy) -> NDArray[np.int64]:
    """Return an int64 array of `count` draws, by `entropy`, of N_Z(0, sigma^2), for 1024 <= sigma <= WIDEST."""
    drawn = np.empty(count, dtype=np.int64)
    for part in chunks(count):
        missing = np.arange(part.start, part.stop)
        while missing.size:
            values, accepted = _propose(sigma, missing.size, entropy)
            # Rejected proposals are drawn again until none is left; the number of rounds depends on random bits only.
            drawn[missing[accepted]] = values[accepted]
            missing = missing[~accepted]
    return drawn


def _propose(sigma: float, count: int, entropy: Entropy) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    shift, s = _split(sigma)
    blocks = _blocks(s)
    block = blocks.table.sample(count, entropy)
    bits = entropy.uniform64(count)
    negative = (bits >> np.uint64(63)).astype(np.bool_)
    coin = (bits >> _COIN) & np.uint64(0xFFFF)
    offset = (bits & np.uint64((1 << shift) - 1)).astype(np.int64)
    magnitude = (block << shift) | offset
    accepted = coin < blocks.sure[block]
    for i in np.flatnonzero(~accepted):
        exponent = int(offset[i]) * ((int(block[i]) << (shift + 1)) + int(offset[i]))
        accepted[i] = settle(decay(exponent / (2 * Fraction(sigma) ** 2)), int(coin[i]), 16, entropy)
    accepted &= ~(negative & (magnitude == 0))
    return np.where(negative, -magnitude, magnitude), accepted


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
    return 2 * _blocks(_split(sigma)[1]).table.error if sigma >= _WIDE else _table(sigma).error


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
