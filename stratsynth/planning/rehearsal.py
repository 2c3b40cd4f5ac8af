"""Rehearsal of a fit on simulated answers: its questions, whether they can be paid, and about how long it takes.

Every question is checked and charged, to an account of its own, as in a fit. So whatever a schema, a budget and
settings cannot pay is refused here, before anything is reserved: a plan and a fit both begin with it. Of strata of
which the same is known, one runs its program, and its charges and work count for each of them. Their answers are
equal, whatever other strata ask: each path has made-up noise from one seed, about an evenly spread table.

The time is right within a factor of a few, which tells minutes from days. Its constants were measured on one core of
an ordinary server with MST, AIM, GEM and independent columns: 20 to 200 columns, 20,000 to ten million rows. Large
cliques, many structural rules and `engine = "mbi"` can take longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.account import FitAccount
from stratsynth.accounting.exact import EXACT
from stratsynth.accounting.joined import entries
from stratsynth.accounting.standing import Standing
from stratsynth.accounting.units import per_unit
from stratsynth.driver.counting import MANY
from stratsynth.driver.lockstep import AnswerSource, Asked, run
from stratsynth.driver.private import Admits, bill
from stratsynth.errors import Unsupported
from stratsynth.files.outside import MAX_VALUES
from stratsynth.questions import Answer, Split
from stratsynth.questions.base import Seen, Setting
from stratsynth.questions.reading import Clique
from stratsynth.strata import StratumPath, label

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.charges import Charge
    from stratsynth.mechanisms import Prepared
    from stratsynth.models import Model
    from stratsynth.questions import Solver


LOOKED_AT = 4
"""Number of questions of a batch by which it is decided if the batch reads rows: strata run alike."""


class SimulatedAnswers(AnswerSource):
    """Answers that charge as the private ones do, and simulate tables whose cells are all equally full."""

    def __init__(
        self, account: FitAccount, size: Callable[[StratumPath], float], admits: Admits = lambda *_: None
    ) -> None:
        """Charge to `account`; `size` returns a path's public size, `admits` refuses what is not declared."""
        self._account = account
        self._size = size
        self._admits = admits
        self._represents: dict[StratumPath, tuple[StratumPath, ...]] = {(): ((),)}
        """Paths that each path with a running program stands for, its own included."""
        self._noise: dict[StratumPath, Generator] = {}
        self.moments = 0
        self.passes = 0
        """Number of batches that read rows: all but those whose tables are known from earlier ones."""
        self._known: set[tuple[StratumPath, Clique]] = set()
        self.seen: list[Seen] = []

    @property
    def exact(self) -> bool:
        """True if the fit spends in the currency `exact`."""
        return self._account.budget.accounting == EXACT

    def admit(self, asked: Asked) -> None:
        """Note the paths that each program of a split `asked` stands for.

        MechanismError for other questions that the mechanism has not declared.
        """
        split = asked.question
        if type(split) is not Split:
            self._admits(asked.path, split.needs())
            return
        for stratum in split.strata:  # which an earlier split may have had one by one
            self._represents.pop((*asked.path, stratum), None)
        for stratum in split.programs:
            strata = (stratum,) if split.alike is None else split.alike[stratum]
            self._represents[*asked.path, stratum] = tuple(
                (*above, one) for above in self.stands_for(asked.path) for one in strata
            )

    def __call__(self, asked: Sequence[Asked]) -> list[Answer]:
        """Charge the batch `asked` as a fit would, then return a list of made-up answers, one a question, in order."""
        budget = self._account.budget
        every = [replace(charge, path=path) for charge in bill(asked, budget) for path in self.stands_for(charge.path)]
        errors = (a.question.tv_error(Setting(a.schema, budget.neighbours)) for a in asked)
        distance = math.fsum(len(self.stands_for(a.path)) * error for a, error in zip(asked, errors, strict=True))
        self._account.charge(self.moments, "", every, distance)
        self.moments += 1
        self.passes += sum(map(self._reads, asked[:LOOKED_AT])) > 0
        return [self._answer(a) for a in asked]

    def stands_for(self, path: StratumPath) -> tuple[StratumPath, ...]:
        """Return a tuple of the paths of all strata for which this path's questions stand, as they are asked alike.

        It is (path,) if they stand for its own stratum alone.
        """
        return self._represents.get(path) or (path,)

    def first(self, path: StratumPath) -> StratumPath:
        """Return the path of the stratum that is asked in place of this one: itself if none is."""
        return self._first.get(path, path)

    @cached_property
    def _first(self) -> dict[StratumPath, StratumPath]:
        return {one: path for path, strata in self._represents.items() for one in strata}

    def _reads(self, asked: Asked) -> bool:
        """True if the question `asked` needs a read that no earlier one made.

        Its tables are noted, if they would be kept.
        """
        wanted = asked.question.wanted()
        tables = {(asked.path, clique) for clique in wanted.cliques}
        new = bool(tables - self._known or wanted.sums or wanted.columns or wanted.frame)
        if wanted.again or wanted.once:
            self._known |= tables
        return new

    def _answer(self, asked: Asked) -> Answer:
        at = Setting(asked.schema, self._account.budget.neighbours)
        if asked.path not in self._noise:
            self._noise[asked.path] = np.random.default_rng(0)
        answer, seen = asked.question.simulate(at, asked.path, self._size(asked.path), self._noise[asked.path])
        self.seen.append(seen)
        return answer


