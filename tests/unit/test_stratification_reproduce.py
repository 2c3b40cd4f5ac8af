"""`scripts/reproduce_stratification`: its people, its words that follow from figures, and going on after a stop."""

import numpy as np
import pandas as pd
import pytest

from helpers import bureau
from stratsynth import census
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.errors import UsageError
from studies.stratification import STUDY, authors, claims, grids, people, reproduce

EPSILONS = (0.1, 1.0, 5.0)


def test_the_census_is_split_into_other_people_with_a_target_of_their_own():
    study = people.built_in(300, 200)
    assert study.schema.names[-1] == people.TARGET
    assert list(study.train) == list(study.held) == list(study.schema.names)
    assert (len(study.train), len(study.held)) == (300, 200)
    real = census.make(300)
    assert study.train[people.TARGET].eq("yes").tolist() == real["ESR"].eq("1").tolist()
    assert "ESR" not in study.schema.names
    assert study.shares["share"].sum() == pytest.approx(1)


def excerpt(rows):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: rng.integers(1, 3, rows) for name in people.EXCERPT})
    return frame.assign(INDP_CAT=rng.choice(["N", "4"], rows), DREM=rng.choice(["N", "1"], rows), PINCP=17.0)


def test_a_file_is_split_once_and_its_shares_leave_no_group_out(tmp_path):
    frame = excerpt(200)
    frame.to_csv(tmp_path / "acs.csv", index=False)
    study, again = (people.brought(tmp_path / "acs.csv", 2018, None) for _ in range(2))
    pd.testing.assert_frame_equal(study.held, again.held)
    assert len(study.train) + len(study.held) == 200
    assert 30 < len(study.held) < 70
    assert (study.shares["share"] > 0).all()
    assert len(study.shares) == 2 * 9
    assert study.shares["share"].sum() == pytest.approx(1)
    worked = pd.concat([study.train, study.held])[people.TARGET]
    assert worked.eq("yes").sum() == frame["INDP_CAT"].ne("N").sum()
    fewer = people.brought(tmp_path / "acs.csv", 2018, 50)
    assert len(fewer.train) == 50
    pd.testing.assert_frame_equal(fewer.held, study.held)


@pytest.mark.parametrize("year", [2018, 2021])
def test_records_of_the_survey_have_all_sixteen_columns_of_the_task_in_that_year(tmp_path, year):
    bureau.csv(tmp_path / "p.csv", 400, year)
    study = people.brought(tmp_path / "p.csv", year, None)
    task = census.acs.schema(task="ACSEmployment", year=year)
    assert set(study.schema.names) == {*task.names, people.TARGET} - {"ESR"}
    assert len(study.schema.names) == 16 + 1
    both = pd.concat([study.train, study.held])
    raw = pd.read_csv(tmp_path / "p.csv")
    assert both[people.TARGET].eq("yes").sum() == raw["ESR"].eq(1).sum()
    load_rows(study.schema, open_source(both.reset_index(drop=True)))
    assert "16 columns" in study.name


def test_columns_that_a_file_lacks_are_named(tmp_path):
    bureau.csv(tmp_path / "whole.csv", 400, 2018)
    pd.read_csv(tmp_path / "whole.csv").drop(columns=["ESP", "ANC"]).to_csv(tmp_path / "p.csv", index=False)
    study = people.brought(tmp_path / "p.csv", 2018, None)
    assert study.name.endswith("14 columns, without ESP, ANC, which the file lacks")
    assert len(study.schema.names) == 14 + 1


@pytest.mark.parametrize("case", ["another file", "no file"])
def test_another_file_is_refused_by_name(tmp_path, capsys, case):
    pd.DataFrame({"AGEP": [1], "SEX": [1]}).to_csv(tmp_path / "x.csv", index=False)
    name = "x.csv" if case == "another file" else "y.csv"
    with pytest.raises(UsageError, match="lacks MSP" if case == "another file" else "there is no file"):
        people.brought(tmp_path / name, 2018, None)
    assert STUDY.main(["--acs", str(tmp_path / name), "--out", str(tmp_path / "out")]) == 2
    assert "reproduce_stratification: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def made_up(values, seeds=5):
    """A comparison's frame: the mean of each metric by setting, a little off in each repetition."""
    scopes = {"parity": "parity", "demographic": "between", "false": "between", "mean": "between"}
    rows = [
        {
            "mechanism": m,
            "stratification": s,
            "epsilon": e,
            "seed": seed,
            "metric": metric,
            "scope": scopes.get(metric.split("_", maxsplit=1)[0], "everybody"),
            "value": value + 1e-3 * (seed % 3),
            "n": 10_000,
        }
        for (metric, m, s), by in values.items()
        for e, value in zip(EPSILONS, by, strict=True)
        for seed in range(1, seeds + 1)
    ]
    return pd.DataFrame(rows)


