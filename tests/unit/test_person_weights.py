"""Rows with weights of their own: how they are read, what is refused, and that nothing counts them wrongly."""

import dataclasses
import json
import math
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stratsynth as ss
from benches.weights import simulated
from helpers import small
from helpers.command import complaint, stratsynth
from helpers.contract import violations
from helpers.small import BUDGET, SCHEMA
from stratsynth.accounting.budget import PRICED, Budget, Currency, Neighbours
from stratsynth.adapters import AIM, MST, CoinPress, External, GroupRegression, Independent
from stratsynth.adapters.shared.settings import sampling_of
from stratsynth.cli.schemas import check_page
from stratsynth.cli.work import fit_recipe
from stratsynth.data.draft import check
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver import counting, rows
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.rows import StoredRows
from stratsynth.errors import (
    NotPrivateWarning,
    RecipeError,
    SchemaError,
    StratsynthError,
    Unsupported,
    UsageError,
    WeightsError,
)
from stratsynth.evaluation.audit import audit_mechanism
from stratsynth.files.scratch import Scratch
from stratsynth.mechanisms import Public
from stratsynth.noise import SeededEntropy, SystemEntropy
from stratsynth.planning import plan
from stratsynth.questions import (
    Choose,
    Columns,
    Composite,
    Confusions,
    Counts,
    Design,
    Distance,
    Peak,
    Term,
    Total,
)
from stratsynth.questions.base import Setting
from stratsynth.recipes.outlook import planned
from stratsynth.recipes.recipe import Recipe
from stratsynth.release.page.frame import release_page
from stratsynth.release.page.summary import summary
from stratsynth.report.text import render
from stratsynth.schema import Schema
from stratsynth.schema.encoding import row_weights
from stratsynth.schema.rows import CodedRows
from stratsynth.schema.schema import Unit
from stratsynth.schema.weight import RowWeight
from stratsynth.schema.weight_names import looks_like_weight, weight_warnings
from stratsynth.strata import crossing
from stratsynth.testing import check_contract, worlds
from stratsynth.testing.privacy_loss import exact_answers
from stratsynth.weights.totals import group_totals, write_totals

WEIGHT = RowWeight(300, "PWGTP", mean=100)
WEIGHED = dataclasses.replace(SCHEMA, row_weight=WEIGHT)


