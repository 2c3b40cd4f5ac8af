"""A plan says how long a fit will take, and ends in time itself; a fit of hours says so before it reserves."""

import json
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.small import BUDGET, SCHEMA, write_recipe
from stratsynth import Categorical, Schema, Stratified, Weights, census, fit, open_table
from stratsynth.accounting.budget import PRICED, Currency
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.joined import joined
from stratsynth.adapters import AIM, MST, Independent
from stratsynth.cli import progress
from stratsynth.errors import Unsupported
from stratsynth.mechanisms import prepare
from stratsynth.planning import plan, rehearsal
from stratsynth.planning.rehearsal import Rehearsal, about, check_charges, check_effort, rehearse
from stratsynth.recipes.recipe import Recipe
from stratsynth.strata import Stratum


def world(columns, levels=3, rows=50):
    names = [f"C{i}" for i in range(columns)]
    schema = Schema({name: Categorical(levels=tuple(map(str, range(levels)))) for name in names})
    rng = np.random.default_rng(0)
    return schema, pd.DataFrame({name: rng.integers(0, levels, rows).astype(str) for name in names})


def foreseen(how, columns, size=20_000):
    prepared = prepare(how, world(columns)[0], BUDGET, size)
    return rehearse(prepared).seconds


def test_more_columns_more_rows_and_more_work_take_longer():
    assert foreseen(Independent(), 10) < 1
    assert foreseen(MST(), 60) > 3 * foreseen(MST(), 20)
    assert foreseen(MST(), 10, 10**8) > 30 * foreseen(MST(), 10, 10**5)
    assert foreseen(AIM("all 2-way"), 30) > foreseen(Independent(), 30)


def test_a_fit_is_of_the_foreseen_order():
    schema, frame = world(40, rows=2000)
    prepared = prepare(MST(), schema, BUDGET, 2000)
    estimate = rehearse(prepared).seconds
    start = time.process_time()
    fit(MST(), open_table(frame, schema=schema, declared_size=2000), BUDGET)
    assert estimate / 30 < time.process_time() - start < 30 * estimate


def test_the_rehearsal_of_a_tree_asks_what_a_fit_asks():
    """Charges and plan are equal, though most candidates are left out of all choices but the first."""
    schema, frame = world(12)
    release = fit(MST(), open_table(frame, schema=schema, declared_size=50), BUDGET)
    found = rehearse(prepare(MST(), schema, BUDGET, 50))
    charges = [charge.to_dict() for charge in found.account.spending.charges]
    assert len(charges) == len(release.certificate["charges"])
    for foreseen_, made in zip(charges, release.certificate["charges"], strict=True):
        assert {**foreseen_, "candidates": 0} == {**made, "candidates": 0}


@pytest.mark.parametrize("how", [MST(), AIM("all 2-way")], ids=["mst", "aim"])
def test_the_work_of_a_rehearsal_is_not_that_of_the_fit(how, monkeypatch):
    """Candidates that are looked at: each once or twice, not once a choice."""
    from stratsynth.questions import Distance, Pairs

    looked, check, check_all = [], Distance.check, Pairs.check_all

    def counted(self, schema):
        looked.append(self.clique)
        check(self, schema)

    def counted_all(self, schema):
        looked.extend(self.cliques)
        check_all(self, schema)

    monkeypatch.setattr(Distance, "check", counted)
    monkeypatch.setattr(Pairs, "check_all", counted_all)
    rehearse(prepare(how, world(60)[0], BUDGET, 10**6))
    pairs = 60 * 59 // 2
    assert pairs <= len(looked) <= 3 * pairs


def test_the_plan_says_it_in_words():
    found = " ".join(str(plan(MST(), SCHEMA, BUDGET, declared_size=100)).split())
    assert "Time less than a minute on one core" in found
    words = [about(s) for s in (1, 61, 400, 4000, 86400 * 3, 86400 * 4000)]
    assert words == [
        "less than a minute",
        "about 1 minute",
        "about 7 minutes",
        "about 1 hour",
        "about 3 days",
        "about 4,000 days",
    ]


def test_a_fit_of_hours_says_so_before_it_reserves(tmp_path, monkeypatch, capsys):
    recipe = Recipe.read(write_recipe(tmp_path))
    monkeypatch.setattr(Rehearsal, "seconds", 7300.0)
    progress.fit_with_progress(recipe, tmp_path / "release")
    assert "note: this fit takes about 2 hours on one core" in capsys.readouterr().err


def test_a_fit_that_nobody_would_see_the_end_of_is_refused_by_plan_and_fit(monkeypatch):
    monkeypatch.setattr(rehearsal, "MOST_DAYS", 1e-9)
    schema, frame = world(5)
    table = open_table(frame, schema=schema, declared_size=50)
    with pytest.raises(Unsupported, match="fit fewer columns"):
        fit(MST(), table, BUDGET)
    with pytest.raises(Unsupported, match="fit fewer columns"):
        plan(MST(), schema, BUDGET, declared_size=50)
    assert table.ledger.reserved == ()
    with pytest.raises(Unsupported, match="about 200 days"):
        check_effort(86400 * 203)


def test_a_longer_list_of_charges_than_is_read_again_is_refused_before_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr("stratsynth.planning.rehearsal.MOST_VALUES", 85)
    schema, frame = world(6, rows=100)
    frame.to_csv(tmp_path / "people.csv", index=False)
    table = open_table(
        tmp_path / "people.csv", schema=schema, declared_size=10_000, ledger=tmp_path / "l.ledger", ledger_epsilon=2
    )
    with pytest.raises(Unsupported, match="fewer strata"):
        fit(MST(), table, BUDGET)
    assert not (tmp_path / "l.ledger").exists()
    with pytest.raises(Unsupported, match="fewer strata"):
        plan(MST(), schema, BUDGET, declared_size=10_000)


def test_choices_at_one_price_are_one_entry_and_a_value_for_each_number_of_candidates(monkeypatch):
    monkeypatch.setattr("stratsynth.planning.rehearsal.MOST_VALUES", 20 + 25 + 25)
    alike = [
        Charge((), "choose", 0.01, dict.fromkeys(PRICED, 1.0), {"epsilon": 0.1, "candidates": n}) for n in range(26)
    ]
    check_charges(alike[:25])
    with pytest.raises(Unsupported, match="26 times"):
        check_charges(alike)
    with pytest.raises(Unsupported, match="7 times"):
        check_charges([replace(alike[0], amount=0.02), *alike[:6]])
    with pytest.raises(Unsupported, match="2 times in 2 strata"):
        check_charges([replace(alike[0], path=(Stratum.of({"SEX": sex}),)) for sex in "12"])


@pytest.mark.parametrize(
    ("how", "by"), [(MST(), ("SEX", "RAC1P")), (Independent(), ("RAC1P",)), (Independent(), ("SEX", "RAC1P", "HISP"))]
)
def test_values_of_a_certificate_are_foretold_about_right(how, by):
    """By what is there: in the census, whose strata have a line on their size and one on few people."""
    weights = Weights.public(census.shares(by), citation=census.CITATION)
    table = open_table(census.make(2_000), schema=census.schema(), declared_size=2_000)
    release = fit(Stratified(how, by, weights), table, BUDGET)
    spent = [Charge.from_dict(c, Currency.ZCDP) for c in release.certificate["charges"]]
    content = json.dumps({**release.certificate, "charges": [c.to_dict() for c in joined(spent)]})
    values = sum(content.count(mark) for mark in ",:[{")
    assert values - 700 <= rehearsal.certificate_values(spent) <= 1.1 * values
