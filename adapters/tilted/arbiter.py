"""Share of a release that a prior's rows get beside the mechanism's own model, by the errors of both.

The mechanism fits its own model, and chooses what is measured, as it would without a prior. Beside it the prior's rows
are fitted to the same answers. Each new table is predicted by these rows before they take it in: its distance from the
answer, less what noise brings, estimates the rows' squared error without bias. The squared distance between both
models in tables of three columns is, as their errors are about independent, the sum of their squared errors. So the
share of the own model that makes the blend's error smallest is about the rows' squared error over that distance: a
prior fades as answers get more precise, and as it is found wrong. A prior of no use leaves the fit without one.

All of it is post-processing of paid answers, and no question depends on what the rows say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.engine import MeasuredTable
from stratsynth.adapters.shared.learner import Learner
from stratsynth.adapters.tilted.blended import of
from stratsynth.adapters.tilted.learner import TiltedLearner, drawn
from stratsynth.questions import Clique, NoisyTable, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.mechanisms import Public
    from stratsynth.models import TableModel
    from stratsynth.schema import Schema

MEMORY = 0.9
"""Factor on the weight of past tables at each precise one: the rows improve with every table that they take in."""
ASSUMED = 2.0
"""Weight, in precise tables, of the assumption that the prior is right, before any table was predicted."""
COLUMN = 0.25
"""Weight of a table of one column, where one of several has 1: the rows follow columns at once."""
LEAST, STRAIN = 0.5, 1.5
"""Smallest error of the prior's rows, as a multiple of a right prior's, if they kept their weights, and the exponent by
which it grows as fewer of them do: rows that had to be reweighted far are few, and where no answer told, wrong."""
SHARED, SHARED_IN_STRATA = 0.5, 1.0
"""Fraction of the chance by which the people fitted differ from their population that is an error of both models: all
of it in strata, most of whose tables are never measured."""
COMPARED, MOST_CELLS = 200, 2**14
"""Largest number of tables in which both models are compared, evenly spaced among all, and of cells of one."""
LEFT = 0.98
"""Share of the own model of everybody from which on strata do without the prior."""
ROWS, LAST_ROWS = 4_000, 15_000
"""Largest number of own-model rows added to the prior's, between rounds and in the last fit."""
FEWEST = 1_000
"""Smallest such number; between the limits it equals the number of prior rows."""


