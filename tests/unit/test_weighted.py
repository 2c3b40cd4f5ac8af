"""Shares that are public, in fits of everybody together: nothing is spent on them, and rows are drawn by them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from stratsynth.adapters.engine import Measured
from stratsynth.adapters.pooled import Pooled
from stratsynth.adapters.shared.known import believed

from helpers import small
from helpers.priors import SCHEMA, last_year, people
from stratsynth import (
    Budget,
    Numeric,
    Release,
    Schema,
    Stratified,
    StratsynthError,
    Weighted,
    Weights,
    cli,
    fit,
    open_table,
    plan,
    verify,
)  # fmt: skip
from stratsynth.mechanisms import make, prepare
from stratsynth.mechanisms.known import Known
from stratsynth.models import Mixture
from stratsynth.noise import SeededEntropy
from stratsynth.testing import check_contract

BUDGET = Budget(epsilon=1, delta=1e-9)
NAMES = ("independent", "mst", "aim", "gem", "fixed")
FAST = {"gem": {"iterations": 5, "components": 16, "hidden": [8], "latent": 4}}
SHARES = {("0", "0"): 0.2, ("1", "0"): 0.4, ("2", "0"): 0.1, ("0", "1"): 0.05, ("1", "1"): 0.25, ("2", "1"): 0.0}


def shares() -> Weights:
    """Of A and G; far from what the people of the helpers are."""
    frame = pd.DataFrame([{"A": a, "G": g, "share": share} for (a, g), share in SHARES.items()])
    return Weights.public(frame, citation="made up for testing")


def table(rows: int = 2_000):
    return open_table(people(rows, 11), schema=SCHEMA, declared_size=rows)


def fitted(name: str, **given) -> Release:
    return fit(make(name, FAST.get(name, {})), table(), BUDGET, seed=0, entropy=SeededEntropy(1), **given)


def asked(release: Release) -> set[frozenset[str]]:
    """The columns of the tables that were paid for."""
    return {frozenset(clique.split(",")) for clique in release.measurements.column("clique").to_pylist()}


TOLD = {frozenset("A"), frozenset("G"), frozenset("AG")}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_spent_on_the_shares_and_rows_are_drawn_by_them(name: str):
    release = fitted(name, weights=shares())
    paid = asked(release)
    assert paid
    assert not paid & TOLD
    rows = release.sample(1_000, seed=3)
    counted = rows.groupby(["A", "G"]).size().reindex(pd.MultiIndex.from_tuples(SHARES), fill_value=0)
    assert np.abs(counted.to_numpy() - 1_000 * np.array([*SHARES.values()])).max() < 1
    assert release.certificate["strata"] == {"by": [], "cells": 1, "merged": []}
    assert release.certificate["weights"]["by"] == ["A", "G"]
    assert release.certificate["weights"]["citation"] == "made up for testing"
    assert release.certificate["mechanism"]["name"] == name


@pytest.mark.parametrize("name", NAMES)
def test_what_is_saved_makes_the_other_tables_less_noisy(name: str):
    without, given = (
        min(charge["sigma"] for charge in fitted(name, **more).certificate["charges"] if "sigma" in charge)
        for more in ({}, {"weights": shares()})
    )
    assert given < without or name in ("aim", "gem")  # whose last rounds take whatever is left


def test_the_first_tables_of_aim_and_gem_are_less_noisy_too():
    for name in ("aim", "gem"):
        without, given = (
            next(charge["sigma"] for charge in fitted(name, **more).certificate["charges"] if "sigma" in charge)
            for more in ({}, {"weights": shares()})
        )
        assert given < without


def test_how_other_columns_go_with_the_groups_is_kept():
    release = fitted("mst", weights=shares())
    rows = release.sample(4_000, seed=1)
    assert (rows.B[rows.A == "1"] == "1").mean() > 0.6  # 0.8 of the people, by the helper


def test_answers_that_disagree_make_a_public_table_count_less():
    even = Known(("A",), np.array([0.5, 0.5]))
    paid = [Measured(("A", "B"), np.array([[800, 100], [90, 10]]), 5.0)]
    (alone,), (judged,) = believed([even], [], 1_000), believed([even], paid, 1_000)
    assert alone.sigma == pytest.approx(np.sqrt(250))
    assert judged.sigma == pytest.approx(400, rel=0.01)  # 900 and 100, where 500 and 500 were said
    assert judged.values.tolist() == [500, 500]
    near = [Measured(("A",), np.array([510, 488]), 5.0)]
    assert believed([even], near, 1_000)[0].sigma == alone.sigma


def test_exact_counts_are_listed_as_unprotected():
    frame = pd.DataFrame({"G": ["0", "1"], "count": [1_800, 200]})
    release = fitted("mst", weights=Weights.invariant(frame))
    assert "group_counts" in release.certificate["unprotected"]


def test_a_pooled_fit_that_measures_no_strata_spends_nothing_on_their_columns():
    how = Pooled(base="mst", by=["A", "G"], weights=shares(), share=1)
    release = fit(how, table(), BUDGET, entropy=SeededEntropy(2))
    assert not asked(release) & TOLD
    rows = release.sample(1_000, seed=3)
    assert ((rows.A == "1") & (rows.G == "0")).sum() == pytest.approx(400, abs=1)


def test_with_a_prior_too():
    release = fitted("aim", weights=shares(), prior=last_year())
    rows = release.sample(1_000, seed=3)
    assert ((rows.A == "1") & (rows.G == "0")).sum() == pytest.approx(400, abs=1)
    assert not asked(release) & TOLD
    assert release.certificate["prior"]["citation"]


def test_it_is_stored_verified_and_planned(tmp_path: Path):
    release = fit("mst", table(), BUDGET, weights=shares())
    release.save(tmp_path / "release", rows=500, seed=1)
    again = Release.load(tmp_path / "release")
    assert isinstance(again.model, Mixture)
    pd.testing.assert_frame_equal(again.sample(200, seed=5), release.sample(200, seed=5))
    assert verify(tmp_path / "release").ok
    assert "rows are drawn by them" in (tmp_path / "release" / "report.html").read_text()
    stated = json.loads((tmp_path / "release" / "certificate.json").read_text())
    assert stated["weights"]["source"] == "public"
    found = plan("mst", SCHEMA, BUDGET, declared_size=2_000, weights=shares())
    assert found.weights["by"] == ["A", "G"]
    assert "nothing is spent on their shares" in str(found)
    assert found.mechanism == "mst, shares by weights"


REFUSED = {
    "shares that are asked": (lambda: Weighted("mst", Weights.private(share=0.1)), "figures that are public already"),
    "shares of a sample": (
        lambda: Weighted("mst", Weights.holdout(people(50, 3), citation="made up")),
        "figures that are public already",
    ),
    "strata beside it": (lambda: Weighted(Stratified("mst", ["G"], shares()), shares()), "has strata"),
    "estimates": (lambda: Weighted("clipped_mean", shares()), "measures what it measures"),
    "no weights": (lambda: Weighted("mst", None), r"come from Weights\.public"),
    "a column as a text": (lambda: Weighted("mst", shares(), "A"), "a list of columns"),
    "columns that the weights lack": (
        lambda: prepare(Weighted("mst", shares(), ["A", "B"]), SCHEMA, BUDGET, 2_000),
        "the shares are by A,G",
    ),
    "all columns": (
        lambda: prepare(Weighted("independent", shares()), Schema({c: SCHEMA.column(c) for c in "AG"}), BUDGET, 2_000),
        "nothing left",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused(case):
    make_it, said = case
    with pytest.raises(StratsynthError, match=said):
        make_it()


def test_the_private_file_is_refused_as_weights_before_anything_is_charged(tmp_path: Path):
    path, ledger = tmp_path / "people.csv", tmp_path / "l"
    pd.DataFrame([(a, g, share) for (a, g), share in SHARES.items()], columns=["A", "G", "share"]).to_csv(
        path, index=False
    )
    schema = Schema({**{c: SCHEMA.column(c) for c in "AG"}, "share": Numeric(lower=0, upper=1, bins=4)})
    weights = Weights.public(path, citation="not true")
    with pytest.raises(StratsynthError, match="the private table itself"):
        fit("mst", open_table(path, schema=schema, ledger=ledger), BUDGET, weights=weights)
    assert not ledger.exists() or "fit" not in ledger.read_text()


def test_other_shares_are_another_fit():
    one, two = (
        prepare(Weighted("mst", weights), SCHEMA, BUDGET, 2_000)
        for weights in (shares(), Weights.public(pd.DataFrame({"G": ["0", "1"], "share": [0.5, 0.5]}), citation="b"))
    )
    from stratsynth.fitting import request_of

    assert request_of(one, 0).identity != request_of(two, 0).identity


@pytest.mark.parametrize("name", NAMES)
def test_the_contract_holds(name: str):
    settings = {"gem": {"components": 4, "hidden": [3], "latent": 2, "iterations": 1, "rounds": 2, "least": 20}}

    def build(world, _):
        return Weighted(make(name, settings.get(name, {})), world.weights, world.by)

    assert check_contract(build, tables=4, neighbours=4) == []


def test_the_recipe_says_it_by_weights_without_strata(tmp_path: Path, monkeypatch, capsys):
    path = small.write_recipe(tmp_path)
    small.edit(path, '[strata]\nby = ["SEX", "GROUP"]', "")
    monkeypatch.chdir(tmp_path)
    assert cli.run(["plan", "recipe.toml"]) == 0
    assert "of SEX x GROUP, which are no strata: nothing is spent on their shares" in capsys.readouterr().out
    assert cli.run(["fit", "recipe.toml"]) == 0
    assert cli.run(["verify", "release"]) == 0
    rows = pd.read_parquet("release/synthetic.parquet")
    assert ((rows.SEX == "2") & (rows.GROUP == "a")).sum() == 25  # half of the rows, by shares.csv
    small.edit(
        path,
        'source = "public"\npath = "shares.csv"\ncitation = "made up for testing"',
        'source = "private"\nshare = 0.1',
    )
    capsys.readouterr()
    assert cli.run(["fit", "recipe.toml", "-o", "other"]) == 2
    assert "figures that are public already" in capsys.readouterr().err
