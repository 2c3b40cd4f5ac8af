"""The exponential mechanism, exactly: P(i) proportional to exp(epsilon score_i / 2).

For integer scores of sensitivity 1 (in units of the score) the choice is epsilon-private and, its privacy
loss having range epsilon, (epsilon^2 / 8)-zCDP. Those are theorems about the ideal law, and this is the
ideal law: no floor, no rounding, no delta, so nothing has to be charged for the arithmetic.

Method. Put the candidates' shares of [0, 1) side by side. Candidate i is drawn when a uniform real U falls
in its share, that is, when i of the inner borders

    b_j = (a_0 + ... + a_{j-1}) / (a_0 + ... + a_{N-1}),  a_j = exp(-epsilon (max - score_j) / 2),  0 < j < N,

are <= U. With b bits of U and of every a_j, each comparison b_j <= U is certainly true, certainly false, or
open. If none is open the answer is final. Otherwise (probability below 2^-128 at the first 192 bits) 64
more are used. The a_j are integers with an error bound and U is a uniform integer: no floating point.
A candidate with a weight far below 2^-192 keeps its true, positive probability.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from operator import index

from stratsynth.noise.entropy import SYSTEM, Entropy
from stratsynth.noise.exponential import exp_bounds

_FIRST = 192
_STEP = 64
_DIGITS = 6
"""Binary digits per block: the factors of a score gap are tabulated for blocks of so many digits."""


def exponential_choice(
    scores: Sequence[int], epsilon: float | Fraction, entropy: Entropy = SYSTEM, known: WeightCache | None = None
) -> int:
    """Return the index i, by `entropy`, with probability exactly proportional to exp(epsilon * scores[i] / 2).

    `epsilon` is the price of the choice if one record changes no score by more than 1, a float exactly. `known`, a
    `WeightCache`, spares work where scores are chosen from again. ValueError without scores or epsilon above 0.
    """
    if not scores:
        raise ValueError("there is nothing to choose from")
    if not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be positive and finite, not {epsilon}")
    exactly = list(map(index, scores))  # a float is refused: it has been rounded
    rate = Fraction(epsilon) / 2
    bits, u = _FIRST, entropy.bits(_FIRST)
    sums, off = (known or WeightCache()).sums(exactly, rate)
    while True:
        fewest, most = _borders_passed(sums, off, u, bits)
        if fewest == most:
            return fewest
        bits, u = bits + _STEP, (u << _STEP) | entropy.bits(_STEP)
        # No border count is certain: extend U by 64 bits and compute the weights anew, to as many bits.
        best = max(exactly)
        sums, off = _weights([best - score for score in exactly], rate, bits)


class WeightCache:
    """Weights of scores of an earlier choice at the same rate, kept to spare work; as private as the scores.

    A weight is exp(-rate (best - score)) in units of 2^-192, where best is that of the earlier choice, which need not
    be a candidate any more: only ratios count. If the present best score has less than 2^-64 of its weight, weights are
    computed anew, so that 128 bits are always left.
    """

    def __init__(self) -> None:
        """Start without weights: the first choice computes its own."""
        self._rate, self._digits = Fraction(0), 1
        self._weights: dict[int, int] = {}

    def sums(self, scores: Sequence[int], rate: Fraction) -> tuple[list[int], int]:
        """Return (list: partial sums of the scores' weights by `rate`, in 2^-192 of an earlier best's; their error)."""
        best, different = max(scores), set(scores)
        light = self._weights.get(best, 0) < 1 << (_FIRST - _STEP)
        if light or rate != self._rate or not self._weights.keys() >= different:
            products, self._digits = _products({best - score for score in different}, rate, _FIRST)
            self._rate, self._weights = rate, {score: products[best - score] for score in different}
        elif len(self._weights) > 2 * len(different):  # most candidates have left the choice
            self._weights = {score: self._weights[score] for score in different}
        return _partial([self._weights[score] for score in scores], self._digits)


def _weights(gaps: Sequence[int], rate: Fraction, bits: int) -> tuple[list[int], int]:
    """Return (list of partial sums of exp(-rate * gap) over a list `gaps`, in 2^-bits; int: the most each is off)."""
    products, digits = _products(set(gaps), rate, bits)
    return _partial([products[gap] for gap in gaps], digits)


def _partial(weights: Sequence[int], digits: int) -> tuple[list[int], int]:
    """Return (list of partial sums of the list `weights`; their error bound, 4 units per weight and digit of a gap)."""
    return list(accumulate(weights)), 4 * max(1, digits) * len(weights)


def _products(gaps: AbstractSet[int], rate: Fraction, bits: int) -> tuple[dict[int, int], int]:
    """Return ({gap: exp(-rate * gap) in units of 2^-bits}, number of binary digits of the largest of `gaps`).

    exp(-rate gap) is the product of exp(-rate 2^k) over the binary digits k of the gap. Each factor is within
    2 units and at most 1, and each product loses less than 2 more to rounding: 4 units a digit, in whichever order.
    """
    p, q = rate.as_integer_ratio()
    digits = max(gaps).bit_length()
    # A factor that is zero to this precision makes the product zero, within the same error.
    powers = [_powers(p << k, q, bits) for k in range(0, digits, _DIGITS)]
    return {gap: _product(gap, powers, bits) for gap in gaps}, digits


@lru_cache(maxsize=256)
def _powers(p: int, q: int, bits: int) -> tuple[int, ...]:
    """Return exp(-d p/q) for all d below 2^_DIGITS, in units of 2^-bits, as products over the binary digits of d.

    Depends on public numbers alone (price and digits), so it may be cached across fits.
    """
    found = [1 << bits]
    # All d below 2^_DIGITS: those with binary digit k follow those without it.
    for k in range(_DIGITS):
        factor = exp_bounds(p << k, q, bits)[0]
        found += [(product * factor) >> bits for product in found]
    return tuple(found)


def _product(gap: int, powers: Sequence[Sequence[int]], bits: int) -> int:
    """Return the int product, in 2^-bits, of one factor of each of `powers`, by block of digits of `gap`."""
    product = 1 << bits
    for k in range(len(powers) - 1, -1, -1):
        digits = gap >> (k * _DIGITS) & ((1 << _DIGITS) - 1)
        if digits:
            product = (product * powers[k][digits]) >> bits
            if not product:
                break
    return product


def _borders_passed(sums: Sequence[int], off: int, u: int, bits: int) -> tuple[int, int]:
    """Return (borders between `sums` certainly <= U, those that may be): numbers, for U in [u, u + 1) 2^-bits.

    A border is s / t with s and t each within `off` of an integer we hold. It is certainly passed if
    (s + off) 2^bits <= u (t - off), and certainly not if (s - off) 2^bits >= (u + 1) (t + off).
    """
    inner, total = sums[:-1], sums[-1]
    surely = ((u * (total - off)) >> bits) - off
    maybe = -((-(u + 1) * (total + off)) >> bits) - 1 + off
    return bisect_right(inner, surely), bisect_right(inner, maybe)
