"""The model of a regression: what it predicts, stores and shows; and what the mechanism refuses before any charge."""

import numpy as np
import pandas as pd
import pytest

from helpers.regressing import SCHEMA, exactly, people
from stratsynth import Budget, Categorical, Numeric, Release, Schema, fit, open_table
from stratsynth.adapters import GroupRegression
from stratsynth.adapters.predictors import Regression
from stratsynth.adapters.predictors.moments import Estimated
from stratsynth.errors import ReleaseError, StratsynthError, UsageError
from stratsynth.files.npz import State
from stratsynth.mechanisms import prepare
from stratsynth.models import Returns
from stratsynth.questions import Coded

DESIGN = Coded(("X", "Z", "C"), interactions=(("X", "Z"),))
THETA = np.array([0.1, 0.5, -0.2, 0.3, 0.0, 0.05])


def model(link="linear", theta=THETA, **more):
    target = {"linear": "Y", "logistic": "D", "softmax": "G"}[link]
    return Regression(SCHEMA, DESIGN, target, link, theta, **more)


def hand(frame):
    x, z = frame.X, frame.Z / 5 - 1
    return np.column_stack([np.ones(len(frame)), x, z, frame.C == "q", frame.C == "r", x * z]).astype(float)


def test_a_linear_prediction_is_in_the_unit_of_the_target_and_within_its_bounds():
    frame, schema = people(50), Schema({**SCHEMA.columns, "Y": Numeric(lower=100, upper=300, bins=2)})
    told = Regression(schema, DESIGN, "Y", "linear", THETA * 3)
    expected = np.clip(200 + 100 * hand(frame) @ THETA * 3, 100, 300)
    assert np.allclose(told.predict(told.shown(frame)), expected)


def test_a_logistic_prediction_is_the_likelier_level():
    frame, told = people(50), model("logistic")
    p = 1 / (1 + np.exp(-hand(frame) @ THETA))
    assert np.allclose(told.probabilities(told.shown(frame))[:, 1], p)
    assert (told.predict(told.shown(frame)) == np.where(p > 0.5, "yes", "no")).all()
    assert list(told.table(told.shown(frame))) == ["prediction", "probability=no", "probability=yes"]


def test_softmax_of_two_levels_is_logistic():
    frame = people(50)
    told, other = model("softmax", np.column_stack([np.zeros(6), THETA])), model("logistic")
    a, b = told.probabilities(told.shown(frame)), other.probabilities(other.shown(frame))
    assert np.allclose(a, b)
    assert set(told.predict(told.shown(frame))) <= {"a", "b"}
    assert len(told.coefficients()) == 12


def test_coefficients_are_in_the_unit_of_the_data():
    schema = Schema({**SCHEMA.columns, "Y": Numeric(lower=100, upper=300, bins=2)})
    told = Regression(schema, DESIGN, "Y", "linear", THETA)
    frame = pd.DataFrame({"X": [0.0, 0.0, 1.0, 0.0], "Z": [5.0, 6.0, 5.0, 5.0], "C": ["p", "p", "p", "q"]})
    base, up, right, level = told.predict(told.shown(frame))
    found = told.coefficients().set_index("feature").value
    assert found["1"] == pytest.approx(base - 200)
    assert (found["Z"], found["X"], found["C=q"]) == pytest.approx((up - base, right - base, level - base))


@pytest.mark.parametrize("link", ["linear", "logistic", "softmax"])
def test_what_is_stored_is_the_same_model(link):
    theta = THETA if link != "softmax" else np.column_stack([THETA, -THETA])
    sound = np.array([True] * 5 + [False])
    before = model(link, theta, estimated=Estimated(THETA, THETA**2, THETA**2, sound), facts={"steps": 3})
    after = Regression.from_state(SCHEMA, before.state())
    frame = people(20)
    assert (after.logits(after.shown(frame)) == before.logits(before.shown(frame))).all()
    assert (after.design, after.facts, after.returns) == (before.design, before.facts, Returns.PREDICTIONS)
    assert after.estimated.sound.tolist() == sound.tolist()


