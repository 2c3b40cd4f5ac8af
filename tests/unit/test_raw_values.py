"""Means and quartiles of raw numbers: a column whose bins agree and whose numbers do not is found out."""

import numpy as np
import pandas as pd
import pytest

from stratsynth import Categorical, Numeric, Schema, Temporal
from stratsynth.evaluation import evaluate, raw_values, workload_error
from stratsynth.evaluation.scores.raw import farthest, sentence
from stratsynth.report.html import render
from stratsynth.report.text import render as text

SCHEMA = Schema(
    {
        "bill": Numeric(lower=0, upper=1_000_000, bins=4, special=("-9",), missing=True),
        "age": Numeric(lower=0, upper=100, bins=4, integer=True),
        "sex": Categorical(levels=("f", "m")),
    }
)


def tables(rows=2_000):
    """Bills of a few thousand, and a copy that has them spread over the bin that they lie in."""
    rng = np.random.default_rng(0)
    real = pd.DataFrame(
        {"bill": rng.exponential(5_858, rows), "age": rng.integers(0, 100, rows), "sex": rng.choice(["f", "m"], rows)}
    )
    return real, real.assign(bill=rng.uniform(0, 250_000, rows))


def test_a_mean_that_bins_hide_is_in_the_headline():
    real, made = tables()
    assert workload_error(real, made, SCHEMA, 2)["value"].max() == 0, "all bins agree"
    found = evaluate(real, made, SCHEMA, k=2, apart=False)
    row = farthest(found.raw)
    assert row["variable"] == "bill"
    assert row["value"] > 10
    assert found.facts["headline"]["mean"]["variable"] == "bill"
    for shown in (form(found.page("this release", None)) for form in (text, render)):
        assert "Of the means of numbers, that of bill is farthest off: 125," in shown
        assert sentence(row).split(":")[0] not in shown, "its column is named already"
    assert {"raw", "numbers"} <= {*dict(found.frames())}


def test_dates_are_in_the_headline_where_they_are_farthest_off():
    schema = Schema({"day": Temporal(lower="2020-01-01", upper="2029-12-31", bins=2), "age": SCHEMA.column("age")})
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(1_000), unit="D")
    real = pd.DataFrame({"day": days, "age": np.arange(1_000) % 100})
    found = evaluate(real, real.assign(day=days + pd.Timedelta(days=800)), schema, k=1, apart=False)
    assert sentence(farthest(found.raw)).split(":")[0] in text(found.page("this release", None))
    assert set(found.numbers["variable"]) == {"age"}


def test_the_figures_are_those_of_the_values_in_the_files():
    real, made = tables()
    real.loc[:9, "bill"] = -9
    made.loc[:4, "bill"] = np.nan
    made.loc[5, "bill"] = 5e6  # beyond the bounds, and not clipped
    frame = raw_values(real, made, SCHEMA)
    assert frame["variable"].unique().tolist() == ["bill", "age"]
    assert frame["statistic"].tolist() == ["mean", "lower quartile", "median", "upper quartile"] * 2
    kept, own = real["bill"][10:], made["bill"].dropna()
    first = frame.iloc[0]
    assert (first["n"], first["n_synthetic"]) == (1_990, 1_995)
    assert first["real"] == pytest.approx(kept.mean())
    assert first["synthetic"] == pytest.approx(own.mean())
    assert first["value"] == pytest.approx(abs(own.mean() - kept.mean()) / kept.std(ddof=0))
    assert frame.iloc[3]["synthetic"] == np.quantile(own, 0.75, method="inverted_cdf")
    assert (frame[frame["variable"] == "age"]["value"] == 0).all()
    assert frame.attrs["stamp"].startswith("INTERNAL")
    assert raw_values(real, made, SCHEMA, columns=["age"])["variable"].unique().tolist() == ["age"]


def test_what_cannot_be_compared_is_no_figure():
    real, made = tables(40)
    frame = raw_values(real.iloc[:0], made, SCHEMA)
    assert frame["value"].isna().all()
    assert set(frame["status"]) == {"not_estimable"}
    assert farthest(frame) is None
    constant = raw_values(real.assign(age=5), made.assign(age=6), SCHEMA)
    assert constant[constant["variable"] == "age"]["status"].eq("not_estimable").all()
    assert set(raw_values(real[:20], made, SCHEMA)["status"]) == {"small"}
    assert raw_values(real, made, SCHEMA.restrict(["sex"])).empty
