"""Tables of everybody by the strata's columns: their price, what plan and certificate say, what they answer."""

import math

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers.releases import copied, edited, record_of
from stratsynth import Budget, Categorical, Groups, Numeric, Schema, Stratified, StratumBudgets, Weights
from stratsynth.accounting.budget import Currency
from stratsynth.adapters import MST, ClippedMean, Independent, Pooled
from stratsynth.errors import RecipeError, StratsynthError, Unsupported, UsageError
from stratsynth.fitting import request_of
from stratsynth.mechanisms import prepare
from stratsynth.mechanisms.bin_sums import check_by_tables
from stratsynth.mechanisms.with_sums import WithTables, without_sums
from stratsynth.noise import SeededEntropy
from stratsynth.planning.rehearsal import rehearse
from stratsynth.recipes.recipe import Recipe
from stratsynth.strata import crossing

SIZE = 4_000
BUDGET = Budget(1, 1e-9, first=0)
RACES = ("a", "b", "c")
SCHEMA = Schema(
    {
        "SEX": Categorical(("1", "2")),
        "RACE": Categorical(RACES),
        "JOB": Categorical(("x", "y", "z")),
        "AGE": Numeric(0, 99, bins=5, integer=True),
    }
)
SHARES = {"a": 0.95, "b": 0.03, "c": 0.02}
TABLES = (("SEX", "RACE"), ("SEX", "JOB"), ("SEX", "AGE"), ("RACE", "JOB"), ("RACE", "AGE"))


def people(size=SIZE):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"SEX": rng.choice(["1", "2"], size), "RACE": rng.choice(RACES, size, p=[*SHARES.values()])})
    return frame.assign(JOB=rng.choice(["x", "y", "z"], size, p=[0.6, 0.3, 0.1]), AGE=rng.integers(0, 100, size))


def weights():
    rows = [{"SEX": sex, "RACE": race, "share": share / 2} for sex in "12" for race, share in SHARES.items()]
    return Weights.public(pd.DataFrame(rows), citation="made up for testing")


def pooled(part=0.1, **more):
    return Pooled(base=MST(), by=["SEX", "RACE"], weights=weights(), groups=Groups(by_tables=part), **more)


def stratified(how=None, part=0.1, **more):
    groups = Groups(by_tables=part)
    return Stratified(how or Independent(), ["SEX", "RACE"], weights(), groups, **more)


def fitted(how, budget=BUDGET, seed=1, **more):
    table = ss.open_table(people(), schema=SCHEMA, declared_size=SIZE, **more)
    return ss.fit(how, table, budget, entropy=SeededEntropy(seed))


@pytest.mark.parametrize("how", [stratified, pooled])
@pytest.mark.parametrize("part", [0.05, 0.25])
def test_they_cost_their_part_and_the_rest_is_the_mechanism_s(how, part):
    prepared = prepare(how(part=part), SCHEMA, BUDGET, SIZE)
    assert isinstance(prepared.mechanism, WithTables)
    assert without_sums(prepared.mechanism) == how(part=part)
    spent = rehearse(prepared).account.spending
    first = spent.charges[0]
    assert (first.path, first.kind, first.details["cliques"]) == ((), "counts", len(TABLES))
    assert first.amount == pytest.approx(part * prepared.allot.amount)
    assert (1 - 1e-6) * prepared.allot.amount < spent.spent() <= prepared.allot.amount
    asked = prepared.beside.by_tables
    assert asked.cliques == TABLES
    assert asked.noise == pytest.approx(math.sqrt(5 / (2 * part * BUDGET.zcdp().rho)))


def test_the_smallest_budget_of_a_stratum_bears_its_part_of_them():
    prepared = prepare(stratified(budgets=StratumBudgets.factors({"1|a": 0.5})), SCHEMA, BUDGET, SIZE)
    ((_, cap),) = prepared.caps.items()
    assert prepared.beside.by_tables.rho == pytest.approx(0.1 * cap)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    people().to_parquet(folder / "people.parquet")
    table = ss.open_table(folder / "people.parquet", schema=SCHEMA, declared_size=SIZE, ledger=folder / "people.ledger")
    ss.fit(pooled(), table, BUDGET).save(folder / "release")
    return folder


def test_every_column_by_every_column_of_strata_has_an_answer(saved):
    release, frame = ss.Release.load(saved / "release"), people()
    for by in ("SEX", "RACE"):
        for column in ("JOB", "AGE"):
            counted = release.query([column], by=[by])
            assert set(counted.status) <= {"ok", "small"}
            within = release.query([column], by=[by], statistic="rate")
            assert (within.status != "not_estimable")[within[by].isin(["1", "2", "a"])].all()
        for row in release.query(["JOB"], by=[by]).itertuples():
            true = int(((frame[by] == getattr(row, by)) & (frame.JOB == row.JOB)).sum())
            assert abs(row.estimate - true) < 6.1 * row.noise_sd
    assert release.query(["AGE"], by=["SEX"], statistic="quantile").estimate.notna().all()
    assert (release.query((), by=["SEX", "RACE"]).noise_sd < release.certificate["by_tables"]["noise_sd"]).all()


def test_without_them_some_have_none():
    found = fitted(pooled(0.0)).query(["AGE"], by=["SEX"], statistic="quantile")
    assert (found.status == "not_estimable").any()


