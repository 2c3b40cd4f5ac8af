"""A new kind of question is one file: it is checked, planned, fitted, resumed and audited like any."""

import dataclasses
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stratsynth as ss
from helpers import small
from helpers.broken_kinds import joined, planted
from helpers.contract import caught, violations
from helpers.fits import OnStep
from helpers.ledgers import kinds
from helpers.noisy_maximum import Largest, Maximum, largest
from helpers.small import BUDGET, SCHEMA, SIZE
from helpers.toys import Toy
from stratsynth.accounting.budget import Neighbours
from stratsynth.adapters.independent import Product
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.fitting import fitted
from stratsynth.questions import admission
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Exact
from stratsynth.release.page.summary import summary
from stratsynth.testing import worlds
from stratsynth.testing.record import identical

ROUNDS = 4


@dataclass(frozen=True)
class Peaks(Toy):
    """Asks for every column's largest count, round by round, and believes it to be the first level's."""

    name: ClassVar[str] = "peaks"
    needs: ClassVar = frozenset({Largest})
    adaptive: ClassVar[bool] = False
    seen: list[Maximum] = dataclasses.field(default_factory=list, compare=False, metadata={"describe": False})

    def steps(self, public, allot, rng):
        names, rho = public.schema.names, allot.rho / ROUNDS
        odds = {}
        for _ in range(ROUNDS):
            for name in names:
                answer = yield from largest([name], rho=rho / len(names))
                self.seen.append(answer)
                weight = np.ones(public.schema.size(name))
                weight[0] = max(1, answer.value)
                odds[name] = weight / weight.sum()
        return Product(public.schema, odds)


class Restless(Peaks):
    """Says nothing of its course."""

    adaptive: ClassVar[bool] = True


@pytest.fixture(autouse=True)
def registered():
    """Join the class as its decorator would."""
    with joined(Largest):
        yield


def vanilla(world, rows):
    return Peaks()


def stratified(world, rows):
    return ss.Stratified(Peaks(), world.by, world.weights)


@pytest.mark.parametrize("build", [vanilla, stratified])
def test_it_passes_the_contract(build):
    assert violations(build) == []


tables = st.lists(st.integers(0, 5), min_size=2, max_size=6)


@given(tables, st.integers(0, 5), st.integers(0, 5), st.integers(1, 4))
def test_no_step_moves_it_by_more_than_a_rows_weight(cells, gone, new, weight):
    """Sensitivity that a charge states for each notion of neighbour: one row's weight, exchanged rows included."""
    here, schema = np.array(cells) * weight, replace(SCHEMA, row_weight=type(SCHEMA.row_weight)(weight))
    there, exchanged = here.copy(), here.copy()
    there[new % here.size] += weight
    if exchanged[gone % here.size]:
        exchanged[gone % here.size] -= weight
        exchanged[new % here.size] += weight
    question = Largest(("SEX",), 0.3)
    (charge,) = question.charges(schema, (), Neighbours.REPLACE)
    answer = Maximum(0, charge.details["sigma"])
    for neighbours, other in ((Neighbours.ADD_REMOVE, there), (Neighbours.REPLACE, exchanged)):
        assert charge.sensitivity[neighbours] == weight
        assert abs(int(here.max()) - int(other.max())) <= weight
        cost = question.cost(Setting(schema, neighbours), Exact([here]), Exact([other]), answer)
        assert cost <= charge.amount


def test_it_is_planned_and_fitted_at_the_same_price():
    plan = ss.plan(Peaks(), SCHEMA, BUDGET, declared_size=SIZE)
    release = ss.fit(Peaks(), small.table(), BUDGET)
    charges = ROUNDS * len(SCHEMA.names)
    assert plan.kinds == {"largest": {"charges": charges, "replace": 1.0}}
    assert plan.prices == release.certificate["prices"]
    assert plan.spent == pytest.approx(sum(charge["rho"] for charge in release.certificate["charges"]))
    assert [charge["kind"] for charge in release.certificate["charges"]] == ["largest"] * charges
    assert f"{charges} largest" in summary(release.certificate)
    assert len(release.sample(20)) == 20


