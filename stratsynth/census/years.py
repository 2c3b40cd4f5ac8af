"""Other years of the census: other people, and probabilities that drift a little from year to year.

For every variable but those of the population's groups, a year moves each person's draw u in [0, 1) to u + k u (1 - u),
where |k| grows by `DRIFT` / 1000 a year, with a sign that depends on the variable's name. Levels that come early then
become rarer or commoner, by at most 2 percent of people a year. A level that is impossible in one year is so in all,
and groups keep their shares: `shares` holds for every year.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from stratsynth.census.draws import BITS, draws
from stratsynth.checks import is_whole
from stratsynth.errors import UsageError

YEAR = 2019
"""Year of the tables."""
FARTHEST = 10
"""Years simulated on each side of `YEAR`."""
DRIFT = 80
"""Growth of |k| a year, in thousandths."""
STILL = frozenset({"AREA", "RAC1P", "ETH", "HISP", "SEX", "AGE5", "AGE1"})
"""Variables that never drift: the shares of groups follow from them."""


def check_year(year: object) -> None:
    """Refuse, with a UsageError, a year that is no whole number within FARTHEST of YEAR."""
    if not is_whole(year) or not abs(year - YEAR) <= FARTHEST:
        raise UsageError(f"census: year is a whole number from {YEAR - FARTHEST} to {YEAR + FARTHEST}.")


def drawn(keys: NDArray[np.uint64], name: str, year: int) -> NDArray[np.uint32]:
    """Return an array of integers below 2**31, one for each entry of the array `keys`: draws of a variable in a year.

    The variable is called `name`.
    """
    if year == YEAR:
        return draws(keys, name)
    found = draws(keys, f"{name} {year}").astype(np.int64)
    if name in STILL:
        return found.astype(np.uint32)
    # whole numbers, which are exact on every machine
    bend = (found * ((1 << BITS) - found) >> BITS) * (DRIFT * abs(year - YEAR)) // 1000
    sign = 1 if (hashlib.sha256(name.encode()).digest()[0] % 2 == 0) == (year > YEAR) else -1
    return (found + sign * bend).astype(np.uint32)