UNKNOWN = 10_000
"""Number of simulated records where no size is declared."""
READ = 80e-9
"""Time in seconds to read and encode one value of one row."""
COUNT, COUNT_WIDE = 3e-9, 5e-10
"""Time in seconds to count one row in one table: of few rows, and of as many as are counted in wide tables."""
WEIGH = 1e-5
"""Time in seconds to score one candidate in one choice, its question's check and record included."""
CELL = 1e-8
"""Time in seconds for one cell of a candidate in one choice."""
FIT = 0.05
"""Time in seconds to fit a model of FEW records and 25 columns; where answers decide what is asked, once after every
choice."""
FEW, MOST_TIMES = 1_500, 20.0
"""Number of records up to which a fit takes FIT, and the largest factor on it: above, time grows in proportion, as
noise matters less and the fit is closer."""
LONG = 3600
"""Duration in seconds from which a fit prints its estimate before it reserves."""
ENTRY, STRATUM, COLUMN = 20, 25, (2, 3)
"""Numbers of JSON values: of a certificate's entry of charges, of the other facts about a stratum, and more in both for
each column of strata."""
MOST_VALUES = MAX_VALUES * 95 // 100
"""Largest estimated number of JSON values of a certificate: some percent below the limit, for the estimate's error."""
MOST_DAYS = 100
"""Largest estimated duration in days: a longer fit is refused before it is charged."""


@dataclass(frozen=True)
class Rehearsal:
    """Result of one rehearsal: charges, questions and model."""

    prepared: Prepared
    account: FitAccount
    """Account that was charged, with no data behind it."""
    answers: SimulatedAnswers
    """Simulated answers, with a record of all questions."""
    model: Model | None
    """Model that the rehearsal returned; None where a mechanism leaves its models out."""
    fits: int
    """Number of models that were fitted, coarsely."""

    @property
    def moments(self) -> int:
        """Number of steps of a progress bar: answers, those of all strata at once being one, and fits of a model."""
        return self.answers.moments + self.fits

    @cached_property
    def seconds(self) -> float:
        """Estimated duration of the fit on one core, reading included, in seconds."""
        prepared = self.prepared
        size, columns = rows_of(prepared), len(prepared.public.schema.names)
        choices, candidates = dict[str, int](), dict[str, frozenset[tuple[tuple[str, ...], int]]]()
        tables: dict[str, set[tuple[str, ...]]] = {}
        times: dict[str, int] = {}
        for one in self.answers.seen:
            where = label(one.path)
            times[where] = len(self.answers.stands_for(one.path))
            here = tables.setdefault(where, set())
            here.update(clique for clique, _, _ in one.cliques)
            here.update(clique for clique, _ in one.candidates)
            if one.candidates:  # a rehearsal may leave candidates out of all choices but the first
                choices[where] = choices.get(where, 0) + 1
                candidates[where] = max(candidates.get(where, frozenset()), one.candidates, key=len)
        cells = {where: sum(n for _, n in those) for where, those in candidates.items()}
        weighed = sum(times[w] * n * (len(candidates[w]) * WEIGH + cells[w] * CELL) for w, n in choices.items())
        # strata divide the rows among them: each row is counted in the tables of everybody and of one stratum
        inside = max((len(t) for where, t in tables.items() if where), default=0)
        counted = len(tables.get("", ())) + inside
        fits = self.fits + (sum(times[w] * n for w, n in choices.items()) if prepared.mechanism.adaptive else 0)
        wide = size / max(1, sum(times.values())) >= MANY
        longer = min(MOST_TIMES, max(1.0, size / max(1, fits) / FEW)) * max(1.0, columns / 25)
        return size * (columns * READ + counted * (COUNT_WIDE if wide else COUNT)) + weighed + fits * FIT * longer


