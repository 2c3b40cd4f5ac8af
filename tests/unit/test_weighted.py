"""Shares that are public, in fits of everybody together: nothing is spent on them, and rows are drawn by them."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.special import chdtri

from helpers import small
from helpers.contract import violations
from helpers.priors import SCHEMA, last_year, people
from helpers.releases import copied, edited
from stratsynth import (
    Budget,
    Categorical,
    Nested,
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
)
from stratsynth.adapters.engine import MeasuredTable
from stratsynth.adapters.pooled import Pooled
from stratsynth.adapters.shared.known import CHANCE, believed, doubted, doubts, farthest, undisputed
from stratsynth.layout.layout import lay_out
from stratsynth.mechanisms import Mechanism, make, prepare
from stratsynth.mechanisms.known import Known
from stratsynth.models import Mixture, Returns
from stratsynth.noise import SeededEntropy
from stratsynth.strata.groups import Groups

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


def even(column: str) -> Weights:
    levels = SCHEMA.levels(column)
    return Weights.public(pd.DataFrame({column: levels, "share": 1 / len(levels)}), citation="even shares")


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
            next(
                charge["sigma"] for charge in fitted(name, **more).certificate["charges"] if charge["kind"] == "counts"
            )
            for more in ({}, {"weights": shares()})
        )
        assert given < without


def test_how_other_columns_go_with_the_groups_is_kept():
    release = fitted("mst", weights=shares())
    rows = release.sample(4_000, seed=1)
    assert (rows.B[rows.A == "1"] == "1").mean() > 0.6  # 0.8 of the people, by the helper


def test_answers_that_disagree_make_a_public_table_count_less():
    even = Known(("A",), np.array([0.5, 0.5]))
    paid = [MeasuredTable(("A", "B"), np.array([[800, 100], [90, 10]]), 5.0)]
    (alone,), (judged,) = believed([even], [], 1_000), believed([even], paid, 1_000)
    assert alone.sigma == pytest.approx(np.sqrt(250))
    assert judged.sigma == pytest.approx(400, rel=0.01)  # 900 and 100, where 500 and 500 were said
    assert judged.values.tolist() == [500, 500]
    near = [MeasuredTable(("A",), np.array([510, 488]), 5.0)]
    assert believed([even], near, 1_000)[0].sigma == alone.sigma


@pytest.mark.parametrize("sigma", [5.0, 30.0])
def test_chance_alone_takes_no_trust_from_a_public_table_in_thousands_of_comparisons(sigma: float):
    rng, people, comparisons = np.random.default_rng(0), 2_000, 5_000
    for shares in ([0.5, 0.5], [0.97, 0.01, 0.02], np.full(40, 1 / 40)):
        right = Known(("A",), np.array(shares))
        drawn = rng.multinomial(people, shares, comparisons)
        noisy = np.rint(drawn + rng.normal(0, sigma, drawn.shape)).astype(np.int64)
        paid = [MeasuredTable(("A",), values, sigma) for values in noisy]
        assert undisputed([right], paid, people) == [right]
        assert believed([right], paid, people)[0].sigma == believed([right], [], people)[0].sigma
        # one answer of people half of whom have another level now is found among them all the same
        moved = drawn[0] // 2 + np.append(np.zeros(len(shares) - 1, np.int64), people // 2)
        assert not undisputed([right], [*paid, MeasuredTable(("A",), moved, sigma)], people)


@pytest.mark.parametrize("chance", [CHANCE, 1e-4])
def test_a_right_table_is_farther_than_the_limit_with_the_stated_chance(chance: float):
    rng, people, sigma, many = np.random.default_rng(1), 5_000, 20.0, 200_000
    for shares in (np.array([0.99, 0.01]), np.array([0.6, 0.2, 0.1, 0.1])):
        answers = rng.multinomial(people, shares, many) + rng.normal(0, sigma, (many, shares.size))
        far = ((answers - people * shares) ** 2).sum(axis=1)
        variance = sigma**2 + people * float((shares * (1 - shares)).mean())
        assert far.mean() == pytest.approx(shares.size * variance, rel=0.01)
        limit = farthest(shares, people, sigma**2, variance - sigma**2, chance)
        assert (far > limit).mean() == pytest.approx(chance, rel=0.5)


def test_of_noise_alone_the_limit_is_the_chi_square_and_it_exists_where_one_level_has_everybody():
    assert farthest(np.full(6, 1 / 6), 0.0, 25.0, 0.0, 0.01) == pytest.approx(25 * chdtri(6, 0.01))
    assert farthest(np.array([0.5, 0.5]), 400.0, 0.0, 100.0, 0.01) == pytest.approx(200 * chdtri(1, 0.01))
    for shares in ([1.0, 0.0], [1 - 1e-12, 1e-12, 0.0]):
        assert 0 < farthest(np.array(shares), 1e12, 1.0, 1.0, 1e-5) < 1_000


def test_strata_doubt_what_answers_about_everybody_contradict():
    here = np.array([0.5, 0.3, 0.2])
    everybody = [Known(("A",), here), Known(("B",), np.array([0.5, 0.5])), Known(("C",), here)]
    paid = [
        MeasuredTable(("A",), np.array([5_020, 2_950, 2_030]), 10.0),  # as published
        MeasuredTable(("B",), np.array([5_500, 4_500]), 10.0),  # off by .05
        MeasuredTable(("C",), np.array([500, 2_500, 7_000]), 10.0),  # worse than even levels
    ]
    off = doubts(everybody, paid, 10_000)
    assert off == {frozenset("B"): pytest.approx(0.05**2, rel=0.02), frozenset("C"): np.inf}
    inside = [Known(("A",), here), Known(("B", "M"), np.full((2, 2), 0.25), error=0.1), Known(("C",), here)]
    first, second = doubted(inside, off, ("A", "B", "C"))
    assert first is inside[0]
    assert second.clique == ("B", "M")  # M is the strata's own
    assert second.error == pytest.approx((0.1**2 + 0.05**2) ** 0.5, rel=0.01)
    assert doubted([Known(("C",), here, certain=True)], off, ("C",))


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
    assert "no budget is spent on these shares" in str(found)
    assert found.mechanism == "mst, shares by weights"


REFUSED = {
    "shares that are asked": (lambda: Weighted("mst", Weights.private(share=0.1)), "figures that are public already"),
    "shares of a sample": (
        lambda: Weighted("mst", Weights.holdout(people(50, 3), citation="made up")),
        "figures that are public already",
    ),
    "strata beside it": (lambda: Weighted(Stratified("mst", ["G"], shares()), shares()), "has strata"),
    "raked from a sample": (
        lambda: Weighted("mst", Weights.raked(shares(), start=Weights.holdout(people(50, 3), citation="made up"))),
        "not raked ones of a sample",
    ),
    "shares beside shares": (lambda: Weighted(Weighted("mst", even("A")), even("G")), "one table of shares"),
    "inside strata": (
        lambda: prepare(Stratified(Weighted("mst", even("A")), ["G"], even("G")), SCHEMA, BUDGET, 2_000),
        "would be taken for those of every stratum",
    ),
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
        for weights in (
            shares(),
            Weights.public(pd.DataFrame({"G": ["0", "1"], "share": [0.5, 0.5]}), citation="made up"),
        )
    )
    from stratsynth.fitting import request_of

    assert request_of(one, 0).identity != request_of(two, 0).identity


@pytest.mark.parametrize("name", NAMES)
def test_the_contract_holds(name: str):
    settings = {"gem": {"components": 4, "hidden": [3], "latent": 2, "iterations": 1, "rounds": 2, "least": 20}}

    def build(world, _):
        return Weighted(make(name, settings.get(name, {})), world.weights, world.by)

    assert violations(build, tables=3, neighbours=4) == []


def test_the_recipe_says_it_by_weights_without_strata(tmp_path: Path, monkeypatch, capsys):
    path = small.write_recipe(tmp_path)
    small.edit(path, '[strata]\nby = ["SEX", "GROUP"]', "")
    monkeypatch.chdir(tmp_path)
    assert cli.run(["plan", "recipe.toml"]) == 0
    assert "of SEX x GROUP, which are no strata: no budget is spent on these shares" in capsys.readouterr().out
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


@dataclass(frozen=True)
class Forwarding(Mechanism):
    """Wraps another and forwards everything but the groups by whose shares rows are drawn."""

    inner: Mechanism
    name: ClassVar[str] = "forwarding"
    returns: ClassVar[Returns] = Returns.ROWS
    takes_known: ClassVar[bool] = True
    takes_prior: ClassVar[bool] = True
    needs = property(lambda self: self.inner.needs)
    adaptive = property(lambda self: self.inner.adaptive)
    unprotected = property(lambda self: self.inner.unprotected)

    def price(self, public, budget):
        return self.inner.price(public, budget)

    def steps(self, public, allot, rng):
        return self.inner.steps(public, allot, rng)

    def strata(self, public, budget):
        return self.inner.strata(public, budget)


@dataclass(frozen=True)
class Honest(Forwarding):
    """Forwards these too."""

    def drawn(self, public, budget):
        return self.inner.drawn(public, budget)


@dataclass(frozen=True)
class Own(Honest):
    """Says that it draws by groups of its own, of which it knows nothing beforehand."""

    def drawn(self, public, budget):
        return lay_out(public.schema, ["B"], Groups(), even("B"), None, public.size, 1.0)


def refused_before_the_charge(how, said: str, **given) -> None:
    opened = table()
    with pytest.raises(StratsynthError, match=said):
        fit(how, opened, BUDGET, **given)
    assert opened.ledger.reserved == ()


def test_one_that_wraps_another_cannot_hide_the_shares_that_rows_are_drawn_by():
    refused_before_the_charge(Forwarding(Weighted("mst", shares())), "draws rows by shares of groups and does not say")
    refused_before_the_charge(Forwarding(Honest(Weighted("mst", shares()))), "does not say so")
    assert prepare(Forwarding(make("mst", {})), SCHEMA, BUDGET, 2_000).drawn is None
    assert fit(Honest(Weighted("mst", shares())), table(), BUDGET).certificate["weights"]["by"] == ["A", "G"]


def test_shares_beside_shares_are_refused_before_the_charge_however_they_are_wrapped():
    refused_before_the_charge(Weighted("mst", even("A")), "one table of shares", weights=even("G"))
    refused_before_the_charge(Honest(Weighted("mst", even("A"))), "one table of shares", weights=even("G"))
    refused_before_the_charge(Forwarding(Weighted("mst", even("A"))), "one table of shares", weights=even("G"))
    refused_before_the_charge(Own(make("mst", {})), "shares of its own", weights=even("G"))


def test_a_pooled_fit_takes_no_sample_for_certain():
    raked = Weights.raked(shares(), start=Weights.holdout(people(500, 3), citation="made up"))
    release = fit(Pooled(base="mst", by=["A", "G"], weights=raked, share=1), table(), BUDGET, entropy=SeededEntropy(2))
    assert {frozenset("A"), frozenset("G")} <= asked(release)


def test_nobody_prepares_tables_or_rows_that_the_certificate_would_not_name():
    prepared = prepare("mst", SCHEMA, BUDGET, 2_000)
    tables = (Known(("A",), np.array([0.2, 0.3, 0.5]), certain=True),)
    with pytest.raises(StratsynthError, match="its certificate would not name"):
        replace(prepared, public=replace(prepared.public, known=tables))
    started = prepare("mst", SCHEMA, BUDGET, 2_000, last_year())
    assert started.public.prior is not None
    with pytest.raises(StratsynthError, match="its certificate would not name"):
        replace(started, prior=None)
    with pytest.raises(StratsynthError, match="its certificate would not name"):
        replace(started, public=replace(started.public, known=(*started.public.known, *tables)))


def test_code_lists_whose_shares_are_given_are_counted_by_code():
    codes = tuple(f"c{i}" for i in range(60))
    nested = Nested(levels=codes, groupings=({f"group {g}": codes[g * 10 : g * 10 + 10] for g in range(6)},))
    schema = Schema({"JOB": nested, "OTHER": nested, "WORK": Categorical(levels=["0", "1"])})
    given = Weights.public(pd.DataFrame({"JOB": list(codes), "share": 1 / 60}), citation="made up")
    frame = pd.DataFrame({"JOB": codes * 5, "OTHER": codes * 5, "WORK": ["0", "1"] * 150})
    release = fit("mst", open_table(frame, schema=schema, declared_size=300), BUDGET, weights=given)
    said = {each["column"]: each for each in release.certificate["code_lists"]}
    assert (said["JOB"]["levels"], said["JOB"]["why"]) == (60, "rows are drawn by its shares")
    assert said["OTHER"]["levels"] < 60
    assert release.sample(600, seed=1).JOB.value_counts().reindex(codes).eq(10).all()


def test_it_is_said_that_nobody_compared_the_shares():
    release = fitted("mst", weights=shares())
    (said,) = [n["text"] for n in release.certificate["notices"] if n["kind"] == "shares_not_compared"]
    assert said.startswith("the shares of A x G were compared with nothing")
    assert "no measured count is compared with the shares" in str(
        plan("mst", SCHEMA, BUDGET, declared_size=2_000, weights=shares())
    )
    for other in (fitted("mst"), fit(Stratified("mst", ["G"], even("G")), table(), BUDGET)):
        assert all(n["kind"] != "shares_not_compared" for n in other.certificate.get("notices", ()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update(weights={"source": "none", "citation": None}), "certificate.json names none"),
        (lambda c: c["weights"].update(source="none"), "certificate.json names none"),
        (lambda c: c["weights"].pop("by"), "names shares of others"),
        (lambda c: c["weights"].update(by=["A"]), "names shares of others"),
        (lambda c: c["weights"].update(by=["A", "B"]), "names shares of others"),
    ],
    ids=["out", "source", "columns", "fewer", "others"],
)
def test_an_edit_of_the_shares_in_a_certificate_is_found(change, said, stored: Path, tmp_path: Path):
    place = copied(stored, tmp_path / "release")
    assert verify(place).ok
    edited(place, change)
    assert any(said in finding for finding in verify(place).findings)


def test_shares_that_are_put_into_a_certificate_are_found(tmp_path: Path):
    fitted("mst").save(tmp_path / "release", rows=50, seed=1)
    edited(tmp_path / "release", lambda c: c.update(weights={"source": "public", "citation": "none", "by": ["A"]}))
    assert any("the model mixes none" in finding for finding in verify(tmp_path / "release").findings)


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("weighted") / "release"
    fit("mst", table(), BUDGET, weights=shares()).save(place, rows=50, seed=1)
    return place
