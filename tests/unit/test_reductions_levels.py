"""Reductions for targets of more than two levels: confusion measures, weighted losses, mixtures and refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.reducing import SCHEMA as TWO
from helpers.reducing import asked_by
from stratsynth import Budget, Categorical, Numeric, Schema
from stratsynth.adapters import Reductions
from stratsynth.adapters.reductions import RandomisedClassifier
from stratsynth.adapters.reductions.amounts import Amount
from stratsynth.adapters.reductions.oracles import DescentOracle, net
from stratsynth.adapters.reductions.rates import Sizes
from stratsynth.adapters.sklearn import ReductionsClassifier
from stratsynth.errors import ReleaseError, Unsupported
from stratsynth.mechanisms import Public
from stratsynth.planning import plan

LEVELS = ("k", "l", "m")
SCHEMA = Schema(
    {
        "G": Categorical(levels=("a", "b")),
        "X": Numeric(lower=-1, upper=1, bins=2),
        "Z": Numeric(lower=-1, upper=1, bins=2),
        "D": Categorical(levels=LEVELS),
    }
)
BUDGET = Budget(20, 1e-6)
seeds = st.integers(0, 2**32)


def people(n, seed=0):
    """Three fifths have the first level, whatever X and Z are; the others go with them."""
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-1, 1, (2, n))
    scores = np.stack([1.2 + 0 * x, 2.5 * x, 2.5 * z]) + rng.gumbel(size=(3, n))
    return pd.DataFrame({"G": rng.choice(["a", "b"], n), "X": x, "Z": z, "D": np.array(LEVELS)[scores.argmax(axis=0)]})


def confusions(model, frame):
    """Mean numbers of records by label and prediction."""
    chances = model.probabilities(model.shown(frame))
    return np.array([chances[(level == frame.D).to_numpy()].sum(axis=0) for level in LEVELS])


def f_measures(table):
    return 2 * table.diagonal() / (table.sum(axis=0) + table.sum(axis=1))


def recalls(table):
    return table.diagonal() / table.sum(axis=1)


def test_a_mean_over_labels_weighs_the_rare_ones():
    frame = people(4000)
    plain, fair = (
        asked_by(Reductions(target="D", objective=objective), frame, schema=SCHEMA, budget=BUDGET)[0]
        for objective in ("error", "g_mean")
    )
    errors, means = zip(
        *(
            (1 - t.trace() / t.sum(), recalls(t).prod() ** (1 / 3))
            for t in (confusions(m, frame) for m in (plain, fair))
        ),
        strict=True,
    )
    assert errors[0] < errors[1]
    assert means[1] > means[0] + 0.03
    (goal,) = fair.facts["goals"]
    assert goal["value"] == pytest.approx(
        ((recalls(confusions(fair, frame)) + 0.05).prod()) ** (1 / 3) - 0.05, abs=5e-3
    )


@pytest.mark.parametrize(("name", "least"), [("worst_f", 0.56), ("micro_f", 0.6), ("h_mean", 0.55)])
def test_a_bound_from_below_is_met_where_it_can_be_and_stated_as_it_is(name, least):
    frame = people(4000)
    model, _ = asked_by(Reductions(target="D", constraints={name: least}), frame, schema=SCHEMA, budget=BUDGET)
    table = confusions(model, frame)
    micro = 2 * table.diagonal()[1:].sum() / (2 * table.sum() - table[0].sum() - table[:, 0].sum())
    truth = {"worst_f": f_measures(table).min(), "micro_f": micro, "h_mean": 3 / (1 / recalls(table)).sum()}[name]
    assert model.facts["goals"][1]["value"] == pytest.approx(truth, abs=5e-3)
    assert truth >= least - 0.02


def made_up(seed):
    rng = np.random.default_rng(seed)
    return Sizes(("a", "b"), rng.integers(50, 400, (2, 3)).astype(float), levels=LEVELS), rng


@given(seed=seeds, least=st.floats(0.05, 0.95))
def test_f_measures_hold_when_their_ratio_does_and_move_as_their_slopes_say(seed, least):
    sizes, rng = made_up(seed)
    table = (rng.dirichlet(np.ones(3), (2, 3)) * sizes.numbers[..., None]).ravel()
    whole = table.reshape(2, 3, 3).sum(axis=0)
    rest = 2 * whole.sum() - whole[0].sum() - whole[:, 0].sum()
    truth = {"worst_f": f_measures(whole).min(), "micro_f": 2 * whole.diagonal()[1:].sum() / rest}
    goal = Reductions(target="D", groups=["G"], constraints=dict.fromkeys(truth, least)).goal(sizes)
    for part in goal.constraints:
        assert part.measure(table) == pytest.approx(truth[part.name])
        if abs(truth[part.name] - least) > 1e-9:
            assert (part.value(table) <= 0) == (truth[part.name] >= least)
        slope = part.ratios.least(table)[1]
        step = 1e-4 * rng.normal(size=table.size)
        assert part.measure(table + step) - part.measure(table) == pytest.approx(slope @ step, rel=1e-2, abs=1e-9)
        assert part.noise(table, 2.0, goal.smoothing) == pytest.approx(2 * np.linalg.norm(slope))


@given(seed=seeds)
def test_rates_of_several_levels_are_those_of_counting(seed):
    sizes, rng = made_up(seed)
    table = rng.dirichlet(np.ones(3), (2, 3)) * sizes.numbers[..., None]
    wrong = table.sum(axis=2) - np.diagonal(table, axis1=1, axis2=2)
    assert sizes.losses == ("error", "missed k", "missed l", "missed m")
    assert sizes.rate("error", 1, table.ravel()) == pytest.approx(wrong[1].sum() / sizes.numbers[1].sum())
    assert sizes.rate("missed l", None, table.ravel()) == pytest.approx(wrong[:, 1].sum() / sizes.numbers[:, 1].sum())
    assert np.abs(sizes.row("missed m", 0)).max() == pytest.approx(0.5 / sizes.numbers[0, 2])
    assert sizes.rate("error", None, sizes.right) == pytest.approx(0)


def test_a_record_weighs_what_its_wrong_predictions_cost_more_than_the_right_one():
    task = Reductions(target="D", groups=["G"], features=["X"]).task(Public(SCHEMA))
    weights = np.zeros((2, 3, 3))
    weights[0, 0], weights[0, 1], weights[1, 2] = [0, 1, 3], [0.5, -0.5, 0.5], [0, 0, 1]
    program = DescentOracle(1).solve(
        task, Sizes(("a", "b"), np.full((2, 3), 9.0)), weights, np.zeros((2, 3)), Amount(1.0)
    )
    query = next(program).query
    assert (query.link, query.flips, query.thetas.shape) == ("softmax", None, (1, 2, 3))
    assert query.parts.tolist() == [[1.0, 0.5, 0.0], [0.0, 0.0, 0.0]]


def model_of(thetas, weights, **settings):
    task = Reductions(target="D", features=["X", "Z"]).task(Public(SCHEMA))
    return RandomisedClassifier(SCHEMA, task.design, "D", thetas, weights, 0, **settings)


def test_a_mixture_draws_each_level_as_often_as_its_probability_says():
    model, frame = model_of(net((3, 3), 4), np.array([0.4, 0.3, 0.2, 0.1])), people(30_000)
    chances = model.probabilities(model.shown(frame))
    assert chances.sum(axis=1) == pytest.approx(1)
    drawn = model.seeded(3).predict(model.shown(frame))
    for chance, level in zip(chances.T, LEVELS, strict=True):
        for likely in np.unique(chance.round(6)):
            here = np.isclose(chance, likely)
            assert (drawn[here] == level).mean() == pytest.approx(likely, abs=5 / np.sqrt(here.sum()))
    alone = model.without_chance()
    said = alone.probabilities(alone.shown(frame))
    assert set(np.unique(said)) == {0, 1}
    assert (alone.predict(alone.shown(frame)) == np.array(LEVELS)[said.argmax(axis=1)]).all()
    assert set(alone.table(alone.shown(frame))) == {"prediction", *(f"probability={level}" for level in LEVELS)}


def test_a_stored_model_predicts_the_same_and_another_shape_is_refused():
    model, frame = model_of(net((3, 3), 2), np.array([0.5, 0.5])), people(50)
    after = RandomisedClassifier.from_state(SCHEMA, model.state())
    assert (after.probabilities(after.shown(frame)) == model.probabilities(model.shown(frame))).all()
    wrong = replace(model, thetas=model.thetas[..., :2])
    with pytest.raises(ReleaseError, match="classifiers are damaged"):
        RandomisedClassifier.from_state(SCHEMA, wrong.state())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"constraints": {"equalized_odds": 0.1}, "groups": ["G"]},
            "equalized_odds is of a target of two levels, and D",
        ),
        ({"constraints": {"demographic_parity": 0.1}, "groups": ["G"]}, "fermi has a penalty"),
        ({"objective": "log_loss"}, "log_loss is of a target of two levels"),
        ({"objective": "false_positive_rate"}, "of two levels"),
        ({"method": "sampling", "candidates": "thresholds", "features": ["X"]}, "tell two levels apart"),
    ],
)
def test_goals_of_two_levels_are_refused_by_name(settings, words):
    with pytest.raises(Unsupported, match=words):
        plan(Reductions(target="D", **settings), SCHEMA, BUDGET, declared_size=100)


def test_by_default_the_target_is_the_last_of_two_levels():
    assert Reductions().task(Public(SCHEMA)).target == "G"
    assert Reductions(groups=["G"]).task(Public(TWO)).target == "D"


def test_the_estimator_fits_three_classes():
    frame = people(1500)
    model = ReductionsClassifier(
        epsilon=5, delta=1e-6, bounds=(-1, 1), classes=list(LEVELS), objective="h_mean", iterations=4, inner_steps=5
    )
    chances = model.fit(frame[["X", "Z"]].to_numpy(), frame.D.to_numpy()).predict_proba(frame[["X", "Z"]].to_numpy())
    assert chances.shape == (1500, 3)
    assert set(model.predict(frame[["X", "Z"]].to_numpy(), random_state=1)) <= set(LEVELS)
    assert [goal["name"] for goal in model.goals_] == ["h_mean"]
