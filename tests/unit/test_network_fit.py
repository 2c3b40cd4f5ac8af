"""Group regression of a network: by hand, against a regression, and at what cost; and its refusals."""

import numpy as np
import pandas as pd
import pytest

from helpers.regressing import SCHEMA, exactly, people
from helpers.small import even
from stratsynth import Budget, Categorical, Schema, Stratified, fit, open_table
from stratsynth.accounting.budget import Neighbours
from stratsynth.accounting.charges import Spending
from stratsynth.adapters import GroupRegression
from stratsynth.adapters.predictors import Network
from stratsynth.errors import UsageError
from stratsynth.mechanisms import prepare
from stratsynth.models import ByGroup
from stratsynth.planning.foresee import plan
from stratsynth.questions import Curvature, NetworkGradients, NetworkLosses

SIZES = {"sizes": {"a": 320, "b": 80}, "sizes_citation": "by hand"}
ACCOUNTINGS = ("combined", "parallel", "paper")


def network(**settings):
    common = {"target": "D", "features": ["X", "Z"], "groups": ["G"], "model": "network", "hidden": 4, "iterations": 3}
    return GroupRegression(**{**common, **settings})


def crossed(n, seed=0):
    """D goes with X in one group and against it in the other, which no regression on G and X tells."""
    return people(n, seed, share=0.5, slopes=(1.0, -1.0))


def layers(mechanism, frame):
    """The first weights of `exactly`, whose generator has the seed 0."""
    task = mechanism.network(prepare(mechanism, SCHEMA, Budget(1, 1e-9), len(frame)).public, Budget(1, 1e-9))
    return task, task.start(np.random.default_rng(0))


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("objective", ["pooled", "balanced"])
def test_steps_are_clipped_gradient_descent_by_hand(accounting, objective):
    frame, clip, rate = people(400), 0.7, 0.9
    sizes = frame.G.value_counts()
    how = network(
        accounting=accounting,
        objective=objective,
        clip=clip,
        rate=rate,
        iterations=2,
        momentum=0.0,
        tail=0.0,
        sizes={g: int(sizes[g]) for g in "ab"},
        sizes_citation="by hand",
    )
    task, theta = layers(how, frame)
    x, y = np.column_stack([np.ones(400), frame.X, frame.Z / 5 - 1]), (frame.D == "yes").to_numpy(float)
    weight = {"pooled": {"a": 1 / 400, "b": 1 / 400}, "balanced": {g: 1 / (2 * sizes[g]) for g in "ab"}}[objective]
    for _ in range(2):
        hidden, output = task.layers(theta)
        h = np.tanh(x @ hidden.T)
        r = 1 / (1 + np.exp(-(h @ output[:-1, 0] + output[-1, 0]))) - y
        inner = (r[:, None] * output[:-1, 0] * (1 - h**2))[:, :, None] * x[:, None, :]
        rows = np.column_stack([inner.reshape(400, -1), r[:, None] * h, r])
        rows *= np.minimum(1, clip / np.linalg.norm(rows, axis=1))[:, None] * frame.G.map(weight).to_numpy()[:, None]
        theta = theta - rate * rows.sum(axis=0)
    model, asked = exactly(how, frame)
    assert isinstance(model, Network)
    assert np.allclose(np.concatenate([model.hidden.ravel(), model.output.ravel()]), theta, atol=2e-3)
    assert {type(a.question.query) for a, _ in asked} == {NetworkGradients}
    assert len(asked) == (2 if accounting == "combined" else 4)


def test_it_learns_what_no_regression_on_the_same_features_does():
    frame, right = crossed(2000), {}
    for model in ("logistic", "network"):
        clip = {} if model == "network" else {"clip": 10.0}
        how = network(model=model, features=["G", "X"], groups=[], hidden=8, iterations=300, **clip)
        told, _ = exactly(how, frame)
        right[model] = (told.predict(told.shown(frame)) == frame.D).mean()
    assert right["logistic"] < 0.6
    assert right["network"] > 0.9


def test_a_group_as_feature_means_the_same_however_groups_are_asked():
    """Inside a group its level's weight is part of each hidden unit's constant."""
    common = {"features": ["G", "X", "C"], "iterations": 12, "clip": 8.0, "objective": "balanced"}
    found = [exactly(network(accounting=a, **common), crossed(500))[0] for a in ACCOUNTINGS]
    for other in found[1:]:
        assert np.allclose(found[0].hidden, other.hidden, atol=5e-3)
        assert np.allclose(found[0].output, other.output, atol=5e-3)


@pytest.mark.parametrize("accounting", ["paper", "parallel"])
def test_budgets_are_tailored_by_the_residual_errors_of_a_logistic_regression(accounting):
    """D follows X in group a and is a coin in b; the precursor's Newton steps come first, on everybody."""
    frame = people(3000, share=0.5, slopes=(3.0, 0.0))
    how = network(mode="DPSE", accounting=accounting, iterations=50, stage_one=0.5)
    model, asked = exactly(how, frame, budget=Budget(25, 1e-9))
    a, b = (group["share"] for group in model.facts["groups"])
    assert a + b == pytest.approx(1)
    assert b > 2 * a
    queries = [(one.path, type(one.question.query), c) for one, c in asked if hasattr(one.question, "query")]
    assert {path for path, kind, _ in queries if kind is Curvature} == {()}
    sigma = {path[0].label: c[0].details["sigma"] for path, kind, c in queries if kind is NetworkGradients}
    assert sigma["a"] / sigma["b"] == pytest.approx((b / a) ** 0.5, rel=1e-6)
    assert model.facts["rate"] == pytest.approx(8 / 5)


