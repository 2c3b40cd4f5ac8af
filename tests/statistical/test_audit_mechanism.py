"""The audit of mechanisms: one's own, of every currency and kind of question, and registered ones."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from helpers.audits import judged_twice
from helpers.toys import Toy
from stratsynth.accounting.budget import Budget, Neighbours
from stratsynth.adapters import Independent
from stratsynth.errors import Unsupported
from stratsynth.evaluation.audit import audit_mechanism
from stratsynth.models import Model, State
from stratsynth.questions import Choose, Columns, Counts, Distance, Total, choose, counts, total

LONG = 1e9
"""Seconds that an audit may take: on a busy machine it makes no fewer runs than it was told."""


def audited(mechanism, **settings):
    return judged_twice(lambda: audit_mechanism(mechanism, seconds=LONG, **settings))


class Result(Model):
    """Numbers that were learned, and nothing that could be drawn."""

    def __init__(self, *numbers):
        self.numbers = [float(n) for n in numbers]

    def state(self):
        return State(self.numbers, {})

    @classmethod
    def from_state(cls, schema, state):
        return cls(*state.facts)

    @classmethod
    def combined(cls, schema, parts, weights):
        raise NotImplementedError


@dataclass(frozen=True)
class Picky(Toy):
    """Counts one way, chooses a pair and counts it."""

    name: ClassVar[str] = "picky"
    needs: ClassVar = frozenset({Counts, Choose})

    def steps(self, public, allot, rng):
        names = public.schema.names
        tables = yield from counts([(n,) for n in names], rho=0.4 * allot.rho)
        pairs = [(a, b) for a in names for b in names if a < b] or [(names[0],)]
        scores = [Distance(pair, np.zeros(public.schema.shape(pair))) for pair in pairs]
        best = yield from choose(scores, rho=0.2 * allot.rho)
        (pair,) = yield from counts([pairs[best]], rho=0.4 * allot.rho)
        return Result(tables[0].values.sum(), pair.values.sum())


@dataclass(frozen=True)
class Summing(Toy):
    """Sums a numeric column."""

    currency: str = "zcdp"
    name: ClassVar[str] = "summing"
    needs: ClassVar = frozenset({Counts, Total})

    def price(self, public, budget):
        if self.currency == "sampled":
            return budget.sampled(rate=0.5, steps=5)
        return budget.pure() if self.currency == "pure" else budget.zcdp()

    def steps(self, public, allot, rng):
        query = Columns(("AGE",), (20.0,), (10.0,), 1.0, "l1" if self.currency == "pure" else "l2")
        if self.currency == "sampled":
            last = None
            for _ in range(5):
                last = yield from total(query, noise=allot.noise, rate=0.5)
            return Result(last[0].values[0])
        price = {"rho" if self.currency == "zcdp" else "epsilon": allot.amount}
        (part,) = yield from total(query, **price)
        return Result(part.values[0])


FORGETFUL = []


@dataclass(frozen=True)
class Moody(Toy):
    """Returns something else every time."""

    name: ClassVar[str] = "moody"
    needs: ClassVar = frozenset({Counts})

    def steps(self, public, allot, rng):
        FORGETFUL.append(0)
        yield from counts(public.schema.oneways, rho=allot.rho)
        return Result(len(FORGETFUL))


@dataclass(frozen=True)
class Hopeless(Moody):
    """Cannot be fitted at all."""

    def price(self, public, budget):
        raise Unsupported("not here.")


def check(report, runs):
    """Nothing was found, and half the noise was caught; three quarters of it where that could be expected."""
    (found,) = report.audits
    assert report.passed, report.to_text()
    assert found.runs == runs
    assert found.verdict == "within"
    assert found.controls[0].state == "caught"
    return found


def test_a_stratified_mechanism_passes_and_its_loss_is_seen():
    """Alone it is audited by the command's test."""
    found = check(audited(Independent(), stratified=True, runs=10_000, tables=3), 10_000)
    assert (found.what, found.unit) == ("independent by GROUP", "mu")
    assert found.lower > 0.6 * found.claim
    assert found.controls[1].state == "caught"


def test_choices_and_tables_together():
    found = check(audited(Picky(), runs=8_000, tables=3), 8_000)
    assert found.unit == "sqrt(2 rho)"
    assert found.lower > 0.5 * found.claim
    assert "as epsilon at 1e-06" in found.note


def test_gaussian_sums():
    found = check(audited(Summing(), runs=3_000, tables=0), 3_000)
    assert found.unit == "mu"
    assert found.lower > 0.6 * found.claim


def test_the_other_notion_of_neighbour():
    budget = Budget(3, 1e-6, Neighbours.REPLACE)
    found = check(audited(Independent(), budget=budget, runs=5_000, tables=0), 5_000)
    assert found.lower > 0.6 * found.claim


def test_pure_epsilon():
    """Each single draw of Laplace noise on the fine grid takes a millisecond: a short run, with no controls."""
    (found,) = audited(Summing("pure"), runs=500, tables=0, controls=False).audits
    assert (found.unit, found.claim, found.verdict) == ("epsilon at 0", 3, "within")
    assert found.lower > 0.5


def test_poisson_samples():
    report = audited(Summing("sampled"), runs=600, tables=0)
    (found,) = report.audits
    assert found.verdict == "within"
    assert found.unit.startswith("epsilon at")
    assert found.controls[0].lower > 1.2 * found.controls[0].claim


def test_fewer_runs_are_made_when_time_is_short():
    """Nothing is demanded then of what so few runs cannot show."""
    report = judged_twice(lambda: audit_mechanism(Independent(), runs=10**9, seconds=0.5, tables=0))
    assert 50 <= report.audits[0].runs < 10**6
    assert report.passed
    assert not report.audits[0].controls[0].must or report.audits[0].controls[0].power > 0.999


@pytest.mark.slow
@pytest.mark.parametrize(("currency", "runs"), [("zcdp", 50_000), ("pure", 8_000), ("sampled", 20_000)])
def test_sums_at_length(currency, runs):
    found = check(audited(Summing(currency), runs=runs, tables=0), runs)
    assert found.lower > 0.6 * found.claim
    assert found.controls[1].state == "caught"


def test_replay_findings_are_part_of_the_report():
    report = audit_mechanism(Moody(), runs=500, tables=3, controls=False)
    assert not report.passed
    assert any("moody: result" in finding for finding in report.findings)
    assert "replay: moody" in report.to_text()


def test_a_mechanism_that_cannot_be_fitted_is_refused():
    with pytest.raises(Unsupported, match="not here"):
        audit_mechanism(Hopeless())
