"""Columns that need no protection: what is handed out, what is refused, and what a certificate says of it."""

import re
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from helpers.attribute import BUDGET, OPEN, SCHEMA
from helpers.fits import requested
from helpers.regressing import SCHEMA as PROTECTED
from helpers.regressing import people
from helpers.small import even
from stratsynth import Budget, Categorical, Numeric, Schema, Stratified, fit, open_table, plan
from stratsynth.accounting import units
from stratsynth.accounting.budget import PRICED, Neighbours
from stratsynth.accounting.charges import Spending
from stratsynth.accounting.prices import prices
from stratsynth.accounting.sampled import epsilon_sampled
from stratsynth.adapters import MST, DPFermi, Independent
from stratsynth.adapters.predictors import Regression
from stratsynth.certificate import Certificate
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.private import bill
from stratsynth.errors import MechanismError, Unsupported, UsageError
from stratsynth.mechanisms import Mechanism
from stratsynth.models import Returns
from stratsynth.questions import Counts, PublicRows, Question, Total, counts, public_rows
from stratsynth.release import limits
from stratsynth.release.page.summary import summary
from stratsynth.schema import Unit
from stratsynth.strata import Stratum, within

FERMI = {
    "target": "D",
    "features": ["X", "C"],
    "groups": ["G"],
    "iterations": 2,
    "sampling": 1.0,
    "warm_up": 0.5,
    "penalty": 1.0,
}

ALL_OPEN = replace(SCHEMA, columns={n: replace(c, public=True) for n, c in SCHEMA.columns.items()})


def fermi(**settings):
    return DPFermi(**{**FERMI, "protect": "sensitive", **settings})


def opened(schema=SCHEMA, frame=None, **more):
    return open_table(people(200) if frame is None else frame, schema=schema, declared_size=200, **more)


def without(name):
    """The schema with one public column less, whose values leave no row out."""
    column = SCHEMA.column(name)
    admits = {"missing": True} if isinstance(column, Numeric) else {"outside": column.levels[0]}
    return replace(SCHEMA, columns={**SCHEMA.columns, name: replace(column, public=False, **admits)})


# what the flag is


def test_schemas_without_public_columns_say_and_hash_what_they_did():
    assert "public" not in PROTECTED.to_toml().replace('origin = "public"', "")
    assert PROTECTED.sha256 == "f5c29f8938d4adf6c8d4bb5d93671be1e5240b809908b57f69af54ebf4d6863a"


def test_a_file_carries_the_flag_and_it_changes_the_hash():
    assert Schema.from_toml_text(SCHEMA.to_toml()) == SCHEMA
    assert Schema.from_toml_text(SCHEMA.to_toml()).public == OPEN
    assert len({SCHEMA.sha256, without("X").sha256, without("Z").sha256}) == 3


@pytest.mark.parametrize(
    "make", [lambda p: Categorical(levels=("a",), public=p), lambda p: Numeric(lower=0, upper=1, public=p)]
)
def test_the_flag_is_true_or_false(make):
    assert make(True).public
    for wrong in ("yes", 1, None):
        with pytest.raises(UsageError, match="public"):
            make(wrong)


def test_inside_strata_of_a_protected_column_nothing_is_public():
    assert within(SCHEMA, (Stratum((("C", ("p",)),)),)).public == ("X", "Z", "Y", "D")
    assert within(SCHEMA, (Stratum((("G", ("a",)),)),)).public == ()
    assert within(SCHEMA, (Stratum((("C", ("p", "q")), ("G", ("a",)))),)).public == ()


# what is handed out


def test_the_rows_are_as_they_are_and_in_their_order():
    frame = people(50)
    rows = load_rows(SCHEMA, open_source(frame))
    question = PublicRows(("X", "D"))
    (found,) = [question.answer(None, _exact(rows, question), None, {})]
    assert found.size == 50
    assert np.allclose(found.numbers["X"], frame.X)
    assert (np.array(SCHEMA.levels("D"))[found.codes["D"]] == frame.D).all()
    assert set(found.codes) == {"X", "D"}
    with pytest.raises(ValueError, match="read-only"):
        found.codes["D"][0] = 0
    again = question.recall(question.keep(found))
    assert question.shape(again) == question.shape(found)


def _exact(rows, question):
    from stratsynth.driver.answering import Reader

    return next(Reader(rows, None).each([((), question.wanted())]))


def test_no_protected_value_decides_which_rows_there_are():
    """Whatever a file holds in the protected column, as long as it is one value."""
    frame = people(40).astype(object)
    question = PublicRows(OPEN)
    usual = question.shape(_exact(load_rows(SCHEMA, open_source(frame)), question).columns)
    for value in (None, "zebra", "", "a,b", float("nan"), "\u0000", "\U0001f600", -1e308):
        there = frame.assign(G=[value] * 40)
        assert question.shape(_exact(load_rows(SCHEMA, open_source(there)), question).columns) == usual