def test_the_dearest_it_can_be_is_what_it_declares():
    """An exchange moves it no further than a row more, so whatever its course an exchange costs the same."""
    prices = ss.fit(Restless(), small.table(), BUDGET).certificate["prices"]
    assert prices["replace"] == prices["move"] == prices["add-remove"]


@pytest.mark.parametrize("how", [Peaks, lambda: ss.Stratified(Peaks(), ["SEX"], small.even(SCHEMA, "SEX"))])
@pytest.mark.parametrize("stop", [2, 5])
def test_an_interrupted_fit_is_given_the_same_answers_from_the_journal(how, stop, tmp_path):
    small.people().to_csv(tmp_path / "people.csv", index=False)
    ledger = tmp_path / "people.ledger"

    def opened():
        return ss.open_table(tmp_path / "people.csv", schema=SCHEMA, declared_size=SIZE, ledger=ledger)

    moments = iter(range(stop - 1))

    def halt():
        if next(moments, None) is None:
            raise KeyboardInterrupt

    first, second = how(), how()
    with pytest.raises(KeyboardInterrupt), fitted(first, opened(), BUDGET, observer=OnStep(halt)):
        pass
    charged = kinds(ledger)
    assert charged == ["ledger", "reserve", *["charge"] * stop]
    with fitted(second, opened(), BUDGET) as release:
        assert kinds(ledger)[: len(charged)] == charged
    assert release.certificate["ledger"]["releases"] == 1
    asked = ROUNDS * (len(SCHEMA.names) - isinstance(first, ss.Stratified))
    assert kinds(ledger) == ["ledger", "reserve", *["charge"] * asked, "done"]
    mine, again = (how.fitted.seen for how in (first, second))
    assert len(mine) >= stop - 1, "the last answer was kept, and not yet seen"
    assert mine == again[: len(mine)]


def test_an_answer_comes_back_from_the_journal_as_it_went_in():
    answer = Maximum(-7, 2.5)
    assert identical(dataclasses.astuple(Largest.recall(Largest.keep(answer))), dataclasses.astuple(answer))


def test_outside_the_closed_set_it_is_refused_before_anything_is_reserved(monkeypatch):
    monkeypatch.setattr(
        admission, "_PARTS", {kind: parts for kind, parts in admission._PARTS.items() if kind is not Largest}
    )
    table = small.table()
    with pytest.raises(Unsupported, match="peaks needs Largest, which these rows cannot answer"):
        ss.fit(Peaks(), table, BUDGET)
    assert table.ledger.reserved == ()


def test_a_malformed_one_is_refused():
    for question in (Largest(("NOBODY",), 1.0), Largest((), 1.0), Largest(("SEX",), 0.0), Largest(("SEX",), True)):
        with pytest.raises(MechanismError):
            question.check(SCHEMA)


# Broken on purpose


class HalfTheNoise:
    """Adds half of the noise, and states the whole."""

    kind = Largest

    def answer(self, proper, at, *given):
        answer = proper(replace(self, rho=4 * self.rho), at, *given)
        return replace(answer, sigma=2 * answer.sigma)


class HalfTheNoiseStated:
    """Adds half of the noise, and states the half."""

    kind = Largest

    def answer(self, proper, *given):
        return proper(replace(self, rho=4 * self.rho), *given)


class TenTimes:
    """Ten times the largest count: one row moves that by ten."""

    kind = Largest

    def answer(self, proper, at, exact, *given):
        return proper(self, at, Exact([10 * table for table in exact.tables]), *given)

    def cost(self, proper, at, here, there, answer):
        here, there = (Exact([10 * table for table in exact.tables]) for exact in (here, there))
        return proper(self, at, here, there, answer)


class SaysWhenEmpty:
    """States another sigma where there is nobody."""

    kind = Largest

    def answer(self, proper, at, exact, *given):
        answer = proper(self, at, exact, *given)
        return answer if exact.tables[0].any() else replace(answer, sigma=answer.sigma + 1)


BROKEN = {
    HalfTheNoise: "noise",
    HalfTheNoiseStated: "sensitivity",
    TenTimes: "sensitivity",
    SaysWhenEmpty: "answers",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda bug: bug.__name__)
def test_a_broken_one_is_caught(broken):
    with planted(broken):
        assert BROKEN[broken] in caught(vanilla, among=list(worlds()), tables=8, orders=0)
