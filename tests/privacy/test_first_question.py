"""The first question of a fit: what it costs, when it stops a fit, and what an interruption leaves."""

import warnings
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from helpers.crash import KILLED, Fault, fit, traces
from helpers.ledgers import kinds, ladder, lines_of
from helpers.toys import Toy
from stratsynth import Budget, Stratified, Weights, open_table
from stratsynth.accounting.budget import Allotment, Currency
from stratsynth.accounting.history import read_ledger
from stratsynth.accounting.process import ProcessLedger
from stratsynth.accounting.sampled import epsilon_sampled
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.adapters import AIM, MST, ClippedMean, External, Independent
from stratsynth.adapters.independent import Product
from stratsynth.driver.answering import Answerer
from stratsynth.driver.lockstep import run
from stratsynth.errors import BudgetRefused, MechanismError, NoticeWarning, Stopped, UsageError
from stratsynth.fitting import request_of
from stratsynth.fitting.reservation import Reservation
from stratsynth.layout.budgets import StratumBudgets
from stratsynth.mechanisms import first, prepare
from stratsynth.planning.rehearsal import SimulatedAnswers
from stratsynth.questions import Columns, Total, Usable, total, usable
from stratsynth.release.declared import MeasuredCount

SIZE = 20_000
SHARE = 0.01
BUDGET = Budget(2, 1e-9, first=SHARE)
WHOLE = Budget(2, 1e-9).zcdp().rho


def people(sex=("1", "2"), size=SIZE):
    return small.people(size).assign(SEX=np.tile(sex, size)[:size])


WRONG = ("one", "two")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    for name, sex in {"good": ("1", "2"), "wrong": WRONG}.items():
        people(sex).to_csv(folder / f"{name}.csv", index=False)
    return folder


def opened(files, name, folder, **settings):
    data = folder / "people.csv"
    if not data.exists():
        data.write_bytes((files / f"{name}.csv").read_bytes())
    return open_table(data, schema=small.SCHEMA, declared_size=SIZE, ledger=folder / "people.ledger", **settings)


def charges(release):
    return [charge["kind"] for charge in release.certificate["charges"]]


def test_a_fit_asks_it_first_of_everybody_for_its_share_and_reserves_the_rest_after(files, tmp_path):
    release = ss.fit(MST(), opened(files, "good", tmp_path), BUDGET)
    first, *others = release.certificate["charges"]
    assert (first["kind"], first["path"], first["rho"]) == ("usable", [], pytest.approx(SHARE * WHOLE))
    assert release.certificate["guarantee"]["rho"] <= WHOLE
    assert sum(c["rho"] for c in others) == pytest.approx((1 - SHARE) * WHOLE)
    assert kinds(tmp_path / "people.ledger")[:4] == ["ledger", "reserve", "charge", "rest"]
    reserve, rest = (line for line in lines_of(tmp_path / "people.ledger") if line["kind"] in ("reserve", "rest"))
    assert reserve["allot"]["rho"] == pytest.approx(SHARE * WHOLE)
    assert rest["allot"]["rho"] == release.certificate["guarantee"]["rho"]
    said = release.certificate.statement.first_question
    assert said.asked
    assert abs(said.usable - SIZE) < 10 * said.noise_sd
    assert set(said.outside) == set(small.SCHEMA.names)
    release.save(tmp_path / "release")
    assert ss.verify(tmp_path / "release", ledger=tmp_path / "people.ledger").findings == ()


def test_a_fit_of_values_that_the_schema_does_not_know_stops_and_the_rest_is_not_spent(files, tmp_path):
    table = opened(files, "wrong", tmp_path)
    with pytest.raises(Stopped, match=r"records are usable, of 20,000 declared.*are in SEX \(") as stopped:
        ss.fit(MST(), table, BUDGET, seed=1)
    assert stopped.value.exit_code == 4
    assert kinds(tmp_path / "people.ledger") == ["ledger", "reserve", "charge"]
    found = read_ledger(tmp_path / "people.ledger")
    assert found["fits"][0]["rho"] == pytest.approx(SHARE * WHOLE)
    assert found["fits"][0]["part"] == "first question"
    assert found["spent_epsilon"] < 0.2


