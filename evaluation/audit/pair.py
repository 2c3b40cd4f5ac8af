"""Recorded run and its worst neighbour: two tables, and the questions whose answers differ between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import IN_RHO, Budget, Currency, Neighbours
from stratsynth.accounting.charges import Spending
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.errors import Unsupported
from stratsynth.evaluation.audit.audited import AuditedAnswers, unlimited_allotment
from stratsynth.evaluation.audit.claims import ASSUMED
from stratsynth.evaluation.audit.likelihood import Transcript, divergence
from stratsynth.mechanisms import Mechanism
from stratsynth.questions import Choose
from stratsynth.testing import World, worlds
from stratsynth.testing.privacy_loss import exact_answers, privacy_loss
from stratsynth.testing.record import Run, record
from stratsynth.testing.worlds import MOST_ROWS

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.evaluation.audit.broken import Breakage
    from stratsynth.questions.reading import Rows

Build = Callable[[World], Mechanism[Any]]
PROBE = 50
"""Number of runs that are timed."""
ROUNDS = 3.6
"""Draws of an audit with its controls and pilots, as a multiple of its honest runs."""


def recorded(build: Build, world: World | None, budget: Budget) -> tuple[World, Run, pd.DataFrame]:
    """(World, recorded Run, frame of its rows): a first fit, in this budget, of the mechanism that `build` makes.

    `build` is a function from a World to a Mechanism. The world is `world`, or the first where anything is asked;
    Unsupported if there is none.
    """
    why, rng = "it asked nothing", np.random.default_rng()
    for candidate in [world] if world is not None else list(worlds()):
        for kind in ("any", "empty"):
            rows = candidate.table(rng, kind)
            while kind == "any" and len(rows) < MOST_ROWS // 4:  # with few rows, an exchange may change nothing
                rows = candidate.table(rng, kind)
            first = record(build(candidate), candidate, rows, budget)
            # a Poisson sample's likelihood is known for an empty table and one record only
            if first.failure or not first.charges:
                why = first.failure or why
            elif kind == "empty" or first.charges[0].currency != Currency.SAMPLED:
                return candidate, first, rows
    raise Unsupported(f"audit: the mechanism could not be fitted in a small world: {why}.")


@dataclass(frozen=True, eq=False)
class NeighbouringTables:
    """Two neighbouring tables and the part of a transcript that can tell them apart."""

    here: Rows
    """Recorded table."""
    there: Rows
    """Neighbour of the recorded table."""
    run: Run
    """Recorded run."""
    budget: Budget
    """Budget of the run."""
    cost: Fraction
    """Privacy cost of the exact answers' difference, in rho; only for zcdp."""
    information: float
    """Kullback-Leibler divergence between the answers on the two tables; at most the cost, and only for zcdp."""
    noisy: float
    """Divergence of all answers but choices."""
    transcript: Transcript
    """Questions whose answers differ."""

    @classmethod
    def worst(cls, world: World, first: Run, base: pd.DataFrame, budget: Budget, number: int) -> NeighbouringTables:
        """NeighbouringTables: frame `base`, on which the Run `first` was recorded, and the neighbour told apart best.

        Of `number` candidates, drawn in a world for the budget's notion; Unsupported if no exact answer differs on any
        of them.
        """
        rng, neighbours = np.random.default_rng(), budget.neighbours
        here = load_rows(world.schema, open_source(base))
        others = (_neighbour(world, base, rng, neighbours) for _ in range(number))
        return cls.among(here, (load_rows(world.schema, open_source(rows)) for rows in others), first, budget)

    @classmethod
    def among(cls, here: Rows, others: Iterable[Rows], first: Run, budget: Budget) -> NeighbouringTables:
        """NeighbouringTables: `here`, on whose rows the Run `first` was recorded, and that of `others` told apart best.

        Others are neighbours in the budget's notion; Unsupported if no exact answer differs on any of them.
        """
        neighbours = budget.neighbours
        asked = [a for batch in first.batches for a in batch]
        answers: Sequence[Any] = [answer for given in first.answers for answer in given]
        exact = exact_answers(here, asked)
        most, told, noise, there = Fraction(-1), -1.0, 0.0, here
        for rows in others:
            found = list(zip(asked, exact, exact_answers(rows, asked), answers, strict=True))
            costs = [privacy_loss(a, one, two, neighbours, answer) for a, one, two, answer in found]
            noisy, tells = 0.0, 0.0
            for (a, one, two, _), cost in zip(found, costs, strict=True):
                if isinstance(a.question, Choose):
                    tells += divergence(a.question, a.schema, one, two, neighbours)
                else:
                    noisy += float(cost)
            tells += noisy
            if tells > told:
                most, told, noise, there = sum(costs, Fraction(0)), tells, noisy, rows
        transcript = Transcript.of(asked, exact, exact_answers(there, asked), neighbours)
        if not transcript.asked:
            raise Unsupported("audit: no neighbouring table was found on which any answer differs.")
        return cls(here, there, first, budget, most, told, noise, transcript)

    @property
    def currency(self) -> Currency:
        """Currency (zCDP or another) of the run's first charge."""
        return self.run.charges[0].currency

    def draw(self, breakage: Breakage | None, runs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw two arrays (assumed shares + 1, `runs`) of log-likelihood ratios: this table's, its neighbour's.

        A `breakage` makes the driver faulty; None for the honest one.
        """
        details = self.run.charges[0].details
        reserved = unlimited_allotment(
            self.currency, self.budget.neighbours, noise=details.get("noise"), rate=details.get("rate")
        )
        shares = np.array(ASSUMED if self.currency == Currency.SAMPLED else ASSUMED[:1])
        both = [AuditedAnswers(rows, breakage, reserved) for rows in (self.here, self.there)]
        one, two = (self.transcript.draw(audited, runs, shares) for audited in both)
        return one, two

    def affordable(self, seconds: float) -> int:
        """Number of runs, at least `PROBE`, that an audit with controls can make in about `seconds`; timed here."""
        self.draw(None, 1)
        start = time.perf_counter()
        self.draw(None, PROBE)
        return max(PROBE, round(seconds / ROUNDS * PROBE / (time.perf_counter() - start)))

    def note(self) -> str:
        """Sentence on the recorded questions that differ on the tables, and for zCDP on the share of rho they use."""
        asked = sum(len(batch) for batch in self.run.batches)
        text = f"{len(self.transcript.asked)} of {asked} recorded questions differ between the two tables"
        if self.currency in IN_RHO:
            spent = Spending(self.budget.neighbours, self.run.charges).spent()
            text += f", and they use {float(self.cost / spent):.0%} of what was charged"
            text += f" and show {self.information / float(spent):.0%}" * (self.information < 0.995 * float(self.cost))
        return text


def _neighbour(world: World, base: pd.DataFrame, rng: Generator, neighbours: Neighbours) -> pd.DataFrame:
    """Frame that neighbours `base`: a world's record, by `rng`, more or fewer under add/remove, or exchanged."""
    if neighbours == Neighbours.ADD_REMOVE:
        return world.neighbour(base, rng)
    import pandas as pd

    kept = base.drop(index=int(rng.integers(len(base)))) if len(base) else base
    return pd.concat([kept, world.table(rng, "one").head(len(base))], ignore_index=True)