VALUES = {
    ("accuracy:forest", "gem", "vanilla"): (0.70, 0.78, 0.79),
    ("accuracy:forest", "gem", "RAC1P"): (0.60, 0.77, 0.76),
    ("parity_means:RAC1P", "gem", "vanilla"): (0.5, 0.5, 0.6),
    ("parity_means:RAC1P", "gem", "RAC1P"): (1.0, 0.4, 0.1),
    ("false_negative_rate_difference:forest", "gem", "vanilla"): (0.3, 0.2, 0.1),
    ("false_negative_rate_difference:forest", "gem", "RAC1P"): (0.1, 0.2, 0.3),
}


def verdicts(frame):
    return {row["claim"]: row["verdict"] for row in claims.claims(frame)}


def test_verdicts_follow_from_the_figures():
    frame = made_up(VALUES)
    frame["value"] += 1e-4 * np.random.default_rng(0).standard_normal(len(frame))
    found = verdicts(frame)
    assert found["From epsilon 1 on, stratifying costs at most 2 points of accuracy"] == "holds in part"
    assert found["Stratifying harms accuracy only below epsilon 0.1"] == "does not hold"
    assert found["Stratifying gem reduces parity error, epsilon 0.1"] == "does not hold"
    assert found["Stratifying gem reduces parity error, epsilon 5"] == "holds"
    three = "Vanilla gem's parity error is three times that of gem in strata, or more, epsilon "
    assert [found[f"{three}{e:g}"] for e in EPSILONS] == ["does not hold", "does not hold", "holds"]
    assert found["Among the stratified, gem is best at epsilon 1"] == "holds"
    assert found["Among the stratified, aim is best at epsilon 5"] == "not tried"
    shrinks = "The largest difference of false-negative rates shrinks from epsilon 0.1 to 5"
    assert found[shrinks] == "holds in part"


def groups(values, seeds=3):
    """Rows of groups' parity errors, by setting: the value and the people of each group."""
    return pd.DataFrame(
        [
            {
                "mechanism": "gem",
                "stratification": s,
                "epsilon": 1.0,
                "seed": seed,
                "metric": metric,
                "scope": scope,
                "n": n,
                "value": value + (1e-4 * seed if n < 10_000 else 0),
            }
            for metric in ("parity_means", "parity_marginals")
            for s, of in values.items()
            for seed in range(1, seeds + 1)
            for scope, n, value in [*(("group", n, v) for n, v in of), ("everybody", 10_000, 0.3)]
        ]
    )


def test_verdicts_over_larger_groups_are_not_made_by_tiny_ones():
    """Two groups of at least 100 people gain, one of nine loses much more; a group that the release lacks counts 1."""
    frame = groups(
        {"vanilla": [(500, 0.5), (100, 0.4), (9, 0.1)], "SEX x RAC1P": [(500, 0.1), (100, np.nan), (9, 9.0)]}
    )
    found = claims.Figures(frame)
    metric = "parity_means" + claims.OVER
    assert found.of(metric, "gem", "vanilla", 1.0) == pytest.approx(0.5 + 0.4 + 0.3 / 2, abs=1e-3)
    assert found.of(metric, "gem", "SEX x RAC1P", 1.0) == pytest.approx(0.1 + 1 + 0.3 / 2, abs=1e-3)
    frame["value"] = frame["value"].fillna(0.05)
    said = verdicts(frame)
    assert said[f"Stratifying gem reduces parity error{claims.OVER}, epsilon 1"] == "holds"
    assert said["Stratifying gem reduces parity error, epsilon 1"] == "not tried"
    three = f"Vanilla gem's parity error{claims.OVER} is three times that of gem in strata, or more, epsilon 1"
    assert said[three] == "holds"


