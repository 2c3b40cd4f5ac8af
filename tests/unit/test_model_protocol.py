"""A predictor that the core never heard of goes all the way; and what a release does not give out, it says."""

import json
from importlib.metadata import EntryPoint

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import stratsynth as ss
from helpers import small
from helpers.contract import violations
from helpers.pages import Page
from helpers.predicting import Guesser, Guesses
from stratsynth import cli
from stratsynth.errors import MechanismError, ReleaseError, SchemaError, UsageError
from stratsynth.mechanisms import registry
from stratsynth.models import ByGroup, combine, files
from stratsynth.strata import Stratum, crossing, within
from stratsynth.testing import worlds
from stratsynth.weights import Resolved

MERGED = 'by = ["SEX", "GROUP"]\nmerge.GROUP = { any = ["a", "b"] }'
AGES = ["0-2", "3-5", "6-9"]
BUDGET = ss.Budget(20, 1e-6)


@pytest.fixture(autouse=True)
def _installed(monkeypatch):
    """The package that brings the mechanism and its model."""
    mine = {registry: ("guesser", "Guesser", registry.GROUP), files: ("guesses", "Guesses", "stratsynth.models")}
    for home, (name, kind, group) in mine.items():
        monkeypatch.setitem(home.installed(), name, EntryPoint(name, f"helpers.predicting:{kind}", group))


def guessed(frame, sex=None):
    """The commonest work at each age, by the true rows as the schema reads them."""
    frame = frame if sex is None else frame[frame["SEX"] == sex]
    work = frame["WORK"].replace("zebra", "no")
    ages = pd.cut(frame["AGE"].clip(0, 9), [-1, 2, 5, 9], labels=AGES)
    return pd.crosstab(ages, work).idxmax(axis=1)


def lopsided(rows=4000):
    """People whose work is clear from sex and age."""
    frame = small.people(rows)
    young = (frame["AGE"] < 3) ^ (frame["SEX"] == "1")
    return frame.assign(WORK=np.where(young, "yes", "no"))


def recipe_in(folder, strata):
    path = small.write_recipe(folder)
    lopsided().to_csv(folder / "people.csv", index=False)
    small.edit(path, 'name = "independent"', 'name = "guesser"\nfeature = "AGE"')
    small.edit(path, "epsilon = 1.0", "epsilon = 20.0")
    small.edit(path, "declared_size = 100", "declared_size = 4000")
    small.edit(path, 'by = ["SEX", "GROUP"]', strata)
    return path


@pytest.mark.parametrize(("strata", "groups"), [('by = ["SEX", "GROUP"]', 4), (MERGED, 2)])
def test_a_predictor_goes_through_recipe_plan_fit_release_strata_and_report(strata, groups, tmp_path, capsys):
    path = recipe_in(tmp_path, strata)
    assert cli.run(["plan", str(path)]) == 0
    assert "guesses from about" in capsys.readouterr().out
    assert cli.run(["fit", str(path)]) == 0
    assert "guesser" in capsys.readouterr().out
    folder = tmp_path / "release"
    assert sorted(p.name for p in folder.iterdir()) == [
        "certificate.json",
        "measurements.parquet",
        "model",
        "report.html",
    ]
    certificate = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["private"]
    assert certificate["unprotected"] == ["declared_size"]
    page = Page((folder / "report.html").read_text(encoding="utf-8")).check()
    assert "A private predictor" in page.text
    assert "What is guessed" in page.text
    assert "No count of a single column" not in page.text
    chosen = [a["data-group"] for a in page.all("figure") if "data-group" in a]
    assert len(chosen) == len(set(chosen)) == groups

    release = ss.Release.load(folder)
    frame = lopsided(600)
    features = frame[["GROUP", "AGE", "SEX"]]
    truth = {sex: guessed(lopsided(), sex) for sex in "12"}
    ages = pd.cut(frame["AGE"].clip(0, 9), [-1, 2, 5, 9], labels=AGES)
    expected = [truth[sex][age] for sex, age in zip(frame["SEX"], ages, strict=True)]
    assert release.predict(features).tolist() == expected
    assert release.predict(pa.Table.from_pandas(features)).tolist() == expected
    features.to_csv(tmp_path / "ask.csv", index=False)
    assert release.predict(tmp_path / "ask.csv").tolist() == expected


def whole():
    table = ss.open_table(lopsided(), schema=small.SCHEMA, declared_size=4000)
    return ss.fit(Guesser(), table, BUDGET)


def test_without_strata_a_model_is_its_own(tmp_path):
    release = whole()
    again = ss.Release.load(release.save(tmp_path / "release"))
    assert isinstance(again.model, Guesses)
    frame = lopsided(50)
    assert again.predict(frame[["AGE"]]).tolist() == release.predict(frame).tolist()


def test_the_contract_holds():
    told = [world for world in worlds() if "WORK" in world.schema.names and "WORK" not in world.by]
    assert violations(lambda world, _: ss.Stratified(Guesser(), world.by, world.weights), among=told) == []


