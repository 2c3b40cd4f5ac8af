"""Workloads: the marginals that a release should get right, and their weights.

Written `"all 3-way"`, or as a list of sets of columns. Weights make some marginals matter more: a weight for a column
counts for every marginal that contains it, a weight for several columns, joined by commas, for those that contain all
of them; where more than one applies, they multiply.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations

from stratsynth.checks import is_list, is_texts, number
from stratsynth.errors import Unsupported, UsageError, nearest
from stratsynth.questions import Clique
from stratsynth.schema import Schema

WIDEST = 5
"""Largest number of columns of a marginal."""
MOST_MARGINALS = 200_000
"""Largest number of marginals of a workload: all triples of a hundred columns are 161,700."""
MOST_CANDIDATES = 2**25
"""Largest number of cells of all candidates together."""


@dataclass(frozen=True)
class Workload:
    """Marginals that a release should get right, and their weights, in the user's notation."""

    marginals: str | Sequence[Sequence[str]] = "all 3-way"
    """`all k-way`, or lists of columns."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weight of marginals, by column or by columns joined by commas; 1 by default."""
    _parts: dict[tuple[str, ...], Mapping[Clique, float]] = field(default_factory=dict, init=False, compare=False)
    """Cached results of `parts`, by columns."""
    _small: dict[tuple[Schema, int], Mapping[Clique, float]] = field(default_factory=dict, init=False, compare=False)
    """Cached results of `small`, by schema and limit."""

    def __post_init__(self) -> None:
        """Refuse texts but `all k-way`, lists but of different columns, and weights outside 1e-6 to 1e6."""
        if isinstance(self.marginals, str):
            _ways(self.marginals)
        elif not (is_list(self.marginals) and self.marginals) or not all(
            is_texts(clique) and 0 < len(set(clique)) == len(clique) <= WIDEST for clique in self.marginals
        ):
            raise UsageError(
                f'workload: write "all 3-way", or a list of lists of 1 to {WIDEST} different columns, such as '
                '[["SEX", "AGEP"]].'
            )
        if not isinstance(self.weights, Mapping):
            raise UsageError('workload: write weights by column, such as {"SEX" = 2.0}.')
        for group, weight in self.weights.items():
            number(f"workload: the weight of {group}", weight, least=1e-6, most=1e6)

    def check(self, known: Sequence[str]) -> None:
        """Refuse (UsageError) marginals and weights that name a column not in `known`."""
        lists = () if isinstance(self.marginals, str) else self.marginals
        for name in (*(name for clique in lists for name in clique), *(n for g in self.weights for n in _split(g))):
            if name not in known:
                raise UsageError(f"workload: there is no column {name!r}{nearest(name, known)}.")

    def parts(self, columns: Sequence[str]) -> Mapping[Clique, float]:
        """Return {clique: weight} of all sets of `columns` inside one of the marginals; cached for equal columns.

        A clique is a tuple of columns' names.
        """
        key = tuple(columns)
        if key not in self._parts:
            self._parts[key] = closure(self.among(key))
        return self._parts[key]

    def small(self, schema: Schema, most: int) -> Mapping[Clique, float]:
        """Return {clique: weight} of the parts of at most `most` cells in a schema.

        Strata of equal columns share one object.
        """
        key = schema, most
        if key not in self._small:
            every = self.parts(schema.names)
            cells = cells_of(schema, tuple(every))
            all_are = max(cells.values(), default=0) <= most
            self._small[key] = every if all_are else {c: weight for c, weight in every.items() if cells[c] <= most}
        return self._small[key]

    def among(self, columns: Sequence[str]) -> dict[Clique, float]:
        """Return {clique: weight} of the marginals cut to `columns`; Unsupported for a k-way text of too many.

        A clique is a tuple of columns' names.
        """
        if isinstance(self.marginals, str):
            ways = min(_ways(self.marginals), len(columns))
            if math.comb(len(columns), ways) > MOST_MARGINALS:
                remedy = 'use "all 2-way", or ' if math.comb(len(columns), 2) <= MOST_MARGINALS and ways > 2 else ""
                raise Unsupported(
                    f"workload: {self.marginals} of {len(columns)} columns are more than {MOST_MARGINALS:,} marginals; "
                    f"{remedy}list those that matter."
                )
            sets: Iterator[Clique] = combinations(columns, ways)
        else:
            sets = (tuple(c for c in columns if c in clique) for clique in self.marginals)
        parts = [(set(_split(group)) & set(columns), weight) for group, weight in self.weights.items()]
        factors = [(part, weight) for part, weight in parts if part]
        found: dict[Clique, float] = {}
        for clique in sets:
            weight = math.prod(factor for group, factor in factors if group <= set(clique))
            if clique:
                found[clique] = max(weight, found.get(clique, 0.0))
        return found


def closure(workload: Mapping[Clique, float]) -> dict[Clique, float]:
    """Return {clique: weight} of every set of columns in a marginal of `workload`, the largest such weight.

    `workload` maps the marginals, tuples of columns' names, to weights.
    """
    found: dict[Clique, float] = {}
    for clique, weight in workload.items():
        for size in range(1, len(clique) + 1):
            for part in combinations(clique, size):
                found[part] = max(weight, found.get(part, 0.0))
    return found


@lru_cache(maxsize=8)
def cells_of(schema: Schema, cliques: tuple[Clique, ...]) -> Mapping[Clique, int]:
    """Return {clique: number of cells of its table} in the schema.

    The result is cached, since thousands of strata have equal candidates.
    """
    return {clique: schema.cells(clique) for clique in cliques}


def check_candidates(who: str, cliques: Iterable[Clique], schema: Schema, remedies: str) -> None:
    """Refuse (Unsupported on `who`) cliques of over `MOST_CANDIDATES` cells in a schema; the message has `remedies`."""
    cells = sum(cells_of(schema, tuple(cliques)).values())
    if cells > MOST_CANDIDATES:
        raise Unsupported(
            f"{who}: the workload's marginals of {len(schema.names):,} columns and their parts hold {cells:,} cells, "
            f"more than {MOST_CANDIDATES:,}; leave columns out, use {remedies} a smaller workload, or take mst."
        )


def _ways(text: str) -> int:
    """Return k of a text "all k-way"; UsageError for another text."""
    match = re.fullmatch(rf"all ([1-{WIDEST}])-way", text)
    if match is None:
        raise UsageError(
            f'workload: {text!r} is not understood; write "all 3-way" (1 to {WIDEST}), or lists of columns.'
        )
    return int(match[1])


def _split(group: str) -> list[str]:
    return [name.strip() for name in group.split(",")]