@pytest.mark.parametrize("mode", ["DPSE", "DPNoSE"])
@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("more", [{}, {"loss_bounds": {"": 0.3}}, {"objective": "maximum"}])
def test_no_way_of_counting_spends_more_than_the_fit_has(accounting, mode, more):
    if mode == "DPSE" and accounting == "combined":
        return
    budget = Budget(1, 1e-9)
    _, asked = exactly(network(accounting=accounting, mode=mode, **SIZES, **more), people(100), budget=budget)
    charges = [charge for _, each in asked for charge in each]
    part = float(Spending(Neighbours.ADD_REMOVE, charges).spent()) / budget.zcdp().amount
    assert part <= 1
    if accounting != "paper" and mode == "DPNoSE":
        assert part == pytest.approx(1, rel=1e-6)
    kinds = {type(one.question.query) for one, _ in asked}
    assert (NetworkLosses in kinds) == bool(more)


def test_more_than_two_levels_are_told_apart():
    frame = people(3000)
    frame["C"] = np.select([frame.X < -0.3, frame.X > 0.3], ["p", "q"], "r")  # r lies between: not by one threshold
    how = network(target="C", features=["X"], groups=[], hidden=8, iterations=300, rate=1.5)
    told, _ = exactly(how, frame)
    assert (told.predict(told.shown(frame)) == frame.C).mean() > 0.9
    assert np.allclose(told.probabilities(told.shown(frame)).sum(axis=1), 1)
    assert list(told.table(told.shown(frame)))[1:] == ["probability=p", "probability=q", "probability=r"]


def test_the_seed_reaches_the_first_weights_and_nothing_else():
    """First weights are made from the user's seed alone: two fits on other rows start alike."""
    how = network(iterations=1, rate=1e-9, tail=0.0)
    one, other = (
        fit(how, open_table(people(60, s), schema=SCHEMA, declared_size=60), Budget(1, 1e-6), seed=3).model
        for s in (0, 1)
    )
    third = fit(how, open_table(people(60), schema=SCHEMA, declared_size=60), Budget(1, 1e-6), seed=4).model
    assert np.allclose(one.hidden, other.hidden, atol=1e-5)
    assert not np.allclose(one.hidden, third.hidden, atol=1e-2)


def test_a_plan_says_how_it_descends():
    found = plan(network(), SCHEMA, Budget(1, 1e-9), declared_size=400)
    assert "3 steps, rate 1.6, clip 1.12" in str(found)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hidden": 0}, "hidden"),
        ({"hidden": 1025}, "hidden"),
        ({"hidden": 2.5}, "hidden"),
        ({"stage_one": 0.2}, "only tailors budgets"),
        ({"target": "Y"}, "categorical"),
        ({"mode": "DPSE"}, "cannot be tailored"),
        ({"accounting": "smooth"}, "not private"),
        ({"features": ["X", "D"]}, "neither a feature"),
        ({"target": "C", "hidden": 1000}, "fewer hidden units"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(settings, words):
    with pytest.raises(UsageError, match=words):
        prepare(network(**settings), SCHEMA, Budget(1, 1e-9), 100)


@pytest.mark.parametrize(
    "rows",
    [
        people(0),
        people(1),
        people(40).assign(G="a"),
        people(40).assign(X=0.5),
        people(40).assign(D="no"),
        people(40).assign(Z=1e308),
    ],
    ids=["nobody", "one", "an empty group", "constant", "one class", "far out"],
)
@pytest.mark.parametrize("how", [{"mode": "DPSE", "accounting": "parallel"}, {"loss_bounds": {"": 0.2}}])
def test_bad_data_give_a_model_all_the_same(rows, how):
    release = fit(network(**how), open_table(rows, schema=SCHEMA, declared_size=40), Budget(1, 1e-6))
    assert set(release.predict(people(5))) <= {"no", "yes"}


def test_without_features_it_predicts_the_commoner_level():
    schema = Schema({"D": SCHEMA.column("D"), "C": Categorical(levels=("only",))})
    frame = pd.DataFrame({"D": ["yes"] * 40 + ["no"] * 10, "C": "only"})
    told, _ = exactly(network(features=[], groups=[], iterations=100, clip=5.0), frame, schema=schema)
    assert set(told.predict(told.shown(frame))) == {"yes"}
    assert told.probabilities(told.shown(frame))[0, 1] == pytest.approx(0.8, abs=0.02)


def test_a_network_in_each_stratum():
    how = Stratified(network(groups=["C"], objective="balanced"), ["G"], even(SCHEMA, "G"))
    release = fit(how, open_table(people(200), schema=SCHEMA, declared_size=200), Budget(1, 1e-6))
    assert isinstance(release.model, ByGroup)
    frame = people(20, 1)
    found = release.predictions(frame).to_pandas()
    assert list(found.columns) == ["row", "prediction", "probability=no", "probability=yes"]
    assert pd.Series(found["probability=no"] + found["probability=yes"]).to_numpy() == pytest.approx(1)