def people(rows=small.SIZE):
    """Rows of weights from 0 to 400, some of which are none."""
    frame = small.people(rows)
    frame["PWGTP"] = [str((37 * i) % 400) if i % 11 else ("x", None, "-4", "1e9")[i // 11 % 4] for i in range(rows)]
    return frame


def counted(frame):
    """Weight of each row, worked out by hand."""
    given = pd.to_numeric(frame["PWGTP"], errors="coerce").fillna(0)
    return np.clip(np.rint(given), 0, 300).astype(int).to_numpy()


@pytest.mark.parametrize(
    ("value", "weight"),
    [
        ("0", 0),
        ("1", 1),
        ("299.5", 300),
        ("2.5", 2),
        ("301", 300),
        ("1e300", 300),
        ("-1", 0),
        ("-inf", 7),
        ("inf", 7),
        ("nan", 7),
        ("", 7),
        (None, 7),
        ("x", 7),
        (" 12 ", 12),
        ("1e400", 7),
    ],
)
def test_a_weight_is_a_whole_number_from_0_to_the_largest_or_missing(value, weight):
    """Alone, and among others."""
    for values in ([value], ["5", value, None, "1e9"]):
        found = row_weights(RowWeight(300, "W", missing=7), pa.table({"W": pa.array(values, pa.string())}))
        assert found[len(values) // 3] == weight


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.uint8(), pa.float32(), pa.float64(), pa.decimal128(25, 2), pa.string()]
)
def test_weights_are_the_same_in_every_type_of_column(kind):
    data = pa.table({"W": pa.array([0, 1, 77, 250, None], pa.int64()).cast(kind)})
    assert row_weights(RowWeight(200, "W"), data).tolist() == [0, 1, 77, 200, 0]
    with pytest.raises(SchemaError, match="column W has type list"):
        row_weights(RowWeight(200, "W"), pa.table({"W": pa.array([[1]], pa.list_(pa.int8()))}))


def test_a_schema_file_names_the_column_and_old_schemas_are_what_they_were():
    text = WEIGHED.to_toml()
    assert '[weight]\ncolumn = "PWGTP"\nmax = 300\nmean = 100\n' in text
    assert Schema.from_toml_text(text) == WEIGHED
    inline = text.replace('[weight]\ncolumn = "PWGTP"\nmax = 300\nmean = 100\n', "")
    inline = inline.replace("[columns.SEX]", 'weight = { column = "PWGTP", max = 300, mean = 100 }\n[columns.SEX]', 1)
    assert Schema.from_toml_text(inline) == WEIGHED
    assert WEIGHED.sha256 != SCHEMA.sha256
    assert dataclasses.replace(WEIGHED, row_weight=RowWeight()).sha256 == SCHEMA.sha256
    assert WEIGHED.without(["SEX"]).row_weight == WEIGHT


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ('{ column = "W" }', "max is missing"),
        ("{ max = 3 }", "column is missing"),
        ('{ column = "W", max = 3, most = 4 }', "unknown key 'most'; did you mean 'max'|unknown key 'most'"),
        ('"W"', "must be a table, such as"),
        ('{ column = "W", max = 0 }', "whole number from 1 to 1,024, not 0"),
        ('{ column = "W", max = 2000 }', "so that one unit is ten people"),
        ('{ column = "W", max = 3.0 }', "whole number from 1"),
        ('{ column = "W", max = true }', "whole number from 1"),
        ('{ column = "W", max = 3, missing = 4 }', "missing must be a whole number from 0 to 3"),
        ('{ column = "W", max = 3, mean = 4 }', "mean must be a number above 0 and at most 3"),
        ("{ column = 3, max = 3 }", "weight: column must be text"),
        ('{ column = "SEX", max = 3 }', "released rows count 1 each: leave it out of the columns"),
    ],
)
def test_what_makes_no_sense_as_a_weight_is_refused(given, match):
    text = SCHEMA.to_toml().replace("[columns.SEX]", f"weight = {given}\n[columns.SEX]", 1)
    with pytest.raises(SchemaError, match=match):
        Schema.from_toml_text(text)


def test_a_weight_is_no_unit_and_no_text():
    with pytest.raises(SchemaError, match="no column does both"):
        dataclasses.replace(SCHEMA, row_weight=RowWeight(3, "ID"), unit=Unit(column="ID", max_rows=2))
    with pytest.raises(SchemaError, match="RowWeight"):
        dataclasses.replace(SCHEMA, row_weight=3)
    with pytest.raises(SchemaError, match="need a column"):
        RowWeight(3, missing=1)


def test_data_without_the_column_are_refused_before_anything_is_read():
    with pytest.raises(SchemaError, match="column PWGTP must be in the data once"):
        ss.open_table(small.people(), schema=WEIGHED, declared_size=10_000)


def test_rows_without_their_weights_are_refused():
    codes = {name: np.zeros(3, np.uint8) for name in SCHEMA.names}
    with pytest.raises(StratsynthError, match="rows came without"):
        StoredRows([CodedRows(WEIGHED, codes, {}, 3)])
    with pytest.raises(StratsynthError, match="or the reverse"):
        StoredRows([CodedRows(SCHEMA, codes, {}, 3, np.ones(3, np.int64))])


def test_tables_add_weights_up_in_every_stratum():
    frame = people(1000)
    rows, weights = load_rows(WEIGHED, open_source(frame)), counted(frame)
    sexes = [weights[frame["SEX"] == level].sum() for level in ("1", "2")]
    assert rows.counts([((), [("SEX",)])])[0][0].tolist() == sexes
    for stratum in crossing(WEIGHED, ["SEX", "GROUP"]):
        here = stratum.to_dict()
        mine = (frame["SEX"] == here["SEX"]) & (frame["GROUP"] == here["GROUP"])
        assert rows.counts([((stratum,), [("WORK",)])])[0][0].sum() == weights[mine].sum()
    query = Columns(("AGE",), (4.0,), (1.0,), 10.0)
    (total,) = rows.sums([((), query, 1.0)], SystemEntropy())[0]
    ages = np.clip(frame["AGE"], 0, 9) - 4
    assert float(total[0]) / 2**30 * 10 == pytest.approx((ages * weights).sum(), rel=1e-6)