def damaged(facts=None, arrays=None):
    state = model(estimated=Estimated(THETA, THETA**2, THETA**2, np.ones(6, bool))).state()
    return State({**state.facts, **(facts or {})}, {**state.arrays, **(arrays or {})})


@pytest.mark.parametrize(
    "state",
    [
        damaged({"link": "cubic"}),
        damaged({"target": "C"}),
        damaged({"link": "logistic"}),
        damaged({"fit": 3}),
        damaged(arrays={"theta": THETA[:3]}),
        damaged(arrays={"theta": THETA * np.nan}),
        damaged(arrays={"theta": THETA.astype(np.float32)}),
        damaged(arrays={"estimated/noise": THETA[:3]}),
        damaged(arrays={"estimated/sound": THETA}),
        damaged({"interactions": [["X", "X"]]}),
        damaged({"reference": [["C", "zebra"]]}),
    ],
)
def test_what_is_damaged_is_refused(state):
    with pytest.raises(StratsynthError):
        Regression.from_state(SCHEMA, state)


def test_a_model_without_features_predicts_its_intercept():
    schema = Schema({"Y": SCHEMA.column("Y"), "C": Categorical(levels=("only",))})
    release = fit(
        GroupRegression(iterations=5),
        open_table(pd.DataFrame({"Y": [0.5] * 50, "C": "only"}), schema=schema, declared_size=50),
        Budget(20, 1e-6),
    )
    assert release.predict(pd.DataFrame({"C": ["only"] * 3})).shape == (3,)


def test_level_numbers_without_numbers_are_refused():
    with pytest.raises(UsageError, match="X is numeric"):
        model().predict({"X": np.zeros(2, int), "Z": np.zeros(2, int), "C": np.zeros(2, int)})


