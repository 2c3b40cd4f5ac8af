"""The prior's rows or the mechanism's own model alone: whichever foretells paid answers better.

Both are fitted to the same paid tables; beside the prior's rows stand rows that the own model has drawn, so that the
two are one model where the prior is partly right. Before a new table is taken in, both say what it should be, and the
answer decides: the likelihood ratio of the two, by the table's noise, is added up over the tables, the last ones
counting most. As long as the prior earns it, the prior's rows lead, say what is worth measuring, and are released.
No table is judged by a model that knew it, so that a model which merely bends more easily gains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.engine import Measured
from stratsynth.adapters.shared.learner import Learner
from stratsynth.adapters.tilted.learner import TiltedLearner, drawn
from stratsynth.questions import Clique, NoisyTable, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.mechanisms import Public
    from stratsynth.models import TableModel
    from stratsynth.schema import Schema

MEMORY = 0.85
"""What an answer counts when the next has come: the mechanism's model gets better with every table, and a prior that
was far ahead of it at first may have been overtaken."""
MOST = 10.0
"""What one table may add to the lead, or take from it: one pair of columns that always go together says no more."""
EARLY, AT_ONCE = 5, 30.0
"""Until how many tables were foretold by both it takes more to leave the prior, and how far it must be behind then: a
small budget pays for no more tables, and they say little of all else that a prior brings."""
EARNED = 5.0
"""By how much the prior's rows must then be ahead in each table, as a logarithm of likelihoods: rows that foretell no
better than the mechanism's model only add the chance of who is among them."""
ASKED = 0.25
"""No more of it is asked than this part of what it would be on average if the prior's rows were right: where noise
hides how the two differ, a table says nothing against them."""
SELDOM = 3
"""While the prior's rows do not lead, they are fitted anew only after so many rounds: two fits a round take twice the
time of one, and what has been left seldom comes back."""
JUDGED, DECIDED = 10, 30.0
"""After how many tables the prior is given up, and how far it must be behind, as a logarithm of likelihoods."""
ROWS, LAST_ROWS = 4_000, 15_000
"""How many rows of the mechanism's own model stand beside the prior's at most, between rounds and in the last fit."""
FEWEST = 1_000
"""How many there are at least; in between, as many as the prior has."""
SURE = 5.0
"""By how many standard deviations of what noise makes of the distances a prior may be off, judged once."""
LEFT = 0.2
"""The part of what makes a tree's pairs differ from independence that a prior may leave unexplained, where it is judged
once: the tree explains all of that, and about as much of other pairs as this allows."""


