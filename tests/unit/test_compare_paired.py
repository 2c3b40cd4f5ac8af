"""Paired differences: against scipy's own test, on figures made for the purpose."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from stratsynth.evaluation.comparisons.paired import ENOUGH, better, holm, mean_interval, paired

A, B = ("mst", "vanilla"), ("mst", "SEX")


def frame(values, metric="workload_error", group=None):
    """A row for each setting and repetition."""
    rows = [
        {
            "mechanism": mechanism,
            "stratification": by,
            "epsilon": 1.0,
            "seed": seed,
            "metric": metric,
            "scope": "group" if group else "everybody",
            "SEX": group or pd.NA,
            "group": group or pd.NA,
            "value": value,
            "stamp": "PUBLIC DATA",
        }
        for (mechanism, by), row in values.items()
        for seed, value in enumerate(row, start=1)
    ]
    texts = dict.fromkeys(("mechanism", "stratification", "metric", "scope", "SEX", "group", "stamp"), "string")
    return pd.DataFrame(rows).astype(texts)


@given(st.lists(st.tuples(*[st.floats(0, 2)] * 2), min_size=3, max_size=9))
def test_the_interval_is_that_of_the_paired_t_test(pairs):
    one, two = np.array(pairs).T
    if np.ptp(one - two) < 1e-6:
        return
    (row,) = paired(frame({A: one, B: two}), ["SEX"]).to_dict("records")
    known = stats.ttest_rel(one, two).confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((known.low, known.high))
    assert row["difference"] == pytest.approx((one - two).mean())
    assert row["repetitions"] == len(pairs)
    p = stats.ttest_rel(one, two).pvalue
    assert row["p_value"] == row["p_holm"] == pytest.approx(p)
    assert (row["verdict"] != "") == (len(pairs) >= ENOUGH and p < 0.05)


@pytest.mark.parametrize(
    ("metric", "verdict"),
    [
        ("workload_error", "mst by SEX is better"),
        ("parity_means", "mst by SEX is better"),
        ("false_negative_rate:forest", "mst by SEX is better"),
        ("k_marginal_score", "mst, vanilla is better"),
        ("accuracy:forest", "mst, vanilla is better"),
        ("auc:boosting", "mst, vanilla is better"),
        ("f1:boosting", "mst, vanilla is better"),
        ("f1_difference:boosting", "mst by SEX is better"),
        ("selection_rate:forest", "mst, vanilla is higher"),
    ],
)
def test_the_verdict_knows_which_way_is_better(metric, verdict):
    (row,) = paired(frame({A: [5, 6, 7, 6, 6], B: [1, 2.5, 3, 2, 2]}, metric), ["SEX"]).to_dict("records")
    assert row["verdict"] == verdict
    assert (row["first"], row["second"]) == (6, pytest.approx(2.1))


def test_every_metric_has_a_direction_or_is_known_to_have_none():
    assert better("workload_error") == better("root_mean_squared_error:linear") == -1
    assert better("demographic_parity_difference:linear") == -1
    assert better("demographic_parity_ratio:linear") == better("r2:forest") == 1
    assert better("prevalence:forest") == better("bias:forest") == 0


def test_an_interval_that_holds_0_says_nothing():
    (row,) = paired(frame({A: [1, 2, 3], B: [3, 2, 1]}), ["SEX"]).to_dict("records")
    assert row["low"] < 0 < row["high"]
    assert row["verdict"] == ""


@pytest.mark.parametrize("values", [{A: [2], B: [1]}, {A: [2, 2], B: [1, 1]}, {A: [2, np.nan], B: [1, 1]}])
def test_where_nothing_tells_how_much_repetitions_differ_there_is_no_interval_and_no_verdict(values):
    (row,) = paired(frame(values), ["SEX"]).to_dict("records")
    assert row["difference"] == 1
    assert np.isnan([row["low"], row["high"]]).all()
    assert row["verdict"] == ""


def test_a_repetition_in_which_one_has_no_value_is_left_out_of_both():
    (row,) = paired(frame({A: [5, 1, 2, 3], B: [np.nan, 0, 0, 0.5]}), ["SEX"]).to_dict("records")
    assert row["repetitions"] == 3
    assert row["first"] == 2
    (row,) = paired(frame({A: [np.nan, 1], B: [1, np.nan]}), ["SEX"]).to_dict("records")
    assert (row["repetitions"], row["verdict"]) == (0, "")
    assert np.isnan(row["difference"])


def test_groups_and_epsilons_are_not_mixed_and_baselines_and_single_marginals_left_out():
    both = {A: [1.0, 2, 3], B: [2.0, 2, 2.5]}
    other = frame({A: [10.0, 20, 30], B: [0.0, 1, 2]}).assign(epsilon=10.0)
    base = frame({("(subsample)", "(baseline)"): [0.1]}).assign(epsilon=np.inf, seed=0)
    parts = [frame(both), frame(both, group="1"), other, base, frame(both, "clique_error")]
    found = paired(pd.concat(parts), ["SEX"])
    assert len(found) == 3
    assert set(found["scope"]) == {"everybody", "group"}
    assert found[found["epsilon"] == 10]["difference"].item() == pytest.approx(19)
    assert found[found["group"] == "1"]["SEX"].item() == "1"
    assert set(found["stamp"]) == {"PUBLIC DATA"}


def test_one_setting_has_no_differences_and_the_same_columns():
    alone = paired(frame({A: [1, 2, 3]}), ["SEX"])
    assert len(alone) == 0
    assert list(alone.columns) == list(paired(frame({A: [1, 2], B: [2, 4]}), ["SEX"]).columns)


def test_95_of_100_intervals_hold_the_truth():
    rng = np.random.default_rng(1)
    _, low, high = mean_interval(rng.normal(0.3, 1, (20_000, 5)))
    assert ((low <= 0.3) & (high >= 0.3)).mean() == pytest.approx(0.95, abs=0.006)


def test_fewer_repetitions_than_a_verdict_needs_have_a_p_value_and_no_verdict():
    one, two = [5, 6, 7, 6, 6], [1, 2.5, 3, 2, 2]
    for many in range(2, ENOUGH + 1):
        (row,) = paired(frame({A: one[:many], B: two[:many]}), ["SEX"]).to_dict("records")
        assert row["p_value"] < 0.2
        assert (row["verdict"] != "") == (many == ENOUGH)


@given(st.lists(st.one_of(st.floats(0, 1), st.just(np.nan)), max_size=12))
def test_holm_is_the_step_down_procedure(p):
    """Rejecting where the adjusted value is at most alpha is Holm's procedure at alpha, step by step."""
    p = np.array(p)
    adjusted, tests = holm(p), np.sort(p[~np.isnan(p)])
    assert (np.isnan(adjusted) == np.isnan(p)).all()
    for alpha in (0.01, 0.05, 0.3):
        rejected = 0
        while rejected < len(tests) and tests[rejected] <= alpha / (len(tests) - rejected) * (1 - 1e-12):
            rejected += 1
        assert (adjusted <= alpha * (1 - 1e-12)).sum() <= rejected
        assert (adjusted <= alpha).sum() >= rejected


