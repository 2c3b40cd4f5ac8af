"""The whole evaluation, and its page as text, on tables that are whole, odd or empty."""

import json

import numpy as np
import pandas as pd
import pytest

from stratsynth import Categorical, Numeric, Schema, StratsynthError
from stratsynth.evaluation import evaluate, workload_error
from stratsynth.evaluation.evaluations.card import disparity_card
from stratsynth.evaluation.evaluations.output import NOTICE, document, write
from stratsynth.evaluation.scores.declared import names
from stratsynth.report.html import render
from stratsynth.report.text import render as text
from stratsynth.schema import Rule

SCHEMA = Schema(
    {
        "G": Categorical(levels=("a", "b", "c")),
        "X": Numeric(lower=0, upper=10, bins=5),
        "Y": Categorical(levels=("no", "yes")),
        "A": Categorical(levels=("north", "south")),
    },
    rules=(Rule(when={"Y": "yes"}, never={"X": "< 2"}),),
)


def people(n, seed=0, schema=SCHEMA):
    rng = np.random.default_rng(seed)
    columns = {"G": rng.choice(list("ab"), n, p=(0.8, 0.2)), "X": rng.uniform(0, 10, n).round(2)}
    columns["Y"] = np.where((columns["X"] > 5) ^ (rng.random(n) < 0.1), "yes", "no")
    columns["A"] = rng.choice(["north", "south"], n)
    return pd.DataFrame({name: columns[name] for name in schema.names})


@pytest.fixture(scope="module")
def found():
    holdout = people(200, 3)
    return evaluate(people(300, 1), people(250, 2), SCHEMA, "G", k=2, holdout=holdout, target="Y", area="A")


def test_every_frame_has_every_group_and_a_stamp(found):
    frames = dict(found.frames())
    assert set(frames) == {
        "workload",
        "score",
        "areas",
        "cliques",
        "parity_means",
        "parity_marginals",
        "disparity",
        "correlations",
        "numbers",
        "raw",
        "propensity",
        "components",
        *names(),
        "levels",
        "matches",
        "downstream",
        "columns",
    }
    for name, frame in frames.items():
        assert "INTERNAL" in frame.attrs["stamp"], name
        if "scope" not in frame:
            continue
        assert {"n", "value", "low", "high", "status"} <= set(frame.columns), name
        groups = frame[frame["scope"] == "group"]
        assert set(groups["A" if name == "areas" else "G"]) == ({"north", "south"} if name == "areas" else set("abc"))
        assert frame["value"].isna().tolist() == (frame["status"] == "not_estimable").tolist(), name
        assert set(frame["status"]) <= {"ok", "small", "not_estimable"}
        ends = frame[frame["low"].notna() & (frame["scope"] != "between")]
        assert (ends["low"] <= ends["value"] + 1e-9).all(), name
        assert (ends["value"] <= ends["high"] + 1e-9).all(), name


def test_the_baselines_are_in_every_frame_that_compares(found):
    tables = {"release", "subsample", "resampled", "independent"}
    for frame in (found.workload, found.score, found.areas, found.parity_means, found.parity_marginals):
        assert set(frame["table"]) == tables
    assert set(found.matches["people"]) == {"real", "holdout"}
    assert set(found.downstream["trained_on"]) == {"synthetic", "real", "subsample"}


def test_the_frames_are_those_of_the_single_functions(found):
    alone = workload_error(people(300, 1), people(250, 2), SCHEMA, 2, "G")
    mine = found.workload[found.workload["table"] == "release"].drop(columns="table").reset_index(drop=True)
    pd.testing.assert_frame_equal(mine, alone)