@dataclass(kw_only=True)
class Arbiter(Learner[Any]):
    """Two learners of the same tables."""

    own: Learner[Any]
    """The mechanism's own."""
    tilted: TiltedLearner
    """The prior's rows."""
    lead: float = 0.0
    """The logarithm of how many times likelier the answers are by the prior's rows than by the mechanism's model, no
    table counting for more than `MOST`; those of long ago count less."""
    due: float = field(default=0.0, init=False)
    """What `lead` has to be, so that the prior's rows lead: at most `EARNED` for each table, in the same way."""
    _seen: int = field(default=0, init=False)
    """How many tables have been looked at."""
    _judged: int = field(default=0, init=False)
    """How many tables both have foretold."""
    _behind: int = field(default=0, init=False)
    """How many fits ago the prior's rows led."""

    def __post_init__(self) -> None:
        """One list of tables for all."""
        self.own.tables = self.tilted.tables = self.tables

    @property
    def leader(self) -> Learner[Any]:
        """Whose model is used."""
        return self.tilted if self.lead >= (self.due if self._judged > EARLY else -AT_ONCE) else self.own

    @property
    def decided(self) -> bool:
        """Whether so much speaks against the prior that it is given up, which saves its fits."""
        return self._judged >= JUDGED and self.lead < -DECIDED

    @property
    def model(self) -> Any:
        """The leader's model."""
        return self.leader.model

    def fit(self, *, last: bool = False) -> Program[None]:
        """Judge both by the new tables, then fit both, the prior's rows only while they may be used, or seldom.

        The last fit of the mechanism's own model is a long one only where it is released.
        """
        yield from self.tilted.liken()
        new, self._seen = self.tables[self._seen :], len(self.tables)
        if len(new) < len(self.tables) and not self.decided:  # both were fitted before
            cliques = [table.clique for table in new]
            self.judge(new, self.tilted.marginals(cliques), self.own.marginals(cliques))
        if last:  # what is measured has to be earned, and what is released only lost
            self.due = 0.0
        leads = self.leader is self.tilted
        yield from self.own.fit(last=last and not leads)
        self._behind = 0 if leads else self._behind + 1
        if leads or not (last or self.decided or self._behind % SELDOM):
            _lend(self.tilted, self.own.model, LAST_ROWS if last else ROWS)
            yield from self.tilted.fit(last=last)

    def judge(
        self, tables: Sequence[Measured], mine: Sequence[NDArray[Any]], other: Sequence[NDArray[Any]]
    ) -> None:  # fmt: skip
        """Compare what the prior's rows and the mechanism's own model foretold of tables that neither knew."""
        for table, here, there in zip(tables, mine, other, strict=True):
            gain = misfit(table, there * self.total) - misfit(table, here * self.total)
            apart = _halved(table, (there - here) * self.total)
            self._judged += 1
            due = min(EARNED, ASKED * apart) if self._judged > EARLY else 0.0
            self.lead = MEMORY * self.lead + min(max(gain, -MOST), MOST)
            self.due = MEMORY * self.due + due

    def marginals(self, cliques: Sequence[Clique]) -> Sequence[NDArray[np.floating[Any]]]:
        """The leader's."""
        return self.leader.marginals(cliques)

    def fitting(self, cliques: Mapping[Clique, float]) -> dict[Clique, float]:
        """What the mechanism's own model could take in: it may have to go on alone."""
        return self.own.fitting(cliques)

    def stratum(self, public: Public, prior: float) -> Program[Learner[Any]]:
        """A stratum starts from the leader."""
        return (yield from self.leader.stratum(public, prior))

    def given(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> Any:
        """What the leader says of a stratum."""
        return self.leader.given(schema, levels)


def arbitrated(own: Learner[Any], public: Public) -> Learner[Any]:
    """A mechanism's learner, beside the prior's rows where there is a prior."""
    if public.prior is None or public.prior.lacking or not public.schema.names:
        return own
    tilted = TiltedLearner.of(public, size=own.size, settled=own.settled)
    return Arbiter(schema=own.schema, size=own.size, settled=own.settled, own=own, tilted=tilted, tables=own.tables)


def against(
    own: Learner[Any], public: Public, first: int, foretell: Callable[[Sequence[Clique]], Sequence[NDArray[np.float64]]]
) -> Program[Arbiter | None]:
    """Judge once, where a mechanism measures in one go: the prior's rows lead, or None, and `own` goes on alone.

    What the mechanism's own model will make of the new tables cannot be foretold, as it knows nothing of them before.
    So the prior has to have earned its lead: of the tables' distance from what the mechanism's model says, beyond their
    noise, it must leave `LEFT` at most, or no more than noise may have made.

    Args:
        own: The mechanism's learner, which has all tables and is not fitted yet.
        public: What is known.
        first: How many tables were known when the others were asked for.
        foretell: What the mechanism's own model says of the others, in probabilities, when it knows the first alone.
    """
    arbiter = arbitrated(own, public)
    if not isinstance(arbiter, Arbiter):
        return None
    tilted, every = arbiter.tilted, arbiter.tables
    tilted.tables = every[:first]
    yield from tilted.fit()
    new = every[first:]
    cliques = [table.clique for table in new]
    noise = 0.5 * sum(counted(table) for table in new)  # what noise is expected to make of the misfits
    mine, other = (
        sum(misfit(t, q * arbiter.total) for t, q in zip(new, said, strict=True)) - noise
        for said in (tilted.marginals(cliques), foretell(cliques))
    )
    tilted.tables = every
    if mine > max(LEFT * other, SURE * math.sqrt(noise)):
        return None
    yield from own.fit()
    _lend(tilted, own.model, LAST_ROWS)
    yield from tilted.fit(last=True)
    return arbiter


def tilted_to(
    tables: Sequence[NoisyTable], public: Public, own: TableModel, settled: float | None = None
) -> Program[TiltedLearner | None]:
    """The prior's rows, fitted to tables that say nothing about which model is better; None without a prior.

    Args:
        tables: The paid answers.
        public: What is known.
        own: The mechanism's own model, some of whose rows stand beside the prior's.
        settled: The number of records, where it was estimated before.
    """
    if public.prior is None or public.prior.lacking or not public.schema.names:
        return None
    known = [Measured.of(table) for table in tables]
    tilted = TiltedLearner.of(public, size=public.size, settled=settled, tables=known)
    yield from tilted.liken()
    _lend(tilted, own, ROWS)
    yield from tilted.fit(last=True)
    return tilted


def _lend(tilted: TiltedLearner, own: TableModel, most: int) -> None:
    tilted.lend(drawn(own, min(tilted.worthwhile(most), max(FEWEST, tilted.base.size)), tilted.schema))


def counted(table: Measured) -> int:
    """The number of cells that count."""
    return int(table.values.size if table.counted is None else table.counted.sum())


def misfit(table: Measured, foretold: NDArray[np.floating[Any]]) -> float:
    """Half the squared distance of a table from what was foretold, in units of its noise."""
    return _halved(table, table.values - foretold)


def _halved(table: Measured, off: NDArray[np.floating[Any]]) -> float:
    """Half a squared distance in the cells that count, in units of a table's noise."""
    flat = off.ravel() if table.counted is None else off[table.counted]
    return 0.5 * float(flat @ flat) / table.sigma**2
