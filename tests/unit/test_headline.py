"""Errors of means, medians, deciles and shares of numbers: by hand, with weights, codes and groups; on the page."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.pages import Page
from stratsynth import Categorical, Numeric, Schema, Temporal
from stratsynth.errors import UsageError
from stratsynth.evaluation import evaluate, number_errors
from stratsynth.evaluation.evaluations.output import document
from stratsynth.evaluation.scores.headline import default_thresholds
from stratsynth.evaluation.tables.numbers import quantiles, share_above, standard_error
from stratsynth.report.text import render as text
from stratsynth.schema.weight import RowWeight

SCHEMA = Schema(
    {
        "pay": Numeric(
            lower=-100,
            upper=999_999,
            edges=(-100, 0, 101, 5_001, 300_001, 1_000_000),
            spikes=(0,),
            integer=True,
            special=("-999",),
            not_applicable="N",
            missing=True,
        ),
        "sex": Categorical(levels=("f", "m")),
    }
)
WEIGHED = dataclasses.replace(SCHEMA, row_weight=RowWeight(20, "W"))
GOLDEN = Path(__file__).parents[1] / "golden" / "headline.json"


def people(pay, sex="f"):
    return pd.DataFrame({"pay": [str(one) for one in pay], "sex": sex})


def found(real, made, schema=SCHEMA, by=None, **settings):
    """Rows of the frame by statistic, and by sex where there are groups."""
    frame = number_errors(real, made, schema, by, **settings)
    keys = ["sex", "statistic"] if by else ["statistic"]
    return frame.assign(sex=frame["sex"].fillna("all") if by else "all").set_index(keys)


def test_figures_and_errors_by_hand():
    real = people([10, 20, 30, 40, 50, 60, 70, 80, 90, 100])
    made = people([11, 20, 30, 40, 52, 60, 70, 80, 98, 120])
    rows = found(real, made, thresholds={"pay": [50, 90]})
    assert rows.loc["mean", ["real", "synthetic"]].tolist() == [55.0, 58.1]
    assert rows.loc["mean", "value"] == pytest.approx(100 * 3.1 / 55)
    assert rows.loc["median", ["real", "synthetic"]].tolist() == [50.0, 52.0]  # half of ten are at or below the fifth
    assert rows.loc["median", "value"] == pytest.approx(4.0)
    tenths = {f"P{10 * i}": 0.0 for i in range(1, 10)} | {"P10": 1.25, "P50": 2.5, "P90": 10.0}  # per cent of 90 - 10
    assert rows.loc[[*tenths], "value"].tolist() == pytest.approx([*tenths.values()])
    assert rows.loc["deciles", "value"] == pytest.approx(13.75 / 9)
    assert rows.loc["P99", ["real", "synthetic", "value"]].tolist() == [100.0, 120.0, pytest.approx(20.0)]
    assert rows.loc["above 50", ["real", "synthetic", "value"]].tolist() == pytest.approx([0.5, 0.6, 10.0])
    assert rows.loc["above 90", ["real", "synthetic", "value"]].tolist() == pytest.approx([0.1, 0.2, 10.0])
    assert rows.loc["no number", "value"] == 0
    assert rows["unit"].loc[["mean", "P20", "above 50"]].tolist() == ["% of the mean", "% of P90 - P10", "points"]


def test_errors_have_a_sign_and_nothing_is_per_cent_of_nothing():
    rows = found(people([-10, 0, 10]), people([-10, -5, 0]))
    assert np.isnan(rows.loc["mean", "value"])  # the real mean is 0
    assert rows.loc["mean", "status"] == "not_estimable"
    assert rows.loc["mean", "synthetic"] == -5
    assert rows.loc["median", "status"] == "not_estimable"
    assert rows.loc["P90", "value"] == pytest.approx(-50.0)
    same = found(people([0, 0, 0]), people([0, 0, 0]))
    assert (same["value"].drop("no number") == 0).all()
    assert found(people([-20, -20]), people([-30, -30])).loc["mean", "value"] == pytest.approx(-50), "further down"


def test_codes_and_missing_values_are_left_out_and_counted():
    real = people([10, 20, "-999", "N", "", "x", 30, 40])
    made = people([10, 20, 30, 40, "N", 25])
    rows = found(real, made)
    assert rows.loc["mean", ["n", "n_synthetic", "real", "synthetic"]].tolist() == [4, 5, 25.0, 25.0]
    assert rows.loc["mean", "value"] == 0
    assert rows.loc["no number", ["real", "synthetic"]].tolist() == pytest.approx([4 / 8, 1 / 6])
    assert rows.loc["no number", "value"] == pytest.approx(100 * (1 / 6 - 1 / 2))
    everything = found(people(["N", "N"]), made)
    assert everything.loc["mean", "status"] == "not_estimable"
    assert everything.loc["no number", "real"] == 1


def test_numbers_are_those_of_the_files_beyond_the_bounds_too():
    rows = found(people([10, 5_000_000]), people([10, 999_999]))
    assert rows.loc["mean", "real"] == 2_500_005


def test_weights_count_rows_as_often_as_they_say():
    real = people([100, 1_000, 10_000, "N"]).assign(W=[7, 2, 1, 10])
    rows = found(real, people([100, 1_000]), WEIGHED, thresholds={"pay": 999})
    assert rows.loc["mean", "real"] == pytest.approx((700 + 2_000 + 10_000) / 10)
    assert rows.loc["median", "real"] == 100
    assert rows.loc[["P70", "P80", "P90", "P99"], "real"].tolist() == [100, 1_000, 1_000, 10_000]
    assert rows.loc["above 999", "real"] == pytest.approx(0.3)
    assert rows.loc["no number", "real"] == pytest.approx(0.5)
    assert rows.loc["mean", "n"] == 3, "records, not their weight"
    repeated = found(people([100] * 7 + [1_000] * 2 + [10_000] + ["N"] * 10), people([100, 1_000]))
    for statistic in ("mean", "median", "deciles", "P99", "no number"):
        assert rows.loc[statistic, "real"] == pytest.approx(repeated.loc[statistic, "real"], nan_ok=True)
        assert rows.loc[statistic, "value"] == pytest.approx(repeated.loc[statistic, "value"], nan_ok=True)
    nobody = found(real.assign(W=[0, 0, 1, 1]), people([100]), WEIGHED)
    assert nobody.loc["mean", ["real", "n"]].tolist() == [10_000, 1], "rows of weight 0 are no rows"


def test_groups_have_their_own_figures_and_small_ones_make_no_claim():
    real = pd.concat([people([10] * 1_000, "f"), people([30] * 999, "m"), people([50], "unknown")])
    made = pd.concat([people([12] * 1_000, "f"), people([30] * 2_000, "m")])
    rows = found(real, made, by="sex")
    assert rows.loc[("f", "mean"), ["real", "synthetic", "value", "status"]].tolist() == [
        10,
        12,
        pytest.approx(20),
        "ok",
    ]
    assert rows.loc[("m", "mean"), ["n", "status"]].tolist() == [999, "small"]
    assert rows.loc[("all", "mean"), "n"] == 2_000, "a row of no known group counts for everybody"
    absent = found(people([10], "f"), people([10], "m"), by="sex")
    assert absent.loc[("f", "mean"), "status"] == "not_estimable"
    assert absent.loc[("f", "mean"), ["n", "n_synthetic"]].tolist() == [1, 0]


def test_intervals_are_those_of_chance_in_the_rows():
    real, made = people(range(1, 101)), people(range(1, 51))
    rows = found(real, made, thresholds={"pay": 25})
    error = math.hypot(np.std(range(1, 101)) / 10, np.std(range(1, 51)) / math.sqrt(50))
    value = 100 * (25.5 - 50.5) / 50.5
    assert rows.loc["mean", "high"] - value == pytest.approx(1.96 * 100 * error / 50.5, rel=1e-3)
    share = math.hypot(math.sqrt(0.25 * 0.75 / 100), math.sqrt(0.5 * 0.5 / 50))
    assert rows.loc["above 25", "high"] - rows.loc["above 25", "value"] == pytest.approx(196 * share, rel=1e-3)
    assert rows.loc["median", ["low", "high"]].isna().all()
    weights = np.array([1, 3, 2])
    apart = weights * (np.array([1, 2, 6]) - 19 / 6)
    assert standard_error(np.array([1, 2, 6]), weights) == pytest.approx(math.sqrt((apart**2).sum()) / 6)
    assert np.isnan(standard_error(np.array([1.0]), np.array([1.0])))


@pytest.mark.parametrize("whole", [True, False])
def test_quantiles_are_the_smallest_numbers_with_their_part_below(whole):
    rng = np.random.default_rng(3)
    for _ in range(50):
        numbers = rng.integers(0, 9, rng.integers(1, 30)).astype(float)
        weights = rng.integers(1, 6, len(numbers)) * (1 if whole else 0.1)
        for hundredth in (10, 25, 50, 70, 90, 99):
            at = quantiles(numbers, weights, [hundredth])[0]
            below = weights[numbers <= at].sum() / weights.sum()
            before = weights[numbers < at].sum() / weights.sum()
            assert below >= hundredth / 100 - 1e-9
            assert before < hundredth / 100 + 1e-9
    assert quantiles(np.array([]), np.array([]), [50, 99]) != [0, 0]
    assert np.isnan(share_above(np.array([]), np.array([]), 1))


def test_thresholds_come_from_the_schema_alone():
    assert default_thresholds(SCHEMA.column("pay")) == (100, 5_000, 300_000)
    ages = Numeric(lower=0, upper=99, integer=True)
    assert default_thresholds(ages) == (96, 97, 98)
    assert default_thresholds(Numeric(lower=0, upper=1, bins=2)) == (0.5,)
    assert default_thresholds(Numeric(lower=0, upper=1, bins=1)) == ()
    spiked = Numeric(lower=0, upper=10, edges=(0, 5, 10), spikes=(8,))
    assert default_thresholds(spiked) == (5, 8), "a spike's bin ends at the spike"
    names = number_errors(people([1]), people([1]), SCHEMA)["statistic"].tolist()
    assert [name for name in names if name.startswith("above")] == ["above 100", "above 5000", "above 300000"]


@pytest.mark.parametrize(
    ("thresholds", "says"),
    [
        ({"sex": 1}, "'sex' has a threshold, and is no column of numbers"),
        ({"pya": 1}, "'pya' has a threshold"),
        ({"pay": []}, "finite numbers"),
        ({"pay": "5"}, "finite numbers, not '5'"),
        ({"pay": [1, math.nan]}, "finite numbers"),
        ([200], "numbers by column"),
    ],
)
def test_other_thresholds_are_refused(thresholds, says):
    with pytest.raises(UsageError, match=says):
        number_errors(people([1]), people([1]), SCHEMA, thresholds=thresholds)


def test_columns_that_are_no_numbers_have_no_figures():
    schema = Schema({"day": Temporal(lower="2020-01-01", upper="2029-12-31"), "sex": SCHEMA.column("sex")})
    frame = pd.DataFrame({"day": ["2024-05-01"] * 9, "sex": "f"})
    assert number_errors(frame, frame, schema).empty
    whole = evaluate(frame, frame, schema, k=1, apart=False)
    assert whole.numbers is None
    assert whole.facts["headline"] == {"mean": None, "median": None}
    assert "Means, medians" not in text(whole.page("this release", None))
    assert number_errors(people([1]), people([1]), SCHEMA, "pay").empty, "one number a group"


@pytest.fixture(scope="module")
def whole():
    """An evaluation of 2,400 people, and of another table beside it."""
    real = pd.concat([people([*range(1_500)], "f"), people([*range(899), "N"], "m")], ignore_index=True)
    made = pd.concat([people([x * 1.5 // 1 for x in range(1_500)], "f"), people(range(900), "m")], ignore_index=True)
    made["pay"] = made["pay"].str.removesuffix(".0")
    beside = {"vanilla": real}
    return evaluate(real, made, SCHEMA, "sex", k=1, apart=False, beside=beside, thresholds={"pay": [1_000]})


def test_the_page_opens_with_the_headline(whole):
    page = Page(whole.page("this release", None)).check()
    for said in (
        "Of the means of numbers, that of pay is farthest off:",
        "Of the medians of numbers, that of pay is farthest off:",
        "Of the means in groups of at least 1,000 numbers, that of pay in sex f is farthest off",
        "No claim is made of groups with fewer than 1,000 numbers in either table: 1 pair of a group and a column",
        "above 1,000",
        "as they were stated",
    ):
        assert said in page.text, said
    assert page.text.index("Of the means of numbers") < page.text.index("The error compares")
    rows, _ = page.numbers("INTERNAL-numbers")
    assert [(row["column"], row["of"]) for row in rows] == [("pay", "this release"), ("pay", "vanilla")]
    assert float(rows[0]["off, %"]) > 0
    groups, _ = page.numbers("INTERNAL-numbers-by-group")
    assert [row["Group"] for row in groups] == ["sex f"]
    terminal = text(whole.page("this release", None))
    assert terminal.index("Means, medians and deciles, everybody") < terminal.index("Disparity card")
    assert "Deciles, everybody" not in terminal


def test_the_document_is_the_one_that_was_written_before(whole):
    """Facts and frame as they are in evaluation.json; whoever changes them on purpose writes the file anew."""
    made = document(whole)
    facts = {key: made["facts"][key] for key in ("headline", "few_numbers", "thresholds")}
    kept = {"facts": facts, "numbers": made["frames"]["numbers"]}
    rounded = json.loads(json.dumps(kept), parse_float=lambda digits: round(float(digits), 9))
    assert rounded == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_the_column_that_is_farthest_off_comes_first():
    columns = {name: Numeric(lower=0, upper=99, integer=True, bins=2) for name in ("right", "wrong", "nought")}
    real = pd.DataFrame({"right": range(50), "wrong": range(50), "nought": 0})
    shown = evaluate(real, real.assign(wrong=range(50, 100), nought=1), Schema(columns), k=1, apart=False)
    page = Page(shown.page("this release", None))
    rows, _ = page.numbers("INTERNAL-numbers")
    assert [row["column"] for row in rows] == ["wrong", "right", "nought"], "what is per cent of 0 comes last"
    assert "With fewer than 1,000 numbers this is mostly chance." in page.text
