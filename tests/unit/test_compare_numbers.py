"""Errors of numbers in a comparison: their metrics, their sign, their spread over repetitions, and what pages say."""

import numpy as np
import pandas as pd
import pytest

from helpers import small
from stratsynth.errors import RecipeError, UsageError
from stratsynth.evaluation.comparisons.cells import scores
from stratsynth.evaluation.comparisons.grid import Grid
from stratsynth.evaluation.comparisons.numbers import number_scores, numbers_lead, numbers_sections, raw_numbers
from stratsynth.evaluation.comparisons.paired import paired
from stratsynth.evaluation.comparisons.scoring import Scoring
from stratsynth.evaluation.tables import EncodedRows
from stratsynth.recipes.recipe import Recipe

SCHEMA = small.SCHEMA
SCORING = Scoring(("numbers",), ("SEX",), thresholds=(("AGE", (4.0,)),))
KEYS = {"mechanism": "mst", "stratification": "vanilla", "epsilon": 1.0, "status": "ok", "stamp": "INTERNAL"}
BASE = {"mechanism": "(subsample)", "stratification": "(baseline)", "epsilon": np.inf, "seed": 0}


def aged(ages):
    return pd.DataFrame({"SEX": "1", "GROUP": "a", "AGE": list(ages), "WORK": "yes"})


def tidy(errors, **instead):
    """A comparison's frame: errors of a mean by repetition, of everybody and of two groups, one of them small."""
    rows = []
    for seed, error in enumerate(errors, start=1):
        for scope, sex, n in (("everybody", None, 3_000), ("group", "1", 2_100), ("group", "2", 900)):
            status = "small" if n < 1_000 else "ok"
            row = {"metric": "mean_error:AGE", "scope": scope, "SEX": sex, "group": sex, "value": error, "n": n}
            rows.append(KEYS | {"seed": seed} | row | {"status": status} | instead)
    return pd.DataFrame(rows).astype({"SEX": "string", "group": "string"})


def test_every_statistic_is_a_metric_with_its_sign():
    numbers = [raw_numbers(aged(ages), SCHEMA, ("SEX",)) for ages in ([0, 4, 8], [0, 2, 4])]
    found = dict(number_scores(*numbers, SCHEMA, SCORING))
    assert set(found) == {
        "mean_error:AGE",
        "median_error:AGE",
        "decile_error:AGE",
        "P90_error:AGE",
        "P99_error:AGE",
        "share_error:AGE above 4",
        "share_error:AGE no number",
    }
    whole = {metric: frame["value"].iloc[-1] for metric, frame in found.items()}
    assert whole["mean_error:AGE"] == pytest.approx(-50)
    assert whole["median_error:AGE"] == pytest.approx(-50)
    assert whole["P90_error:AGE"] == pytest.approx(-50)
    assert whole["share_error:AGE above 4"] == pytest.approx(-100 / 3)
    assert found["mean_error:AGE"]["scope"].tolist() == ["group", "group", "everybody"]


def test_a_baseline_has_sizes():
    real, made = (EncodedRows.read(aged(ages), SCHEMA) for ages in ([0, 4, 8], [0, 2, 4]))
    found = dict(scores(real, made, SCORING, None, 0))
    assert found["mean_error:AGE"]["value"].iloc[-1] == pytest.approx(50)
    numbers = tuple(raw_numbers(aged(ages), SCHEMA, ("SEX",)) for ages in ([0, 4, 800], [0, 2, 4]))
    own = dict(scores(real, made, SCORING, None, 0, numbers))
    assert own["mean_error:AGE"]["value"].iloc[-1] == pytest.approx(100 * (2 - 268) / 268), "neither binned nor clipped"


def test_pages_show_the_spread_over_repetitions():
    frame = pd.concat([tidy([3, -1, 4]), tidy([0.5], **BASE)])
    [section] = numbers_sections(frame, ("SEX",), SCHEMA)
    whole, groups = section.figures
    assert [cell.text if hasattr(cell, "text") else cell for row in whole.table.rows for cell in row] == [
        *("AGE", "mst, vanilla", "+2.00 ± 2.6 (rms 2.94)"),
        *("AGE", "chance alone, size", "0.500"),
    ]
    assert whole.table.rows[0][-1].key == pytest.approx(np.sqrt(26 / 3))
    assert [row[:4] for row in groups.table.rows] == [["SEX 1", "AGE", "mst, vanilla", 2_100]]
    assert "1 pair of a group and a column, left out" in groups.note
    assert numbers_lead(frame, 1.0) == [
        "Of the means of numbers, that of AGE is farthest off, by 2.94 %, under mst, vanilla at epsilon 1."
    ]
    assert numbers_sections(tidy([1], metric="workload_error")) == []
    assert numbers_sections(tidy([7]))[0].figures[0].table.rows[0][-1].text == "+7.00"
    assert "0 ± 0 (rms 0)" in numbers_sections(tidy([0, 0]))[0].figures[0].table.rows[0][-1].text
    assert numbers_sections(tidy([np.nan]))[0].figures[0].table.rows[0][-1].text == "–"


def test_settings_are_compared_by_the_size_of_their_errors():
    """Errors of 1 in both directions are smaller than errors of 2 in one."""
    frame = pd.concat([tidy([1, -1, 1.1, -1, 1]), tidy([-2, -2.1, -2, -2, -2], stratification="SEX")])
    found = paired(frame, ["SEX"])
    whole = found[found["scope"] == "everybody"].iloc[0]
    assert (whole["first"], whole["second"]) == (pytest.approx(1.02), pytest.approx(2.02))
    assert whole["verdict"] == "mst, vanilla is better"


def grid(folder, text):
    path = small.write_recipe(folder)
    path.write_text(path.read_text(encoding="utf-8") + f"\n[compare]\n{text}\n", encoding="utf-8")
    return Grid.read(Recipe.read(path))


def test_a_recipe_states_thresholds(tmp_path):
    assert grid(tmp_path, "thresholds = { AGE = [5, 3] }").scoring.thresholds == (("AGE", (3.0, 5.0)),)
    assert "numbers" in grid(tmp_path, "").scoring.metrics


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("thresholds = [5]", RecipeError, "thresholds must be numbers by column"),
        ("thresholds = { SEX = 1 }", UsageError, "no column of numbers"),
        ('thresholds = { AGE = "old" }', UsageError, "finite numbers"),
    ],
)
def test_other_thresholds_are_refused(tmp_path, text, error, says):
    with pytest.raises(error, match=says):
        grid(tmp_path, text)


def test_numbers_alone_need_a_column_of_them(tmp_path):
    path = small.write_recipe(tmp_path)
    SCHEMA.restrict(["SEX", "GROUP", "WORK"]).write_toml(tmp_path / "words.toml")
    text = path.read_text(encoding="utf-8").replace("schema.toml", "words.toml")
    path.write_text(f'{text}\n[compare]\nmetrics = ["numbers"]\n', encoding="utf-8")
    with pytest.raises(RecipeError, match="no column of numbers"):
        Grid.read(Recipe.read(path))