def test_tests_are_corrected_within_their_metric_and_scope_over_all_pairs_and_epsilons():
    c = ("aim", "vanilla")
    rng = np.random.default_rng(0)
    values = {A: rng.normal(0.5, 1, 6), B: rng.normal(0, 1, 6), c: rng.normal(1.5, 1, 6)}
    parts = [frame(values), frame(values).assign(epsilon=10.0), frame(values, "parity_means")]
    found = paired(pd.concat(parts), ["SEX"])
    own = found[found["metric"] == "workload_error"]
    assert len(own) == 6
    np.testing.assert_allclose(own["p_holm"], holm(own["p_value"].to_numpy()))
    other = found[found["metric"] == "parity_means"]
    np.testing.assert_allclose(other["p_holm"], holm(other["p_value"].to_numpy()))
    assert (other["p_holm"].to_numpy() <= own["p_holm"].to_numpy()[:3]).all()


def test_only_the_pairs_asked_for_are_tested_in_the_order_asked_for():
    c = ("aim", "vanilla")
    values = {A: [1.0, 2, 3, 4, 5], B: [2.0, 2, 3, 5, 5], c: [0.0, 1, 1, 2, 2]}
    (row,) = paired(frame(values), ["SEX"], [(c, A)]).to_dict("records")
    assert (row["first_mechanism"], row["second_stratification"]) == ("aim", "vanilla")
    assert row["difference"] == pytest.approx(1.2 - 3)
    assert row["p_holm"] == row["p_value"]


def test_of_twenty_tests_of_nothing_a_verdict_is_rare():
    rng = np.random.default_rng(2)
    settings = [("m", str(i)) for i in range(7)]  # 21 pairs
    wrong = 0
    for _ in range(40):
        found = paired(frame({s: rng.normal(0, 1, 5) for s in settings}), ["SEX"])
        wrong += (found["verdict"] != "").any()
    assert wrong <= 6  # 5 % of families at most, so 2 expected; uncorrected nearly every one
