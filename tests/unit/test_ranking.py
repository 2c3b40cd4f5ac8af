"""The area under the curve: scikit-learn's value, DeLong's error, and what groups without one class have."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from stratsynth import Categorical, Schema, StratsynthError
from stratsynth.evaluation import prediction_rates
from stratsynth.evaluation.learning.ranking import area

SCHEMA = Schema({"G": Categorical(levels=("a", "b", "c", "d"))})


def drawn(rng, n, apart=1.0):
    truth = rng.random(n) < 0.4
    return truth, rng.normal(truth * apart, 1).round(1)  # ties


@pytest.mark.parametrize("seed", range(4))
def test_the_value_is_scikit_learns_with_ties(seed):
    truth, score = drawn(np.random.default_rng(seed), 80)
    assert area(truth, score)[0] == pytest.approx(roc_auc_score(truth, score))


def test_the_error_is_the_spread_over_samples():
    rng = np.random.default_rng(1)
    found = np.array([area(*drawn(rng, 150)) for _ in range(600)])
    assert np.mean(found[:, 1]) == pytest.approx(np.std(found[:, 0]), rel=0.12)
    truth = roc_auc_score(*drawn(rng, 300_000))
    assert (np.abs(found[:, 0] - truth) < 1.96 * found[:, 1]).mean() == pytest.approx(0.945, abs=0.03)


def test_one_class_alone_has_no_area_and_one_row_of_a_class_no_error():
    assert np.isnan(area(np.ones(3, bool), np.arange(3.0))).all()
    value, error = area(np.array([True, False, False]), np.array([1.0, 0.0, 2.0]))
    assert value == 0.5
    assert np.isnan(error)


def test_groups_everybody_and_their_difference():
    rng = np.random.default_rng(2)
    group = np.repeat(list("abc"), [400, 300, 50])
    truth, score = drawn(rng, 750, 2.0)
    truth[700:] = False  # nobody of c is positive
    found = prediction_rates(truth, score > 0.8, pd.DataFrame({"G": group}), SCHEMA, "G", score=score)
    auc = found[found["metric"] == "auc"].set_index("G", drop=False)
    for name in "ab":
        here = group == name
        assert auc.loc[name, "value"] == pytest.approx(roc_auc_score(truth[here], score[here]))
        assert auc.loc[name, "low"] < auc.loc[name, "value"] < auc.loc[name, "high"]
        assert auc.loc[name, "status"] == "ok"
    assert auc.loc[["c", "d"], "status"].tolist() == ["not_estimable"] * 2
    everybody = auc[auc["scope"] == "everybody"]
    assert everybody["value"].item() == pytest.approx(roc_auc_score(truth, score))
    (gap,) = found[found["metric"] == "auc_difference"].to_dict("records")
    assert gap["value"] == pytest.approx(abs(auc.loc["a", "value"] - auc.loc["b", "value"]))
    assert (gap["groups"], gap["left_out"]) == (2, 2)
    f1 = found[found["metric"] == "f1"].set_index("G")["value"]
    assert f1["a"] == pytest.approx(f1_score(truth[:400], score[:400] > 0.8))
    assert "auc" not in set(prediction_rates(truth, score > 0.8, pd.DataFrame({"G": group}), SCHEMA, "G")["metric"])


def test_a_score_is_for_two_classes_and_one_each():
    rows = pd.DataFrame({"G": ["a"] * 3})
    with pytest.raises(StratsynthError, match="score for each"):
        prediction_rates([True, False, True], [True] * 3, rows, SCHEMA, score=[0.1, 0.2])
    with pytest.raises(StratsynthError, match="score for each"):
        prediction_rates([1.5, 2, 3], [1.0, 2, 3], rows, SCHEMA, score=[0.1, 0.2, 0.3])