def test_the_same_again_stops_again_without_a_charge_and_goes_on_when_told_to(files, tmp_path):
    said = []
    for _ in range(2):
        with pytest.raises(Stopped) as stopped:
            ss.fit(MST(), opened(files, "wrong", tmp_path), BUDGET, seed=1)
        said.append(str(stopped.value))
    assert said[0] == said[1]
    before = kinds(tmp_path / "people.ledger")
    release = ss.fit(MST(), opened(files, "wrong", tmp_path), BUDGET, seed=1, proceed=True)
    after = kinds(tmp_path / "people.ledger")
    assert after[: len(before)] == before
    assert after.count("reserve") == after.count("rest") == 1
    assert release.certificate["guarantee"]["epsilon"] == BUDGET.epsilon
    noisy = release.certificate["first_question"]
    assert str(MeasuredCount(noisy["usable"], noisy["noise_sd"])) in said[0]
    assert noisy["too_few"]
    assert {"empty", "nearly_empty"} <= {notice["kind"] for notice in release.certificate["notices"]}
    assert read_ledger(tmp_path / "people.ledger")["spent_epsilon"] == pytest.approx(2, rel=1e-6)


def test_without_a_ledger_file_it_goes_on_with_the_answer_too():
    """The account in memory knows the fit again by its frame, or by an equal one."""
    said, frame = [], people(WRONG)
    for again in (frame, frame, frame.copy()):
        table = open_table(again, schema=small.SCHEMA, declared_size=SIZE)
        with pytest.raises(Stopped) as stopped:
            ss.fit(MST(), table, BUDGET)
        said.append(str(stopped.value))
        assert [allot.amount for allot in table.ledger.reserved] == [pytest.approx(SHARE * WHOLE)]
    assert len(set(said)) == 1
    release = ss.fit(MST(), table, BUDGET, proceed=True)
    noisy = release.certificate["first_question"]
    assert str(MeasuredCount(noisy["usable"], noisy["noise_sd"])) in said[0]
    assert release.certificate["ledger"]["releases"] == 1
    assert release.certificate["ledger"]["spent_epsilon"] == pytest.approx(2)
    with pytest.raises(Stopped):  # a fit that is done is not gone on with
        ss.fit(MST(), table, BUDGET)
    assert len(table.ledger.reserved) == 2


def test_nothing_is_read_before_the_first_charge_nor_the_second_question_before_the_rest(files, tmp_path, monkeypatch):
    seen, proper = [], Answerer.answer

    def watched(self, asked):
        seen.append([line["kind"] for line in lines_of(tmp_path / "people.ledger") if line["kind"] != "answered"])
        return proper(self, asked)

    monkeypatch.setattr(Answerer, "answer", watched)
    ss.fit(Independent(), opened(files, "good", tmp_path), BUDGET)
    assert seen == [["ledger", "reserve", "charge"], ["ledger", "reserve", "charge", "rest", "charge"]]


def test_a_cap_without_room_for_the_whole_is_refused_before_the_first_part(files, tmp_path):
    table = opened(files, "wrong", tmp_path, ledger_epsilon=1.9)
    with pytest.raises(BudgetRefused, match=r"asked epsilon 2, remaining 1\.9"):
        ss.fit(MST(), table, BUDGET)
    assert kinds(tmp_path / "people.ledger") == []
    assert not list(tmp_path.glob("people.ledger.journal/*"))


def test_a_ledger_without_room_for_the_whole_is_not_asked_the_first_part(files, tmp_path):
    table = opened(files, "good", tmp_path, ledger_epsilon=2.1)
    ss.fit(Independent(), table, BUDGET)
    before = kinds(tmp_path / "people.ledger")
    with pytest.raises(BudgetRefused, match="refused before reading"):
        ss.fit(MST(), opened(files, "good", tmp_path), BUDGET)
    assert kinds(tmp_path / "people.ledger") == before