@dataclass(kw_only=True)
class Arbiter(Learner[Any]):
    """The prior's rows and the mechanism's own learner, fitted to one list of tables."""

    own: Learner[Any]
    """Learner of the mechanism's own model."""
    tilted: TiltedLearner
    """Learner of the prior's rows."""
    error: float = 1.0
    """Estimated squared error of the prior's rows in a table that they have not taken in, as a multiple of a right
    prior's: that of a sample of as many people as it has rows."""
    shared: float = SHARED
    """`SHARED` or `SHARED_IN_STRATA`."""
    most: float = 1.0
    """Largest share of the own model: in a stratum of `Pooled` everybody's."""
    _weight: float = field(default=ASSUMED, init=False)
    """Weight of the tables, and of the assumption, that the estimate is based on."""
    _judged: int = field(default=0, init=False)
    """Number of tables that the rows have predicted."""

    def __post_init__(self) -> None:
        """Give both learners the arbiter's list of tables, so that a table added to it is theirs too."""
        self.own.tables = self.tilted.tables = self.tables

    @property
    def model(self) -> TableModel:
        """Model of the last fits: the blend of both, or one of them where the other's share would be tiny."""
        return of(self.schema, self.own.model, self.tilted.model, self.kept)

    @property
    def kept(self) -> float:
        """Share of the own model in the blend, 0 to 1, by the last fits."""
        cliques = _compared(self.schema)
        root, number = 0.0, 0
        for mine, other in zip(self.tilted.marginals(cliques), self.own.marginals(cliques), strict=True):
            spread = float((mine * (1 - mine)).sum())
            if spread > 0:
                root += math.sqrt(float(((mine - other) ** 2).sum()) / spread)
                number += 1
        apart = (root / number) ** 2 / self._right if number else 0.0
        # the people who are fitted are a sample: where no answer tells how it is off by chance, both models are
        common = self.shared / self.total / self._right
        least = LEAST / max(self.tilted.surviving, 1e-9) ** STRAIN
        beyond = max(0.0, max(self.error, least) - common)
        return min(self.most, share(beyond / apart)) if apart > 0 else self.most

    @property
    def _right(self) -> float:
        """Squared error of a right prior, as a fraction of a table's sum of p (1 - p): two samples of a population."""
        return 1 / self.total + 1 / max(self.tilted.people, 1.0)

    def fit(self, *, last: bool = False) -> Program[None]:
        """Program that judges the prior's rows by new tables, then fits both; `last` as in `Learner`."""
        yield from self.tilted.liken()
        self._predicted()
        yield from self.own.fit(last=last)
        yield from self._tilt(last=last)

    def after(self, first: int) -> Program[None]:
        """Program for an own model that was fitted once, to all tables: judges the prior's rows, then fits them.

        They take in the `first` tables, and predict the others.
        """
        yield from self.tilted.liken()
        for number in sorted({first, len(self.tables)}):
            self.tilted.tables = self.tables[:number]
            self._predicted()
            yield from self._tilt(last=number == len(self.tables))
        self.tilted.tables = self.tables

    def _tilt(self, *, last: bool) -> Program[None]:
        """Program that fits the prior's rows, with rows of the own model beside them, for the `last` time or not."""
        _lend(self.tilted, self.own.model, LAST_ROWS if last else ROWS)
        yield from self.tilted.fit(last=last)

    def _predicted(self) -> None:
        """Judge the prior's rows by the tables that they have not taken in."""
        new = self.tilted.tables[self._judged :]
        self._judged += len(new)
        self.judge(new, self.tilted.marginals([table.clique for table in new]))

    def judge(self, tables: Sequence[MeasuredTable], predicted: Sequence[NDArray[np.floating[Any]]]) -> None:
        """Update the estimated error by `tables` and arrays of their cells' probabilities, `predicted` before."""
        total, right = self.total, self._right
        for table, shares in zip(tables, predicted, strict=True):
            cells = np.ones(shares.shape, dtype=bool) if table.counted is None else table.counted
            off, spread = (table.values - total * shares)[cells], float((shares * (1 - shares))[cells].sum())
            if not spread > 0:
                continue
            unit = total**2 * spread * right
            # unbiased for the squared error; what noise adds to its variance lowers its weight
            beyond = (float(off @ off) - off.size * table.sigma**2) / unit
            weight = (COLUMN if len(table.clique) == 1 else 1.0) / (1 + 2 * off.size * (table.sigma**2 / unit) ** 2)
            past = MEMORY**weight * self._weight  # a table that is mostly noise makes nothing forgotten
            root = past * math.sqrt(self.error) + weight * math.copysign(math.sqrt(abs(beyond)), beyond)
            self._weight = past + weight
            self.error = max(0.0, root / self._weight) ** 2

    def marginals(self, cliques: Sequence[Clique]) -> Sequence[NDArray[np.floating[Any]]]:
        """Return a sequence of arrays, one a clique: its cells' probabilities by the own model, which rounds are by."""
        return self.own.marginals(cliques)

    def expected(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        """Return a list of arrays, one a clique: its cells' expected counts, in records, by the own model."""
        return self.own.expected(cliques)

    def fitting(self, cliques: Mapping[Clique, float]) -> dict[Clique, float]:
        """Return those of `cliques`, candidates -> weight, that the own model can take in."""
        return self.own.fitting(cliques)

    def stratum(self, public: Public, prior: float) -> Program[Learner[Any]]:
        """Program on public facts that returns a stratum's learner: the own model's, and the prior's rows beside it.

        `prior` is the own model's weight in it, in records. Where everybody's answers left next to nothing of the
        prior, the stratum has the own model's alone.
        """
        own = yield from self.own.stratum(public, prior)
        kept = self.kept
        if kept > LEFT:
            return own
        tilted = yield from self.tilted.stratum(public, prior)
        arbiter = Arbiter(
            schema=own.schema,
            size=own.size,
            settled=own.settled,
            tables=own.tables,
            published=own.published,
            own=own,
            tilted=tilted,
            shared=SHARED_IN_STRATA,
            most=kept,
        )
        # what the prior is wrong about beyond chance is as large in a stratum, where chance is larger
        arbiter.error = 1 + max(0.0, self.error - 1) * self._right / arbiter._right
        return arbiter

    def conditioned(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> Any:
        """Return the model with allowed levels alone, in the columns of `schema`, which has no others.

        `levels` is column -> numbers of the levels allowed; a column it lacks keeps all.
        """
        return self.model.conditioned(schema, levels)


def share(ratio: float) -> float:
    """Return the own model's share, 0 to 1, for a ratio of the rows' squared error to the squared distance of both.

    With independent errors it is the ratio itself. Answers that both were fitted to make errors alike and the distance
    small, so from a half on the share grows more slowly and reaches 1 for rows of no use only.
    """
    return ratio if ratio <= 0.5 else 1 - 1 / (4 * ratio)


@lru_cache(maxsize=64)
def _compared(schema: Schema) -> tuple[Clique, ...]:
    """Return a tuple of cliques of a schema in which models are compared: of three columns, of fewer if too large."""
    for columns in (3, 2, 1):
        every = [c for c in combinations(schema.names, columns) if schema.cells(c) <= MOST_CELLS]
        if every:
            places = np.unique(np.linspace(0, len(every) - 1, min(COMPARED, len(every))).astype(int))
            return tuple(every[i] for i in places)
    return ()


def arbitrated(own: Learner[Any], public: Public) -> Learner[Any]:
    """Return an `Arbiter` between the learner `own` and the prior's rows; `own` itself without a prior of all columns.

    The prior is one of the public facts.
    """
    if public.prior is None or public.prior.lacking or not public.schema.names:
        return own
    tilted = TiltedLearner.of(public, size=own.size, settled=own.settled)
    return Arbiter(
        schema=own.schema,
        size=own.size,
        settled=own.settled,
        tables=own.tables,
        own=own,
        tilted=tilted,
        shared=SHARED if public.prior.parent is None else SHARED_IN_STRATA,
    )


def tilted_to(
    tables: Sequence[NoisyTable], public: Public, own: TableModel, settled: float | None = None
) -> Program[TiltedLearner | None]:
    """Program that returns a `TiltedLearner` of the prior's rows, fitted to tables and joined by own rows; or None.

    It is None without columns, or without a prior of all columns.

    Args:
        tables: The paid answers.
        public: Public facts of the fit.
        own: The mechanism's own model, rows of which are added to the prior's.
        settled: The number of records, where it was estimated before.
    """
    if public.prior is None or public.prior.lacking or not public.schema.names:
        return None
    known = [MeasuredTable.of(table) for table in tables]
    tilted = TiltedLearner.of(public, size=public.size, settled=settled, tables=known)
    yield from tilted.liken()
    _lend(tilted, own, ROWS)
    yield from tilted.fit(last=True)
    return tilted


def _lend(tilted: TiltedLearner, own: TableModel, most: int) -> None:
    tilted.lend(drawn(own, min(tilted.worthwhile(most), max(FEWEST, tilted.base.size)), tilted.schema))