@pytest.mark.usefixtures("seeded_noise")
def test_strata_within_strata_predict_and_are_shown(tmp_path):
    inner = ss.Stratified(Guesser(), ["GROUP"], small.even(small.SCHEMA, "GROUP"))
    how = ss.Stratified(inner, ["SEX"], small.even(small.SCHEMA, "SEX"))
    table = ss.open_table(lopsided(), schema=small.SCHEMA, declared_size=4000)
    release = ss.fit(how, table, BUDGET)
    page = Page((release.save(tmp_path / "r") / "report.html").read_text(encoding="utf-8")).check()
    assert [a["data-group"] for a in page.all("figure") if "data-group" in a] == [
        "SEX 1, GROUP a",
        "SEX 1, GROUP b",
        "SEX 2, GROUP a",
        "SEX 2, GROUP b",
    ]
    frame = lopsided(100)
    assert release.predict(frame).tolist() == ss.Release.load(tmp_path / "r").predict(frame).tolist()
    assert (release.predict(frame) == frame["WORK"]).mean() > 0.9


def parts_by_age(schema=small.SCHEMA):
    """Two ages merged, in which the feature still varies, and one alone."""
    young, old = Stratum.of({"AGE": ["0-2", "3-5"]}, ["young"]), Stratum.of({"AGE": "6-9"})
    first = Guesses(within(schema, (young,)), "WORK", "AGE", np.array([[9, 1, 1], [1, 9, 1]]))
    second = Guesses(within(schema, (old,)), "WORK", "SEX", np.array([[9, 1, 1], [1, 1, 9]]))
    return {young: first, old: second}


def test_inside_a_merge_levels_are_the_merge_s_own():
    model = combine(small.SCHEMA, parts_by_age(), Resolved(dict.fromkeys(parts_by_age(), 0.5)))
    assert isinstance(model, ByGroup)
    assert model.inputs == ("SEX", "AGE")
    frame = pd.DataFrame({"SEX": ["2", "1", "1", "2"], "AGE": [7, 4, 8, 1]})
    release = ss.Release(model, {}, None)
    assert release.predict(frame).tolist() == ["no", "yes", "N", "N"]
    again = ByGroup.from_state(small.SCHEMA, model.state())
    assert [s.names for s in again.parts] == [("young",), ("6-9",)]
    assert again.predict({"SEX": np.array([1]), "AGE": np.array([2])}).tolist() == ["no"]


def test_a_stored_predictor_that_leaves_rows_out_is_damaged():
    parts = parts_by_age()
    del parts[next(iter(parts))]
    with pytest.raises(ReleaseError, match="not all there are"):
        ByGroup.from_state(small.SCHEMA, ByGroup(small.SCHEMA, parts).state())
    with pytest.raises(ReleaseError, match="not all there are"):
        ByGroup.from_state(small.SCHEMA, ByGroup(small.SCHEMA, {}).state())


def test_rows_and_predictions_do_not_mix():
    strata = crossing(small.SCHEMA, ["SEX"])
    rows = small.clear_release().model
    mixed = dict(zip(strata, (rows, whole().model), strict=True))
    with pytest.raises(MechanismError, match="predictions and rows"):
        combine(small.SCHEMA, mixed, Resolved(dict.fromkeys(strata, 0.5)))


def test_small_groups_of_a_predictor_cannot_be_one_way_tables():
    groups = ss.Groups(small="one-way", threshold=5)
    with pytest.raises(UsageError, match="predictions"):
        ss.Stratified(Guesser(), ["SEX"], small.even(small.SCHEMA, "SEX"), groups)


def test_what_a_release_does_not_give_out_is_refused_with_the_remedy(tmp_path):
    release, frame = whole(), lopsided(10)
    for refused in (lambda: release.sample(5), lambda: release.rules_moved(5), release.estimates):
        with pytest.raises(UsageError, match=r"this release predicts and .*: see `predict`"):
            refused()
    with pytest.raises(UsageError, match="leave rows out"):
        release.save(tmp_path / "r", rows=5)
    with pytest.raises(UsageError, match="no strata"):
        ss.weight_sensitivity(release)
    with pytest.raises(UsageError, match="draws rows and does not predict: see `sample`"):
        small.clear_release().predict(frame)


def test_rows_that_cannot_be_predicted_are_refused(tmp_path):
    model = combine(small.SCHEMA, parts_by_age(), Resolved(dict.fromkeys(parts_by_age(), 0.5)))
    release = ss.Release(model, {}, None)
    with pytest.raises(SchemaError, match="SEX"):
        release.predict(pd.DataFrame({"AGE": [1]}))
    with pytest.raises(UsageError, match=r"1 of 2 rows hold a value .* in SEX, AGE"):
        release.predict(pd.DataFrame({"SEX": ["1", "secret"], "AGE": [1, 2]}))
    with pytest.raises(UsageError, match="no rows"):
        release.predict(pd.DataFrame({"SEX": pd.Series([], dtype=str), "AGE": pd.Series([], dtype=int)}))