@pytest.mark.parametrize("where", ["file", "process", "a copy"])
def test_where_another_fit_took_the_room_meanwhile_the_rest_is_refused_and_the_first_part_stands(
    where, files, tmp_path, monkeypatch
):
    if where == "file":
        table = other = opened(files, "good", tmp_path, ledger_epsilon=2.2)
    else:
        table = other = open_table(people(), schema=small.SCHEMA, declared_size=SIZE, ledger_epsilon=2.2)
    asked, proper = [], Reservation.ask_first
    if where == "a copy":
        other = open_table(people(), schema=small.SCHEMA, declared_size=SIZE)

    def meanwhile(self, terms):
        found = proper(self, terms)
        if not asked:
            asked.append(found)
            ss.fit(Independent(), other, BUDGET)
        return found

    monkeypatch.setattr(Reservation, "ask_first", meanwhile)
    with pytest.raises(BudgetRefused, match="refused before reading: asked epsilon 2"):
        ss.fit(MST(), table, BUDGET)
    if where == "file":
        found = read_ledger(tmp_path / "people.ledger")
        assert [f.get("part") for f in found["fits"]] == ["first question", None]
        assert 2 < found["spent_epsilon"] < 2.2
    else:
        assert sorted(allot.amount < 2 * SHARE * WHOLE for allot in other.ledger.reserved) == [False, True]


@pytest.fixture
def between(monkeypatch):
    """Function that has a fit of another budget made between a fit's first question and its rest."""
    proper = Reservation.ask_first

    def arranged(table, budget):
        def meanwhile(self, terms):
            found = proper(self, terms)
            if terms.budget.accounting != budget.accounting:
                ss.fit(Independent(), table, budget)
            return found

        monkeypatch.setattr(Reservation, "ask_first", meanwhile)

    return arranged


def test_the_rest_is_judged_in_the_currency_that_the_first_part_gave_the_account(files, tmp_path, between):
    table = opened(files, "good", tmp_path, ledger_epsilon=3.5)
    between(table, BUDGET)
    with pytest.raises(BudgetRefused, match=r"as in its first fit with accounting = \"exact\""):
        ss.fit(Independent(), table, replace(BUDGET, delta=1e-8, accounting="exact"))
    assert 2 < read_ledger(tmp_path / "people.ledger")["spent_epsilon"] <= 3.5


@pytest.mark.parametrize("where", ["file", "process"])
def test_a_fit_in_another_currency_meanwhile_takes_no_delta_from_the_rest(where, files, tmp_path, between):
    if where == "file":
        table = opened(files, "good", tmp_path, ledger_epsilon=3.5)
    else:
        table = open_table(people(), schema=small.SCHEMA, declared_size=SIZE, ledger_epsilon=3.5)
    between(table, replace(BUDGET, accounting="exact"))
    spent = ss.fit(Independent(), table, BUDGET).certificate["ledger"]["spent_epsilon"]
    assert 2.5 < spent < 3.5


def test_an_account_answers_nothing_else_before_the_rest_and_no_first_question_after(files):
    prepared = prepare(Independent(), small.SCHEMA, BUDGET, SIZE)

    def account():
        return ProcessLedger().open(request_of(prepared, 0))

    def ask(account, program):
        return run(program, small.SCHEMA, SimulatedAnswers(account, lambda _: SIZE))

    rho = prepared.budget.opening(Currency.ZCDP)
    first, hasty, dear, twice = (account() for _ in range(4))
    ask(first, usable(rho, Currency.ZCDP))
    first.reserve_rest()
    with pytest.raises(BudgetRefused, match="one first question"):
        ask(first, usable(rho, Currency.ZCDP))
    with pytest.raises(BudgetRefused, match="one first question"):
        ask(hasty, Independent().steps(prepared.public, prepared.allot, np.random.default_rng(0)))
    with pytest.raises(BudgetRefused, match="one first question"):
        ask(dear, usable(1.01 * rho, Currency.ZCDP))
    ask(twice, usable(rho, Currency.ZCDP))
    with pytest.raises(BudgetRefused, match="one first question"):
        ask(twice, usable(rho, Currency.ZCDP))


STRATA = {"SEX": ["1", "2"], "share": [0.5, 0.5]}


def weights():
    return Weights.public(pd.DataFrame(STRATA), citation="made up for testing")


def test_strata_with_budgets_of_their_own_share_it_and_none_is_charged_beyond_its_own(files, tmp_path):
    own = StratumBudgets.epsilons({"2": 1.0})
    how = Stratified(Independent(), ["SEX"], weights(), budgets=own)
    release = ss.fit(how, opened(files, "good", tmp_path), BUDGET)
    first, *others = release.certificate["charges"]
    assert first["rho"] == pytest.approx(SHARE * Budget(1, 1e-9).zcdp().rho)
    assert first["path"] == []
    inside = {charge["path"][0]["SEX"]: charge["rho"] for charge in others}
    assert inside["2"] + first["rho"] <= Budget(1, 1e-9).zcdp().rho
    assert inside["1"] + first["rho"] == pytest.approx(WHOLE)
    release.save(tmp_path / "release")
    assert ss.verify(tmp_path / "release", ledger=tmp_path / "people.ledger").findings == ()


