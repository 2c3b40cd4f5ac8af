"""Choice between the prior's rows and the mechanism's own model, by their predictions of paid answers.

Both are fitted to the same paid tables; the prior's rows are joined by rows drawn from the own model, so that a partly
right prior is combined with it. Before a new table is taken in, both predict it: the likelihood ratio of the two
predictions, by the table's noise, is added up over the tables, recent ones counting most. While the prior's rows are
ahead, they choose what is measured, and are released. No table is predicted by a model fitted to it, so a more flexible
model gains no advantage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.engine import MeasuredTable
from stratsynth.adapters.shared.learner import Learner
from stratsynth.adapters.tilted.learner import TiltedLearner, drawn
from stratsynth.questions import Clique, NoisyTable, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.mechanisms import Public
    from stratsynth.models import TableModel
    from stratsynth.schema import Schema

MEMORY = 0.85
"""Factor on the past lead at each new answer: the own model improves with every table, and may overtake a prior that
was far ahead at first."""
MOST = 10.0
"""Largest change of the lead by one table: one pair of strongly dependent columns decides no more."""
EARLY, AT_ONCE = 5, 30.0
"""Number of predicted tables up to which the prior is left only if its lead is below -AT_ONCE: a small budget pays for
no more tables, and they say little about the rest of what a prior brings."""
EARNED = 5.0
"""Log-likelihood lead required per table after that: rows that predict no better than the own model only add the
randomness of their own sample."""
ASKED = 0.25
"""Upper limit of the required lead, as a fraction of half the squared distance between the two predictions in units of
noise: where noise hides their difference, a table is no evidence against the prior."""
SELDOM = 3
"""Rounds between fits of prior rows that do not lead: two fits a round take twice the time of one, and a prior once
behind rarely leads again."""
JUDGED, DECIDED = 10, 30.0
"""Number of predicted tables from which on the prior is given up if its log-likelihood lead is below -DECIDED."""
ROWS, LAST_ROWS = 4_000, 15_000
"""Largest number of own-model rows added to the prior's, between rounds and in the last fit."""
FEWEST = 1_000
"""Smallest such number; between the limits it equals the number of prior rows."""
SURE = 5.0
"""Largest misfit of a prior that is judged once, in standard deviations of the misfit that noise alone makes."""
LEFT = 0.2
"""Largest fraction of the deviation from independence of a tree's pairs that a prior judged once may leave unexplained:
a fitted tree leaves none of it, but more of all other pairs."""


