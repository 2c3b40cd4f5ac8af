"""Rows raked to published totals: reading of tables, rows, rules, certificate, page and verify."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers import small
from helpers.ledgers import ladder
from helpers.releases import edited, tied_again
from stratsynth import (
    Benchmark,
    Categorical,
    ControlTable,
    Numeric,
    Release,
    Schema,
    fit,
    open_table,
    verify,
    weight_sensitivity,
)
from stratsynth.adapters import ClippedMean, Independent
from stratsynth.errors import NoticeWarning, ReleaseError, Unsupported, UsageError
from stratsynth.models import Calibrated, Mixture, files
from stratsynth.noise import SeededEntropy
from stratsynth.release.page.frame import release_page
from stratsynth.release.page.summary import summary
from stratsynth.report import html
from stratsynth.schema import Rule
from stratsynth.schema.weight import RowWeight

ROWS = 3000
SEX_AGE = pd.DataFrame(
    [("1", "0..2", 100), ("1", "3..9", 300), ("2", "0..2", 250), ("2", "3..9", 350)],
    columns=["SEX", "AGE", "count"],
)
WORK = pd.DataFrame({"WORK": ["N", "yes|no"], "count": [300, 700]})
CITED = "Statistics Office, Population 2024, table"
pytestmark = pytest.mark.filterwarnings("ignore::stratsynth.errors.NoticeWarning")


def controls(*frames, **options):
    return [ControlTable(frame, citation=f"{CITED} {i}", **options) for i, frame in enumerate(frames, start=1)]


def people_of(rows=ROWS):
    """Records whose columns are independent: every combination has many, whatever the noise."""
    rng = np.random.default_rng(4)
    levels = {"SEX": ["1", "2"], "GROUP": ["a", "b"], "AGE": range(10), "WORK": ["N", "yes", "no"]}
    return pd.DataFrame({name: rng.choice(list(known), rows) for name, known in levels.items()})


def table_of(rows=ROWS, **options):
    return open_table(people_of(rows), schema=small.SCHEMA, declared_size=rows, **options)


@pytest.fixture(scope="module")
def plain():
    return fit(small.stratified(), table_of(), small.BUDGET, seed=1)


@pytest.fixture(scope="module")
def raked(plain):
    return plain.benchmarked(controls(SEX_AGE, WORK, year=2024))


@pytest.fixture(scope="module")
def folder(raked, tmp_path_factory):
    return raked.save(tmp_path_factory.mktemp("raked") / "release", rows=1000, seed=2)


def counts_of(rows):
    young = rows["AGE"].astype(int) < 3
    cells = [((rows["SEX"] == sex) & (young == is_young)).sum() for sex in "12" for is_young in (True, False)]
    return [*cells, (rows["WORK"] == "N").sum()]


def test_rows_have_the_totals_and_so_has_every_later_sample(plain, raked, folder):
    wanted = np.array([100, 300, 250, 350, 300])
    assert np.abs(np.array(counts_of(plain.sample(1000, seed=5))) - wanted).max() > 50
    assert np.abs(np.array(counts_of(pd.read_parquet(folder / "synthetic.parquet"))) - wanted).max() <= 4
    again = Release.load(folder)
    assert np.abs(np.array(counts_of(again.sample(4000, seed=7))) - 4 * wanted).max() <= 4
    assert again.sample(50, seed=3).equals(raked.sample(50, seed=3)), "the calibration is stored with the model"
    assert isinstance(again.model, Calibrated)
    assert isinstance(again.model.base, Mixture)


def test_conditions_groups_and_masses_follow_the_totals(raked):
    men = raked.sample(2000, seed=1, where={"SEX": "1"})
    assert set(men["SEX"]) == {"1"}
    assert (men["AGE"].astype(int) < 3).mean() == pytest.approx(0.25, abs=0.03)
    each = raked.sample(400, seed=1, balance=["SEX"])
    assert each["SEX"].value_counts().to_dict() == {"1": 200, "2": 200}
    assert len(raked.sample(0)) == 0
    model = raked.model
    assert model.mass({}) == 1
    assert model.mass({"SEX": frozenset({0})}) == pytest.approx(0.4, abs=0.01)
    assert model.mass({"SEX": frozenset({0}), "GROUP": frozenset()}) == 0
    assert model.oneway("SEX") == pytest.approx([0.4, 0.6], abs=0.005)
    assert model.oneway("WORK")[0] == pytest.approx(0.3, abs=0.005)


def test_a_rare_condition_has_a_mass_too(plain):
    totals = pd.DataFrame({"GROUP": ["a", "b"], "count": [999.9, 0.1]})
    model = plain.benchmarked(controls(totals)).model
    assert model.mass({"GROUP": frozenset({1}), "AGE": frozenset({0})}) < 0.01


def test_answers_stay_those_of_the_measurements(plain, raked):
    assert raked.query(["SEX"]).equals(plain.query(["SEX"]))
    assert raked.certificate["charges"] == plain.certificate["charges"], "nothing more is charged"
    assert raked.certificate["guarantee"] == plain.certificate["guarantee"]


def test_the_certificate_states_tables_and_effort(raked, folder):
    stated = Release.load(folder).statement.benchmark
    first, second = stated.tables
    assert (first.citation, first.year, first.columns) == (f"{CITED} 1", 2024, ("SEX", "AGE"))
    assert first.cells[0].levels == {"SEX": "1", "AGE": "0..2"}
    assert [cell.published for cell in first.cells] == [100, 300, 250, 350]
    assert [cell.rows for cell in first.cells] == counts_of(pd.read_parquet(folder / "synthetic.parquet"))[:4]
    assert stated.rows == 1000
    assert all(cell.rows is None for table in raked.statement.benchmark.tables for cell in table.cells)
    assert stated.people == pytest.approx(ROWS, abs=1000)
    people = raked.query(where={"WORK": ["yes", "no"]}).iloc[0]
    assert (second.cells[1].measured, second.cells[1].low, second.cells[1].high) == pytest.approx(
        (people.estimate, people.noise_low, people.noise_high)
    )
    assert 0 < stated.efficiency < 1 < stated.largest <= stated.most == 5
    assert (stated.trimmed, stated.missed) == (0, 0)


def test_pages_show_published_measured_and_synthetic(folder):
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert f"Published, measured, synthetic: {CITED} 1, 2024" in text
    release = Release.load(folder)
    said = " ".join(summary(release.certificate).split())
    for words in ("Raked to 2 tables", f"SEX x AGE ({CITED} 1, 2024)", "Kish efficiency", "nothing is trimmed"):
        assert words in said
    unsaved = html.render(release_page(release.certificate, release.measurements, release.model.schema))
    assert "Published, measured, synthetic" in unsaved
    assert f"{CITED} 2" in release.cite()
    assert any(line.startswith(f"Published totals: {CITED} 1; {CITED} 2.") for line in release.statement.not_protected)


def test_a_release_without_tables_has_no_measured_numbers(plain):
    bare = replace(plain, measurements=plain.measurements.slice(0, 0))
    stated = bare.benchmarked(controls(WORK)).statement.benchmark
    assert stated.people is None
    assert all(cell.measured is None for cell in stated.tables[0].cells)


def test_rules_are_kept():
    schema = Schema(
        {"A": Categorical(levels=("0", "1")), "B": Categorical(levels=("x", "y", "z")), "C": Numeric(0, 4, bins=4)},
        rules=[Rule(when={"A": ("0",)}, never={"B": ("x",)})],
    )
    rows = pd.DataFrame({"A": ["0", "1", "1"] * 300, "B": ["y", "x", "z"] * 300, "C": [0, 1, 2] * 300})
    release = fit(Independent(), open_table(rows, schema=schema, declared_size=900), small.BUDGET, seed=1)
    totals = pd.DataFrame({"A": ["0", "0", "1", "1"], "B": ["y", "z", "x", "y|z"], "count": [1, 1, 1, 1]})
    with pytest.raises(UsageError, match="has the level 'y', which another"):
        release.benchmarked(controls(totals))
    totals = pd.DataFrame([("0", "y", 30), ("0", "z", 20), ("1", "x", 40), ("1", "y", 5), ("1", "z", 5)])
    found = release.benchmarked(controls(totals.set_axis(["A", "B", "count"], axis=1)))
    drawn = found.sample(1000, seed=1)
    assert not ((drawn["A"] == "0") & (drawn["B"] == "x")).any()
    assert abs((drawn["B"] == "x").sum() - 400) <= 4
    moved = found.rules_moved(1000, seed=1)
    assert moved["rows"] >= 2000, "rows of the pool that were drawn again are counted, of all that were drawn"
    assert moved["redrawn"] > 0


def test_a_total_that_needs_too_much_is_missed_and_said(plain):
    totals = pd.DataFrame({"GROUP": ["a", "b"], "count": [60, 40]})
    raked = plain.benchmarked(Benchmark(controls(totals), trim=4.9))
    assert raked.statement.benchmark.missed == 0
    short = pd.DataFrame({"GROUP": ["a", "b"], "count": [890, 110]})  # b has a tenth by the shares
    tight = plain.benchmarked(Benchmark(controls(short), trim=1.05)).statement
    assert tight.benchmark.missed == pytest.approx(0.005, abs=0.002)
    assert tight.benchmark.trimmed > 0
    assert tight.benchmark.largest == pytest.approx(1.05)
    assert [n.kind for n in tight.notices if n.kind.startswith("bench")] == ["benchmark_missed"]
    with pytest.raises(UsageError, match=r"cannot be reached from this release with ratios of at most 1.05: GROUP=b"):
        plain.benchmarked(Benchmark(controls(totals), trim=1.05))


def test_rows_that_the_model_lacks_are_missed():
    release = fit(small.stratified(), table_of(), small.BUDGET, seed=1)  # the share of women in group b is 0
    totals = pd.DataFrame(
        [("1", "a", 400), ("1", "b", 100), ("2", "a", 498), ("2", "b", 2)], columns=["SEX", "GROUP", "count"]
    )
    stated = release.benchmarked(controls(totals)).statement
    assert stated.benchmark.missed == pytest.approx(0.002, abs=1e-4)
    assert "benchmark_missed" in [n.kind for n in stated.notices]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"SEX": ["1", "3"], "count": [1, 1]}), "'3'"),
        (pd.DataFrame({"SEX": ["1", "2"], "count": [1, -1]}), "total in line 3 is no number from 0"),
        (pd.DataFrame({"SEX": ["1", "2"], "count": [1, float("inf")]}), "total in line 3 is no number from 0"),
        (pd.DataFrame({"SEX": ["1", "2"], "count": [1, "many"]}), "total in line 3 is no number from 0"),
        (pd.DataFrame({"SEX": ["1", "2"], "count": [0, 0]}), "all 0"),
        (pd.DataFrame({"SEX": ["1"], "count": [1]}), "has no line for SEX 2"),
        (pd.DataFrame({"SEX": ["1", "2", "1"], "count": [1, 1, 1]}), "lines 2 and 4 both give the total of SEX=1"),
        (SEX_AGE[:3], "has no line for SEX=2 AGE=3..9; give 0 for what cannot be"),
        (pd.DataFrame({"SEX": ["1", "1|2"], "count": [1, 1]}), "has the level '1', which another of its values has"),
        (pd.DataFrame({"AGE": ["0..4", "5..9"], "count": [1, 1]}), "whole bins"),
        (pd.DataFrame({"SEX": ["1", "2"], "people": [1, 1]}), "no column 'count' of totals"),
        (pd.DataFrame({"SEX": ["1", "2"], "RACE": ["a", "b"], "count": [1, 1]}), "RACE, which is none of the schema"),
        (pd.DataFrame({"count": [1, 1]}), "no column of the schema"),
        ("nowhere.csv", "there is no file nowhere.csv"),
        (17, "give a CSV file or a frame"),
    ],
)
def test_tables_that_make_no_sense_are_refused_with_the_reason(plain, frame, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        plain.benchmarked(controls(frame))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"citation": ""}, "needs a citation"),
        ({"citation": "TODO"}, "template"),
        ({"year": "last"}, "year"),
        ({"columns": "SEX"}, "columns is a list"),
        ({"count": 3}, "count is the name of a column"),
        ({"exact": "yes"}, "exact"),
    ],
)
def test_settings_of_a_table_are_checked(options, words):
    with pytest.raises(UsageError, match=words):
        ControlTable(WORK, **{"citation": f"{CITED} 1", **options})


@pytest.mark.parametrize("given", [[], "totals.csv", [WORK], None, 3, Benchmark])
def test_no_list_of_tables_is_refused(plain, given):
    with pytest.raises(UsageError, match="give a list of tables"):
        plain.benchmarked(given)


@pytest.mark.parametrize("trim", [1, 0, -2, float("nan"), "5", True, float("inf")])
def test_a_trim_that_is_no_ratio_above_1_is_refused(trim):
    with pytest.raises(UsageError, match="trim"):
        Benchmark(controls(WORK), trim=trim)


def test_tables_that_contradict_are_refused_before_anything_is_charged(tmp_path):
    table = table_of(ledger=tmp_path / "people.ledger")
    other = pd.DataFrame({"SEX": ["1", "2"], "count": [500, 500]})
    with pytest.raises(UsageError, match=r"table 1 and .* table 2 contradict each other"):
        fit(small.stratified(), table, small.BUDGET, benchmark=controls(SEX_AGE, other))
    with pytest.raises(UsageError, match=r"adds up to 1,000 and .* table 2 to 900"):
        fit(small.stratified(), table, small.BUDGET, benchmark=controls(SEX_AGE, other.assign(count=450)))
    with pytest.raises(UsageError, match="two tables are of the same columns"):
        fit(small.stratified(), table, small.BUDGET, benchmark=controls(WORK, WORK))
    with pytest.raises(UsageError, match="totals are those of rows"):
        fit(ClippedMean(columns=["AGE"]), table, small.BUDGET, benchmark=controls(WORK))
    assert not (tmp_path / "people.ledger").exists()


def test_labels_numbers_several_levels_and_types_of_files_are_read(plain, tmp_path):
    ages = pd.DataFrame({"AGE": ["0..5", "6-9"], "WORK": ["N|yes|no"] * 2, "people": [40.0, 60.0], "note": ["x", "y"]})
    ages.to_csv(tmp_path / "ages.csv", index=False)
    ages.to_parquet(tmp_path / "ages.parquet")
    given = (tmp_path / "ages.csv", str(tmp_path / "ages.parquet"), ages, pa.Table.from_pandas(ages))
    tables = [ControlTable(one, f"{CITED} 1", columns=["AGE"], count="people") for one in given]
    read = [table.read(small.SCHEMA) for table in tables]
    assert len({each.sha256 for each in read}) == 1
    assert [each.file is None for each in read] == [False, False, True, True]
    assert read[0].control.totals.tolist() == [40, 60]
    assert read[0].control.groups[0].tolist() == [0, 0, 1]
    (tmp_path / "bad.parquet").write_text("no parquet", encoding="utf-8")
    with pytest.raises(UsageError, match="is not a Parquet file"):
        ControlTable(tmp_path / "bad.parquet", f"{CITED} 1").read(small.SCHEMA)
    with pytest.raises(UsageError, match="there is no file"):
        ControlTable(tmp_path / "none.parquet", f"{CITED} 1").read(small.SCHEMA)


def test_a_fit_rakes_its_release(tmp_path):
    release = fit(small.stratified(), table_of(), small.BUDGET, seed=1, benchmark=controls(SEX_AGE))
    assert release.statement.benchmark.tables[0].citation == f"{CITED} 1"
    assert counts_of(release.sample(1000, seed=1))[:4] == pytest.approx([100, 300, 250, 350], abs=4)
    assert verify(release.save(tmp_path / "release", rows=200, seed=1)).ok


def test_its_ledger_holds_what_was_fixed_before_rows_were_raked(tmp_path):
    people_of().to_csv(tmp_path / "people.csv", index=False)
    ledger = tmp_path / "people.ledger"
    table = open_table(tmp_path / "people.csv", schema=small.SCHEMA, declared_size=ROWS, ledger=ledger)
    release = fit(small.stratified(), table, small.BUDGET, groups="measured", benchmark=controls(SEX_AGE))
    assert release.statement.weights.groups == "measured"
    assert verify(release.save(tmp_path / "release", rows=50), ledger=ledger).ok
    again = fit(small.stratified(), table, small.BUDGET).benchmarked(controls(WORK))
    assert verify(again.save(tmp_path / "again", rows=50), ledger=ledger).ok


@pytest.mark.parametrize("exact", [True, False])
def test_an_interrupted_fit_goes_on_with_the_exact_totals_that_it_was_begun_with(tmp_path, exact):
    people_of().to_csv(tmp_path / "people.csv", index=False)
    ledger = tmp_path / "people.ledger"

    def fitted(how, *, exact):
        table = open_table(tmp_path / "people.csv", schema=small.SCHEMA, declared_size=ROWS, ledger=ledger)
        tables = [ControlTable(SEX_AGE, f"{CITED} 1", exact=exact)]
        return fit(how, table, small.BUDGET, seed=1, benchmark=tables)

    with pytest.raises(KeyboardInterrupt):
        fitted(ladder(stop=1), exact=exact)
    before = ledger.read_bytes()
    was, other = ("with", "without") if exact else ("without", "with")
    with pytest.raises(UsageError, match=f"begun {was} exact totals .* would go on {other} them: .*another seed"):
        fitted(ladder(), exact=not exact)
    assert ledger.read_bytes() == before
    release = fitted(ladder(), exact=exact)
    assert verify(release.save(tmp_path / "release", rows=50), ledger=ledger).ok


def test_a_paid_fit_whose_totals_are_out_of_reach_is_kept_and_says_so(tmp_path):
    totals = pd.DataFrame([("1", "a", 10), ("1", "b", 10), ("2", "a", 10), ("2", "b", 70)])
    far = controls(totals.set_axis(["SEX", "GROUP", "count"], axis=1))
    with pytest.warns(NoticeWarning, match="NOT BENCHMARKED: rows follow the fitted model"):
        release = fit(small.stratified(), table_of(), small.BUDGET, seed=1, benchmark=far)
    assert release.statement.benchmark is None
    assert isinstance(release.model, Mixture)
    assert verify(release.save(tmp_path / "release", rows=100)).ok


def test_what_is_not_of_raked_rows_is_refused(raked, plain):
    with pytest.raises(UsageError, match="raked before"):
        raked.benchmarked(controls(WORK))
    with pytest.raises(UsageError, match="rake the one by measured sizes"):
        raked.by_measured_sizes()
    with pytest.raises(Unsupported, match="before its benchmark"):
        raked.samples(2, 10)
    with pytest.raises(UsageError, match="before its benchmark"):
        weight_sensitivity(raked)
    means = fit(ClippedMean(columns=["AGE"]), table_of(), small.BUDGET)
    with pytest.raises(UsageError, match="draws none"):
        means.benchmarked(controls(WORK))
    assert plain.by_measured_sizes().benchmarked(controls(WORK)).statement.weights.groups == "measured"


def test_notices_on_shares_go_with_the_rows_that_followed_them(plain, raked):
    assert [n.kind for n in plain.statement.notices] == ["declared_shares"]
    assert raked.statement.notices == ()
    assert all(c.rows is None for c in raked.statement.declared_and_measured)


def test_the_release_verifies_and_edits_are_found(folder, tmp_path):
    verdict = verify(folder)
    assert verdict.ok
    assert any("published totals" in line for line in verdict.checked)
    assert any("published totals are those of the publications" in line for line in verdict.unchecked)

    def cell(record):
        return record["benchmark"]["tables"][0]["cells"][0]

    def swapped(record):
        record["benchmark"]["tables"].reverse()

    def exact(record):
        record["benchmark"]["tables"][0]["exact"] = True

    def missed(record):
        record["benchmark"]["missed"] = 0.5

    edits = [
        (lambda record: cell(record).update(published=101.0), "are not those that the model is raked to"),
        (lambda record: cell(record).update(rows=7), "are others than it counts"),
        (lambda record: record["benchmark"].update(rows=7), "It counts 7 synthetic rows"),
        (lambda record: record["benchmark"].update(most=9.0), "are not those that the model is raked to"),
        (lambda record: record["benchmark"]["tables"][0].update(sha256="0" * 64), "are not those"),
        (lambda record: record.pop("benchmark"), "certificate.json names none"),
        (swapped, "are not those that the model is raked to"),
        (exact, "do not go together"),
        (missed, "notices on published totals"),
    ]
    for number, (change, words) in enumerate(edits):
        copy = shutil.copytree(folder, tmp_path / str(number))
        edited(copy, change)
        assert any(words in finding for finding in verify(copy).findings), words


def test_other_synthetic_rows_are_found(raked, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    rows = pq.read_table(copy / "synthetic.parquet").to_pandas()
    rows["SEX"] = "1"
    like = pq.read_schema(copy / "synthetic.parquet")
    pq.write_table(pa.Table.from_pandas(rows, schema=like, preserve_index=False), copy / "synthetic.parquet")
    tied_again(copy)
    assert any("are others than it counts" in finding for finding in verify(copy).findings)


def test_a_damaged_model_is_refused(raked):
    state, schema = raked.model.state(), raked.model.schema
    assert files.restore("calibrated", schema, state).mass({}) == 1
    for change in (
        lambda f, a: f["controls"][0].update(columns=["SEX", "SEX"]),
        lambda f, a: f["controls"][0].update(totals=[[1.0, -1.0], [1.0, 1.0]]),
        lambda f, a: f.update(controls=[]),
        lambda f, a: f.update(most=0.5),
        lambda f, a: a.update({"factors/0": np.ones(3)}),
        lambda f, a: a.update({"factors/0": np.full(4, np.nan)}),
        lambda f, a: a.update({"reached/0": np.full(4, 1.0)}),
        lambda f, a: a.pop("reached/1"),
    ):
        facts, arrays = json.loads(json.dumps(state.facts)), dict(state.arrays)
        change(facts, arrays)
        with pytest.raises(ReleaseError):
            files.restore("calibrated", schema, type(state)(facts, arrays))


def test_weighted_records_are_raked_to_people():
    schema = replace(small.SCHEMA, row_weight=RowWeight(10, "W", mean=5))
    rows = people_of(600).assign(W=[1 + i % 12 for i in range(600)])
    table = open_table(rows, schema=schema, declared_size=3000)
    release = fit(small.stratified(), table, small.BUDGET, seed=1, entropy=SeededEntropy(3))
    raked = release.benchmarked(controls(SEX_AGE))
    assert counts_of(raked.sample(1000, seed=1))[:4] == pytest.approx([100, 300, 250, 350], abs=4)
