"""Clipped sums beside a mechanism's questions: sensitivities, prices, noise, strata, and what certificates state."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from helpers.ledgers import ladder, lines_of
from helpers.releases import copied, edited, record_of
from stratsynth import Budget, Categorical, Groups, Numeric, Schema, Stratified, StratumBudgets, Weights
from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.adapters import MST, CoinPress, External, Independent
from stratsynth.certificate import SumsStated
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.answering import Answerer
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.sums import exact_sums
from stratsynth.errors import Unsupported
from stratsynth.fitting import request_of
from stratsynth.mechanisms import make, prepare
from stratsynth.mechanisms.clipped_sums import NORMAL_95, PRECISE, ClippedColumn, share_of
from stratsynth.mechanisms.with_sums import WithSums, without_sums
from stratsynth.noise import SeededEntropy
from stratsynth.planning.rehearsal import rehearse
from stratsynth.questions import Columns, Total
from stratsynth.questions.base import Setting
from stratsynth.questions.sums.base import GRID
from stratsynth.release.page.sums import sums_line
from stratsynth.schema.weight import RowWeight

SIZE = 20_000
"""Declared number of people; of the two groups, one is large enough for sums of its own."""
BUDGET = Budget(1, 1e-9, first=0)
PAY = Numeric(
    lower=-100, upper=4_000_000, bins=20, spacing="log", transform_unit=1000, missing=True, special=("-999",), clip=1e5
)
SCHEMA = Schema({"SEX": Categorical(("1", "2")), "JOB": Categorical(tuple("abcdef")), "PAY": PAY})
SHARES = {"1": 0.97, "2": 0.03}


def weights(shares=SHARES):
    frame = pd.DataFrame({"SEX": [*shares], "share": [*shares.values()]})
    return Weights.public(frame, citation="made up for testing")


def people(size=SIZE):
    rng = np.random.default_rng(0)
    pay = np.exp(rng.normal(10.3, 1.0, size)).round()
    pay[::10], pay[::33] = np.nan, -999
    sex = np.where(np.arange(size) < 0.97 * size, "1", "2")
    return pd.DataFrame({"SEX": sex, "JOB": rng.choice(list("abcdef"), size), "PAY": pay})


def by_sex(how="independent", shares=SHARES, **more):
    return Stratified(make(how, {}), ["SEX"], weights(shares), **more)


def changed(schema=SCHEMA, **keys):
    return Schema({**schema.columns, "PAY": replace(schema.columns["PAY"], **keys)})


def opened(frame=None, schema=SCHEMA, **settings):
    return ss.open_table(people() if frame is None else frame, schema=schema, declared_size=SIZE, **settings)


def totals(release):
    return [c for c in release.certificate["charges"] if c["kind"] == "total"]


def published(release):
    """Noisy sum of min(x, clip) - middle, in dollars, with its noise's deviation, by stratum."""
    frame = release.measurements.to_pandas()
    frame = frame[frame["sum"].astype(str) != ""]
    return {row.stratum: (row.value * row.grid, row.sigma * row.grid) for row in frame.itertuples()}


def truth(frame):
    pay = frame.PAY[frame.PAY != -999].dropna()
    return float((np.minimum(pay, 1e5) - (1e5 - 100) / 2).sum())


def rows_of(values, schema=SCHEMA, **more):
    size = len(values)
    frame = pd.DataFrame({"SEX": ["1"] * size, "JOB": ["a"] * size, "PAY": values, **more})
    return load_rows(schema, open_source(frame))._parts[0]


VALUES = [-100, -1e9, -99, 0, 49_950, 49_951, 99_999, 100_000, 100_001, 4e6, 1e300, None, -999, "x"]
QUERY = ClippedColumn("PAY", -100.0, 1e5).query