def test_a_single_repetition_leaves_differences_open():
    found = verdicts(made_up(VALUES, seeds=1))
    assert found["Stratifying gem reduces parity error, epsilon 5"] == "open"
    assert found["From epsilon 1 on, stratifying costs at most 2 points of accuracy"] == "open"


def test_the_authors_figures_stand_beside_ours_at_the_same_epsilon():
    beside = reproduce.beside_authors(made_up(VALUES))
    one = beside[(beside["metric"] == "parity_means:RAC1P") & (beside["stratification"] == "RAC1P")]
    assert one["authors"].tolist() == [0.120, 0.113, 0.102]
    assert one["authors_really_spent"].tolist() == [4.71, 74, 935]
    assert one["ours"].tolist() == pytest.approx([1.0, 0.4, 0.1], abs=0.002)
    assert len(authors.figures()) == 8 * 6 + 16


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(reproduce, "ROWS", 400)
    monkeypatch.setattr(reproduce, "HELD", 200)
    monkeypatch.setattr(grids, "BASES", ("mst",))
    monkeypatch.setattr(grids, "EPSILONS", (1.0,))
    monkeypatch.setattr(grids, "QUICK", {"stratifications": ([], ["RAC1P"]), "pooled": ("mst",)})


@pytest.mark.slow
def test_it_prints_a_page_and_goes_on_where_it_stopped(small, tmp_path, capsys):
    out = tmp_path / "out"
    assert STUDY.main(["--seeds", "1", "--workers", "1", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "## Which claims hold" in said
    assert "| accuracy, forest | mst, RAC1P | 1 |" in said
    assert (out / "stratification.md").read_text(encoding="utf-8") + "\n" == said
    cells = {file.name: file.stat().st_mtime_ns for file in (out / "comparison" / "cells").glob("*.parquet")}
    assert len(cells) == 4
    assert STUDY.main(["--seeds", "1", "--workers", "1", "--out", str(out)]) == 0
    again = {file.name: file.stat().st_mtime_ns for file in (out / "comparison" / "cells").glob("*.parquet")}
    assert again == cells
    frame = pd.read_parquet(out / "comparison" / "comparison.parquet")
    assert {"mean_disparity", "parity_means", "parity_means:RAC1P", "false_negative_rate_difference:forest"} <= set(
        frame["metric"]
    )


@pytest.mark.slow
def test_the_roads_are_one_page(small, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(grids, "ROADS", (1.0,))
    monkeypatch.setattr(grids, "DIRECT", {"group_regression": {"model": "logistic", "iterations": 5}})
    assert STUDY.main(["--roads", "--seeds", "1", "--workers", "1", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("# Roads to a prediction at one budget")
    assert "- Epsilon 1: for everybody the best road is " in said
    frame = pd.read_parquet(tmp_path / "out" / "comparison" / "roads.parquet")
    assert set(frame["kind"]) == {"vanilla table", "stratified table", "pooled table", "direct"}
    page = (tmp_path / "out" / "comparison" / "report.html").read_text(encoding="utf-8")
    assert "fairlearn on mst, vanilla" in page


def test_the_quick_form_has_all_six_epsilons_and_leaves_slow_pooled_strata_to_the_full_one():
    quick, full = (grids.tables(3, full=full) for full in (False, True))
    assert quick["epsilons"] == full["epsilons"] == [0.01, 0.05, 0.1, 0.5, 1.0, 5.0]
    labels = [[one if isinstance(one, str) else one["label"] for one in grid["mechanisms"]] for grid in (quick, full)]
    assert labels == [["mst", "aim", "gem", "mst pooled"], [*labels[0], "aim pooled", "gem pooled"]]


def test_all_predictors_of_the_roads_are_asked_for_the_same():
    compared = grids.roads(5)
    direct = [one for one in compared["mechanisms"] if isinstance(one, dict) and one["name"] != "pooled"]
    assert [one["name"] for one in direct] == ["group_regression", "reductions", "fermi", "fair_sgd"]
    assert {(one["target"], *one["groups"]) for one in direct} == {("EMPLOYED", "SEX", "RAC1P")}
