"""Parity error against Definition 10 worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from stratsynth import Categorical, Numeric, Schema, StratsynthError
from stratsynth.evaluation import mean_disparity, parity_error
from stratsynth.schema.weight import RowWeight

SCHEMA = Schema(
    {
        "G": Categorical(levels=("a", "b", "c")),
        "X": Numeric(lower=0, upper=100, missing=True),
        "Z": Categorical(levels=("1", "2", "N"), not_applicable="N"),
    }
)
# means of X: a 10, b 40; all 20. Of the release: a 12, b 30; all 21
REAL = pd.DataFrame({"G": list("aabb"), "X": [8.0, 12.0, 40.0, None], "Z": list("12N1")})
MADE = pd.DataFrame({"G": list("aab"), "X": [12.0, 12.0, 30.0], "Z": list("22N")})
REAL_ALL, MADE_ALL = 20.0, 18.0
APART = {"a": 0.2, "b": 0.25}


def row(frame, variable, scope, **where):
    found = frame[(frame["variable"] == variable) & (frame["scope"] == scope)]
    for column, level in where.items():
        found = found[found[column] == level]
    assert len(found) == 1
    return found.iloc[0]


def test_definition_10_by_hand():
    found = parity_error(REAL, MADE, SCHEMA, "G", columns=["X"])
    for group, apart in APART.items():
        assert row(found, "X", "group", G=group)["value"] == pytest.approx(apart)
    everybody = row(found, "X", "everybody")
    assert (everybody["real"], everybody["synthetic"]) == (REAL_ALL, MADE_ALL)
    assert everybody["value"] == pytest.approx(0.1)
    total = row(found, "X", "parity")
    assert total["value"] == pytest.approx(0.1 / 2 + 0.45)  # omega is 1/k for the two groups that have people
    assert (total["terms"], total["undefined"], total["lost"]) == (2, 1, 0)
    assert row(found, "(all)", "parity")["value"] == pytest.approx(total["value"])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"omega": 0.0}, 0.45),
        ({"omega": 1.0}, 0.55),
        ({"strata": "mean", "omega": 1.0}, 0.1 + 0.45 / 2),
        ({"strata": "mean"}, 0.1 / 2 + 0.45 / 2),
    ],
)
def test_its_readings(settings, expected):
    found = parity_error(REAL, MADE, SCHEMA, "G", columns=["X"], **settings)
    assert row(found, "X", "parity")["value"] == pytest.approx(expected)


def test_a_row_rests_on_the_people_whom_the_variable_applies_to():
    found = parity_error(REAL, MADE, SCHEMA, "G")
    assert row(found, "X", "group", G="b")[["n", "n_synthetic"]].tolist() == [1, 1]
    # Z is 1 for the one of b whom it applies to, and applies to nobody of the release's b
    lost = row(found, "Z", "group", G="b")
    assert lost["status"] == "not_estimable"
    assert np.isnan(lost["value"])
    assert (lost["terms"], lost["undefined"], lost["lost"]) == (0, 0, 1)


def test_a_lost_group_counts_as_one_in_the_sum_and_never_as_nothing():
    found = parity_error(REAL, MADE, SCHEMA, "G", columns=["Z"], omega=0.0)
    total = row(found, "Z", "parity")
    assert total["value"] == pytest.approx(abs(2 - 1.5) / 1.5 + 1)
    assert (total["terms"], total["undefined"], total["lost"]) == (2, 1, 1)
    together = parity_error(REAL, MADE, SCHEMA, "G", omega=0.0)
    assert row(together, "(all)", "parity")["value"] == pytest.approx((1 / 3 + 1 + 0.45) / 2)
    assert row(together, "(all)", "group", G="a")["value"] == pytest.approx((1 / 3 + 0.2) / 2)
    assert row(together, "(all)", "group", G="b")["value"] == pytest.approx(0.25)


def test_a_true_mean_of_zero_is_undefined_unless_there_is_a_least_denominator():
    real = REAL.assign(X=[0.0, 0.0, 40.0, 40.0])
    found = parity_error(real, MADE, SCHEMA, "G", columns=["X"])
    zero = row(found, "X", "group", G="a")
    assert np.isnan(zero["value"])
    assert zero["status"] == "not_estimable"
    assert row(found, "X", "parity")["undefined"] == 2
    least = parity_error(real, MADE, SCHEMA, "G", columns=["X"], tau=4.0)
    assert row(least, "X", "group", G="a")["value"] == pytest.approx(3.0)
    assert row(least, "X", "group", G="b")["value"] == pytest.approx(0.25)
    assert row(least, "X", "parity")["undefined"] == 1


def test_a_mean_of_zero_is_zero_whatever_the_others_have():
    """Numbers that cancel, and zeros beside numbers that are not round: no rounding may pass for a true value."""
    schema = Schema({"G": Categorical(levels=("a", "b", "c")), "X": Numeric(lower=-10, upper=10)})
    values = {"a": [0.0] * 7, "b": [0.1, 0.2, -0.3, 0.7, -0.7], "c": [0.1, 1 / 3, 0.7]}
    frame = pd.DataFrame([(g, x) for g, xs in values.items() for x in xs], columns=["G", "X"])
    found = parity_error(frame, frame.assign(X=frame["X"] + 1), schema, "G")
    assert row(found, "X", "parity")["undefined"] == 2
    assert row(found, "X", "group", G="a")[["real", "status"]].tolist() == [0, "not_estimable"]
    assert row(found, "X", "group", G="b")["status"] == "not_estimable"


def test_marginals_are_normalised_by_their_sum():
    found = parity_error(REAL, MADE, SCHEMA, "G", "marginals", columns=["Z"], k=1, omega=0.5)
    # a: 1/2, 1/2 against 0, 1. b: half 1, half N against all N. all: 1/2, 1/4, 1/4 against 0, 2/3, 1/3
    assert row(found, "(all)", "group", G="a")["value"] == pytest.approx(1.0)
    assert row(found, "(all)", "group", G="b")["value"] == pytest.approx(1.0)
    assert row(found, "(all)", "everybody")["value"] == pytest.approx(1.0)
    assert row(found, "(all)", "parity")["value"] == pytest.approx(2.5)


def test_every_group_of_a_crossing_has_a_row_for_every_variable():
    found = parity_error(REAL, MADE, SCHEMA, ["G", "Z"])
    groups = found[found["scope"] == "group"]
    assert groups.groupby("variable").size().to_dict() == {"X": 9, "(all)": 9}
    assert (groups["value"].isna() == (groups["status"] == "not_estimable")).all()


def test_levels_that_spell_no_number_count_by_their_place():
    schema = Schema({"G": Categorical(levels=("a", "b")), "C": Categorical(levels=("low", "mid", "high"))})
    real = pd.DataFrame({"G": list("ab"), "C": ["low", "high"]})
    made = pd.DataFrame({"G": list("ab"), "C": ["mid", "high"]})
    found = parity_error(real, made, schema, "G")
    assert row(found, "C", "group", G="a")[["real", "synthetic"]].tolist() == [1, 2]
    assert row(found, "C", "group", G="b")["value"] == 0


def test_intervals_hold_what_they_should():
    """95 of 100 tables give an interval that holds the true error, of one mean and of all together."""
    rng = np.random.default_rng(1)
    schema = Schema(
        {
            "G": Categorical(levels=("a", "b")),
            "X": Numeric(lower=0, upper=100),
            "Y": Numeric(lower=0, upper=100),
        }
    )
    held, runs = np.zeros(2), 150
    for _ in range(runs):
        frames = []
        for centre in (20.0, 26.0):
            group = rng.choice(["a", "b"], 400, p=(0.7, 0.3))
            x = np.where(group == "a", centre, 40) + rng.normal(0, 4, 400)
            frames.append(pd.DataFrame({"G": group, "X": x, "Y": 2 * x - 20 + rng.normal(0, 2, 400)}))
        found = parity_error(*frames, schema, "G", omega=0.0)
        a = row(found, "X", "group", G="a")
        both = row(found, "(all)", "group", G="a")
        held += [
            a["low"] <= 0.3 <= a["high"],
            both["low"] <= (0.3 + 0.6) / 2 <= both["high"],
        ]
    assert (held / runs > 0.9).all(), held
    assert (held / runs < 0.99).all(), held


def test_the_sum_has_the_interval_of_tables_drawn_anew():
    rng = np.random.default_rng(2)
    schema = Schema({"G": Categorical(levels=("a", "b")), "X": Numeric(lower=0, upper=100)})
    values, widths = [], []
    for _ in range(200):
        frames = []
        for shift in (0.0, 9.0):
            group = rng.choice(["a", "b"], 300)
            frames.append(pd.DataFrame({"G": group, "X": 30 + shift + 10 * (group == "b") + rng.normal(0, 5, 300)}))
        total = row(parity_error(*frames, schema, "G"), "X", "parity")
        values.append(total["value"])
        widths.append((total["high"] - total["low"]) / 2 / 1.96)
    assert np.mean(widths) == pytest.approx(np.std(values), rel=0.15)


def test_a_gap_is_between_the_groups_that_are_large_enough():
    real = pd.DataFrame({"G": ["a"] * 40 + ["b"] * 40 + ["c"] * 2, "X": [10.0] * 40 + [30.0] * 40 + [99.0] * 2})
    real["Z"] = "1"
    made = real.assign(X=[12.0] * 40 + [22.0] * 40 + [99.0] * 2)
    found = mean_disparity(real, made, SCHEMA, "G").set_index("variable")
    assert found.loc["X", ["real", "synthetic", "value"]].tolist() == pytest.approx([20, 10, -10])
    assert found.loc["X", "left_out"] == 1
    assert found.loc["Z", "value"] == 0
    assert found.loc["(largest)", ["real", "synthetic"]].tolist() == pytest.approx([0.2, 0.1])
    every = mean_disparity(real, made, SCHEMA, "G", few=1).set_index("variable")
    assert every.loc["X", ["real", "left_out"]].tolist() == pytest.approx([89, 0])


def test_the_interval_of_a_gap_between_weighted_groups_is_as_wide_as_the_gap_varies():
    """Rows of weight 50 among rows of weight 1: some 30 rows count, not 120."""
    schema = Schema({**SCHEMA.columns, "G": Categorical(levels=("a", "b"))}, row_weight=RowWeight(50, "W"))
    rng, far = np.random.default_rng(11), np.repeat([20.0, 70.0], 120)
    gaps, widths = [], []
    for _ in range(100):
        real = pd.DataFrame({"G": np.repeat(["a", "b"], 120), "X": np.clip(far + rng.normal(0, 5, 240), 0, 100)})
        real = real.assign(Z="1", W=np.where(rng.random(240) < 0.2, 50, 1))
        made = real.assign(X=far, W=1)  # without any spread: the gap varies by the real rows alone
        found = mean_disparity(real, made, schema, "G").set_index("variable").loc["X"]
        gaps.append(found["value"])
        widths.append(found["high"] - found["low"])
    assert np.mean(widths) == pytest.approx(2 * 1.96 * np.std(gaps), rel=0.2)


def test_a_gap_without_groups_to_compare_has_no_score():
    found = mean_disparity(REAL, MADE, SCHEMA, "G")
    assert set(found["status"]) == {"not_estimable"}
    assert found["value"].isna().all()


@pytest.mark.parametrize(
    "asked",
    [
        {"by": None},
        {"statistic": "medians"},
        {"statistic": np.zeros(2)},
        {"strata": "max"},
        {"strata": pd.DataFrame({"SEX": ["1"]})},
        {"omega": -1.0},
        {"tau": -1.0},
        {"columns": []},
    ],
)
def test_what_cannot_be_asked_is_refused(asked):
    with pytest.raises(StratsynthError):
        parity_error(REAL, MADE, SCHEMA, **{"by": "G", **asked})
