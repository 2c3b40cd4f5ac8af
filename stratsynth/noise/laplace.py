"""The discrete Laplace: P(x) proportional to exp(-|x| / scale) on the integers, exactly, tails included.

Added to an integer of sensitivity 1 it gives pure epsilon = 1 / scale. Nothing is truncated or rounded, so
there is no delta. The scale is an int, a Fraction, or a float that stands for exactly the number it stores.

Let r = exp(-1 / scale). Two independent geometric numbers, P(M = m) = (1 - r) r^m for m >= 0, have a
difference with P(x) = (1 - r)^2 (sum over m >= 0 of r^m r^(m + |x|)) = r^|x| (1 - r) / (1 + r): the law we
want.

A geometric number is drawn digit by digit. Write m = d_0 + 2 d_1 + ... + 2^(n-1) d_{n-1} + 2^n g. Then r^m
is the product of (r^(2^i))^(d_i) and (r^(2^n))^g, so digits and quotient are independent: digit i is 1 with
odds r^(2^i), and g counts the heads before the first tail of a coin of probability r^(2^n). All these coins
are exact (`bernoulli.py`). Any n gives the same law; ours is the least with 2^n >= 16 scale, which makes
g > 0 rare.

Overflow. The noise has no bound, so int64 holds it modulo 2^64. Added to counts in int64 unchecked, it
gives the ideal answer modulo 2^64, which is post-processing of that answer. Saturating or refusing large
noise before it is added would not be: it would break pure epsilon (with probability exp(-2^13) at the
largest scale).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stratsynth.errors import Unsupported
from stratsynth.noise.bernoulli import Bounds, decay, flips
from stratsynth.noise.entropy import SYSTEM, Entropy, chunks
from stratsynth.noise.exponential import exp_bounds

WIDEST = 2**50


def sample(scale: float | Fraction, shape: int | tuple[int, ...], entropy: Entropy = SYSTEM) -> NDArray[np.int64]:
    """Return an int64 array of this shape of discrete Laplace draws of `scale`, by `entropy`, modulo 2^64; exact."""
    if not 0 < scale < math.inf:
        raise ValueError(f"scale must be positive and finite, not {scale}")
    if scale > WIDEST:
        raise Unsupported("Laplace noise goes up to scale 2^50; use a coarser grid.")
    exact = Fraction(scale)
    digits = (math.ceil(16 * exact) - 1).bit_length()  # the least n >= 0 with 2^n >= 16 scale
    drawn = np.empty(math.prod(shape) if isinstance(shape, tuple) else shape, dtype=np.int64)
    for part in chunks(drawn.size):
        count = part.stop - part.start
        drawn[part] = _geometric(exact, digits, count, entropy) - _geometric(exact, digits, count, entropy)
    return drawn.reshape(shape)


def _geometric(scale: Fraction, digits: int, count: int, entropy: Entropy) -> NDArray[np.int64]:
    """Return `count` int64 draws m by `entropy`, P(m) ~ exp(-m / scale), mod 2^64; lowest `digits` bits: coins."""
    drawn = np.zeros(count, dtype=np.int64)
    # Digits of m: digit i is 1 with odds r^(2^i).
    for i in range(digits):
        drawn |= flips(_odds(2**i / scale), count, entropy).astype(np.int64) << i
    # The quotient g: those whose last coin was heads toss again.
    alive = np.arange(count)
    while alive.size:
        alive = alive[flips(decay(2**digits / scale), alive.size, entropy)]
        drawn[alive] += 1 << digits
    return drawn


def _odds(gamma: Fraction) -> Bounds:
    """Return a function from b bits to int bounds (low, high) of 2^b e / (1 + e), e = exp(-gamma): it rises with e."""
    p, q = gamma.as_integer_ratio()

    def bounds(bits: int) -> tuple[int, int]:
        lo, hi = exp_bounds(p, q, bits)
        one = 1 << bits
        return (lo << bits) // (one + lo), -((-hi << bits) // (one + hi))

    return bounds
