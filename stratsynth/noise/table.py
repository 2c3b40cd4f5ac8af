"""Sampling from any finite integer distribution by one table lookup, with exactly the table's probabilities.

Let first, first + 1, ..., first + n - 1 have integer weights w_0, ..., w_{n-1} with sum W. The table is

    c_j = floor(2^128 (w_0 + ... + w_j) / W),    j = 0, ..., n - 2,

and a draw of u, uniform on [0, 2^128), returns first + #{j : c_j <= u}. So the value first + j has
probability exactly (c_j - c_{j-1}) / 2^128, with c_{-1} = 0 and c_{n-1} = 2^128.

Error. Each of these probabilities is within 2^-128 of w_j / W, as it is the difference of two numbers that
were rounded down by less than one unit. The total variation distance, half the sum, is at most n 2^-129.
The maker of the weights adds the total variation between w / W and the law meant; `Table.error` bounds the sum.

Laziness. u is read from the top. Its first 16 bits decide the draw unless a threshold begins with the same
16 bits; only then are the next 48 read, and only if these too agree with a threshold, the last 64. Bits
that were not read could not have changed the answer, so the law is the same. What is read depends on random
bits only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from stratsynth.noise.entropy import Entropy, chunks

_WORD = (1 << 64) - 1
_PREFIXES = 1 << 16
_UNDECIDED = -1


@dataclass(frozen=True, eq=False)
class SamplerTable:
    """A sampler of one finite integer distribution, built by `Table.of`; method and error are in the head."""

    first: int
    """Value that index 0 stands for."""
    high: NDArray[np.uint64]
    """The upper 64 bits of every threshold, in order."""
    low: NDArray[np.uint64]
    """The lower 64 bits of every threshold."""
    error: float
    """Upper bound on the total variation distance between one draw and the law that was meant."""
    guide: NDArray[np.int32] = field(repr=False)
    """Index decided by each 16-bit prefix, or -1 if a threshold shares the prefix."""

    @classmethod
    def of(cls, first: int, weights: Sequence[int], error: Fraction) -> SamplerTable:
        """Return a table for draws from `first` on, by a list of int `weights`, whose law is `error` off at most."""
        sums = list(accumulate(weights))
        if not sums or sums[-1] <= 0 or min(weights) < 0:
            raise ValueError("a table needs nonnegative weights, one of them positive")
        total = sums.pop()
        thresholds = [(s << 128) // total for s in sums]
        # A threshold of 2^128 (a zero weight at the end) is never reached, nor are those after it.
        while thresholds and thresholds[-1] >> 128:
            thresholds.pop()
        high = np.array([c >> 64 for c in thresholds], dtype=np.uint64)
        low = np.array([c & _WORD for c in thresholds], dtype=np.uint64)
        # A prefix that no threshold has decides the index: the number of thresholds below it.
        held = np.bincount((high >> np.uint64(48)).astype(np.int64), minlength=_PREFIXES)
        guide = np.where(held > 0, _UNDECIDED, np.cumsum(held)).astype(np.int32)
        return cls(first, high, low, _round_up(error + Fraction(len(weights), 1 << 129)), guide)

    def sample(self, count: int, entropy: Entropy) -> NDArray[np.int64]:
        """Return an int64 array of `count` independent draws, by `entropy`, of the table's distribution."""
        drawn = np.empty(count, dtype=np.int64)
        for part in chunks(count):
            drawn[part] = self._indices(part.stop - part.start, entropy)
        drawn += self.first
        return drawn

    def _indices(self, count: int, entropy: Entropy) -> NDArray[np.int32]:
        prefix = entropy.uniform16(count)
        index = self.guide[prefix]
        (undecided,) = np.nonzero(index < 0)
        if undecided.size:
            # The next 48 bits: with the prefix they are compared with the thresholds' upper words.
            more = entropy.uniform64(undecided.size) >> np.uint64(16)
            top = (prefix[undecided].astype(np.uint64) << np.uint64(48)) | more
            found = np.searchsorted(self.high, top, side="right")
            # An index of -1 reads the last, largest high word, which is then larger than `top`: never a tie.
            (tied,) = np.nonzero(self.high[found - 1] == top)
            if tied.size:
                found[tied] = self._break_ties(top[tied], entropy)
            index[undecided] = found
        return index

    def _break_ties(self, top: NDArray[np.uint64], entropy: Entropy) -> list[int]:
        """Return a list: number of thresholds <= u, for each u of upper word in `top`, an array, lower by `entropy`."""
        begin = np.searchsorted(self.high, top, side="left")
        end = np.searchsorted(self.high, top, side="right")
        rest = entropy.uniform64(top.size)
        return [
            int(b + np.searchsorted(self.low[b:e], r, side="right")) for b, e, r in zip(begin, end, rest, strict=True)
        ]


def _round_up(bound: Fraction) -> float:
    """Return `bound`, a Fraction, as a float that is at least as large."""
    return math.nextafter(float(bound), math.inf)
