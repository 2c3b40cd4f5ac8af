"""People with several rows: the first k are kept, whatever others have, and all of them are paid for."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stratsynth as ss
from helpers import recompute, small
from helpers.replies import Replies
from stratsynth import cli
from stratsynth.accounting.account import Request
from stratsynth.accounting.budget import Budget, Currency, Neighbours
from stratsynth.accounting.prices import check_allotment, prices
from stratsynth.accounting.process import ProcessLedger
from stratsynth.accounting.units import per_unit, protecting
from stratsynth.accounting.zcdp import epsilon_of, rho_of
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.lockstep import run
from stratsynth.driver.private import PrivateAnswers
from stratsynth.errors import BudgetRefused, MechanismError, SchemaError, Unsupported, UsageError
from stratsynth.mechanisms import Public, make, prepare
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Columns, total
from stratsynth.schema import Schema, Unit
from stratsynth.schema.values import identities
from stratsynth.testing.privacy_loss import exact_answers, privacy_loss

K = 3
SCHEMA = Schema(small.SCHEMA.columns, unit=Unit(column="PERSON", max_rows=K))
BUDGET = Budget(1, 1e-9)


def people(rows=300, persons=80):
    """Rows of a few persons, some with more than k rows, in several strata."""
    rng = np.random.default_rng(0)
    return small.people(rows).assign(PERSON=rng.integers(0, persons, rows))


def kept(data):
    """Every row that loading keeps, as level numbers."""
    rows = load_rows(SCHEMA, open_source(data)).frame(())
    return [tuple(row) for row in rows.to_numpy()]


def release(how=None, **settings):
    table = ss.open_table(people(), schema=SCHEMA, declared_size=300)
    return ss.fit(how or small.stratified(), table, BUDGET, **settings)


def test_terms_are_for_the_unit_of_their_schema():
    persons, records = (prepare("independent", schema, BUDGET, 300) for schema in (SCHEMA, small.SCHEMA))
    assert persons.budget.rows == K
    with pytest.raises(UsageError, match="does not protect what the schema says"):
        replace(persons, budget=records.budget, allot=records.allot)


# Which rows are kept


def test_the_first_rows_of_each_are_kept():
    data = small.people(7).assign(PERSON=["a", "b", "a", "a", "b", "a", "a"])
    everything = [tuple(row) for row in load_rows(small.SCHEMA, open_source(data)).frame(()).to_numpy()]
    assert kept(data) == [everything[i] for i in (0, 1, 2, 3, 4)]


@given(
    owners=st.lists(st.sampled_from(["a", "b", "c", None, ""]), max_size=30),
    places=st.lists(st.integers(0, 40), max_size=8),
)
def test_a_person_more_changes_nothing_about_the_others(owners, places):
    """Wherever the rows of somebody new are put, theirs are at most k, and the others' are the same as before."""
    data = small.people(len(owners)).assign(PERSON=pd.Series(owners, dtype=object))
    before = kept(data)
    new = small.people(len(places) + 5).iloc[5:].assign(PERSON="new")
    mixed = data
    for i, place in enumerate(places):
        at = min(place, len(mixed))
        mixed = pd.concat([mixed.iloc[:at], new.iloc[[i]], mixed.iloc[at:]])
    after = kept(mixed)
    rest = iter(after)
    assert all(row in rest for row in before)  # in the same order
    assert len(after) == len(before) + min(K, len(places))


def test_rows_that_are_nobody_s_are_left_out():
    data = small.people(4).assign(PERSON=["a", None, "", "a"])
    assert len(kept(data)) == 2


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 1, 2, None]),
        pa.array([1.0, 1.0, 2.0, float("nan")]),
        pa.array(["x", "x", "y", None]),
        pa.array([b"\xff", b"\xff", b"y", b""]),
        pa.array(["x", "x", "y", None]).dictionary_encode(),
        pa.array([True, True, False, None]),
        pa.chunked_array([["x"], ["x", "y"], [""]]),
    ],
    ids=str,
)
def test_whatever_tells_them_apart(values):
    column = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    found = identities(column)
    assert (found[0] == found[1], found[0] != found[2], found[2] >= 0, found[3]) == (True, True, True, -1)


def test_a_column_of_nulls_or_of_nothing_is_nobody():
    assert set(identities(pa.chunked_array([pa.nulls(3)]))) == {-1}
    assert identities(pa.chunked_array([], pa.string())).size == 0
    assert len(kept(small.people(0).assign(PERSON=[]))) == 0


def test_a_csv_file_reads_the_same(tmp_path):
    data = people()
    data.to_csv(tmp_path / "people.csv", index=False)
    assert kept(tmp_path / "people.csv") == kept(data)


# What they cost


def asked_and_charged(how, data, budget=BUDGET):
    """A whole fit's questions with their answers, and its account."""
    budget = protecting(budget, SCHEMA)
    public = Public(SCHEMA, 300, budget.neighbours)
    allot = how.price(public, budget)
    check_allotment(allot, budget)
    account = ProcessLedger().open(Request("", "", budget, per_unit(allot), 0))
    answers = PrivateAnswers(lambda: load_rows(SCHEMA, open_source(data)), account, SeededEntropy(0))
    asked, given_ = [], []

    def answer(batch):
        replies = answers(batch)
        asked.extend(batch)
        given_.extend(replies)
        return replies

    run(how.steps(public, allot, np.random.default_rng(0)), SCHEMA, Replies(answer))
    return asked, given_, account