def test_rows_out_of_memory_have_the_same_weights(tmp_path, monkeypatch):
    """In parts, in wide tables, and in strata, to which rows are sorted on disk."""
    monkeypatch.setattr(counting, "MANY", 1)
    monkeypatch.setattr(rows, "PIECE", 100)
    frame = people(1000)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "people.parquet", row_group_size=300)
    plain = load_rows(WEIGHED, open_source(frame))
    stored = load_rows(WEIGHED, open_source(tmp_path / "people.parquet"), Scratch())
    cliques = [("SEX", "WORK"), ("WORK",), ("GROUP", "SEX")]
    inside = [*crossing(WEIGHED, ["SEX"]), *crossing(WEIGHED, ["SEX", "GROUP"])]
    asked = [((), cliques), *(((stratum,), [("WORK",)]) for stratum in inside)]
    for one, other in zip(plain.counts(asked), stored.counts(asked), strict=True):
        assert all((a == b).all() for a, b in zip(one, other, strict=True))
    assert plain.counts([((), [("SEX",)])])[0][0].sum() == counted(frame).sum()
    query = Columns(("AGE",), (4.0,), (1.0,), 10.0)
    sums = [[((stratum,), query, 1.0) for stratum in inside], [((), query, 1.0)]]
    for those in sums:
        assert [a[0].tolist() for a in plain.sums(those, SystemEntropy())] == [
            b[0].tolist() for b in stored.sums(those, SystemEntropy())
        ]


