"""exp(-p/q) as an integer with guaranteed bounds: the one transcendental function the samplers need."""

from __future__ import annotations

_GUARD = 64


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