@pytest.mark.parametrize("value", ["", "zebra", '"a,b"', '"say ""b"""', "\\", "\xe9", " ", "NULL", "b\x00"])
def test_no_protected_text_in_a_file_does_either(tmp_path, value):
    """A value that is quoted as CSV wants it stays one value, and so does one of bad bytes.

    A stray quote makes the line no record, and leaves it out: the certificate of a CSV file says so.
    """
    question, path = PublicRows(OPEN), tmp_path / "people.csv"
    frame = people(5)[[*OPEN, "G"]]
    lines = frame.to_csv(index=False).splitlines()
    seen = []
    for text in ("a", value):
        changed = [*lines[:3], f"{lines[3].rpartition(',')[0]},{text}", *lines[4:]]
        path.write_bytes("\n".join(changed).encode("latin-1") + b"\n")
        seen.append(question.shape(_exact(load_rows(SCHEMA, open_source(path)), question).columns))
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (replace(SCHEMA.column("G"), outside=None), 'Declare outside = "missing"'),
        (Numeric(lower=0, upper=1), "Declare missing = true"),
    ],
)
def test_a_protected_value_that_could_leave_a_row_out_is_refused(changed, words):
    schema = replace(SCHEMA, columns={**SCHEMA.columns, "G": changed})
    with pytest.raises(Unsupported, match=words):
        PublicRows(("X",)).check(schema)


def test_a_protected_column_is_not_handed_out():
    with pytest.raises(Unsupported, match="column G is not public"):
        PublicRows(("X", "G")).check(SCHEMA)
    with pytest.raises(MechanismError, match="not in the schema"):
        PublicRows(("X", "Q")).check(SCHEMA)


@pytest.mark.parametrize("neighbours", PRICED)
def test_the_driver_refuses_it_under_any_other_neighbours(neighbours):
    asked = [Asked((), SCHEMA, PublicRows(("X",)))]
    with pytest.raises(Unsupported, match="this budget protects them"):
        bill(asked, Budget(1, 1e-6, neighbours))
    with pytest.raises(Unsupported, match="this budget protects them"):  # of another schema's columns
        bill(asked, replace(BUDGET, public=("Y",)))
    assert bill(asked, units.protecting(BUDGET, SCHEMA)) == []


# what mechanisms may do with it


@dataclass(frozen=True, kw_only=True)
class Copies(Mechanism):
    """A mechanism of somebody else's that takes public rows."""

    name: ClassVar[str] = "copies"
    needs: ClassVar[frozenset[type[Question]]] = frozenset({PublicRows, Counts})
    returns: ClassVar[Returns] = Returns.ROWS

    def price(self, public, budget):
        return budget.zcdp()

    def steps(self, public, allot, rng):
        yield from public_rows(("X",))
        tables = yield from counts(public.schema.oneways, rho=allot.rho)
        return Independent().steps(public, allot, rng) and tables


@pytest.mark.parametrize("neighbours", PRICED)
def test_under_other_neighbours_the_mechanism_is_refused_before_anything_is_charged(neighbours, tmp_path):
    table = opened(ledger=tmp_path / "l.ledger", ledger_epsilon=2.0)
    with pytest.raises(Unsupported, match="takes public columns as they are"):
        requested(Copies(), table, Budget(1, 1e-6, neighbours))
    for how in (Copies(), fermi()):
        with pytest.raises(Unsupported, match='neighbours = "attribute"'):
            fit(how, table, Budget(1, 1e-6, neighbours))
    assert not (tmp_path / "l.ledger").exists()


def test_what_it_discloses_is_listed_whether_or_not_it_says_so():
    assert requested(Copies(), opened(), BUDGET).budget.public == tuple(sorted(OPEN))
    found = plan(Independent(), SCHEMA, BUDGET, declared_size=200)
    assert found.unprotected == ("declared_size", "public_columns", "row_count")
    assert str(found).startswith("*** NOT PROTECTED: the columns C, D, X, Y, Z, and the number of records")