def test_a_release_predicts_after_it_was_stored(tmp_path):
    how = GroupRegression(target="Y", groups=["G"], features=["G", "X"], stage_one=0.3, iterations=10)
    release = fit(how, open_table(people(500), schema=SCHEMA, declared_size=500), Budget(3, 1e-6))
    folder = release.save(tmp_path / "release")
    again, frame = Release.load(folder), people(20, 1)
    assert (again.predict(frame) == release.predict(frame)).all()
    assert again.predictions(frame).column_names == ["row", "prediction"]
    table = pd.read_parquet(folder / "coefficients.parquet")
    assert table.feature.tolist() == ["1", "G=b", "X"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "The coefficients" in page
    assert "Weight of each group" in page


def test_asking_rows_of_it_says_what_it_gives():
    told, _ = exactly(GroupRegression(target="Y", iterations=1), people(20))
    with pytest.raises(UsageError, match="predict"):
        told.table_model()


BAD_SETTINGS = [
    ({"features": "X"}, "list"),
    ({"features": ["X", "X"]}, "different"),
    ({"target": "X", "features": ["X"]}, "neither"),
    ({"interactions": [["X"]]}, "pairs"),
    ({"sizes": 3}, "table"),
    ({"model": "cubic"}, "model"),
    ({"mode": "x"}, "mode"),
    ({"objective": "x"}, "objective"),
    ({"region": "x"}, "region"),
    ({"accounting": "x"}, "accounting"),
    ({"iterations": 0}, "iterations"),
    ({"iterations": 2.5}, "iterations"),
    ({"rate": 0.0}, "rate"),
    ({"clip": -1.0}, "clip"),
    ({"radius": 1e9}, "radius"),
    ({"momentum": 1.0}, "momentum"),
    ({"tail": 2}, "tail"),
    ({"count_share": 1.0}, "count_share"),
    ({"stage_one": 1.0}, "stage_one"),
    ({"most_weight": 0.5}, "most_weight"),
    ({"mode": "DPSE"}, "needs groups"),
    ({"mode": "DPSE", "groups": ["G"]}, "tailored"),
    ({"sizes": {"a": 1.0}}, "citation"),
    ({"sizes": {"a": -1.0}, "sizes_citation": "x"}, "sizes of a"),
]


@pytest.mark.parametrize(("settings", "words"), BAD_SETTINGS)
def test_settings_that_make_no_sense_are_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        GroupRegression(**settings)


BAD_FOR_SCHEMA = [
    ({"target": "W"}, "not in the schema"),
    ({"features": ["W"]}, "not in the schema"),
    ({"groups": ["W"]}, "not in the schema"),
    ({"target": "C"}, "must be a numeric column"),
    ({"model": "logistic", "target": "C"}, "two levels"),
    ({"model": "logistic", "target": "Y"}, "two levels"),
    ({"reference": {"C": "zebra"}}, "no level"),
    ({"reference": {"X": "0"}}, "no level"),
    ({"interactions": [["X", "W"]]}, "not a feature"),
    ({"groups": ["G"], "features": ["G", "X"], "accounting": "parallel", "interactions": [["G", "X"]]}, "combined"),
    ({"groups": ["X"], "features": ["X"], "accounting": "parallel"}, "numeric"),
    ({"groups": ["G"], "sizes": {"z": 1}, "sizes_citation": "x"}, "not a group"),
    ({"groups": ["G"], "sizes": {"a": 1}, "sizes_citation": "x"}, "name all|1 of 2|lack|share|count"),
    ({"groups": ["G"], "objective": "weights", "group_weights": {"a": 0.5}}, "every group"),
    ({"groups": ["G"], "objective": "weights", "group_weights": {"a": 0.5, "b": 0.4}}, "add up to 1"),
    ({"groups": ["G"], "loss_bounds": {"z": 0.5}}, "not a group"),
    ({"groups": ["G"], "loss_bounds": {"a": 1.5}}, "from 0 to 1"),
]


@pytest.mark.parametrize(("settings", "words"), BAD_FOR_SCHEMA)
def test_what_the_schema_does_not_allow_is_refused_before_anything_is_asked(settings, words):
    with pytest.raises(UsageError, match=words):
        prepare(GroupRegression(**{"target": "Y", **settings}), SCHEMA, Budget(1, 1e-9), 100)


def test_without_a_size_there_is_nothing_to_divide_by():
    with pytest.raises(UsageError, match="declare a size"):
        prepare(GroupRegression(target="Y"), SCHEMA, Budget(1, 1e-9), None)
    assert prepare(GroupRegression(target="Y", groups=["G"]), SCHEMA, Budget(1, 1e-9), None).allot.rho > 0


@pytest.mark.parametrize(
    "rows",
    [
        people(0),
        people(1),
        people(40).assign(G="a"),
        people(40).assign(X=0.5),
        people(40).assign(C="q"),
        people(40).assign(D="no"),
        people(40).assign(Y=1.0),
        people(40).assign(Z=1e308),
    ],
    ids=["nobody", "one", "an empty group", "constant", "one level", "one class", "one target", "far out"],
)
@pytest.mark.parametrize(
    "how",
    [
        {"target": "Y", "mode": "DPSE", "accounting": "parallel"},
        {"target": "D", "model": "logistic"},
        {"target": "Y", "stage_one": 0.5, "objective": "balanced"},
        {"target": "D", "model": "logistic", "stage_one": 0.5},
        {"target": "C", "model": "softmax", "stage_one": 0.3},
    ],
)
def test_bad_data_give_a_model_all_the_same(rows, how):
    release = fit(
        GroupRegression(groups=["G"], iterations=3, **how),
        open_table(rows, schema=SCHEMA, declared_size=40),
        Budget(1, 1e-6),
    )
    assert np.isfinite(release.model.theta).all()
    assert len(release.predict(people(5))) == 5


def test_a_damaged_error_is_a_release_error():
    with pytest.raises(ReleaseError):
        Estimated(THETA, THETA, THETA, np.ones(6)).check(6)