def test_the_card_has_the_worst_group_first_and_everybody_last(found):
    card = disparity_card(found)
    assert card["G"].tolist()[:2] == ["b", "a"]
    assert card["status"].tolist() == ["ok", "ok", "not_estimable", "ok"]
    assert card["scope"].tolist()[-1] == "everybody"
    np.testing.assert_allclose(card["excess"][:2], card["error"][:2] / card["subsample"][:2])
    page = text(found.page("this release", None))
    assert page.startswith("INTERNAL")
    said = ("Parity error of the means", "The worst tables", "Models that predict Y is yes", "break a rule", "held out")
    for what in said:
        assert what in page
    lines = [line for line in page.splitlines() if line.startswith("G c ")]
    assert lines == [line for line in lines if "not estimable" in line]
    assert len(lines) == 1


def test_each_column_is_there_by_itself_with_the_shares_of_both_tables(found):
    frame = found.columns.set_index(["column", "level"])
    real, made = people(300, 1), people(250, 2)
    for level in "abc":
        assert frame.loc[("G", level), "real"] == pytest.approx((real["G"] == level).mean())
        assert frame.loc[("G", level), "synthetic"] == pytest.approx((made["G"] == level).mean())
    sums = found.columns.groupby("column")[["real", "synthetic", "value"]].sum()
    np.testing.assert_allclose(sums, [[1, 1, 0]] * 4, atol=1e-12)
    assert "Column by column" in render(found.page("this release", None))


def test_all_of_it_is_plain_json(found):
    said = json.loads(json.dumps(document(found), allow_nan=False))
    assert said["INTERNAL"] is True
    for name, frame in found.frames():
        assert len(said["frames"][name]["rows"]) == len(frame)
        assert said["frames"][name]["columns"] == list(frame.columns)


def test_files_say_what_the_frames_say(found, tmp_path):
    files = write(found, tmp_path / "out")
    assert {f.name for f in files} >= {NOTICE, "evaluation.json", "workload.csv", "workload.parquet"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    for name, frame in found.frames():
        for made in (
            pd.read_csv(tmp_path / "out" / f"{name}.csv"),
            pd.read_parquet(tmp_path / "out" / f"{name}.parquet"),
        ):
            assert len(made) == len(frame)
            assert set(made["stamp"]) == {"INTERNAL"}
            if "value" in frame:
                np.testing.assert_allclose(made["value"], frame["value"])
    with pytest.raises(StratsynthError, match="exists already"):
        write(found, tmp_path / "out")


def test_a_failed_write_leaves_nothing(found, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", full)
    with pytest.raises(OSError, match="No space"):
        write(found, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_without_groups_there_is_no_parity_and_everything_else():
    found = evaluate(people(60, 1), people(60, 2), SCHEMA, k=2)
    assert found.parity_means is None
    assert found.disparity is None
    assert found.downstream is None
    assert len(found.workload) == 4
    assert "Parity" not in text(found.page("this release", None))


@pytest.mark.parametrize(("real", "made"), [(0, 30), (30, 0), (0, 0), (1, 1)])
def test_tables_of_hardly_any_rows_are_not_estimable_and_no_reason_to_fail(real, made):
    found = evaluate(people(real, 1), people(made, 2), SCHEMA, "G", k=2, holdout=people(5, 3), target="Y")
    assert text(found.page("this release", None))
    json.dumps(document(found), allow_nan=False)
    for name, frame in found.frames():
        if "status" in frame:
            assert "ok" not in set(frame[frame["scope"] != "between"]["status"] if "scope" in frame else []), name


def test_a_schema_of_one_column_has_scores_too():
    schema = SCHEMA.restrict(["G"])
    found = evaluate(people(40, 1, schema), people(40, 2, schema), schema)
    assert found.correlations is None
    assert found.facts["k"] == 1
    grouped = evaluate(people(40, 1), people(40, 2), SCHEMA.restrict(["G", "X"]), "G")
    assert grouped.correlations is None
    assert text(grouped.page("this release", None))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"target": "Y"}, "hold-out"),
        ({"positive": "yes"}, "target"),
        ({"area": "Z"}, "'Z'"),
        ({"by": "Z"}, "'Z'"),
        ({"target": "Z", "holdout": people(3)}, "'Z'"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked, says):
    with pytest.raises(StratsynthError, match=says):
        evaluate(people(3), people(3), SCHEMA, **asked)
