"""Fits of few records for their noise: where tables of pairs would be noise, columns alone are counted.

A tree of pairs gives each of its d - 1 tables a part of the budget. If the mean absolute noise of such a table, added
up over its cells, is as large as the number of records, pairs teach less than what they cost the columns; the rule asks
this of the median pair, by public facts alone. `scripts/bench small` prints both sides of it.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING

from stratsynth.adapters.shared.rounds import NOISE_SIZE
from stratsynth.questions.counts import table_sigma

if TYPE_CHECKING:
    from stratsynth.mechanisms import Public
    from stratsynth.schema import Schema

PAIRS = 0.45
"""Share of the budget for the pairs of a tree."""


def borrows(public: Public) -> bool:
    """Return True if the fit of these public facts has rows of a prior for its records, in all columns."""
    return public.prior is not None and not public.prior.lacking


def only_columns(public: Public, rho: float) -> bool:
    """Return True if a fit for `rho` counts columns alone: a tree's median pair would have more noise than records.

    False without an exact public size (a noisy one would let answers decide which questions are asked), with a prior,
    whose rows tell about pairs, or with fewer than three columns.
    """
    schema, columns = public.schema, len(public.schema.names)
    if public.size is None or not public.exact or borrows(public) or columns < 3:
        return False
    sigma = table_sigma(PAIRS * rho / (columns - 1), schema, public.neighbours)
    return NOISE_SIZE * sigma * _median_pair(schema) > public.size


@lru_cache(maxsize=256)
def _median_pair(schema: Schema) -> float:
    """Return the median number of cells of all pairs of a schema's columns."""
    sizes = [schema.size(name) for name in schema.names]
    return median(one * other for one, other in combinations(sizes, 2))
