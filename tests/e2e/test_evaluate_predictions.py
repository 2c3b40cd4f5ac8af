"""`stratsynth evaluate --predictions`, as a user starts it."""

import json

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers.command import complaint, stratsynth
from helpers.pages import Page
from helpers.regressing import SCHEMA, people
from stratsynth.adapters import GroupRegression
from stratsynth.errors import UsageError
from stratsynth.evaluation import evaluate_predictions, prediction_rates


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows, a release that predicts D and what it predicts of the rows."""
    place = tmp_path_factory.mktemp("predictions")
    frame = people(1500)
    frame.to_csv(place / "people.csv", index=False)
    SCHEMA.write_toml(place / "schema.toml")
    table = ss.open_table(frame, schema=SCHEMA, declared_size=1500)
    release = ss.fit(
        GroupRegression(target="D", model="logistic", features=["X", "G"]), table, ss.Budget(epsilon=5, delta=1e-6)
    )
    release.save(place / "release")
    release.predictions(frame).to_pandas().to_csv(place / "predicted.csv", index=False)
    return place


def ask(*more, out="out", predictions="predicted.csv", target="D"):
    settings = ["--real", "people.csv", "--schema", "schema.toml", "--by", "G", "--target", target]
    return ["evaluate", *settings, "--predictions", predictions, "-o", out, *more]


@pytest.mark.parametrize("predictions", ["predicted.csv", "release"])
def test_rates_are_written_stamped_and_summed_up(folder, predictions):
    out = folder / f"scores-{predictions}"
    done = stratsynth(*ask(out=out, predictions=predictions), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("INTERNAL")
    assert "Predicted: D is yes." in done.stdout
    assert "equalized odds difference" in done.stdout
    found = pd.read_csv(out / "rates.csv")
    assert set(found["stamp"]) == {"INTERNAL"}
    frame = people(1500)
    said = pd.read_csv(folder / "predicted.csv").prediction == "yes"
    expected = prediction_rates((frame.D == "yes").to_numpy(), said.to_numpy(), frame, SCHEMA, ["G"])
    own = found[found["table"] == "predictions"].reset_index(drop=True)
    assert own["metric"].tolist() == expected["metric"].tolist()
    assert np.allclose(own["value"], expected["value"].astype(float), equal_nan=True)
    constant = found[(found["table"] == "constant") & (found["metric"] == "accuracy") & (found["scope"] == "everybody")]
    assert constant["value"].item() == pytest.approx(max((frame.D == "yes").mean(), (frame.D == "no").mean()))
    page = Page((out / "report.html").read_text(encoding="utf-8")).check()
    assert "Whom the predictions serve" in page.text
    assert ("Epsilon is 5" in page.text) == (predictions == "release")


def test_others_stand_beside_and_json_is_for_programs(folder):
    done = stratsynth(*ask("--beside", "again=release", "--json", out="beside"), cwd=folder)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["INTERNAL"] is True
    assert {row["table"] for row in said["rates"]} == {"predictions", "again", "constant"}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"predictions": "short.csv"}, "3 predictions for 1,500 rows"),
        ({"predictions": "odd.csv"}, "no level of D"),
        ({"target": "C"}, "say with `positive`"),
        ({"target": "Y"}, "some predictions are none"),
        ({"predictions": "people.csv"}, "prediction"),
    ],
)
def test_what_does_not_match_is_said_in_a_line(folder, more, words):
    pd.DataFrame({"prediction": ["yes"] * 3}).to_csv(folder / "short.csv", index=False)
    pd.DataFrame({"prediction": ["perhaps"] * 1500}).to_csv(folder / "odd.csv", index=False)
    assert words in complaint(stratsynth(*ask(out="never", **more), cwd=folder), 2)
    assert not (folder / "never").exists()


def test_one_of_rows_and_predictions_is_named(folder):
    start = ["evaluate", "--real", "people.csv", "--schema", "schema.toml", "-o", "never"]
    for more, words in (
        ([], "--synthetic"),
        (["--predictions", "release"], "--target"),
        (["--synthetic", "release"], "--predictions"),
    ):
        assert words in complaint(stratsynth(*start, *more, cwd=folder), 2)


def test_numbers_and_rows_without_a_target():
    frame = people(500)
    scores = evaluate_predictions(frame, frame.Y.to_numpy() + 0.1, SCHEMA, "Y", ["G"])
    own = scores.rates[(scores.rates["table"] == "predictions") & (scores.rates["scope"] != "between")]
    assert own[own["metric"] == "bias"]["value"].astype(float).tolist() == pytest.approx([0.1] * 3)
    above = evaluate_predictions(frame, frame.Y.to_numpy(), SCHEMA, "Y", above=0.0)
    right = above.rates[(above.rates["table"] == "predictions") & (above.rates["metric"] == "accuracy")]
    assert right["value"].item() == 1
    with pytest.raises(UsageError, match="does not admit"):
        evaluate_predictions(frame.assign(G="zebra"), frame.Y.to_numpy(), SCHEMA, "Y", ["G"])
