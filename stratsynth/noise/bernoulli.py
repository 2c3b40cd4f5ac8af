"""Coins whose probability is exactly a given real number, and exp(-p/q) as an integer with guaranteed bounds.

A uniform real U is compared with p by its binary digits, a few at a time: with the first b bits u of U
known, U lies in [u, u + 1) 2^-b, and p in [lo, hi] 2^-b. If u + 1 <= lo then U < p, if u >= hi then U >= p,
and otherwise both are refined. The comparison ends with probability one, and its answer is that of U < p:
the coin has probability p, with no rounding. Refining is needed with probability at most (hi - lo) 2^-b.

exp is the one transcendental function that the samplers need; weights of the discrete Gaussian are computed from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.noise.entropy import SYSTEM, Entropy, chunks

_GUARD = 64
_BITS = 320
_TAIL = 13
_BEYOND = Fraction(5, 10**37)


def exp_bounds(p: int, q: int, bits: int) -> tuple[int, int]:
    """Return integers with lo <= 2^bits exp(-p/q) <= hi, for p >= 0 and q > 0; hi - lo <= 2 below 2^26 bits.

    Fixed point with w = bits + 64 fractional bits: halve the argument h times to below 2^-8, sum the Taylor
    series, square h times.

    Error, in units of 2^-w. The series has at most w/8 + 2 terms; each carries less than 3 units (two
    roundings and what it inherits, which shrinks), the first term left out less than 1, the rounded
    argument less than 2: together less than w. A squaring of a number <= 1 with error e leaves at most
    2e + 2. As p/q < w, 2^h is at most 2^9 w, so the end is off by less than 2^10 w^2, and that is
    added on both sides.
    """
    if p == 0:
        return 1 << bits, 1 << bits
    width = bits + _GUARD
    if p >= q * width:  # exp(-width) < 2^-width
        return 0, 1
    x = (p << width) // q
    halvings = max(0, x.bit_length() - width + 8)
    x >>= halvings
    total = term = 1 << width
    k = 0
    while term:
        k += 1
        term = ((term * x) >> width) // k
        total += -term if k % 2 else term
    for _ in range(halvings):
        total = (total * total) >> width
    slack = (width * width) << 10
    return max(0, (total - slack) >> _GUARD), min(1 << bits, ((total + slack) >> _GUARD) + 1)


def half_weights(sigma: float) -> tuple[list[int], Fraction]:
    """Return the integer weights of x = 0, ..., ceil(13 sigma), and the total variation between their law and the true.

    The weights are exp(-x^2 / (2 sigma^2)). The second is an upper bound, for the half x >= 0
    and for its mirror image on all integers.

    Recurrence. With g = exp(-1 / (2 sigma^2)), w_0 = 1, w_{x+1} = w_x g^(2x+1) and g^(2x+3) = g^(2x+1) g^2: two
    multiplications a weight, in fixed point with 320 fractional bits. All factors are at most 1, so a product
    is off by at most the sum of what its factors are off, plus 2 (rounding, and the product of the two errors).
    In units of 2^-320 that makes 2 for g, 6 for g^2, 2 + 8x for g^(2x+1) and 4 x^2 for w_x. Changing
    nonnegative weights by D in all changes the law they stand for by at most D / (sum of weights) <= D / w_0 in
    total variation; over |x| <= n that is at most 3 (n + 1)^3 2^-320.

    Tail. The weights end at n = ceil(13 sigma). With m = n + 1 > 13 sigma, the sum of exp(-x^2 / (2 sigma^2))
    over x >= m is at most exp(-m^2 / (2 sigma^2)) / (1 - exp(-m / sigma^2)) < exp(-84.5) (1 + sigma / 13),
    because (m + k)^2 >= m^2 + 2mk and 1 / (1 - exp(-y)) <= 1 + 1/y. The sum over all integers is at least
    max(1, 2.5 sigma), by its term x = 0 and by Poisson summation. So the share of the law beyond n is below
    2 exp(-84.5) (1 + 1/13) < 5e-37, and the same bound holds for the half x >= 0.
    """
    a, b = sigma.as_integer_ratio()
    ratio, _ = exp_bounds(b * b, 2 * a * a, _BITS)
    square = (ratio * ratio) >> _BITS
    last = math.ceil(Fraction(_TAIL) * Fraction(sigma))
    weights = [1 << _BITS]
    for _ in range(last):
        weights.append((weights[-1] * ratio) >> _BITS)
        ratio = (ratio * square) >> _BITS
    return weights, _BEYOND + Fraction(3 * (last + 1) ** 3, 1 << _BITS)


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
