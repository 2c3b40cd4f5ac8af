"""Other years of the census: other people, and chances that drift a little from year to year.

Of every variable but those of the population's groups, a year moves each person's draw u, between 0 and 1, to
u + k u (1 - u), where k grows by `DRIFT` a year, up or down as the variable's name has it. Levels that come early then
become rarer or commoner, by 2 percent of people a year at most. What has no chance in one year has none in any, and
groups keep their shares: `shares` is right for every year.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from stratsynth.census.draws import BITS, draws
from stratsynth.checks import is_whole
from stratsynth.errors import UsageError

YEAR = 2019
"""The year of the tables."""
FARTHEST = 10
"""How many years before and after it there are."""
DRIFT = 80
"""Thousandths that k grows a year."""
STILL = frozenset({"AREA", "RAC1P", "ETH", "HISP", "SEX", "AGE5", "AGE1"})
"""Variables that never drift: the shares of groups follow from them."""


def check_year(year: object) -> None:
    """A year that there is."""
    if not is_whole(year) or not abs(year - YEAR) <= FARTHEST:
        raise UsageError(f"census: year is a whole number from {YEAR - FARTHEST} to {YEAR + FARTHEST}.")


def drawn(keys: NDArray[np.uint64], name: str, year: int) -> NDArray[np.uint32]:
    """A variable's draw for each key in some year."""
    if year == YEAR:
        return draws(keys, name)
    found = draws(keys, f"{name} {year}").astype(np.int64)
    if name in STILL:
        return found.astype(np.uint32)
    # whole numbers, which are exact on every machine
    bend = (found * ((1 << BITS) - found) >> BITS) * (DRIFT * abs(year - YEAR)) // 1000
    sign = 1 if (hashlib.sha256(name.encode()).digest()[0] % 2 == 0) == (year > YEAR) else -1
    return (found + sign * bend).astype(np.uint32)