@pytest.mark.parametrize(
    ("settings", "schema", "words"),
    [
        ({}, without("X"), "X is not declared public"),
        ({}, without("D"), "D is not declared public"),
        ({}, PROTECTED, "needs to know which columns"),
        ({"features": ["X", "G"]}, SCHEMA, "G cannot be one and be protected too"),
        ({"groups": ["C"], "features": ["X"]}, SCHEMA, "protects C, which the schema declares public"),
        ({"penalty": 0.0, "groups": []}, SCHEMA, "needs a penalty"),
        ({}, replace(SCHEMA, columns={**SCHEMA.columns, "G": PROTECTED.column("G")}), 'outside = "missing"'),
        ({}, ALL_OPEN, "protects nothing"),
        ({}, replace(SCHEMA, unit=Unit(column="WHO", max_rows=1)), "single records"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(settings, schema, words, tmp_path):
    frame = people(200).assign(WHO=range(200))
    table = opened(schema, frame, ledger=tmp_path / "l.ledger", ledger_epsilon=5.0)
    with pytest.raises(Unsupported, match=words):
        fit(fermi(**settings), table, BUDGET)
    assert not (tmp_path / "l.ledger").exists()


def test_strata_are_of_public_columns():
    for how in (Stratified(MST(), ["G"], even(SCHEMA, "G")), Stratified(MST(), ["C", "G"], even(SCHEMA, "C", "G"))):
        with pytest.raises(Unsupported, match="G is not public"):
            requested(how, opened(), BUDGET)
    assert requested(Stratified(MST(), ["C"], even(SCHEMA, "C")), opened(), BUDGET).budget.public


@pytest.mark.parametrize(
    "wrong", [{"unit": "WHO"}, {"rows": 2}, {"public": "X"}, {"neighbours": "replace", "public": ("X",)}]
)
def test_budgets_that_make_no_sense(wrong):
    with pytest.raises(UsageError):
        replace(BUDGET, **wrong)


# what it costs


def test_every_step_but_the_declared_one_has_no_price():
    question = Counts((("G",),), 0.01)
    budget = units.protecting(BUDGET, SCHEMA)
    allot = budget.zcdp()
    found = prices(Spending(budget.neighbours, question.charges(SCHEMA, (), budget.neighbours.priced)), budget, allot)
    assert found["attribute"] == pytest.approx(3, rel=1e-9)
    assert [found[step] for step in ("add-remove", "move", "replace-within-group", "replace")] == [None] * 4


def test_an_attribute_is_priced_as_an_exchange_and_never_as_one_more_record():
    steps = {n: epsilon_sampled(9.75, 0.5, 40, 1e-6, n) for n in Neighbours}
    assert steps[Neighbours.ATTRIBUTE] == steps[Neighbours.REPLACE] > 1.1 * steps[Neighbours.ADD_REMOVE]
    question = Total(_query(), 0.01)
    scales = {n: question.scales(SCHEMA, n) for n in Neighbours}
    assert scales[Neighbours.ATTRIBUTE] == scales[Neighbours.REPLACE] != scales[Neighbours.ADD_REMOVE]


def _query():
    from stratsynth.questions import Coded, Gradients

    return Gradients(Coded(("X",)), "D", "logistic", np.zeros((1, 2)), 1.0)


# what adds up


@pytest.mark.parametrize(
    ("how", "schema", "budget"),
    [
        (Independent(), SCHEMA, Budget(1, 1e-6)),
        (Independent(), SCHEMA, Budget(1, 1e-6, Neighbours.REPLACE)),
        (fermi(), without("Z"), BUDGET),
    ],
)
def test_guarantees_for_other_neighbours_or_columns_do_not_add_up(tmp_path, how, schema, budget):
    frame, ledger = people(200), {"ledger": tmp_path / "l.ledger", "ledger_epsilon": 9.0}
    fit(Independent(), opened(frame=frame, **ledger), BUDGET)
    before = (tmp_path / "l.ledger").read_bytes()
    with pytest.raises(UsageError, match="account of its own"):
        fit(how, opened(schema, frame, **ledger), budget)
    assert (tmp_path / "l.ledger").read_bytes() == before
    more = fit(Independent(), opened(frame=frame, **ledger), replace(BUDGET, epsilon=2))
    assert more.certificate["ledger"]["releases"] == 2


@pytest.mark.parametrize("first", [BUDGET, Budget(1, 1e-6)])
def test_nor_in_an_account_that_lasts_for_the_process(first):
    frame, other = people(150, seed=5), Budget(1, 1e-6) if first is BUDGET else BUDGET
    fit(Independent(), opened(frame=frame), first)
    with pytest.raises(UsageError, match="account of its own"):
        fit(Independent(), opened(frame=frame), other)
    with pytest.raises(UsageError, match="account of its own"):
        fit(Independent(), opened(without("Z"), frame), replace(BUDGET, epsilon=1) if first is BUDGET else other)


def test_a_record_level_ledger_takes_no_attribute(tmp_path):
    ledger = {"ledger": tmp_path / "l.ledger", "ledger_epsilon": 9.0}
    fit(Independent(), opened(**ledger), Budget(1, 1e-6))
    with pytest.raises(UsageError, match="adds up guarantees for add-remove; one for attribute"):
        fit(Independent(), opened(**ledger), BUDGET)


# what is said of it


@pytest.fixture(scope="module")
def release():
    return fit(fermi(), opened(frame=people(400, seed=9)), BUDGET)


def test_the_certificate_says_first_what_is_not_protected(release):
    assert isinstance(release.model, Regression)
    record = release.certificate
    assert record["neighbours"] == "attribute"
    assert record["public_columns"] == sorted(OPEN)
    assert record["unprotected"] == ["declared_size", "public_columns", "row_count"]
    assert record["prices"]["attribute"] <= 3
    assert {p for step, p in record["prices"].items() if step != "attribute"} == {None}
    assert record["notices"][0]["kind"] == "public_columns"
    first = summary(record).splitlines()[0]
    assert first.startswith("*** NOT PROTECTED: the columns C, D, X, Y, Z, and the number of records.")
    assert re.search("one record is added or removed +not protected\n", summary(record))
    assert record["not_protected"][0].startswith("Public columns: C, D, X, Y, Z: the release may show them")
    assert next(iter(limits.limits(Certificate.from_dict(record)))) == "Public columns"
    assert "attribute" in repr(pd.Series(record["prices"]))
