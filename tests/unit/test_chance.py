"""The error of chance: one subsample's is luck, the mean of several is known to a tenth of what is shown."""

import numpy as np
import pandas as pd
import pytest

from stratsynth import Categorical, Schema
from stratsynth.evaluation import evaluate
from stratsynth.evaluation.scores import chance as chances
from stratsynth.evaluation.scores.baseline import subsample
from stratsynth.evaluation.scores.chance import averaged, chance
from stratsynth.evaluation.scores.workload import workload_frame, workload_of
from stratsynth.evaluation.tables import EncodedRows, Pair
from stratsynth.report.html import render

SCHEMA = Schema({"G": Categorical(levels=("a", "b")), "X": Categorical(levels=tuple("0123456789"))})


def people(n, seed=0, few=60):
    """A large group and a small one."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"G": ["b"] * few + ["a"] * (n - few), "X": rng.integers(0, 10, n).astype(str)})


def score(real):
    def scored(table):
        pair = Pair.of(real, table, SCHEMA, "G")
        return {"workload": workload_frame(pair, workload_of(pair, 2, None, None))}

    return scored


@pytest.fixture(scope="module")
def real():
    return EncodedRows.read(people(1000), SCHEMA)


def test_the_mean_is_as_close_to_the_truth_as_is_claimed(real):
    """The truth by two hundred draws; a tenth of the difference is one standard error, so twice that is allowed."""
    scored = score(real)
    release = scored(EncodedRows.read(people(1000, seed=3), SCHEMA))["workload"].assign(value=[1.0, 0.6, 0.9])
    found = chance(real, 1000, scored, release)
    assert found.reached
    assert chances.LEAST <= found.draws < chances.MOST
    draws = [scored(subsample(real, 1000, seed=1000 + i))["workload"]["value"].to_numpy() for i in range(200)]
    truth, spread = np.mean(draws, axis=0), np.std(draws, axis=0)
    mean = found.frames["workload"]["value"].to_numpy()
    assert (np.abs(mean - truth) <= 2 * chances.PART * np.abs(release["value"] - truth)).all()
    assert spread[1] > chances.PART * abs(0.6 - truth[1])  # one draw would not have done
    assert (np.abs(mean - truth) < 3 * spread / np.sqrt(found.draws)).all()


def test_a_difference_that_no_number_of_draws_can_tell_ends_at_the_largest(real, monkeypatch):
    monkeypatch.setattr(chances, "FLOOR", 0.0)
    scored = score(real)
    release = scored(subsample(real, 1000, seed=50))["workload"]
    found = chance(real, 1000, scored, release)
    assert (found.draws, found.reached) == (chances.MOST, False)


def test_a_group_that_a_draw_lacks_is_averaged_over_the_others(real):
    frames = [score(real)(subsample(real, 1000, seed=i))["workload"] for i in range(3)]
    frames[0].loc[1, ["value", "low", "high", "status"]] = [np.nan, np.nan, np.nan, "not_estimable"]
    mean = averaged(frames)
    assert mean["value"][1] == pytest.approx((frames[1]["value"][1] + frames[2]["value"][1]) / 2)
    assert mean["status"].tolist()[1] != "not_estimable"
    alone = averaged([frame.assign(value=np.nan) for frame in frames])
    assert set(alone["status"]) == {"not_estimable"}
    assert (mean["low"] <= mean["value"]).all()
    assert (mean["value"] <= mean["high"]).all()


def test_another_seed_does_not_move_what_chance_would_leave():
    one, two = (evaluate(people(300), people(300, 1), SCHEMA, "G", k=2, apart=False, seed=seed) for seed in (0, 7))
    pd.testing.assert_frame_equal(one.workload, two.workload)
    assert one.facts["chance"] == two.facts["chance"]
    assert one.facts["chance"]["draws"] >= chances.LEAST


def test_a_release_that_is_mostly_wrong_is_not_called_ok():
    real, wrong = people(1000, few=400), people(1000, few=400)
    wrong["X"] = np.where(wrong["G"] == "b", "0", wrong["X"])  # nine of ten are elsewhere
    found = evaluate(real, wrong, SCHEMA, "G", k=2, apart=False)
    status = found.workload[found.workload["table"] == "release"].set_index("G")["status"]
    assert status["b"] == "far_off"
    assert status["a"] == "ok"
    assert found.score[found.score["table"] == "release"].set_index("G")["status"]["b"] == "far_off"
    page = render(found.page("this release", None))
    assert "far off" in page
    assert "2 declared groups of 2" not in page  # it has enough rows for a verdict