@pytest.mark.parametrize("name", ["independent", "mst"])
@pytest.mark.parametrize("stratified", [False, True])
def test_a_whole_person_moves_no_answer_by_more_than_was_paid(name, stratified):
    """Persons of many rows in one stratum or in several, added or removed: the cost of the whole fit covers them."""
    how = make(name, {})
    how = ss.Stratified(how, ["SEX", "GROUP"], small.stratified().weights) if stratified else how
    data = people()
    asked, replies, account = asked_and_charged(how, data)
    here = exact_answers(load_rows(SCHEMA, open_source(data)), asked)
    spent = account.spending.spent()
    assert spent <= account.allot.amount
    rng, worst = np.random.default_rng(1), 0
    for trial in range(20):
        if trial % 2:
            other = data[rng.integers(0, 80) != data["PERSON"]]
        else:
            new = data.iloc[rng.choice(300, 8) if trial % 4 else [trial] * 8].assign(PERSON=1000)
            other = pd.concat([data, new])
        there = exact_answers(load_rows(SCHEMA, open_source(other)), asked)
        cost = sum(
            privacy_loss(a, x, y, Neighbours.ADD_REMOVE, reply)
            for a, x, y, reply in zip(asked, here, there, replies, strict=True)
        )
        assert cost <= spent
        worst = max(worst, cost)
    if name == "independent":  # k rows in the same cells use all of it up: k squared is not too much
        assert worst >= spent * 0.999
    assert worst > spent / K**2 * 1.5  # single rows' accounting would not do


def test_the_noise_grows_with_the_number_of_rows():
    ours, single = release(), ss.fit(small.stratified(), small.table(), BUDGET)
    sigma = ours.measurements.column("sigma")[0].as_py()
    assert sigma == pytest.approx(K * single.measurements.column("sigma")[0].as_py())


def test_the_certificate_states_who_is_protected_and_adds_up():
    certificate = release(make("mst", {})).certificate
    assert certificate["unit"] == {"column": "PERSON", "max_rows": K}
    recompute.check(certificate)
    assert certificate["guarantee"]["rho"] == pytest.approx(rho_of(1, 1e-9 - 1e-15), rel=1e-9)
    assert certificate["prices"]["add-remove"] == pytest.approx(1)
    assert certificate["prices"]["replace"] == pytest.approx(epsilon_of(2.2 * rho_of(1, 1e-9), 1e-9), rel=1e-4)
    assert {charge["sensitivity"]["add-remove"] for charge in certificate["charges"] if charge["kind"] == "choose"} == {
        K
    }


def test_one_row_each_costs_what_a_record_costs():
    schema = Schema(small.SCHEMA.columns, unit=Unit(column="PERSON", max_rows=1))
    table = ss.open_table(people(), schema=schema, declared_size=300)
    ours = ss.fit(small.stratified(), table, BUDGET)
    single = ss.fit(small.stratified(), small.table(), BUDGET)
    assert ours.certificate["guarantee"] == single.certificate["guarantee"]
    assert ours.certificate["charges"] == single.certificate["charges"]
    assert ours.certificate["unit"] == {"column": "PERSON", "max_rows": 1}


def test_pure_epsilon_is_divided_by_the_rows():
    budget = protecting(Budget(1, 1e-6), SCHEMA)
    query = Columns(("AGE",), (4.0,), (1.0,), clip=2.0, norm="l1")
    account = ProcessLedger().open(Request("", "", budget, per_unit(budget.pure()), 0))
    answers = PrivateAnswers(lambda: load_rows(SCHEMA, open_source(people())), account, SeededEntropy(0))

    def program():
        return (yield from total(query, epsilon=budget.pure().amount))

    (part,) = run(program(), SCHEMA, answers)
    assert part.sigma == pytest.approx(math.sqrt(2) * 2.0 * K)
    assert account.spending.spent() == pytest.approx(1)
    assert account.spending.spent() <= 1
    with pytest.raises(BudgetRefused):
        run(program(), SCHEMA, answers)


def test_a_plan_says_the_same():
    foreseen = ss.plan(small.stratified(), SCHEMA, BUDGET, declared_size=300)
    certificate = release().certificate
    assert foreseen.prices == certificate["prices"]
    assert foreseen.unit == "PERSON"
    assert {s.sigma for s in foreseen.strata} == {c["sigma"] for c in certificate["charges"]}


@pytest.mark.parametrize("rows", [2, 5, 7, 100])
def test_the_whole_budget_can_be_spent_to_the_last_digit(rows):
    """Rounding must neither refuse a mechanism its allotment nor let it pass the cap."""
    schema = Schema(small.SCHEMA.columns, unit=Unit(column="PERSON", max_rows=rows))
    for name in ("independent", "mst"):
        table = ss.open_table(people(), schema=schema, declared_size=300)
        recompute.check(ss.fit(make(name, {}), table, Budget(3, 1e-9)).certificate)