def rehearse(prepared: Prepared) -> Rehearsal:
    """Return the Rehearsal of a prepared fit, run on simulated answers: its charges, questions and model.

    Reads no private data and reserves nothing.

    Raises:
        StratsynthError: Whatever the fit would be refused for after its reservation.
    """
    from stratsynth.driver.solving import together
    from stratsynth.questions import usable

    how, public, solved = prepared.mechanism, prepared.public, list[int]()
    standing = Standing(None, None, prepared.budget.epsilon, 1)
    allot, opening = prepared.allot, prepared.allot.opening
    account = FitAccount(
        prepared.budget.plain,
        per_unit(allot.reserved),
        standing,
        0,
        prepared.caps,
        None if opening is None else per_unit(opening),
    )
    answers = SimulatedAnswers(account, lambda path: round(size_of(path, prepared)), prepared.admit)

    def solve(solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]) -> Sequence[Any]:
        solved.append(sum(len(answers.stands_for(path)) for path in paths))
        return together(solver, problems if solver.hasty is None else list(map(solver.hasty, problems)), paths)

    if opening is not None:
        run(usable(opening.amount, allot.currency), public.schema, answers)
        account.reserve_rest()
    steps = how.rehearsal(public, replace(allot), np.random.default_rng(0))
    model = run(steps, public.schema, answers, solve)
    return Rehearsal(prepared, account, answers, model, sum(solved))


def size_of(path: StratumPath, prepared: Prepared) -> float:
    """Return the number of records, a float, that a Prepared fit expects at `path`, a tuple of strata, by public facts.

    It is the public size, or UNKNOWN, a number, if none is known, times the public share of each stratum, 1 where none
    is known.
    """
    shares = prepared.strata.shares if prepared.strata is not None else {}
    size = UNKNOWN if prepared.public.size is None else prepared.public.size
    return math.prod((shares.get(stratum, 1.0) for stratum in path), start=float(size))


def rows_of(prepared: Prepared) -> float:
    """Return the estimated number of rows of a prepared fit, a float: its public size over the mean row weight.

    UNKNOWN, a number, stands for a size that is not known. A declared size of weighted rows is of people. Without a
    declared mean, half of the largest weight is taken for it.
    """
    size, weight = prepared.public.size or UNKNOWN, prepared.public.schema.row_weight
    return size / (1.0 if weight.column is None else weight.mean or max(1.0, weight.most / 2))


def check_effort(estimate: float) -> float:
    """Return `estimate`, the seconds of a fit, unchanged; refuse a fit that would take longer than `MOST_DAYS`.

    Raises:
        Unsupported: More than `MOST_DAYS`.
    """
    if estimate > MOST_DAYS * 86400:
        raise Unsupported(
            f"this fit would take {about(estimate)}: fit fewer columns, a workload of those marginals that matter, or "
            "fewer strata."
        )
    return estimate


def check_charges(charges: Sequence[Charge]) -> None:
    """Refuse a fit whose certificate, which lists every charge, would be too large to be read again.

    Charges of one stratum at one price are one entry there, and of the candidates of each choice a number.

    Raises:
        Unsupported: A certificate of more than `MOST_VALUES`.
    """
    strata = len({charge.path for charge in charges})
    listed = certificate_values(charges)
    if listed > MOST_VALUES:
        raise Unsupported(
            f"this fit would be charged {len(charges):,} times in {strata:,} strata, and a certificate that lists so "
            f"many charges is too large to be read again, at more than {MOST_VALUES:,} values: declare fewer strata, "
            "or take a mechanism that asks each of them less, such as pooled or independent."
        )


def certificate_values(charges: Sequence[Charge]) -> int:
    """Return the estimated number of JSON values of a certificate that lists these charges, in its shortest form."""
    deepest = max((sum(len(stratum.items) for stratum in charge.path) for charge in charges), default=0)
    strata = len({charge.path for charge in charges})
    entry, stratum = (least + more * deepest for least, more in zip((ENTRY, STRATUM), COLUMN, strict=True))
    return entry * entries(charges) + len(charges) + stratum * strata


def about(estimate: float) -> str:
    """Return a number of seconds, `estimate`, as rounded words, such as "about 3 hours".

    "less than a minute" below 60.
    """
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if estimate >= size:
            number = estimate / size
            rounded = round(number) if number < 10 else round(number, -1) if number < 1000 else round(number, -3)
            return f"about {rounded:,.0f} {unit}{'s' if rounded > 1 else ''}"
    return "less than a minute"