def test_in_strata_it_is_asked_of_everybody_and_a_move_costs_no_more_than_it(files, tmp_path):
    """It adds its own price to every step, and leaves a move at two strata's."""
    release = ss.fit(Stratified(AIM(rounds=1), ["SEX"], weights()), opened(files, "good", tmp_path), BUDGET)
    without = prepare(Stratified(AIM(rounds=1), ["SEX"], weights()), small.SCHEMA, Budget(2, 1e-9, first=0), SIZE)
    assert charges(release)[0] == "usable"
    move = release.certificate["prices"]["move"]
    assert move < epsilon_of(2 * without.allot.rho, 1e-9 * (1 - 1e-6))
    assert release.certificate["prices"]["add-remove"] == pytest.approx(2)


def test_pure_epsilon_is_split(tmp_path):
    """Its noise is so wide that it takes many records to be asked: 20,000 are too few at epsilon 0.2."""
    schema = small.SCHEMA
    few = prepare(ClippedMean(), schema, Budget(0.2, 1e-9, first=SHARE), SIZE)
    assert "could not tell" in few.first.why_not
    many = prepare(ClippedMean(), schema, Budget(20, 1e-9, first=SHARE), SIZE)
    assert many.first.asked
    assert many.first.unit == "epsilon"
    assert many.allot.amount + many.first.price <= 20
    table = open_table(people(), schema=schema, declared_size=SIZE)
    release = ss.fit(ClippedMean(), table, Budget(20, 1e-9, first=SHARE))
    first, *others = release.certificate["charges"]
    assert first["epsilon"] == pytest.approx(0.2)
    assert sum(charge["epsilon"] for charge in others) == pytest.approx(19.8)
    release.save(tmp_path / "release")
    assert ss.verify(tmp_path / "release").findings == ()


def test_third_party_code_is_left_the_rest_of_epsilon(tmp_path):
    asked = []

    def drawn(frame, sizes, epsilon, delta, rows):
        asked.append(epsilon)
        return pd.DataFrame({name: np.zeros(rows, int) for name in sizes})

    table = open_table(people(), schema=small.SCHEMA, declared_size=SIZE)
    release = ss.fit(External(drawn, by="somebody"), table, Budget(20, 1e-9, "replace", first=SHARE))
    assert asked == [pytest.approx(19.8)]
    greedy = prepare(External(drawn, by="somebody"), small.SCHEMA, Budget(20, 1e-9, "replace", first=SHARE), SIZE)
    with pytest.raises(MechanismError, match="not within the budget"):
        replace(greedy, allot=replace(greedy.allot, amount=20.0))
    assert [charge["epsilon"] for charge in release.certificate["charges"]] == [pytest.approx(0.2), asked[0]]
    assert release.certificate["guarantee"]["epsilon"] == 20
    release.save(tmp_path / "release")
    assert ss.verify(tmp_path / "release").findings == ()


@pytest.mark.parametrize("share", [0, 0.0])
def test_it_is_switched_off_by_0_and_the_certificate_says_so(share, files, tmp_path):
    release = ss.fit(MST(), opened(files, "wrong", tmp_path), Budget(2, 1e-9, first=share))
    assert charges(release)[0] == "counts"
    assert release.certificate["first_question"] == {"asked": False, "why": "switched off: [budget] first = 0"}


def test_where_noise_would_hide_half_of_the_declared_records_it_is_not_asked():
    said = prepare(MST(), small.SCHEMA, BUDGET, 100).first
    assert not said.asked
    assert "could not tell half of the 100 that are declared from none" in said.why_not


def test_without_a_declared_size_values_outside_say_how_many_records_there_are_at_least():
    with pytest.raises(Stopped, match=r"records are usable, no number of them declared.*are in SEX \("):
        ss.fit(MST(), open_table(people(WRONG), schema=small.SCHEMA), BUDGET)
    release = ss.fit(MST(), open_table(people(), schema=small.SCHEMA), BUDGET)
    assert not release.certificate["first_question"]["too_few"]
    assert prepare(MST(), small.SCHEMA, BUDGET, None).first.asked
    assert not prepare(MST(), small.SCHEMA, Budget(1e-8, 1e-9), None).first.asked


