"""Coins whose probability is exactly a given real number, from finitely many random bits.

A uniform real U is compared with p by its binary digits, a few at a time: with the first b bits u of U
known, U lies in [u, u + 1) 2^-b, and p in [lo, hi] 2^-b. If u + 1 <= lo then U < p, if u >= hi then U >= p,
and otherwise both are refined. The comparison ends with probability one, and its answer is that of U < p:
the coin has probability p, with no rounding. Refining is needed with probability at most (hi - lo) 2^-b.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.noise.entropy import SYSTEM, Entropy, chunks
from stratsynth.noise.exponential import exp_bounds

Bounds = Callable[[int], tuple[int, int]]
"""A probability p: for each number of bits b, integers with lo <= 2^b p <= hi."""

_STEP = 64


def settle(p: Bounds, u: int, bits: int, entropy: Entropy) -> bool:
    """Return True if a uniform U is below p, `p` bounding 2^b p for b bits; `u`: U's first `bits`, then `entropy`."""
    while True:
        lo, hi = p(bits)
        if u < lo:
            return True
        if u >= hi:
            return False
        # Neither is certain: draw 64 more bits of U, and compare at the finer resolution.
        u = (u << _STEP) | entropy.bits(_STEP)
        bits += _STEP


def flips(p: Bounds, count: int, entropy: Entropy) -> NDArray[np.bool_]:
    """Return a Boolean array of `count` coins, by `entropy`; `p` maps a number b of bits to bounds of 2^b P(True)."""
    heads = np.empty(count, dtype=np.bool_)
    for part in chunks(count):
        u = entropy.uniform8(part.stop - part.start)
        here, open_ = _compared(p, u, 8)
        # Open with probability (hi - lo) / 2^8, at most 1/128; 16 more bits decide nearly all of these.
        if open_.size:
            longer = (u[open_].astype(np.int32) << 16) | entropy.uniform16(open_.size)
            here[open_], left = _compared(p, longer, 24)
            for i in left:
                here[open_[i]] = settle(p, int(longer[i]), 24, entropy)
        heads[part] = here
    return heads


def _compared(p: Bounds, u: NDArray[Any], bits: int) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return arrays (mask: `u`, `bits`-bit prefixes, surely below, lower bound of `p`(bits); indices of undecided)."""
    lo, hi = p(bits)
    return u < lo, np.flatnonzero((u >= lo) & (u < hi))


def decay(gamma: Fraction) -> Bounds:
    """Return a function from a number b of bits to integer bounds (low, high) of 2^b exp(-gamma), gamma >= 0."""
    p, q = gamma.as_integer_ratio()
    return lambda bits: exp_bounds(p, q, bits)


def poisson_coins(count: int, rate: float | Fraction, entropy: Entropy = SYSTEM) -> NDArray[np.bool_]:
    """Return a Boolean array of `count` coins by `entropy`, True with probability exactly `rate`: a Poisson sample.

    A float is the dyadic rational it stores: 0.1 is 0x1.999999999999ap-4. ValueError for a rate outside of [0, 1].
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"a sampling rate lies in [0, 1], not {rate}")
    p, q = Fraction(rate).as_integer_ratio()
    # Floor and ceiling of 2^bits rate: the rate is the fraction p / q itself, so the coin is exact.
    return flips(lambda bits: ((p << bits) // q, -((-p << bits) // q)), count, entropy)