def test_rows_of_one_unit_keep_their_weights():
    """The rows of a unit that stay are those without weights; these count by their weights."""
    frame = people(100)
    frame["ID"] = [i // 3 for i in range(100)]
    schema = dataclasses.replace(WEIGHED, unit=Unit(column="ID", max_rows=2))
    kept = np.array([i % 3 < 2 for i in range(100)])
    table = load_rows(schema, open_source(frame)).counts([((), [("SEX",)])])[0][0]
    assert table.sum() == counted(frame)[kept].sum()
    fitted = ss.fit(Independent(), ss.open_table(frame, schema=schema, declared_size=10_000), BUDGET)
    (charge,) = fitted.certificate["charges"]
    assert charge["sensitivity"]["add-remove"] == pytest.approx(2 * 300 * math.sqrt(len(SCHEMA.names)))
    assert charge["rho"] == pytest.approx((charge["sensitivity"]["add-remove"] / charge["sigma"]) ** 2 / 2, rel=1e-9)


AGE = Columns(("AGE",), (4.0,), (3.0,), clip=1.0)


@pytest.mark.parametrize("neighbours", PRICED)
@pytest.mark.parametrize(
    "question",
    [
        Counts((("SEX",), ("AGE", "WORK")), 0.4, (1.0, 2.0)),
        Total(AGE, 0.3),
        Total(dataclasses.replace(AGE, norm="l1"), 0.3, Currency.PURE),
    ],
)
def test_noise_and_sensitivity_grow_with_the_largest_weight(question, neighbours):
    light, heavy = (question.charges(schema, (), neighbours) for schema in (SCHEMA, WEIGHED))
    for one, other in zip(light, heavy, strict=True):
        assert {n: s / 300 for n, s in other.sensitivity.items()} == pytest.approx(dict(one.sensitivity), rel=1e-12)
        for name in {"sigma", "scale"} & one.details.keys():
            assert other.details[name] == pytest.approx(300 * one.details[name], rel=1e-12)


@pytest.mark.parametrize("neighbours", PRICED)
def test_a_score_moves_by_the_largest_weight(neighbours):
    score = Distance(("SEX",), np.array([40.0, 60.0]))
    assert score.sensitivity(WEIGHED, neighbours) == 300 * score.sensitivity(SCHEMA, neighbours)
    assert Choose((score,), 0.2).charges(WEIGHED, (), neighbours) == Choose((score,), 0.2).charges(
        SCHEMA, (), neighbours
    )


@pytest.mark.parametrize("neighbours", PRICED)
def test_scores_of_sums_move_by_the_largest_weight(neighbours):
    """In whole units, before and after one more row of the largest weight, whose contribution is a whole clip."""
    peak = Peak(Columns(("AGE",), (-100.0,), (1.0,), 1.0), np.array([[2.0], [1.0]]), np.zeros(2), sign=-1)
    assert peak.sensitivity(WEIGHED, neighbours) == pytest.approx(300 * peak.sensitivity(SCHEMA, neighbours))
    one = people(40)
    two = pd.concat([one, one.iloc[:1].assign(PWGTP="300")])
    at, found = Setting(WEIGHED, neighbours), []
    for frame in (one, two):
        asked = Asked((), WEIGHED, Choose((peak,), 0.2))
        (exact,) = exact_answers(load_rows(WEIGHED, open_source(frame)), [asked])
        found.append(Peak.units([peak], exact, at, {}))
    ((before,), reach), ((after,), _) = found
    assert 0.49 * reach < abs(after - before) * (2 if neighbours == Neighbours.REPLACE else 1) <= reach


@pytest.mark.parametrize("neighbours", PRICED)
def test_scores_of_confusions_move_by_the_largest_weight(neighbours):
    query = Confusions(Design(("AGE",)), "SEX", np.array([[0.1, 0.2]]), ("GROUP",))
    cells = np.zeros((2, 2, 2))
    cells[0, 0, 1] = 1.0
    score = Composite(query, 0, (Term("largest", cells.reshape(1, -1), np.zeros(1)),))
    assert score.reach(WEIGHED, neighbours) == 300 * score.reach(SCHEMA, neighbours)


def test_steps_on_samples_have_noise_for_the_largest_weight():
    """A coin decides whether a row takes part, with all of its weight."""
    step = Total(AGE, 0.9, Currency.SAMPLED, rate=0.5)
    light, heavy = (step.scales(schema, Neighbours.ADD_REMOVE) for schema in (SCHEMA, WEIGHED))
    assert heavy == pytest.approx([300 * scale for scale in light], rel=1e-12)
    frame = people(1000)
    rows = load_rows(WEIGHED, open_source(frame))
    always = Columns(("AGE",), (-100.0,), (1.0,), 1.0)
    ((found,),) = rows.sums([((), always, 0.5)], SystemEntropy())
    weights = counted(frame)
    spread = math.sqrt((weights.astype(float) ** 2).sum() / 4)
    assert abs(int(found[0]) / 2**30 - weights.sum() / 2) < 8 * spread


HEAVY_WORLDS = [
    dataclasses.replace(w, schema=dataclasses.replace(w.schema, row_weight=RowWeight(5, "PWGTP"))) for w in worlds()
]
NUMERIC = [world for world in HEAVY_WORLDS if "AGE" in world.schema.names]
HOW = {
    "independent": lambda w, _: Independent(),
    "mst in strata": lambda w, _: ss.Stratified(MST(), w.by, w.weights),
    "aim": lambda w, _: AIM(rounds=2),
    "private weights": lambda w, _: ss.Stratified(Independent(), w.by, ss.Weights.private(share=0.2)),
}


@pytest.mark.parametrize("how", HOW)
def test_the_contract_holds(how):
    """Neighbouring tables with weights of all kinds, broken ones too: replayed, and every question within its price."""
    assert check_contract(HOW[how], among=HEAVY_WORLDS, tables=4, neighbours=4) == []


@pytest.mark.parametrize(
    "how",
    [lambda w, _: CoinPress(), lambda w, _: GroupRegression(target="AGE", groups=["SEX"], iterations=2)],
    ids=["coinpress", "group_regression"],
)
def test_the_contract_holds_for_sums(how):
    assert violations(how, among=NUMERIC, tables=3, neighbours=3) == []


def counting_wrongly(change):
    """Rows whose weights are changed after they were read."""

    def load(schema, source, **settings):
        (inner,) = load_rows(schema, source, **settings)._parts
        return StoredRows([CodedRows(schema, inner.codes, inner.numbers, inner.size, change(inner.weights, source))])

    return load


def unclipped(weights, source):
    """Weights as they stand in the file."""
    raw = pd.to_numeric(source.read(("PWGTP",)).column("PWGTP").to_pandas(), errors="coerce").fillna(0)
    return np.full(len(weights), int(raw.clip(lower=0).max() if len(raw) else 0), np.int64)


PLANTED = {"counted twice": lambda w, _: w * w, "not cut": unclipped, "doubled": lambda w, _: 2 * w}


@pytest.mark.parametrize("bug", PLANTED)
def test_weights_that_count_more_than_they_may_are_caught(bug):
    found = check_contract(
        HOW["independent"], among=HEAVY_WORLDS, load=counting_wrongly(PLANTED[bug]), tables=6, neighbours=6, orders=0
    )
    assert "sensitivity" in {f.kind for f in found}


def test_code_that_sees_rows_is_refused_before_there_is_a_charge():
    table = ss.open_table(people(), schema=WEIGHED, declared_size=10_000)
    made = External(lambda frame, *_: frame, by="me 1.0", counts_rows=False)
    with pytest.raises(Unsupported, match=r"me 1.0 knows nothing of the rows' weights in PWGTP"):
        ss.fit(made, table, BUDGET)
    assert ss.fit(Independent(), table, BUDGET).certificate["ledger"]["spent_epsilon"] == pytest.approx(1)


def test_a_batch_is_of_records_and_not_of_the_people_that_they_stand_for():
    """WEIGHT has a mean of 100, so that a total of 50,000 is of about 500 records."""
    for schema, rate in ((WEIGHED, 0.2), (SCHEMA, 0.002)):
        assert sampling_of("it", None, 100, Public(schema, 50_000, Neighbours.ADD_REMOVE)) == pytest.approx(rate)


def test_a_declared_size_is_no_exact_total():
    table = ss.open_table(people(), schema=WEIGHED, declared_size=10_000)
    with pytest.raises(Unsupported, match="so the declared size is not their total"):
        ss.fit(CoinPress(columns=["AGE"], count="declared"), table, BUDGET)


def test_a_release_says_that_its_figures_are_weighted_totals(tmp_path):
    frame = people(2000)
    table = ss.open_table(frame, schema=WEIGHED, declared_size=int(counted(frame).sum()))
    release = ss.fit(Independent(), table, Budget(20, 1e-6), entropy=SeededEntropy(1))
    assert release.certificate["row_weight"] == {"column": "PWGTP", "max": 300, "missing": 0}
    (size,) = release.certificate["declared_and_measured"]
    assert size["verdict"] == "agrees"
    assert size["measured"] == pytest.approx(counted(frame).sum(), rel=0.05)
    release.save(tmp_path / "release", rows=50)
    assert "every record as its PWGTP" in stratsynth("certificate", "release", cwd=tmp_path).stdout
    assert "every record as its PWGTP" in (tmp_path / "release" / "report.html").read_text(encoding="utf-8")
    assert "PWGTP" not in release.sample(5).columns


def test_a_release_says_that_larger_weights_are_cut_and_what_is_missing():
    frame = small.people(2000).assign(PWGTP=[600 if i % 4 == 0 else 100 for i in range(2000)])
    table = ss.open_table(frame, schema=WEIGHED, declared_size=450_000)
    release = ss.fit(small.stratified(), table, Budget(20, 1e-6), entropy=SeededEntropy(1))
    said = " ".join(summary(release.certificate).split())
    assert "A larger weight counts as 300, and the people beyond that are missing: of 450,000 people declared," in said
    gap = re.search(r"declared, ([\d,]+) give or take ([\d,]+) are not counted, in 95 of 100 cases, for this", said)
    fewer, noise = (int(number.replace(",", "")) for number in gap.groups())
    assert abs(fewer - 150_000) <= 2 * noise
    page = " ".join(render(release_page(release.certificate, release.measurements, WEIGHED)).split())
    assert "people, about" in page
    assert not re.search(r"has about [\d,]+ records|records, about", page)
    whole = ss.open_table(frame, schema=WEIGHED, declared_size=300_000)
    fitted = ss.fit(Independent(), whole, Budget(20, 1e-6), entropy=SeededEntropy(1))
    assert "are missing" in summary(fitted.certificate)
    assert "people declared" not in " ".join(summary(fitted.certificate).split())


def test_a_plan_does_not_take_people_for_rows():
    without = dataclasses.replace(WEIGHED, row_weight=RowWeight(300, "PWGTP"))
    known, guessed = (plan(Independent(), s, BUDGET, declared_size=10_000_000) for s in (WEIGHED, without))
    assert guessed.rows_megabytes == pytest.approx(known.rows_megabytes, rel=0.2)
    assert "the schema's weight has no mean: rows are foreseen as if it were 150" in " ".join(guessed.warnings)
    assert known.warnings == ()
    assert "larger weights count as 300, and the people beyond that are missing" in " ".join(str(known).split())


def test_a_declared_size_of_records_is_doubted_where_people_are_counted(tmp_path):
    recipe = small.write_recipe(tmp_path)
    weighed = WEIGHED.to_toml()
    (tmp_path / "schema.toml").write_text(weighed, encoding="utf-8")
    small.edit(recipe, "declared_size = 100", "declared_size = 210_000")
    small.edit(recipe, "rows = 50", "rows = 200_000")
    [doubt] = planned(Recipe.read(recipe)).warnings
    assert "declared_size 210,000 is of people, who at a mean weight of 100 are 2,100 records" in doubt
    assert "about 21,000,000 if it is" in doubt
    small.edit(recipe, "declared_size = 210_000", "declared_size = 21_000_000")
    assert planned(Recipe.read(recipe)).warnings == ()


@pytest.mark.parametrize("edit", ["gone", "smaller", "broken", "sensitivity"])
def test_a_certificate_that_hides_weights_does_not_hold(tmp_path, edit):
    table = ss.open_table(people(), schema=WEIGHED, declared_size=10_000)
    folder = tmp_path / "release"
    ss.fit(Independent(), table, BUDGET).save(folder, rows=10)
    assert ss.verify(folder).ok
    assert any("at most 300" in line for line in ss.verify(folder).checked)
    record = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    if edit == "gone":
        del record["row_weight"]
    elif edit == "sensitivity":  # as if the factor had been forgotten
        for charge in record["charges"]:
            charge["sensitivity"] = {k: v / 300 for k, v in charge["sensitivity"].items()}
    else:
        record["row_weight"]["max"] = 100 if edit == "smaller" else "many"
    (folder / "certificate.json").write_text(json.dumps(record), encoding="utf-8")
    assert not ss.verify(folder).ok


def test_a_plan_says_what_weighting_costs():
    light, heavy = (
        plan(Independent(), s, BUDGET, declared_size=size) for s, size in ((SCHEMA, 100), (WEIGHED, 10_000))
    )
    assert heavy.strata[0].sigma == pytest.approx(300 * light.strata[0].sigma)
    assert heavy.strata[0].oneway_error == pytest.approx(3 * light.strata[0].oneway_error)
    assert heavy.row_weight == {"column": "PWGTP", "max": 300, "noise_factor": 300, "relative_noise_factor": 3.0}
    assert "noise is 300 times that of counting rows" in " ".join(str(heavy).split())
    assert "3 times that of the sample without weights" in " ".join(str(heavy).split())
    assert heavy.rows_megabytes == pytest.approx(light.rows_megabytes, abs=0.01)  # of 100 rows, not of 10,000
    assert light.row_weight is None
    assert light.warnings == ()


@pytest.mark.parametrize(
    "name", ["PWGTP", "pwgtp12", "WGTP", "PERWT", "fnlwgt", "MARSUPWT", "person_weight", "FinalWgt"]
)
def test_names_of_survey_weights_are_known(name):
    assert looks_like_weight(name)


@pytest.mark.parametrize("name", ["WEIGHT", "weight_kg", "WKHP", "AGEP", "birth_weight", "wt", "PINCP"])
def test_other_names_are_left_alone(name):
    assert not looks_like_weight(name)


def test_a_weight_among_the_columns_is_told_in_draft_check_and_plan(tmp_path):
    ordinary = Schema({**SCHEMA.columns, "PWGTP": ss.Numeric(lower=0, upper=400, bins=4, missing=True)})
    assert 'write weight = { column = "PWGTP", max = ... }' in weight_warnings(ordinary)[0]
    assert weight_warnings(WEIGHED, ["PWGTP", "SEX"]) == []
    assert weight_warnings(SCHEMA, ["SEX"]) == []
    (several,) = weight_warnings(SCHEMA, ["SEX", "PWGTP", "WGTP"])
    assert "columns PWGTP, WGTP, which look like survey weights" in several
    assert "leave them out" in several
    assert "looks like a survey weight" in " ".join(
        str(plan(Independent(), ordinary, BUDGET, declared_size=99)).split()
    )
    people(50).to_csv(tmp_path / "people.csv", index=False)
    drafted = stratsynth("schema", "draft", "people.csv", "-o", "draft.toml", cwd=tmp_path)
    assert "warning: column PWGTP looks like a survey weight" in drafted.stderr
    assert "# REVIEW: column PWGTP looks like a survey weight" in (tmp_path / "draft.toml").read_text(encoding="utf-8")
    source = open_source(tmp_path / "people.csv")
    for schema, said in ((ordinary, "WARNING: column PWGTP"), (SCHEMA, "WARNING: the data have column PWGTP")):
        assert said in render(check_page(check(schema, source).to_dict()))
    found = render(check_page(check(WEIGHED, source).to_dict()))
    assert f"The weights of all rows add up to {counted(people(50)).sum():,};" in found
    assert "WARNING" not in found


def test_groups_are_small_by_the_rows_that_they_stand_for():
    """A group of 30,000 people is as many largest weights as one of 100 records: policies treat them alike."""
    groups = ss.Groups(small="one-way", threshold=50)
    light = plan(
        ss.Stratified(Independent(), ["SEX"], small.even(SCHEMA, "SEX"), groups), SCHEMA, BUDGET, declared_size=90
    )
    heavy = plan(
        ss.Stratified(Independent(), ["SEX"], small.even(SCHEMA, "SEX"), groups), WEIGHED, BUDGET, declared_size=27_000
    )
    assert [bool(s.small) for s in light.strata] == [bool(s.small) for s in heavy.strata] == [True, True]


def test_public_totals_of_groups_are_weighted(tmp_path):
    frame = people(500)
    frame.to_csv(tmp_path / "last.csv", index=False)
    SCHEMA.write_toml(tmp_path / "schema.toml")
    given = ("weights", "shares", "last.csv", "--schema", "schema.toml", "--by", "SEX,GROUP")
    done = stratsynth(*given, "--weight", "PWGTP", "-o", "shares.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shares = pd.read_csv(tmp_path / "shares.csv", dtype={"SEX": str})
    raw = pd.to_numeric(frame["PWGTP"], errors="coerce").fillna(0).clip(lower=0)
    truth = raw.groupby([frame["SEX"], frame["GROUP"]]).sum()
    assert shares["count"].tolist() == pytest.approx(truth.tolist())
    assert ss.Weights.public(tmp_path / "shares.csv", citation="last year").resolve(crossing(SCHEMA, ["SEX", "GROUP"]))
    assert group_totals(frame, SCHEMA, ["SEX"])["count"].sum() == 500
    assert group_totals(frame, WEIGHED, ["SEX"])["count"].sum() == pytest.approx(raw.sum())
    files = tmp_path / "last.csv", tmp_path / "schema.toml", ("SEX",), None
    with pytest.raises(UsageError, match="exists already"):
        write_totals(*files, tmp_path / "shares.csv")
    with pytest.raises(SchemaError, match="column NO must be in the data once"):
        group_totals(frame, SCHEMA, ["SEX"], "NO")
    with pytest.raises(WeightsError, match="counts anything"):
        group_totals(frame.assign(PWGTP=-1), SCHEMA, ["SEX"], "PWGTP")
    table = ss.open_table(
        tmp_path / "last.csv", schema=WEIGHED, ledger=tmp_path / "l.ledger", ledger_epsilon=2, declared_size=9_000
    )
    ss.fit(Independent(), table, BUDGET)
    with pytest.raises(UsageError, match="account"):
        write_totals(*files, tmp_path / "private.csv")


@pytest.mark.parametrize(
    ("samples", "size"), [(4, 20_000), pytest.param(20, 100_000, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_weighted_releases_are_unbiased_for_the_population(samples, size):
    """Samples of the built-in census with chances that depend on who is employed; each is fitted with its weights."""
    figures = {figure.name: figure for figure in simulated(samples, size)}
    counts, total, truth, heavy, plain = figures.values()
    assert counts.reached
    assert total.value == pytest.approx(1, abs=0.1)
    assert heavy.reached
    assert abs(heavy.value) < 6
    assert plain.value < -12, "without weights, the release is off by what the design is off"
    assert 40 < truth.value < 60


def test_a_holdout_counts_by_its_weights_where_it_has_them():
    frame = people(300)
    strata, weights = crossing(WEIGHED, ["SEX"]), counted(frame)
    found = ss.Weights.holdout(frame, citation="last year").resolve(strata, WEIGHED)
    truth = weights[frame["SEX"] == "1"].sum() / weights.sum()
    assert found.shares[strata[0]] == pytest.approx(truth, abs=0.005)
    assert found.sampled == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    plain = ss.Weights.holdout(frame.drop(columns="PWGTP"), citation="last year").resolve(strata, WEIGHED)
    assert plain.sampled == 300


RECIPE = """
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 58000

[mechanism]
name = "mst"

[budget]
epsilon = 1.0
delta = 1e-9
"""


def test_a_recipe_from_plan_to_release(tmp_path):
    people(400).to_csv(tmp_path / "people.csv", index=False)
    text = SCHEMA.to_toml().replace("[columns.SEX]", 'weight = { column = "PWGTP", max = 300 }\n[columns.SEX]', 1)
    (tmp_path / "schema.toml").write_text(text, encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    with pytest.raises(RecipeError, match=r"\[release\] rows is missing: rows count as PWGTP says"):
        fit_recipe(tmp_path / "recipe.toml", tmp_path / "release")
    assert not (tmp_path / "release").exists()
    (tmp_path / "recipe.toml").write_text(RECIPE + "[release]\nrows = 60\n", encoding="utf-8")
    planned = " ".join(stratsynth("plan", "recipe.toml", cwd=tmp_path).stdout.split())
    assert "every row as its PWGTP, at most 300" in planned
    assert "write mean = ..." in planned
    folder, certificate = fit_recipe(tmp_path / "recipe.toml", tmp_path / "release")
    assert "weighted totals" in " ".join(summary(certificate).split())
    assert ss.verify(folder).ok
    (tmp_path / "schema.toml").write_text(text.replace("max = 300", "max = 5000"), encoding="utf-8")
    assert "whole number from 1 to 1,024, not 5000" in complaint(stratsynth("plan", "recipe.toml", cwd=tmp_path), 2)


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_an_audit_finds_nothing_beyond_the_claim(neighbours):
    """The weights of the two tables that are told apart differ too; a driver with less noise is caught."""
    report = audit_mechanism(
        Independent(), world=HEAVY_WORLDS[0], budget=Budget(3, 1e-6, neighbours), runs=4_000, seconds=1e9, tables=0
    )
    (found,) = report.audits
    assert found.verdict == "within"
    assert found.lower > 0.5 * found.claim
    assert found.controls[0].state == "caught"


def test_public_data_in_one_call_are_weighted_too():
    """Their size is the total of the weights, and so are the groups' own shares."""
    frame = people(300)
    with pytest.warns(NotPrivateWarning):
        release = ss.synthesize(frame, epsilon=5, schema=WEIGHED, public=True, by=["SEX"], mechanism="mst")
    weights = counted(frame)
    assert release.declared_size == weights.sum()
    assert release.certificate["row_weight"]["column"] == "PWGTP"
    drawn = release.sample(4_000, seed=1)
    assert (drawn["SEX"].astype(str) == "1").mean() == pytest.approx(
        weights[frame["SEX"] == "1"].sum() / weights.sum(), abs=0.03
    )
