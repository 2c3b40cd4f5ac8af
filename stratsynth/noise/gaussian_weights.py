"""The weights exp(-x^2 / (2 sigma^2)), x = 0, 1, ..., of the discrete Gaussian as integers, with their error.

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

from __future__ import annotations

import math
from fractions import Fraction

from stratsynth.noise.exponential import exp_bounds

_BITS = 320
_TAIL = 13
_BEYOND = Fraction(5, 10**37)


def half_weights(sigma: float) -> tuple[list[int], Fraction]:
    """Return the integer weights of x = 0, ..., ceil(13 sigma), and the total variation between their law and the true.

    The second is an upper bound, for the half x >= 0 and for its mirror image on all integers.
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