@dataclass(kw_only=True)
class Arbiter(Learner[Any]):
    """The prior's rows and the mechanism's own learner, fitted to one list of tables."""

    own: Learner[Any]
    """Learner of the mechanism's own model."""
    tilted: TiltedLearner
    """Learner of the prior's rows."""
    lead: float = 0.0
    """Discounted log-likelihood ratio of the answers, prior's rows over own model; each table counts for at most `MOST`
    either way."""
    due: float = field(default=0.0, init=False)
    """Lead required of the prior's rows: at most `EARNED` for each table, with the same discount."""
    _seen: int = field(default=0, init=False)
    """Number of tables taken in."""
    _judged: int = field(default=0, init=False)
    """Number of tables that both have predicted."""
    _behind: int = field(default=0, init=False)
    """Number of fits since the prior's rows led."""

    def __post_init__(self) -> None:
        """Give both learners the arbiter's list of tables, so that a table added to it is theirs too."""
        self.own.tables = self.tilted.tables = self.tables

    @property
    def leader(self) -> Learner[Any]:
        """Learner whose model is used: the prior's rows' while their lead is large enough, else the own one."""
        return self.tilted if self.lead >= (self.due if self._judged > EARLY else -AT_ONCE) else self.own

    @property
    def decided(self) -> bool:
        """True if the prior is so far behind that it is given up, which saves its fits."""
        return self._judged >= JUDGED and self.lead < -DECIDED

    @property
    def model(self) -> Any:
        """Model of the leader as of its last fit: a `TiltedRows` or the own learner's."""
        return self.leader.model

    def fit(self, *, last: bool = False) -> Program[None]:
        """Program that judges both by new tables, then fits both; prior rows only while they lead, or each `SELDOM`-th.

        The own model's last fit is long only if it is the one released.
        """
        yield from self.tilted.liken()
        new, self._seen = self.tables[self._seen :], len(self.tables)
        if len(new) < len(self.tables) and not self.decided:  # only learners that were fitted before have a prediction
            cliques = [table.clique for table in new]
            self.judge(new, self.tilted.marginals(cliques), self.own.marginals(cliques))
        if last:  # measured tables require an earned lead; what is released only needs not to be behind
            self.due = 0.0
        leads = self.leader is self.tilted
        yield from self.own.fit(last=last and not leads)
        self._behind = 0 if leads else self._behind + 1
        # rows that do not lead are refitted seldom, and not at all once given up
        if leads or not (last or self.decided or self._behind % SELDOM):
            _lend(self.tilted, self.own.model, LAST_ROWS if last else ROWS)
            yield from self.tilted.fit(last=last)

    def judge(
        self, tables: Sequence[MeasuredTable], mine: Sequence[NDArray[Any]], other: Sequence[NDArray[Any]]
    ) -> None:
        """Update the prior's lead by `tables` new to both models.

        `mine` are the arrays of their cells' probabilities by the prior, `other` those by the own model.
        """
        for table, here, there in zip(tables, mine, other, strict=True):
            # log-likelihood ratio of the two predictions under Gaussian noise
            gain = misfit(table, there * self.total) - misfit(table, here * self.total)
            apart = _halved(table, (there - here) * self.total)
            self._judged += 1
            due = min(EARNED, ASKED * apart) if self._judged > EARLY else 0.0
            # discounted sum of log-likelihood ratios, one table's contribution clipped
            self.lead = MEMORY * self.lead + min(max(gain, -MOST), MOST)
            self.due = MEMORY * self.due + due

    def marginals(self, cliques: Sequence[Clique]) -> Sequence[NDArray[np.floating[Any]]]:
        """Return a sequence of arrays, one a clique: probabilities of its cells by the model in the lead."""
        return self.leader.marginals(cliques)

    def fitting(self, cliques: Mapping[Clique, float]) -> dict[Clique, float]:
        """Return those of `cliques`, candidates -> weight, that the own model can take in: it may go on alone."""
        return self.own.fitting(cliques)

    def stratum(self, public: Public, prior: float) -> Program[Learner[Any]]:
        """Program on public facts that returns a stratum's learner, made by the leader's `stratum`.

        `prior` is the leader's weight in it, in records.
        """
        return (yield from self.leader.stratum(public, prior))

    def conditioned(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> Any:
        """Return the leading model with allowed levels alone, in the columns of `schema`, which has no others.

        `levels` is column -> numbers of the levels allowed; a column it lacks keeps all.
        """
        return self.leader.conditioned(schema, levels)


def arbitrated(own: Learner[Any], public: Public) -> Learner[Any]:
    """Return an `Arbiter` between the learner `own` and the prior's rows; `own` itself without a prior of all columns.

    The prior is one of the public facts.
    """
    if public.prior is None or public.prior.lacking or not public.schema.names:
        return own
    tilted = TiltedLearner.of(public, size=own.size, settled=own.settled)
    return Arbiter(schema=own.schema, size=own.size, settled=own.settled, own=own, tilted=tilted, tables=own.tables)


def against(
    own: Learner[Any], public: Public, first: int, foretell: Callable[[Sequence[Clique]], Sequence[NDArray[np.float64]]]
) -> Program[Arbiter | None]:
    """Program that judges a prior once, after all tables: returns an `Arbiter`, or None if `own` goes on alone.

    The own model has no prediction of the new tables, so the prior must earn its lead otherwise: of the tables' squared
    distance from the independent prediction, beyond their noise, it may leave `LEFT`, or as much as noise alone may
    make.

    Args:
        own: The mechanism's learner, which has all tables and is not fitted yet.
        public: Public facts of the fit.
        first: Number of tables known when the others were requested.
        foretell: Function from cliques to their tables of probabilities by the mechanism's own model, fitted to the
            first ones alone.
    """
    arbiter = arbitrated(own, public)
    if not isinstance(arbiter, Arbiter):
        return None
    tilted, every = arbiter.tilted, arbiter.tables
    tilted.tables = every[:first]
    yield from tilted.fit()
    new = every[first:]
    cliques = [table.clique for table in new]
    noise = 0.5 * sum(counted(table) for table in new)  # expectation of the misfits under noise alone
    mine, other = (
        sum(misfit(t, q * arbiter.total) for t, q in zip(new, said, strict=True)) - noise
        for said in (tilted.marginals(cliques), foretell(cliques))
    )
    tilted.tables = every
    # the prior lost: the own model goes on alone
    if mine > max(LEFT * other, SURE * math.sqrt(noise)):
        return None
    yield from own.fit()
    _lend(tilted, own.model, LAST_ROWS)
    yield from tilted.fit(last=True)
    return arbiter


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


def counted(table: MeasuredTable) -> int:
    """Return the number of a table's cells that count in judging: all, or those in its mask."""
    return int(table.values.size if table.counted is None else table.counted.sum())


def misfit(table: MeasuredTable, foretold: NDArray[np.floating[Any]]) -> float:
    """Return half the squared distance of a table from the array `foretold` (in records), over its noise variance."""
    return _halved(table, table.values - foretold)


def _halved(table: MeasuredTable, off: NDArray[np.floating[Any]]) -> float:
    """Return half the sum of squares of `off`, an array in records, over a table's variance; of cells that count."""
    flat = off.ravel() if table.counted is None else off[table.counted]
    return 0.5 * float(flat @ flat) / table.sigma**2