def test_its_verdict_comes_from_the_noisy_numbers_alone(files, tmp_path, monkeypatch):
    """With the numbers of the good file in the place of its own, the wrong one is fitted, and the reverse."""
    proper = Answerer.answer

    def exchanged(records):
        def answer(self, asked):
            found = proper(self, asked)
            return [
                Usable(0.1).noisy(a.schema, np.array([records, 5, 6, 7, 8])) if type(a.question) is Usable else one
                for a, one in zip(asked, found, strict=True)
            ]

        return answer

    monkeypatch.setattr(Answerer, "answer", exchanged(SIZE))
    said = ss.fit(MST(), open_table(people(WRONG), schema=small.SCHEMA, declared_size=SIZE), BUDGET)
    assert not said.certificate["first_question"]["too_few"]
    monkeypatch.setattr(Answerer, "answer", exchanged(0))
    with pytest.raises(Stopped, match="No column has many values"):
        ss.fit(MST(), open_table(people(), schema=small.SCHEMA, declared_size=SIZE), BUDGET)


def test_public_data_are_asked_and_nothing_is_charged():
    table = open_table(people(WRONG), schema=small.SCHEMA, declared_size=SIZE, public=True)
    with pytest.raises(Stopped, match="after its first question: "):
        ss.fit(MST(), table, BUDGET)


def test_an_interrupted_fit_of_a_version_without_it_goes_on_as_it_was(files, tmp_path, monkeypatch):
    made = ladder(2, rungs=4)
    with monkeypatch.context() as older:
        older.setattr(first, "SHARE", 0.0)
        with pytest.raises(KeyboardInterrupt):
            ss.fit(made, opened(files, "wrong", tmp_path), Budget(2, 1e-9))
    release = ss.fit(ladder(rungs=4), opened(files, "wrong", tmp_path), BUDGET)
    assert charges(release) == ["counts"] * 4
    assert kinds(tmp_path / "people.ledger") == ["ledger", "reserve", *["charge"] * 4, "done"]
    again = ss.fit(ladder(rungs=4), opened(files, "wrong", tmp_path), BUDGET, proceed=True)
    assert charges(again) == ["usable", *["counts"] * 4]


ACCOUNT = "stratsynth.accounting.file_account:FileAccount"
POINTS = {
    "after the first reservation": Fault("stratsynth.accounting.ledger_file:FileLedger.open", after=True),
    "after the first charge": Fault(f"{ACCOUNT}._record", after=True),
    "before its answer is kept": Fault(f"{ACCOUNT}.store"),
    "after its answer is kept": Fault(f"{ACCOUNT}.store", after=True),
    "before the rest is reserved": Fault("stratsynth.accounting.ledger_file:FileLedger._reserve_rest"),
    "after the rest is reserved": Fault("stratsynth.accounting.ledger_file:FileLedger._reserve_rest", after=True),
}


@pytest.mark.parametrize("sex", ["good", "wrong"])
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_between_the_two_parts_loses_nothing_and_charges_nothing_twice(point, sex, files, tmp_path, nursery):
    (tmp_path / "people.csv").write_bytes((files / f"{sex}.csv").read_bytes())
    how = {"size": SIZE, "epsilon": 2, "first": SHARE, "rungs": 2, "seed": 1, "proceed": sex == "wrong"}
    assert nursery.run(fit, tmp_path, faults=[POINTS[point]], **how).code == KILLED
    before = lines_of(tmp_path / "people.ledger")
    answers = {line["sha256"] for line in before if line["kind"] == "answered"}
    assert nursery.run(fit, tmp_path, **how).code == 0
    assert kinds(tmp_path / "people.ledger") == ["ledger", "reserve", "charge", "rest", "charge", "charge", "done"]
    after = lines_of(tmp_path / "people.ledger")
    assert after[: len(before)] == before
    assert answers <= {line["sha256"] for line in after if line["kind"] == "answered"}
    assert read_ledger(tmp_path / "people.ledger")["spent_epsilon"] == pytest.approx(2, rel=1e-6)
    assert len(traces(tmp_path, "seen.log")) == 2