@pytest.mark.parametrize("neighbours", ["add-remove", "replace", "attribute"])
@pytest.mark.parametrize("weight", [1, 7])
def test_no_neighbours_cost_more_than_is_charged_and_some_cost_all_of_it(neighbours, weight):
    """By replay: the exact sums of tables that differ in one row, of every kind of value, in integers."""
    schema = SCHEMA if weight == 1 else replace(SCHEMA, row_weight=RowWeight(weight, "W"))
    more = {} if weight == 1 else {"W": [str(3 * weight)]}
    question = Total(QUERY, 0.01)
    at = Setting(schema, Neighbours(neighbours))
    (charge,) = question.charges(schema, (), at.neighbours)
    alone = [int(exact_sums(QUERY, rows_of([value], schema, **more))[0][0]) for value in VALUES]
    noise = question.scales(schema, at.neighbours)[0]
    worst = max(map(abs, alone)) if neighbours == "add-remove" else max(alone) - min(alone)
    assert charge.amount >= worst**2 / (2 * noise**2) >= charge.amount * (1 - 1e-8)
    moved = charge.sensitivity[at.neighbours]
    assert moved == (50_050 if neighbours == "add-remove" else 100_100) * weight
    assert worst * QUERY.clip / GRID == pytest.approx(moved, rel=1e-8)
    assert worst <= moved / QUERY.clip * GRID


@pytest.mark.parametrize("number", [None, -999, "x", "NaN"])
def test_what_is_no_quantity_adds_nothing(number):
    assert exact_sums(QUERY, rows_of([number]))[0].tolist() == [0]
    assert exact_sums(QUERY, rows_of([5, number]))[0].tolist() == exact_sums(QUERY, rows_of([5]))[0].tolist()


@pytest.mark.parametrize("transform", [None, "log", "fourth-root"])
def test_dollars_are_added_up_whatever_scale_the_means_are_taken_on(transform):
    schema = changed(transform=transform)
    (units,) = exact_sums(QUERY, rows_of([30_000, 2e5, -100], schema))
    assert units[0] * QUERY.clip / GRID == pytest.approx(30_000 + 1e5 - 100 - 3 * 49_950, abs=0.001)
    scaled = replace(QUERY, raw=False)
    assert (exact_sums(scaled, rows_of([30_000], schema))[0][0] == exact_sums(QUERY, rows_of([30_000]))[0][0]) == (
        transform is None
    )
    assert scaled.replayed() != QUERY.replayed()
    assert replace(scaled, centre=(-1e9,)).counts_records(changed(missing=False, special=()))


def test_the_sums_of_everybody_and_of_strata_are_those_of_the_rows_plus_the_noise_that_is_stated():
    release = ss.fit(by_sex(), opened(), BUDGET, entropy=SeededEntropy(3))
    frame, found = people(), published(release)
    assert set(found) == {"", "1", "2"}  # 600 women have a sum too, as the men are large enough
    for label, rows in {"": frame, **dict(list(frame.groupby("SEX")))}.items():
        value, sd = found[label]
        assert abs(value - truth(rows)) < 6.1 * sd
    section = release.certificate["sums"]
    assert found[""][1] == pytest.approx(section["columns"][0]["noise_sd"])
    assert [*section["strata"]] == ["1", "2"]


def test_they_cost_the_part_that_is_stated_and_tables_have_a_little_more_noise():
    plain = ss.fit(by_sex(), opened(schema=changed(sums=0.0)), BUDGET)
    release = ss.fit(by_sex(), opened(), BUDGET)
    rho = BUDGET.zcdp().rho
    assert [c["rho"] for c in totals(release)] == pytest.approx([0.025 * rho] * 3)
    assert totals(plain) == []
    wide, narrow = (
        max(c["sigma"] for c in each.certificate["charges"] if c["kind"] == "counts") for each in (release, plain)
    )
    assert wide / narrow == pytest.approx(0.95**-0.5)
    assert wide / narrow < 1.03
    assert plain.certificate["sums"] == {"asked": False, "why": "switched off: sums = 0 in the schema"}


