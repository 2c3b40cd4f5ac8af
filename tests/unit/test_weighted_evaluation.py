"""Real rows with weights in evaluations: figures are those of the population, and constant weights change nothing."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from helpers.command import complaint, stratsynth
from stratsynth import census
from stratsynth.adapters import Independent
from stratsynth.errors import SchemaError
from stratsynth.evaluation import (
    correlations,
    downstream,
    evaluate,
    inconsistencies,
    levels_lost,
    parity_error,
    workload_error,
)
from stratsynth.evaluation.commands import _weighed_alike
from stratsynth.evaluation.evaluations.predictions import evaluate_predictions
from stratsynth.evaluation.scores.baseline import baselines, subsample
from stratsynth.evaluation.scores.raw import raw_values
from stratsynth.evaluation.tables import EncodedRows
from stratsynth.report.html import render
from stratsynth.schema.weight import RowWeight

SCHEMA = small.SCHEMA
WEIGHED = dataclasses.replace(SCHEMA, row_weight=RowWeight(20, "W"))
RNG = np.random.default_rng(5)
WEIGHTS = RNG.integers(0, 12, 400)
REAL = small.people(400).assign(GROUP=RNG.choice(["a", "b"], 400, p=[0.8, 0.2]), AGE=RNG.integers(0, 10, 400))
MADE = small.people(300).assign(AGE=RNG.integers(2, 10, 300))
HEAVY = REAL.assign(W=WEIGHTS)
REPEATED = REAL.loc[np.repeat(np.arange(400), WEIGHTS)].reset_index(drop=True)
SCORES = {
    "workload": lambda real, schema: workload_error(real, MADE, schema, 2, ["SEX"]),
    "means": lambda real, schema: parity_error(real, MADE, schema, by=["SEX"]),
    "marginals": lambda real, schema: parity_error(real, MADE, schema, by=["SEX"], statistic="marginals"),
    "correlations": lambda real, schema: correlations(real, MADE, schema, ["SEX"]),
    "levels": lambda real, schema: levels_lost(real, MADE.assign(WORK="yes"), schema, ["SEX"]),
    "rules": lambda real, schema: inconsistencies(real, MADE, schema, ["SEX"]),
}


def keyed(frame):
    """The figures by what they are about."""
    keys = [c for c in frame if frame[c].dtype == "string" and c not in ("status", "names")]
    return frame.set_index(keys).sort_index()


@pytest.mark.parametrize("score", SCORES)
def test_values_are_those_of_rows_repeated_as_often_as_they_count(score):
    weighed, repeated = keyed(SCORES[score](HEAVY, WEIGHED)), keyed(SCORES[score](REPEATED, SCHEMA))
    assert np.allclose(weighed["value"], repeated["value"], atol=1e-12, equal_nan=True)
    for name in {"real", "synthetic"} & {*weighed}:
        assert np.allclose(weighed[name], repeated[name], atol=1e-12, equal_nan=True)
    assert (weighed["n"] <= 400).all()
    plain = keyed(SCORES[score](REAL, SCHEMA))
    if score not in ("levels", "rules"):
        assert not np.allclose(weighed["value"], plain["value"], atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("score", SCORES)
def test_equal_weights_change_nothing(score):
    weighed, plain = keyed(SCORES[score](REAL.assign(W=7), WEIGHED)), keyed(SCORES[score](REAL, SCHEMA))
    for name in plain:
        if plain[name].dtype.kind in "if":
            assert np.allclose(weighed[name].astype(float), plain[name].astype(float), atol=1e-9, equal_nan=True), name


def test_intervals_are_those_of_the_effective_number_of_rows():
    """Half of the rows count nothing: intervals are those of the other half."""
    weights = np.arange(400) % 2
    weighed = keyed(workload_error(REAL.assign(W=weights), MADE, WEIGHED, 2, ["SEX"]))
    half = keyed(workload_error(REAL[weights == 1], MADE, SCHEMA, 2, ["SEX"]))
    for name in ("value", "low", "high"):
        assert np.allclose(weighed[name], half[name], equal_nan=True)
    assert EncodedRows.read(HEAVY, WEIGHED, weigh=True).effective == pytest.approx(
        WEIGHTS.sum() ** 2 / (WEIGHTS**2).sum()
    )


def test_numbers_themselves_are_weighted():
    weighed, repeated = raw_values(HEAVY, MADE, WEIGHED), raw_values(REPEATED, MADE, SCHEMA)
    assert weighed["real"].tolist() == pytest.approx(repeated["real"].tolist())
    assert weighed["spread"].tolist() == pytest.approx(repeated["spread"].tolist())


def test_baselines_are_drawn_in_proportion():
    real = EncodedRows.read(REAL.assign(W=np.where(REAL["SEX"] == "1", 9, 1)), WEIGHED, weigh=True)
    made = {b.name: b.table for b in baselines(real, WEIGHED, 4000)}
    for name in ("resampled", "independent"):
        assert made[name].weights is None
        assert (made[name].codes["SEX"] == 0).mean() == pytest.approx(0.9, abs=0.03)
    part = subsample(real, 100, seed=1)
    fresh = 100 * 400 / real.effective
    assert part.rows == round(400 * fresh / (400 + fresh))
    assert part.weights is not None
    drawn = real.unweighted()
    assert (drawn.codes["SEX"] == 0).mean() == pytest.approx(0.9, abs=0.02)
    assert drawn.rows == 400


def test_a_whole_evaluation_says_that_it_is_weighted():
    found = evaluate(HEAVY, MADE, WEIGHED, ["SEX"], k=2, apart=False, progress=False)
    assert found.facts["row_weight"] == "W"
    assert found.facts["real_rows"] == 400
    assert "Real rows count as their W" in render(found.page("release", None))
    columns = found.columns.set_index(["column", "level"])
    sexes = REPEATED["SEX"].value_counts(normalize=True)
    assert columns.loc[("SEX", "1"), "real"] == pytest.approx(sexes["1"])
    assert "weighted" not in evaluate(REAL, MADE, SCHEMA, k=2, progress=False).facts


def test_models_learn_from_and_are_judged_by_the_population():
    """Everybody of the first half is a 1 and counts 19 times as much: the commoner class is theirs."""
    rows = REAL.assign(SEX=np.where(np.arange(400) < 100, "1", "2"), W=np.where(np.arange(400) < 100, 19, 1))
    found = downstream(MADE, rows.iloc[::-1], WEIGHED, target="SEX", real=rows, models=["linear"], resamples=10)
    constant = found[(found["model"] == "constant") & (found["metric"] == "accuracy")]
    assert constant["value"].iloc[0] == pytest.approx(1900 / 2200, abs=0.01)
    judged = evaluate_predictions(rows, np.array(["1"] * 400), WEIGHED, target="SEX").rates
    said = judged[(judged["table"] == "predictions") & (judged["metric"] == "accuracy")]
    assert said["value"].iloc[0] == pytest.approx(1900 / 2200, abs=0.01)


def test_real_rows_without_their_weights_are_refused():
    with pytest.raises(SchemaError, match="column W must be in the data once"):
        workload_error(REAL, MADE, WEIGHED, 2)


def test_two_tables_of_the_built_in_census_agree_once_they_are_weighted():
    """A sample that has women twice as often as men, with weights that put this right."""
    people, fresh = census.make(6_000), census.holdout(6_000)
    kept = np.flatnonzero((people["SEX"] == "2") | (np.arange(6_000) % 2 == 0))
    sample = people.iloc[kept].assign(W=np.where(people["SEX"].iloc[kept] == "2", 1, 2))
    heavy = dataclasses.replace(census.schema(), row_weight=RowWeight(2, "W"))
    share = {
        name: evaluate_share(data, fresh, schema)
        for name, data, schema in (("weighted", sample, heavy), ("plain", sample, census.schema()))
    }
    assert abs(share["weighted"]) < 0.03
    assert abs(share["plain"]) > 0.1


def evaluate_share(real, made, schema):
    from stratsynth.evaluation.scores.columns import column_frame
    from stratsynth.evaluation.tables import Pair

    frame = column_frame(Pair.of(real, pd.DataFrame(made), schema))
    return float(frame[(frame["column"] == "SEX") & (frame["level"] == "2")]["value"].iloc[0])


def test_a_weighted_release_is_evaluated_by_its_own_schema(tmp_path):
    """By the schema of the sample, its errors would be those of the design."""
    table = ss.open_table(HEAVY, schema=WEIGHED, declared_size=int(WEIGHTS.sum()))
    ss.fit(Independent(), table, small.BUDGET).save(tmp_path / "release", rows=200)
    HEAVY.to_csv(tmp_path / "people.csv", index=False)
    WEIGHED.write_toml(tmp_path / "weighed.toml")
    SCHEMA.write_toml(tmp_path / "plain.toml")
    given = ("evaluate", "--real", "people.csv", "--synthetic", "release", "-o", "out", "--schema", "plain.toml")
    said = complaint(stratsynth(*given, cwd=tmp_path), 2)
    assert "counts rows as W says, and plain.toml counts every row 1" in said
    said = complaint(stratsynth(*given, "--marginals-only", cwd=tmp_path), 2)
    assert "counts rows as W says, and plain.toml counts every row 1" in said
    _weighed_alike(tmp_path / "weighed.toml", tmp_path / "release")
