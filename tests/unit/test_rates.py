"""Scores of predictions against fairlearn and scikit-learn where they agree, and by hand where they do not."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratsynth import Categorical, Schema, StratsynthError
from stratsynth.evaluation import prediction_rates

SCHEMA = Schema({"G": Categorical(levels=("a", "b", "c")), "H": Categorical(levels=("0", "1"))})


def drawn(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({"G": rng.choice(list("abc"), n, p=(0.5, 0.3, 0.2)), "H": rng.choice(list("01"), n)})
    truth = rng.random(n) < rows["G"].map({"a": 0.5, "b": 0.3, "c": 0.7}).to_numpy()
    predicted = np.where(rng.random(n) < 0.75, truth, rng.random(n) < 0.5)
    return truth, predicted, rows


def test_rates_and_comparisons_are_fairlearns():
    from fairlearn import metrics as fl
    from sklearn.metrics import accuracy_score

    truth, predicted, rows = drawn()
    found = prediction_rates(truth, predicted, rows, SCHEMA, "G")
    theirs = fl.MetricFrame(
        metrics={
            "accuracy": accuracy_score,
            "selection_rate": fl.selection_rate,
            "false_negative_rate": fl.false_negative_rate,
            "false_positive_rate": fl.false_positive_rate,
            "n": fl.count,
        },
        y_true=truth,
        y_pred=predicted,
        sensitive_features=rows["G"],
    )
    for metric in ("accuracy", "selection_rate", "false_negative_rate", "false_positive_rate"):
        mine = found[found["metric"] == metric]
        np.testing.assert_allclose(mine["value"], [*theirs.by_group[metric], theirs.overall[metric]])
        assert mine["n"].tolist() == [*theirs.by_group["n"], len(truth)]
        assert (mine["low"] <= mine["value"]).all()
        assert (mine["value"] <= mine["high"]).all()
    between = found[found["scope"] == "between"].set_index("metric")["value"]
    for name in ("demographic_parity_difference", "demographic_parity_ratio", "equalized_odds_difference"):
        assert between[name] == pytest.approx(getattr(fl, name)(truth, predicted, sensitive_features=rows["G"]))
    for name in ("accuracy", "false_negative_rate", "false_positive_rate"):
        assert between[f"{name}_difference"] == pytest.approx(theirs.difference()[name])


def test_errors_of_numbers_are_scikit_learns():
    from sklearn import metrics as sk

    rng = np.random.default_rng(1)
    _, _, rows = drawn()
    truth = rng.normal(1000, 3, len(rows))
    predicted = truth + rng.normal(0.5, 2, len(rows))
    found = prediction_rates(truth, predicted, rows, SCHEMA, "G")
    for level in (*"abc", None):
        here = np.ones(len(rows), bool) if level is None else (rows["G"] == level).to_numpy()
        mine = found[found["G"].isna() if level is None else found["G"] == level]
        mine = mine[mine["scope"] != "between"].set_index("metric")["value"]
        t, p = truth[here], predicted[here]
        assert mine["mean_absolute_error"] == pytest.approx(sk.mean_absolute_error(t, p))
        assert mine["root_mean_squared_error"] == pytest.approx(sk.root_mean_squared_error(t, p))
        assert mine["r2"] == pytest.approx(sk.r2_score(t, p))
        assert mine["bias"] == pytest.approx(np.mean(p - t))
    between = found[found["metric"] == "bias_difference"].iloc[0]
    biases = found[(found["metric"] == "bias") & (found["scope"] == "group")]["value"]
    assert between["value"] == pytest.approx(np.ptp(biases))
    assert between["groups"] == 3


def test_a_rate_over_nobody_is_undefined_and_its_group_stays():
    truth, predicted = np.array([True, True, False]), np.array([True, False, False])
    rows = pd.DataFrame({"G": list("aab"), "H": "0"})
    found = prediction_rates(truth, predicted, rows, SCHEMA, ["G", "H"]).set_index(["metric", "G", "H"])
    fnr, fpr = (found.loc[metric] for metric in ("false_negative_rate", "false_positive_rate"))
    assert fnr.loc[("a", "0"), "value"] == 0.5
    assert np.isnan(fnr.loc[("b", "0"), "value"])  # fairlearn says 0
    assert fnr.loc[("b", "0"), "status"] == "not_estimable"
    assert fpr.loc[("b", "0"), ["value", "base", "status"]].tolist() == [0, 1, "small"]
    assert np.isnan(fpr.loc[("b", "0"), "low"])  # one row drawn again is that row
    assert len(fnr) == 7
    between = found[found["scope"] == "between"]
    assert set(between["status"]) == {"not_estimable"}
    assert (between["left_out"] == 6).all()
    assert between["value"].isna().all()


@given(st.data())
def test_everybody_is_the_groups_together(data):
    n = data.draw(st.integers(0, 20))
    truth, predicted = (np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool) for _ in range(2))
    levels = data.draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    rows = pd.DataFrame({"G": levels, "H": ["0"] * n}, dtype=object)
    grouped = prediction_rates(truth, predicted, rows, SCHEMA, "G", few=1, resamples=20)
    alone = prediction_rates(truth, predicted, None, SCHEMA, resamples=20)
    everybody = grouped[grouped["scope"] == "everybody"]
    np.testing.assert_allclose(everybody["value"], alone["value"])
    assert everybody["base"].tolist() == alone["base"].tolist()
    groups = grouped[grouped["scope"] == "group"]
    sums = (groups["value"].fillna(0) * groups["base"]).groupby(groups["metric"], sort=False).sum()
    np.testing.assert_allclose(sums, (alone["value"].fillna(0) * alone["base"]))
    assert (groups["value"].isna() == (groups["base"] == 0)).all()


def test_bootstrap_intervals_hold_the_truth():
    held, runs = 0, 200
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        truth = rng.random(200) < 0.5
        predicted = truth ^ (rng.random(200) < 0.2)
        found = prediction_rates(truth, predicted, None, SCHEMA, seed=seed).set_index("metric")
        held += found.loc["accuracy", "low"] <= 0.8 <= found.loc["accuracy", "high"]
    assert 0.9 <= held / runs <= 0.99


@pytest.mark.parametrize(
    ("truth", "predicted", "rows"),
    [
        ([True], [True, False], None),
        ([[True]], [[True]], None),
        ([True, False], [True, False], pd.DataFrame({"G": ["a"]})),
        ([True, False], [True, False], pd.DataFrame({"G": ["a", "z"]})),
    ],
)
def test_lists_that_do_not_match_are_refused(truth, predicted, rows):
    with pytest.raises(StratsynthError):
        prediction_rates(truth, predicted, rows, SCHEMA, None if rows is None else "G")
