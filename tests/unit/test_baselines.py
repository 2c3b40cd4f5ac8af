"""Baselines: what their tables are, and that the subsample has the error that is claimed for it."""

import math

import numpy as np
import pandas as pd
import pytest

import stratsynth.evaluation
from stratsynth import Categorical, Numeric, Schema, StratsynthError, census
from stratsynth.evaluation import baseline_errors, baselines, workload_error
from stratsynth.evaluation.tables import EncodedRows

SCHEMA = Schema(
    {
        "G": Categorical(levels=("a", "b", "c")),
        "X": Categorical(levels=tuple("0123456789")),
        "N": Numeric(lower=0, upper=10_000, integer=True),
    }
)


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 10, n)
    return pd.DataFrame({"G": np.array(list("ab"))[(x > 4).astype(int)], "X": x.astype(str), "N": np.arange(n)})


def test_each_baseline_is_what_it_says():
    real = people(1000)
    made = {b.name: b for b in baselines(real, SCHEMA, 500)}
    assert list(made) == ["subsample", "resampled", "independent"]
    assert all(math.isinf(b.epsilon) and b.meaning for b in made.values())
    assert {name: b.table.rows for name, b in made.items()} == {"subsample": 333, "resampled": 500, "independent": 500}
    ids = {name: b.table.numbers["N"] for name, b in made.items()}
    assert len(set(ids["subsample"])) == 333  # nobody twice
    assert len(set(ids["resampled"])) < 500
    codes = EncodedRows.read(real, SCHEMA).codes["X"]
    for name in ("subsample", "resampled"):  # rows are whole
        assert (made[name].table.codes["X"] == codes[ids[name].astype(int)]).all()
    apart = made["independent"].table
    together = np.corrcoef(apart.codes["G"], apart.codes["X"])[0, 1]
    assert abs(together) < 0.2  # in the real rows 0.87
    np.testing.assert_allclose(np.bincount(apart.codes["X"]) / 500, 0.1, atol=0.05)


def test_a_seed_makes_the_same_tables_and_another_makes_others():
    real = people(300)
    one, same, other = (baselines(real, SCHEMA, 300, seed=seed)[1].table.numbers["N"] for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()


@pytest.mark.parametrize("rows", [300, 3000, 9000])
def test_the_subsample_is_as_far_off_as_that_many_fresh_people(rows):
    """For releases smaller than, as large as and larger than the real table."""
    schema = SCHEMA.restrict(["G", "X"])
    real, population = (EncodedRows.read(people(n, seed=9), schema) for n in (3000, 100_000))
    errors = {"fresh": [], "subsample": []}
    for seed in range(25):
        made = baselines(real, schema, rows, seed=seed)[0].table
        errors["subsample"].append(workload_error(real, made, schema, 2)["value"].item())
        fresh = population.take(np.arange(seed * 2000, seed * 2000 + rows))
        errors["fresh"].append(workload_error(population, fresh, schema, 2)["value"].item())
    assert np.mean(errors["subsample"]) == pytest.approx(np.mean(errors["fresh"]), rel=0.15)


def test_a_release_is_shown_beside_every_baseline_in_every_group():
    real, release = census.make(2000), census.holdout(1000)
    found = baseline_errors(real, release, census.schema(), 2, "RAC1P", most=40)
    assert found.groupby("table").size().to_dict() == dict.fromkeys(
        ["independent", "release", "resampled", "subsample"], 10
    )
    everybody = found[found["scope"] == "everybody"].set_index("table")["value"]
    assert everybody["subsample"] < everybody["independent"]
    alone = workload_error(real, release, census.schema(), 2, "RAC1P", most=40)
    np.testing.assert_array_equal(found[found["table"] == "release"]["value"], alone["value"])


def test_no_rows_are_no_reason_to_fail():
    for real, rows in ((people(0), 10), (people(10), 0), (people(0), 0)):
        found = {b.name: b.table.rows for b in baselines(real, SCHEMA, rows)}
        assert set(found.values()) == {0}
    with pytest.raises(StratsynthError):
        baselines(people(10), SCHEMA, -1)


def test_every_public_name_is_there_and_none_is_hidden_by_a_module():
    for name in stratsynth.evaluation.__all__:
        found = getattr(stratsynth.evaluation, name)
        assert callable(found), f"{name} is {found}"
    assert set(stratsynth.evaluation.__all__) <= set(dir(stratsynth.evaluation))
    with pytest.raises(AttributeError, match="nothing"):
        _ = stratsynth.evaluation.nothing