# What is refused


def test_neighbours_that_exchange_units_are_refused():
    with pytest.raises(Unsupported, match="add-remove"):
        ss.fit(small.stratified(), ss.open_table(people(), schema=SCHEMA), Budget(1, 1e-9, "replace"))


@pytest.mark.parametrize("allot", [lambda b: b.claimed(), lambda b: b.sampled(rate=0.1, steps=3)])
def test_what_has_no_price_for_several_rows_is_refused(allot):
    with pytest.raises(Unsupported, match="max_rows = 1"):
        allot(protecting(BUDGET, SCHEMA))


def test_an_allotment_for_a_single_row_is_not_within_the_budget_of_many():
    budget = protecting(BUDGET, SCHEMA)
    for currency, amount in ((Currency.ZCDP, BUDGET.zcdp().amount), (Currency.PURE, 1.0), (Currency.CLAIMED, 1.0)):
        with pytest.raises(MechanismError, match="not within"):
            check_allotment(type(BUDGET.zcdp())(currency, amount, budget), budget)


def test_what_tells_people_apart_is_not_released():
    with pytest.raises(SchemaError, match="must not be released"):
        Schema(small.SCHEMA.columns, unit=Unit(column="SEX", max_rows=2))


def test_a_table_without_that_column_is_refused_before_anything_is_spent():
    with pytest.raises(SchemaError, match="PERSON"):
        ss.open_table(small.people(), schema=SCHEMA)
    nested = pa.table({**{c: small.people(2)[c] for c in small.SCHEMA.names}, "PERSON": pa.array([[1], [2]])})
    with pytest.raises(SchemaError, match="PERSON has type"):
        ss.open_table(nested, schema=SCHEMA)


@pytest.mark.parametrize("first", [SCHEMA, small.SCHEMA], ids=["persons first", "records first"])
@pytest.mark.parametrize("ledger", [None, "people.ledger"], ids=["in memory", "in a file"])
def test_guarantees_for_persons_and_for_records_are_not_added_up(tmp_path, first, ledger):
    people().to_csv(tmp_path / "people.csv", index=False)

    def fit(schema):
        path = None if ledger is None else tmp_path / ledger
        ss.fit(make("independent", {}), ss.open_table(tmp_path / "people.csv", schema=schema, ledger=path), BUDGET)

    fit(first)
    fit(first)
    with pytest.raises(UsageError, match="cannot be added"):
        fit(small.SCHEMA if first is SCHEMA else SCHEMA)


def test_a_ledger_adds_up_persons_at_full_price(tmp_path):
    """Two fits of epsilon 1 are the same two fits whatever a unit's rows: the price of a row is not what is kept."""
    people().to_csv(tmp_path / "people.csv", index=False)
    for schema in (SCHEMA, Schema(SCHEMA.columns, unit=Unit(column="PERSON", max_rows=5))):
        table = ss.open_table(tmp_path / "people.csv", schema=schema, ledger=tmp_path / "people.ledger")
        spent = ss.fit(make("independent", {}), table, BUDGET).certificate["ledger"]["spent_epsilon"]
    assert spent == pytest.approx(1.437142408181034, rel=1e-5)


# From the command line


def test_the_whole_job(tmp_path, capsys):
    recipe = small.write_recipe(tmp_path / "here")
    folder = recipe.parent
    people().assign(PERSON=[f"canary-{i // 4}" for i in range(300)]).to_csv(folder / "people.csv", index=False)
    SCHEMA.write_toml(folder / "schema.toml")
    small.edit(recipe, "delta = 1e-9", 'delta = 1e-9\nledger = "people.ledger"')
    assert cli.run(["plan", str(recipe)]) == 0
    assert "one PERSON is added or removed" in capsys.readouterr().out
    assert cli.run(["fit", str(recipe)]) == 0
    assert "for one PERSON (at most 3 rows), add-remove" in capsys.readouterr().out
    record = json.loads((folder / "release" / "certificate.json").read_text(encoding="utf-8"))
    recompute.check(record)
    for path in (folder / "release").rglob("*"):
        assert not path.is_file() or b"canary" not in path.read_bytes()
    assert list(ss.Release.load(folder / "release").sample(3).columns) == list(SCHEMA.names)
    assert cli.run(["ledger", "show", str(folder / "people.ledger")]) == 0
    checker = Path(__file__).parents[3] / "shared" / "tools" / "check_release.py"
    if checker.exists():
        done = subprocess.run(
            [sys.executable, checker, folder / "release"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


def test_prices_of_a_person_are_k_squared_those_of_a_row():
    """Equal questions at equal rho of a row are priced as one record's and as one person's."""
    _, _, account = asked_and_charged(small.stratified(), people())
    one = protecting(Budget(1, 1e-9), small.SCHEMA)
    assert prices(account.spending, one, account.allot)["move"] == pytest.approx(
        epsilon_of(2 * float(account.spending.spent()), 1e-9), rel=1e-5
    )
