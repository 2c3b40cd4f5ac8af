"""The randomised classifier: chance needs a seed, probabilities are its exact mean; stored, damaged, and shown."""

import numpy as np
import pandas as pd
import pytest

from helpers.regressing import SCHEMA, people
from stratsynth import Budget, Release, fit, open_table
from stratsynth.adapters import Reductions
from stratsynth.adapters.reductions import RandomisedClassifier
from stratsynth.errors import StratsynthError, UsageError
from stratsynth.files.npz import State
from stratsynth.models import Returns
from stratsynth.questions import Coded

DESIGN = Coded(("X",))
THETAS = np.array([[0.0, 1.0], [0.5, 1.0], [-0.5, 1.0]])
WEIGHTS = np.array([0.5, 0.3, 0.2])


def model(**more):
    return RandomisedClassifier(SCHEMA, DESIGN, "D", THETAS, WEIGHTS, 1, **more)


def test_probabilities_are_the_weights_of_the_classifiers_that_say_so():
    frame = pd.DataFrame({"X": [-0.9, -0.3, 0.3, 0.9]})
    told = model()
    found = told.probabilities(told.shown(frame))
    assert found[:, 1].tolist() == pytest.approx([0, 0.3, 0.8, 1])
    assert np.allclose(found.sum(axis=1), 1)


def test_predictions_are_drawn_with_a_seed_and_their_mean_is_the_probability():
    frame = pd.DataFrame({"X": np.full(20_000, 0.3)})
    told = model()
    rows = told.shown(frame)
    one = told.seeded(3).predict(rows)
    assert (one == told.seeded(3).predict(rows)).all()
    assert (one != told.seeded(4).predict(rows)).any()
    assert abs((one == "yes").mean() - 0.8) < 5 * (0.16 / 20_000) ** 0.5
    assert (told.seeded(3).table(rows)["prediction"] == one).all()


def test_without_a_seed_it_refuses_and_says_what_to_do():
    told = model()
    for predict in (told.predict, told.table):
        with pytest.raises(UsageError, match="needs a seed"):
            predict(told.shown(people(3)))


def test_the_deterministic_variant_is_one_classifier_and_needs_no_seed():
    frame = pd.DataFrame({"X": [-0.9, -0.3, 0.3]})
    told = model().without_chance()
    assert told.predict(told.shown(frame)).tolist() == ["no", "yes", "yes"]
    assert told.probabilities(told.shown(frame))[:, 1].tolist() == [0, 1, 1]


def test_what_is_stored_is_the_same_model_without_its_seed():
    before = model(facts={"plan": "x"}, deterministic=True).seeded(3)
    after = RandomisedClassifier.from_state(SCHEMA, before.state())
    rows = after.shown(people(20))
    assert (after.probabilities(rows) == before.probabilities(rows)).all()
    assert (after.facts, after.returns, after.deterministic, after.seed) == (
        before.facts,
        Returns.PREDICTIONS,
        True,
        None,
    )
    assert after.foretell(()) == "x"


def damaged(facts=None, arrays=None):
    state = model().state()
    return State({**state.facts, **(facts or {})}, {**state.arrays, **(arrays or {})})


@pytest.mark.parametrize(
    "state",
    [
        damaged({"target": "C"}),
        damaged({"target": "X"}),
        damaged({"best": 3}),
        damaged({"best": True}),
        damaged({"deterministic": 1}),
        damaged({"fit": 3}),
        damaged({"columns": ["W"]}),
        damaged({"reference": [["X", "z"]]}),
        damaged(arrays={"thetas": THETAS[:, :1]}),
        damaged(arrays={"thetas": THETAS * np.nan}),
        damaged(arrays={"thetas": THETAS.astype(np.float32)}),
        damaged(arrays={"weights": WEIGHTS * 2}),
        damaged(arrays={"weights": np.array([2.0, -1.0, 0.0])}),
        damaged(arrays={"weights": WEIGHTS[:2]}),
        damaged(arrays={"weights": WEIGHTS * np.nan}),
    ],
)
def test_what_is_damaged_is_refused(state):
    with pytest.raises(StratsynthError):
        RandomisedClassifier.from_state(SCHEMA, state)


@pytest.fixture(scope="module")
def release():
    how = Reductions(target="D", groups=["G"], features=["G", "X"], constraints={"equalized_odds": 0.1}, iterations=4)
    return fit(how, open_table(people(800), schema=SCHEMA), Budget(5, 1e-6))


def test_a_release_predicts_after_it_was_stored(release, tmp_path):
    folder = release.save(tmp_path / "release")
    again, frame = Release.load(folder), people(50, 1)
    assert (again.predict(frame, seed=5) == release.predict(frame, seed=5)).all()
    table = again.predictions(frame, seed=5)
    assert table.column_names == ["row", "prediction", "probability=no", "probability=yes"]
    goals = pd.read_parquet(folder / "goals.parquet")
    assert goals.name.tolist() == ["error", "equalized_odds"]
    assert set(pd.read_parquet(folder / "rates.parquet").group) == {"", "a", "b"}
    page = (folder / "report.html").read_text(encoding="utf-8")
    for words in ("What was to hold", "equalized odds", "Without chance", "Rates of groups"):
        assert words in page


def test_a_seed_is_a_whole_number(release):
    for seed in (-1, 1.5, True):
        with pytest.raises(UsageError, match="seed"):
            release.predict(people(3), seed=seed)


def test_the_certificate_holds_the_statement(release):
    settings = release.certificate["mechanism"]["settings"]
    assert settings["constraints"] == {"equalized_odds": 0.1}
    assert (settings["objective"], settings["groups"]) == ("error", ["G"])
    assert release.certificate["unverified"] == []
    assert "adaptive" not in release.certificate["mechanism"]


def test_level_numbers_without_numbers_are_refused():
    with pytest.raises(UsageError, match="X is numeric"):
        model().seeded(1).predict({"X": np.zeros(2, int)})


def test_asking_rows_of_it_says_what_it_gives():
    with pytest.raises(UsageError, match="predict"):
        model().table_model()