def test_a_stopped_fit_that_is_killed_stops_again_with_the_same_words(files, tmp_path, nursery):
    (tmp_path / "people.csv").write_bytes((files / "wrong.csv").read_bytes())
    how = {"size": SIZE, "epsilon": 2, "first": SHARE, "rungs": 2, "seed": 1}
    fault = Fault(f"{ACCOUNT}.store", after=True)
    assert nursery.run(fit, tmp_path, faults=[fault], **how).code == KILLED
    said = [nursery.run(fit, tmp_path, **how) for _ in range(2)]
    assert [one.code for one in said] == [1, 1]  # raised by the task; the command has a code of its own
    assert said[0].said.splitlines()[-1] == said[1].said.splitlines()[-1]
    assert "Stopped" in said[0].said
    assert kinds(tmp_path / "people.ledger") == ["ledger", "reserve", "charge"]


NOISE, DELTA = 1.5, 1e-9 * (1 - 1e-6)


@dataclass(frozen=True)
class Steps(Toy):
    """Three steps on samples, from which nothing is learned."""

    name: ClassVar[str] = "steps"
    needs: ClassVar = frozenset({Total})
    adaptive: ClassVar[bool] = False

    def price(self, public, budget):
        first = budget.opening(Currency.SAMPLED)
        return Allotment(Currency.SAMPLED, 3.0, budget, noise=NOISE, rate=0.1, first=first)

    def steps(self, public, allot, rng):
        for _ in range(3):
            yield from total(Columns(("AGE",), (4.5,), (5.0,), clip=1.0), noise=allot.noise, rate=allot.rate)
        sizes = {name: public.schema.size(name) for name in public.schema.names}
        return Product(public.schema, {name: np.full(size, 1 / size) for name, size in sizes.items()})


def test_a_sampled_fit_prices_it_beside_its_steps(tmp_path):
    table = open_table(people(), schema=small.SCHEMA, declared_size=SIZE, ledger=tmp_path / "people.ledger")
    release = ss.fit(Steps(), table, BUDGET)
    said, (first, *steps) = release.certificate["guarantee"], release.certificate["charges"]
    assert first["rho"] == said["first"] == pytest.approx(SHARE * WHOLE)
    assert first["steps"] == 0
    assert [charge["steps"] for charge in steps] == [1, 1, 1]
    alone, both = (epsilon_sampled(NOISE, 0.1, 3, DELTA, first=rho) for rho in (0.0, said["first"]))
    assert alone < release.certificate["prices"]["add-remove"] == both < 2
    release.save(tmp_path / "release")
    assert ss.verify(tmp_path / "release", ledger=tmp_path / "people.ledger").findings == ()
    assert read_ledger(tmp_path / "people.ledger")["spent_epsilon"] == 2


@pytest.mark.parametrize("form", ["frame", "parquet"])
def test_integers_where_all_levels_are_texts_are_refused_by_their_type_before_anything_is_charged(form, tmp_path):
    schema = small.SCHEMA.restrict(["GROUP", "AGE"])
    rows = people()[["GROUP", "AGE"]]
    for kind, refused in (("int64", True), ("float64", False), (None, False)):
        data = rows if kind is None else rows.assign(GROUP=np.ones(SIZE, kind))
        if form == "parquet":
            path = tmp_path / f"{kind}.parquet"
            data.to_parquet(path, index=False)
            data = path
        table = open_table(data, schema=schema, declared_size=SIZE)
        if refused:
            with pytest.raises(UsageError, match=r"column GROUP holds integers, .*'a', for one"):
                ss.fit(MST(), table, BUDGET)
            assert table.ledger.reserved == ()
        elif kind is not None:
            with pytest.raises(Stopped):  # their values decide, with noise
                ss.fit(MST(), table, BUDGET)
        else:
            ss.fit(Independent(), table, BUDGET)


def test_a_notice_that_is_made_an_error_leaves_a_fit_that_goes_on_for_nothing(files, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoticeWarning)
        with pytest.raises(NoticeWarning, match="NOTHING IN IT"):
            ss.fit(MST(), opened(files, "wrong", tmp_path), BUDGET, seed=1, proceed=True)
    before = [kind for kind in kinds(tmp_path / "people.ledger") if kind != "done"]
    with pytest.warns(NoticeWarning, match="NOTHING IN IT"):
        ss.fit(MST(), opened(files, "wrong", tmp_path), BUDGET, seed=1)
    assert kinds(tmp_path / "people.ledger") == [*before, "done"]
