"""The model of a network: what it predicts, stores and shows, and what damaged files it refuses."""

import numpy as np
import pandas as pd
import pytest

from helpers.regressing import SCHEMA, people
from stratsynth import Budget, Release, fit, open_table
from stratsynth.adapters import GroupRegression
from stratsynth.adapters.predictors import Network
from stratsynth.errors import StratsynthError, UsageError
from stratsynth.files.npz import State
from stratsynth.models import Returns
from stratsynth.questions import Coded

DESIGN = Coded(("X", "Z", "C"), interactions=(("X", "Z"),))
RNG = np.random.default_rng(0)
HIDDEN, OUTPUT, THREE = RNG.normal(size=(4, 6)), RNG.normal(size=(5, 1)), RNG.normal(size=(5, 3))


def model(**more):
    return Network(SCHEMA, DESIGN, "D", HIDDEN, OUTPUT, **more)


def by_hand(frame):
    x, z = frame.X, frame.Z / 5 - 1
    features = np.column_stack([np.ones(len(frame)), x, z, frame.C == "q", frame.C == "r", x * z]).astype(float)
    return np.tanh(features @ HIDDEN.T)


def test_it_predicts_the_likelier_of_two_levels():
    frame, told = people(50), model()
    p = 1 / (1 + np.exp(-(by_hand(frame) @ OUTPUT[:4, 0] + OUTPUT[4, 0])))
    assert np.allclose(told.probabilities(told.shown(frame))[:, 1], p)
    assert (told.predict(told.shown(frame)) == np.where(p > 0.5, "yes", "no")).all()
    assert list(told.table(told.shown(frame))) == ["prediction", "probability=no", "probability=yes"]


def test_it_predicts_the_likeliest_of_several_levels():
    frame, told = people(50), Network(SCHEMA, Coded(("X",)), "C", HIDDEN[:, :2], THREE)
    x = np.column_stack([np.ones(50), frame.X])
    power = np.exp(np.tanh(x @ HIDDEN[:, :2].T) @ THREE[:4] + THREE[4])
    assert np.allclose(told.probabilities(told.shown(frame)), power / power.sum(axis=1, keepdims=True))
    assert (told.predict(told.shown(frame)) == np.array(["p", "q", "r"])[power.argmax(axis=1)]).all()


def test_what_is_stored_is_the_same_model():
    before = model(facts={"steps": 3})
    after = Network.from_state(SCHEMA, before.state())
    frame = people(20)
    assert (after.logits(after.shown(frame)) == before.logits(before.shown(frame))).all()
    assert (after.design, after.facts, after.returns) == (before.design, before.facts, Returns.PREDICTIONS)


def damaged(facts=None, arrays=None):
    state = model().state()
    return State({**state.facts, **(facts or {})}, {**state.arrays, **(arrays or {})})


@pytest.mark.parametrize(
    "state",
    [
        damaged({"target": "C"}),
        damaged({"target": "Y"}),
        damaged({"target": "W"}),
        damaged({"fit": 3}),
        damaged({"target": "X"}),
        damaged({"columns": ["X", "W"]}),
        damaged({"interactions": [["X", "X"]]}),
        damaged({"reference": [["C", "zebra"]]}),
        damaged(arrays={"hidden": HIDDEN[:, :3]}),
        damaged(arrays={"hidden": HIDDEN[:3]}),
        damaged(arrays={"hidden": HIDDEN * np.nan}),
        damaged(arrays={"hidden": HIDDEN.astype(np.float32)}),
        damaged(arrays={"hidden": HIDDEN.ravel()}),
        damaged(arrays={"hidden": np.float64(1.0)}),
        damaged(arrays={"hidden": HIDDEN[:0], "output": OUTPUT[:1]}),
        damaged(arrays={"output": OUTPUT[:, 0]}),
        damaged(arrays={"output": THREE}),
        damaged(arrays={"output": OUTPUT * np.inf}),
        damaged(arrays={"output": OUTPUT.astype(str)}),
    ],
)
def test_what_is_damaged_is_refused(state):
    with pytest.raises(StratsynthError):
        Network.from_state(SCHEMA, state)


def test_level_numbers_without_numbers_are_refused():
    with pytest.raises(UsageError, match="X is numeric"):
        model().predict({"X": np.zeros(2, int), "Z": np.zeros(2, int), "C": np.zeros(2, int)})


def test_asking_rows_of_it_says_what_it_gives():
    with pytest.raises(UsageError, match="predict"):
        model().table_model()


def test_a_release_predicts_after_it_was_stored(tmp_path):
    how = GroupRegression(
        target="D", groups=["G"], features=["G", "X"], model="network", mode="DPSE", accounting="parallel", iterations=5
    )
    release = fit(how, open_table(people(500), schema=SCHEMA, declared_size=500), Budget(3, 1e-6))
    folder = release.save(tmp_path / "release")
    again, frame = Release.load(folder), people(20, 1)
    pd.testing.assert_frame_equal(again.predictions(frame).to_pandas(), release.predictions(frame).to_pandas())
    assert again.model.kind == "network"
    page = (folder / "report.html").read_text(encoding="utf-8")
    for words in ("The network", "network of 16 hidden units for D, on 3 features", "Weight of each group"):
        assert words in page
    assert {path.suffix for path in (folder / "model").iterdir()} <= {".json", ".npz", ".toml"}
