"""Training on a release and testing on others: what is learned, what is refused, what the tasks are."""

import numpy as np
import pandas as pd
import pytest

from stratsynth import Categorical, Numeric, Schema, StratsynthError, census
from stratsynth.evaluation import Task, downstream
from stratsynth.evaluation.learning.learners import fitted, inputs
from stratsynth.evaluation.learning.tasks import task
from stratsynth.evaluation.tables import EncodedRows
from studies.acs import excerpt as acs

SCHEMA = Schema(
    {
        "G": Categorical(levels=("a", "b", "c")),
        "X": Numeric(lower=0, upper=10, not_applicable="N", missing=True),
        "Y": Categorical(levels=("no", "yes")),
        "L": Categorical(levels=("1", "2", "3")),
    }
)


def people(n, seed, flip=0.0):
    """Y says whether X is above 5; `flip` of those in b have it the other way round."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, n).round(3)
    group = rng.choice(list("ab"), n)
    yes = (x > 5) ^ ((group == "b") & (rng.random(n) < flip))
    return pd.DataFrame({"G": group, "X": x, "Y": np.where(yes, "yes", "no"), "L": rng.choice(list("123"), n)})


def of(found, metric="accuracy", **where):
    found = found[(found["metric"] == metric)]
    for column, value in where.items():
        found = found[found[column] == value]
    return found


def test_what_a_release_has_wrong_in_one_group_is_seen_in_that_group():
    real, release, test = people(600, 1), people(400, 2, flip=1.0), people(500, 3)
    found = downstream(release, test, SCHEMA, target="Y", by="G", real=real, features=["G", "X"])
    for model in ("forest", "boosting"):
        spoilt = of(found, trained_on="synthetic", model=model).set_index("G")["value"]
        assert spoilt["a"] > 0.95
        assert spoilt["b"] < 0.05
        for table in ("real", "subsample"):
            sound = of(found, trained_on=table, model=model, scope="everybody")["value"].item()
            assert sound > 0.95
    sizes = found.groupby("trained_on")["n_train"].unique().map(list).to_dict()
    assert sizes == {"synthetic": [400], "real": [600], "subsample": [400]}
    between = of(found, "accuracy_difference", trained_on="synthetic", model="boosting").iloc[0]
    assert between["value"] > 0.9
    assert (between["groups"], between["left_out"]) == (2, 1)
    assert len(of(found, model="constant", scope="everybody")) == 1
    groups = found[found["scope"] == "group"]
    assert (groups.groupby(["trained_on", "model", "metric"]).size() == 3).all()
    assert "INTERNAL" in found.attrs["stamp"]


def test_numbers_are_predicted_where_there_are_some():
    real = people(300, 1)
    real.loc[:20, "X"] = None
    found = downstream(real, people(300, 2), SCHEMA, target="X", by="G", models=["boosting"], features=["Y"])
    error = of(found, "mean_absolute_error", model="boosting", scope="everybody")
    assert error["n_train"].item() == 279
    assert error["value"].item() == pytest.approx(1.25, abs=0.15)  # within each half, a quarter of its width
    assert of(found, "r2", model="constant", scope="everybody")["value"].item() <= 0


def test_a_number_with_a_bound_is_a_class_and_the_seed_repeats_everything():
    settings = {"target": "X", "above": 5.0, "models": ["forest"], "features": ["Y"], "by": "G"}
    one, two = (downstream(people(200, 1), people(200, 2), SCHEMA, **settings, seed=4) for _ in range(2))
    pd.testing.assert_frame_equal(one, two)
    assert of(one, model="forest", scope="everybody")["value"].item() == 1
    assert one.attrs["task"] == "X above 5"


def test_a_release_that_teaches_nothing_gets_a_score_or_none_but_never_fails():
    test = people(100, 2)
    settled = people(50, 1).assign(Y="yes")
    found = downstream(settled, test, SCHEMA, target="Y", by="G", models=["linear"])
    assert of(found, "selection_rate", model="linear", scope="everybody")["value"].item() == 1
    nobody = downstream(settled[:0], test, SCHEMA, target="Y", by="G")
    assert nobody["value"].isna().all()
    assert set(nobody["status"]) == {"not_estimable"}
    assert (nobody[nobody["scope"] == "group"].groupby(["model", "metric"]).size() == 3).all()


def test_the_rows_that_were_fitted_are_no_hold_out():
    real, release = people(100, 1), people(100, 2)
    for held in (real, release):
        with pytest.raises(StratsynthError, match="hold-out"):
            downstream(release, held, SCHEMA, target="Y", real=real)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"target": "Z"}, "'Z'"),
        ({"target": "L"}, "positive"),
        ({"target": pd.DataFrame({"L": [1]})}, "target must be the name"),
        ({"target": "L", "positive": pd.DataFrame({"L": [1]})}, "positive must be a level"),
        ({"target": "X", "above": np.zeros(2)}, "above must be a finite number"),
        ({"target": "L", "positive": "4"}, "'4'"),
        ({"target": "L", "above": 2.0}, "positive"),
        ({"target": "X", "positive": "1"}, "above"),
        ({"target": "Y", "features": ["Y", "X"]}, "others"),
        ({"target": "Y", "features": []}, "others"),
        ({"target": "Y", "models": []}, "model"),
        ({"target": "Y", "models": ["tree"]}, "'tree'"),
        ({"target": "employment"}, "ESR"),
        ({"target": "income"}, "PINCP"),
    ],
)
def test_what_cannot_be_predicted_is_refused(asked, says):
    with pytest.raises(StratsynthError, match=says):
        downstream(people(20, 1), people(20, 2), SCHEMA, **asked)


def test_the_built_in_tasks_of_the_census():
    schema = census.schema()
    employment, income = (task(schema, name) for name in ("employment", "income"))
    assert (employment.target, employment.positive) == ("ESR", ("1",))
    assert set(employment.features) >= {"AGEP", "SCHL", "MAR", "DIS", "SEX", "RAC1P"}
    assert employment.where == {}  # children are in it, as in folktables
    assert (income.target, income.above) == ("PINCP", 50_000)
    people = census.make(3000)
    kept = income.rows(EncodedRows.read(people, schema))
    mine = people[(people["AGEP"] > 16) & (people["PINCP"] > 100) & (people["WKHP"] > 0)]
    # a person of 16 lies in a bin of their own, so that numbers and levels agree
    assert kept.rows == len(mine)
    assert income.truth(kept).sum() == (mine["PINCP"] > 50_000).sum()
    everybody = EncodedRows.read(people, schema)
    assert employment.truth(employment.rows(everybody)).sum() == (people["ESR"] == "1").sum()


def test_the_built_in_tasks_in_the_columns_of_nists_excerpt():
    income = task(acs(), "income")
    assert income.positive == ("5", "6", "7", "8", "9")
    assert income.features == ("AGEP", "EDU", "MSP", "SEX", "RAC1P", "INDP_CAT")
    with pytest.raises(StratsynthError, match="ESR"):
        task(acs(), "employment")


def test_a_task_of_ones_own_is_taken_as_it_is():
    own = Task("Y", ("X",), positive=("no",), where={"X": 2.0})
    found = downstream(people(100, 1), people(100, 2), SCHEMA, target=own, models=["linear"])
    assert found["n"].max() < 100
    assert own.meaning == "Y is no, of rows with X above 2"
    with pytest.raises(StratsynthError, match="'W'"):
        task(SCHEMA, Task("Y", ("W",), positive=("no",)))


def test_inputs_follow_the_schema_alone():
    frame = pd.DataFrame({"G": ["b", "a", "a"], "X": ["2.5", "N", None], "Y": "no", "L": "1"})
    table = EncodedRows.read(frame, SCHEMA)
    wide = inputs(table, ["G", "X"], wide=True)
    np.testing.assert_allclose(wide, [[0, 1, 0, 0.25, 0, 0], [1, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, 1]])
    np.testing.assert_allclose(inputs(table, ["G", "X"], wide=False), [[1, 2.5], [0, -0.5], [0, -1.0]])


def test_the_constant_is_the_commoner_class_and_the_mean():
    table = EncodedRows.read(people(4, 1), SCHEMA)
    for truth, expected in (([True, True, False, True], True), ([False, False, True, False], False)):
        assert fitted("constant", table, ["X"], np.array(truth), 0).predict(table).tolist() == [expected] * 4
    assert fitted("constant", table, ["X"], np.array([1.0, 2, 3, 6]), 0).predict(table).tolist() == [3] * 4


def test_fairlearns_model_brings_the_groups_rates_together():
    train, test = people(3_000, 1, flip=0.3), people(3_000, 2, flip=0.3)
    train, test = (frame.assign(G=np.where(frame["X"] > 6, "a", "b")) for frame in (train, test))
    found = downstream(train, test, SCHEMA, target="Y", by="G", features=["X", "L"], models=["linear", "fairlearn"])
    odds = {
        model: of(found, "equalized_odds_difference", model=model)["value"].item() for model in ("linear", "fairlearn")
    }
    assert odds["fairlearn"] < odds["linear"] / 2
    assert of(found, "accuracy", model="fairlearn", scope="everybody")["value"].item() > 0.5


def test_fairlearns_model_is_for_classes_alone():
    with pytest.raises(StratsynthError, match="fairlearn predicts two classes"):
        downstream(people(50, 1), people(60, 2), SCHEMA, target="X", features=["G"], models=["fairlearn"])