def test_intervals_hold_and_tables_make_them_narrower():
    """Strata measured all columns too: twelve fits of nine counts."""
    hold = number = 0
    frame = people()
    for seed in range(12):
        found = fitted(stratified(part=0.2), seed=seed).query(["JOB"], by=["RACE"])
        true = (
            frame.groupby(["RACE", "JOB"]).size().reindex(pd.MultiIndex.from_frame(found[["RACE", "JOB"]])).to_numpy()
        )
        hold += int(((found.noise_low <= true) & (true <= found.noise_high)).sum())
        number += len(found)
    assert 0.86 < hold / number < 0.997
    plain = fitted(stratified(part=0.0)).query(["JOB"], by=["RACE"])
    assert (found.noise_sd < plain.noise_sd * 1.05).all()


def test_measured_sizes_are_those_of_queries(saved):
    release = ss.Release.load(saved / "release")
    stated = {each["stratum"]: each for each in record_of(saved / "release")["declared_and_measured"]}
    for row in release.query((), by=["SEX", "RACE"]).itertuples():
        assert stated[f"{row.SEX}|{row.RACE}"]["measured"] == pytest.approx(row.estimate)
        assert stated[f"{row.SEX}|{row.RACE}"]["noise_sd"] == pytest.approx(row.noise_sd)
    assert stated[""]["measured"] == pytest.approx(release.query(()).estimate.iloc[0])


def test_plan_and_certificate_and_page_say_so(saved):
    plan = ss.plan(pooled(), SCHEMA, BUDGET, declared_size=SIZE)
    assert "Tables by strata" in str(plan)
    assert (
        "for 10 % of the budget (rho 0.0015): 5 tables of everybody, of each of SEX, RACE and" in plan.by_tables_words
    )
    assert record_of(saved / "release")["by_tables"] == pytest.approx(plan.by_tables)
    page = (saved / "release" / "report.html").read_text(encoding="utf-8")
    assert "For 10 % of the budget, 5 tables of everybody" in page
    none = ss.plan(pooled(0.0), SCHEMA, BUDGET, declared_size=SIZE)
    assert (none.by_tables, "Tables by strata" in str(none)) == ({}, False)


def test_verify_finds_them_as_stated(saved):
    verdict = ss.verify(saved / "release", ledger=saved / "people.ledger")
    assert verdict.findings == ()
    assert any("Tables of everybody by the strata's columns were charged as stated" in line for line in verdict.checked)


CHANGES = {
    "share": lambda said: said.update(share=0.05),
    "rho": lambda said: said.update(rho=said["rho"] / 2),
    "tables": lambda said: said.update(tables=4),
    "noise": lambda said: said.update(noise_sd=said["noise_sd"] * 0.9),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_edited_statement_is_found(saved, change, tmp_path):
    release = copied(saved / "release", tmp_path / "release")
    edited(release, lambda record: CHANGES[change](record["by_tables"]))
    assert any("tables by the strata's columns" in line for line in ss.verify(release).findings)


def test_a_fit_without_them_is_the_request_that_it_was_and_one_with_them_another():
    plain = Stratified(Independent(), ["SEX", "RACE"], weights())
    known = [request_of(prepare(how, SCHEMA, BUDGET, SIZE), 1).identity for how in (plain, stratified(part=0.0))]
    assert known[0] == known[1]
    asked = {request_of(prepare(stratified(part=part), SCHEMA, BUDGET, SIZE), 1).identity for part in (0.1, 0.2)}
    assert len({*known, *asked}) == 3


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (
            lambda: stratified(ClippedMean(columns=["AGE"])),
            "by_tables are asked beside rows, and clipped_mean releases",
        ),
        (lambda: Groups(by_tables=0.3), "by_tables must be a number from 0 to 0.25, a part of the fit's amount"),
        (lambda: Groups(by_tables="5 %"), "by_tables must be a number"),
    ],
)
def test_they_are_refused_where_they_have_no_price_or_no_use(how, words):
    with pytest.raises(StratsynthError, match=words):
        prepare(how(), SCHEMA, Budget(1, 1e-9, "replace", first=0), SIZE)


def test_they_are_refused_where_their_noise_has_no_price():
    how = stratified()
    public = prepare(how, SCHEMA, BUDGET, SIZE).public
    check_by_tables(how, how.strata(public, BUDGET), Currency.ZCDP)
    with pytest.raises(Unsupported, match="counted in zCDP, and independent spends in pure; leave it out"):
        check_by_tables(how, how.strata(public, BUDGET), Currency.PURE)


def test_hundreds_of_strata_are_refused_with_the_remedy():
    levels = tuple(map(str, range(501)))
    schema = Schema({"G": Categorical(levels), "JOB": SCHEMA.columns["JOB"]})
    shares = Weights.public(pd.DataFrame({"G": levels, "share": 1 / 501}), citation="made up for testing")
    how = Stratified(Independent(), ["G"], shares, Groups(by_tables=0.1))
    with pytest.raises(Unsupported, match="at most 500 strata, and there are 501; merge groups"):
        check_by_tables(how, how.strata(prepare(Independent(), schema, BUDGET, SIZE).public, BUDGET), Currency.ZCDP)
    assert len(crossing(schema, ("G",))) == 501


RECIPE = """
[data]
path = "people.parquet"
schema = "schema.toml"
declared_size = 4000
[strata]
by = ["SEX", "RACE"]
by_tables = {part}
[weights]
source = "private"
share = 0.1
[mechanism]
name = "independent"
[budget]
epsilon = 1
delta = 1e-9
"""


def test_a_recipe_asks_them_in_its_strata(tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    (tmp_path / "recipe.toml").write_text(RECIPE.format(part=0.05))
    prepared = Recipe.read(tmp_path / "recipe.toml").prepared
    assert prepared.beside.by_tables.share == 0.05
    (tmp_path / "recipe.toml").write_text(RECIPE.format(part='"a tenth"'))
    with pytest.raises((RecipeError, UsageError), match="by_tables"):
        Recipe.read(tmp_path / "recipe.toml")