@pytest.mark.parametrize("how", ["independent", "mst", "aim", "gem", "fixed", "by sex", "pooled"])
def test_every_mechanism_for_rows_keeps_within_its_budget(how):
    settings = {"by": ["SEX"], "weights": weights(), "base": "mst"} if how == "pooled" else {}
    mechanism = by_sex("mst") if how == "by sex" else make(how, settings)
    prepared = prepare(mechanism, changed(sums=0.2), BUDGET, SIZE)
    assert isinstance(prepared.mechanism, WithSums)
    assert without_sums(prepared.mechanism) is mechanism
    spent = rehearse(prepared).account.spending
    asked = [c for c in spent.charges if c.kind == "total"]
    strata = max((c.amount for c in asked if c.path), default=0.0)
    counted = prepared.beside.sums.counted
    assert counted == (0.5 if how == "pooled" else 0)
    assert sum(c.amount for c in asked if not c.path) + strata / (1 - counted) == pytest.approx(
        0.2 * prepared.allot.amount
    )
    assert 0.9 * prepared.allot.amount < spent.spent() <= prepared.allot.amount


@pytest.mark.parametrize("factors", [{"1": 0.5}, {"2": 0.25}, {"1": 0.9, "2": 0.8}])
@pytest.mark.parametrize("places", [0.0, 0.4])
@pytest.mark.parametrize("tables", [0.0, 0.1])
def test_strata_with_budgets_of_their_own_spend_all_of_them(factors, places, tables):
    how = by_sex("mst", budgets=StratumBudgets.factors(factors), groups=Groups(by_tables=tables))
    prepared = prepare(how, changed(places=places), BUDGET, SIZE)
    charges = rehearse(prepared).account.spending.charges
    caps = {"1": prepared.allot.amount, "2": prepared.allot.amount} | {s.label: c for s, c in prepared.caps.items()}
    assert set(prepared.beside.sums.strata) == {"1", "2"}
    for label, cap in caps.items():
        spent = sum(c.amount for c in charges if not c.path or c.path[0].label == label)
        assert cap * (1 - 1e-6) < spent <= cap, (label, factors)


def test_strata_with_budgets_of_their_own_keep_within_them():
    budgets = StratumBudgets.epsilons({"1": 0.5})
    release = ss.fit(by_sex("mst", budgets=budgets), opened(), BUDGET)
    own = prepare(by_sex("mst", budgets=budgets), SCHEMA, BUDGET, SIZE)
    ((stratum, cap),) = own.caps.items()
    sums = own.beside.sums
    assert sums.everybody + sums.strata.get("1", 0.0) <= share_of(SCHEMA) * cap
    spent = sum(c["rho"] for c in release.certificate["charges"] if c["path"] in ([], [{"SEX": "1"}]))
    assert 0.9 * cap < spent <= cap
    assert stratum.label == "1"


def test_two_columns_share_the_price_and_one_that_defines_strata_has_no_sum_inside():
    age = Numeric(0, 100, bins=2, integer=True, clip=90, sums=0.1)
    schema = Schema({"AGE": age, "PAY": PAY})
    frame = pd.DataFrame({"AGE": schema.levels("AGE"), "share": [0.5, 0.5]})
    how = Stratified(Independent(), ["AGE"], Weights.public(frame, citation="made up for testing"))
    data = pd.DataFrame({"AGE": np.arange(SIZE) % 100, "PAY": 5.0})
    release = ss.fit(how, opened(data, schema), BUDGET)
    paid = [(len(c["path"]), c["rho"] / BUDGET.zcdp().rho, c["sensitivity"]["add-remove"]) for c in totals(release)]
    assert paid == [
        (0, pytest.approx(0.025), 45.0),
        (0, pytest.approx(0.025), 50_050.0),
        (1, pytest.approx(0.025), 50_050.0),
        (1, pytest.approx(0.025), 50_050.0),
    ]


@pytest.mark.parametrize("part", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("large", [True, False])
def test_strata_are_asked_if_noise_leaves_the_mean_of_one_within_the_stated_part(part, large):
    schema, levels = changed(sums=part), [str(i) for i in range(40)]
    schema = Schema({**schema.columns, "SEX": Categorical(tuple(levels))})
    sigma = math.sqrt(1 / (2 * part / 2 * BUDGET.zcdp().rho))
    least = NORMAL_95 * sigma / PRECISE / SIZE
    first = least * (1.001 if large else 0.999)
    shares = {level: first if level == "0" else (1 - first) / 39 for level in levels}
    assert (1 - first) / 39 < least
    sums = prepare(by_sex(shares=shares), schema, BUDGET, SIZE).beside.sums
    assert set(sums.strata) == (set(levels) if large else set())
    assert sums.everybody == pytest.approx(part * BUDGET.zcdp().rho / (2 if large else 1))


def test_nothing_is_asked_where_no_column_declares_a_clip_and_the_fit_is_what_it_was():
    prepared = prepare(MST(), changed(clip=None), BUDGET, SIZE)
    assert type(prepared.mechanism) is MST
    assert prepared.beside.sums is None
    release = ss.fit(MST(), opened(schema=changed(clip=None)), BUDGET)
    assert "sums" not in release.certificate
    assert totals(release) == []
    assert ss.plan(MST(), changed(clip=None), BUDGET, declared_size=SIZE).sums == {}


def test_estimators_ask_what_they_asked():
    asked = [
        ss.fit(CoinPress(), opened(schema=schema), BUDGET, entropy=SeededEntropy(1))
        for schema in (SCHEMA, changed(clip=None))
    ]
    assert totals(asked[0]) == totals(asked[1])
    assert "sums" not in asked[0].certificate


def test_claims_have_no_price_for_them_and_plans_and_certificates_say_so():
    how = External(print, "nobody 1.0")
    prepared = prepare(how, SCHEMA, replace(BUDGET, neighbours="replace"), SIZE)
    assert prepared.mechanism is how
    assert "spends in claimed, in which no sum" in str(prepared.beside.sums)
    assert prepared.beside.sums.to_dict()["asked"] is False


def test_rows_that_answer_no_sums_are_refused_with_the_remedy_before_anything_is_reserved():
    with pytest.raises(Unsupported, match="answer no sums: set sums = 0"):
        ss.plan(MST(), SCHEMA, BUDGET, declared_size=SIZE, engine="spark")
    assert ss.plan(MST(), changed(sums=0.0), BUDGET, declared_size=SIZE, engine="spark").rows.engine == "spark"


def test_streams_add_up_what_memory_does(tmp_path):
    people(3_000).to_parquet(tmp_path / "people.parquet")
    found = [
        ss.fit(by_sex(), opened(tmp_path / "people.parquet", engine=engine), BUDGET, entropy=SeededEntropy(1))
        for engine in ("memory", "stream")
    ]
    assert found[0].measurements.equals(found[1].measurements)


@pytest.mark.duckdb
def test_a_database_adds_up_what_memory_does(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    frame = people(3_000)
    with duckdb.connect(str(tmp_path / "people.duckdb")) as there:
        there.execute("CREATE TABLE people AS SELECT * FROM frame")
    found = [
        ss.fit(by_sex(), table, BUDGET, entropy=SeededEntropy(1))
        for table in (opened(frame), opened(tmp_path / "people.duckdb", table="people"))
    ]
    assert published(found[0]) == published(found[1])


def test_the_plan_says_what_it_will_buy():
    plan = ss.plan(by_sex(), SCHEMA, BUDGET, declared_size=SIZE)
    (column,) = plan.sums["columns"]
    assert column["half_width"] == pytest.approx(1.959964 * column["noise_sd"] / SIZE)
    assert "for everybody, 0.000374 in each of 2 strata)" in plan.sums_words
    assert f"within {column['half_width']:,.3g} (95 %" in plan.sums_words
    assert "Clipped sums" in str(plan)
    assert "Clipped sums" not in str(ss.plan(by_sex(), changed(clip=None), BUDGET, declared_size=SIZE))


def test_the_plan_of_equal_strata_is_the_same_though_one_is_rehearsed_for_all():
    schema = Schema({**SCHEMA.columns, "SEX": Categorical(tuple("abcd"))})
    plan = ss.plan(by_sex("mst", shares=dict.fromkeys("abcd", 0.25)), schema, BUDGET, declared_size=SIZE)
    assert len(plan.sums["strata"]) == 4
    assert len({(s.epsilon, s.questions, s.tables, s.verdict) for s in plan.strata}) == 1
    assert plan.strata[0].questions > 2
    assert plan.strata[0].epsilon == pytest.approx(1)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("currency", [Currency.ZCDP, Currency.PURE])
def test_noise_is_what_is_stated_and_no_other(neighbours, currency):
    """200 draws: accepted at the stated deviation, refused at 0.7 and 1.3 of it."""
    budget = Budget(1, 1e-9, neighbours, first=0)
    allot = budget.zcdp() if currency == Currency.ZCDP else budget.pure()
    facts = prepare(Independent(), SCHEMA, budget, SIZE).public
    sums = WithSums(Independent()).sums(facts, allot)
    question = Total(sums.columns[0].query, sums.everybody, currency)
    rows = load_rows(SCHEMA, open_source(people(50)))
    asked, answerer = Asked((), SCHEMA, question), Answerer(rows, budget.neighbours, SeededEntropy(5))
    noise = np.array([answerer.answer([asked])[0][0].values[0] for _ in range(200)]) - truth(people(50))
    sd = sums.noise[""] * sums.columns[0].half
    spread = float((noise**2).mean()) ** 0.5
    assert 0.85 < spread / sd < 1.15
    assert not any(0.85 < spread / (other * sd) < 1.15 for other in (0.7, 1.3))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    data = folder / "people.parquet"
    people(2_000).to_parquet(data)
    table = opened(data, ledger=folder / "people.ledger")
    ss.fit(by_sex(), table, BUDGET).save(folder / "release")
    return folder


def test_a_release_with_sums_holds_and_its_ledger_has_them(saved):
    verdict = ss.verify(saved / "release", ledger=saved / "people.ledger")
    assert verdict.findings == ()
    assert any("Sums of numbers have the bounds of the schema" in line for line in verdict.checked)
    assert not any("the certificate does not hold the clips" in line for line in verdict.unchecked)


@pytest.fixture(scope="module")
def borrowed(tmp_path_factory):
    """A release whose strata start from a model of everybody, too few people for tables of their own."""
    folder = tmp_path_factory.mktemp("borrowed") / "release"
    how = make("pooled", {"base": "mst", "by": ["SEX"], "weights": weights(), "share": 0.95})
    ss.fit(how, opened(), replace(BUDGET, epsilon=3), entropy=SeededEntropy(1)).save(folder)
    return folder


def test_strata_that_may_lack_a_table_have_one_for_half_the_price_of_their_sums(borrowed):
    release, section = ss.Release.load(borrowed), record_of(borrowed)["sums"]
    half = section["strata"]["1"] / 2
    own = [c for c in release.certificate["charges"] if c["path"] == [{"SEX": "1"}]]
    assert [(c["kind"], c["rho"]) for c in own[:2]] == [("total", half), ("counts", half)]
    assert section["counted"] == 0.5
    found, frame = release.query(["PAY"], by=["SEX"], statistic="mean"), people()
    pay = np.minimum(frame.PAY[frame.PAY != -999], 1e5).groupby(frame.SEX).mean().to_numpy()
    assert found.status.tolist() == ["ok", "ok"]
    assert ((found.noise_low <= pay) & (pay <= found.noise_high)).all()
    assert ss.plan("independent", SCHEMA, BUDGET, declared_size=SIZE).sums.get("counted") is None


@pytest.mark.parametrize("part", [0.25, None])
def test_an_edited_statement_on_their_tables_is_found(borrowed, part, tmp_path):
    assert not [line for line in ss.verify(borrowed).findings if "sums" in line]
    release = copied(borrowed, tmp_path / "release")
    edited(release, lambda record: record["sums"].update(counted=part))
    assert any("clipped sum" in line for line in ss.verify(release).findings)


def test_the_page_says_what_sums_there_are(saved):
    page = (saved / "release" / "report.html").read_text(encoding="utf-8")
    assert "For 5 % of the budget, of everybody and of 2 groups: of PAY, numbers above 100,000 counting as that" in page
    assert sums_line(SumsStated(False, "no reason")) == "None: no reason."


CHANGES = {
    "clip": lambda said: said["columns"][0].update(clip=2e5),
    "middle": lambda said: said["columns"][0].update(middle=0.0),
    "noise": lambda said: said["columns"][0].update(noise_sd=said["columns"][0]["noise_sd"] * 0.7),
    "price": lambda said: said.update(rho=said["rho"] * 1.1),
    "share": lambda said: said.update(share=0.04),
    "half width": lambda said: said["columns"][0].update(half_width=1.0),
    "strata": lambda said: said.update(strata={}),
    "a stratum": lambda said: said["strata"].update({"2": said["strata"]["1"] / 2}),
    "tables": lambda said: said.update(counted=0.5),
    "asked": lambda said: (said.clear(), said.update(asked=False, why="no reason")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_edited_statement_on_sums_is_found(saved, change, tmp_path):
    release = copied(saved / "release", tmp_path / "release")
    edited(release, lambda record: CHANGES[change](record["sums"]))
    found = ss.verify(release).findings
    assert any("clipped sum" in line for line in found), found
    assert "sums" in record_of(release)


def test_an_interrupted_fit_gives_the_sums_again_and_is_charged_once(tmp_path):
    age = replace(small.SCHEMA.columns["AGE"], clip=6, places=0.1, heaps=(2,))
    schema = Schema({**small.SCHEMA.columns, "AGE": age})
    small.people().to_csv(tmp_path / "people.csv", index=False)

    def table():
        return ss.open_table(
            tmp_path / "people.csv", schema=schema, declared_size=2_000, ledger=tmp_path / "people.ledger"
        )

    with pytest.raises(KeyboardInterrupt):
        ss.fit(ladder(stop=1), table(), BUDGET, seed=1)
    before = [line for line in lines_of(tmp_path / "people.ledger") if line["kind"] == "charge"]
    assert [c["kind"] for line in before for c in line["charges"]] == [*["total"] * 3, "counts"]
    release = ss.fit(ladder(), table(), BUDGET, seed=1)
    after = [line for line in lines_of(tmp_path / "people.ledger") if line["kind"] == "charge"]
    assert after[:4] == before
    assert [c["kind"] for c in release.certificate["charges"]] == [*["total"] * 3, *["counts"] * 6]
    assert len({line["run"] for line in after}) == 1


def test_samples_and_answers_of_a_release_with_sums_are_as_of_one_without():
    release = ss.fit(Independent(), opened(), BUDGET, entropy=SeededEntropy(2))
    assert len(list(release.samples(3, 10, seed=1))) == 3
    found = release.query(["JOB"], statistic="share")
    assert found.estimate.sum() == pytest.approx(1)
    assert release.query(["PAY"], statistic="mean").estimate.notna().all()


def test_a_fit_with_sums_is_another_request():
    with_them, without = (prepare(MST(), schema, BUDGET, SIZE) for schema in (SCHEMA, changed(sums=0.0)))
    assert request_of(with_them, 1).identity != request_of(without, 1).identity
    assert prepare(with_them.mechanism, SCHEMA, BUDGET, SIZE).mechanism == with_them.mechanism


def test_their_columns_are_the_ones_that_sums_know():
    assert type(QUERY) is Columns
    assert [c.column for c in prepare(MST(), SCHEMA, BUDGET, SIZE).beside.sums.columns] == ["PAY"]
