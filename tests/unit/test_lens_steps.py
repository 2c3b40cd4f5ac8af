"""The parts of one step's and one release's excessive risk: closed forms against draws, derivatives and each other."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from studies.lens.losses import Linear, Logistic, Tanh
from studies.lens.output import fitted, perturbed, spread
from studies.lens.people import People
from studies.lens.step import Step, decompose
from studies.lens.training import Training, descend, risks

LOSSES = {"linear": Linear(), "logistic": Logistic(), "tanh": Tanh(3)}


def people(rows=60, features=3, seed=0):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(rows), rng.normal(size=(rows, features - 1))])
    group = np.where(np.arange(rows) < rows // 3, 1, 0)
    x[group == 1] *= 2
    y = (x @ rng.normal(size=features) + rng.normal(size=rows) > 0).astype(float)
    return People(x, y, group, ("a", "b"))


def twice(rows=400, features=4, seed=0):
    """Two groups alike, but that the features of the second are twice as long."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, features))
    both = np.concatenate([x, 2 * x])
    return People(both, rng.normal(size=2 * rows), np.repeat([0, 1], rows), ("short", "long"))


def somewhere(loss, features=3, seed=1):
    return np.random.default_rng(seed).normal(size=loss.size(features))


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_and_hessians_are_the_derivatives_of_the_loss(name):
    loss, p = LOSSES[name], people(20)
    theta, h = somewhere(loss), 1e-5

    def total(t):
        return loss.values(p.x, p.y, t[:, None]).mean()

    moves = np.eye(len(theta)) * h
    local = loss.local(p.x, p.y, theta)
    slope = np.array([(total(theta + e) - total(theta - e)) / (2 * h) for e in moves])
    assert np.allclose(local.gradients.mean(axis=0), slope, atol=1e-7)

    def gradient(t):
        return loss.local(p.x, p.y, t).gradients.mean(axis=0)

    bend = np.array([(gradient(theta + e) - gradient(theta - e)) / (2 * h) for e in moves])
    hessian = loss.hessian(p.x, local)
    assert np.allclose(hessian, bend, atol=1e-6)
    traces = loss.traces(p.x, p.y, theta[:, None])
    assert traces.mean() == pytest.approx(np.trace(hessian))
    assert np.allclose(loss.norms(p.x, p.y, theta[:, None])[:, 0], np.linalg.norm(local.gradients, axis=1))


@pytest.mark.parametrize("name", LOSSES)
def test_many_models_are_pulled_as_each_alone(name):
    loss, p = LOSSES[name], people(40)
    thetas = np.column_stack([somewhere(loss, seed=s) for s in range(3)])
    clip = np.array([0.3, 1.0, math.inf])
    together = loss.pull(p.x, p.y, thetas, clip)
    for m, most in enumerate(clip):
        each = loss.local(p.x, p.y, thetas[:, m]).gradients
        norms = np.linalg.norm(each, axis=1, keepdims=True)
        assert np.allclose(together[:, m], (each * np.minimum(1, most / norms)).sum(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("runs", [400_000])
def test_long_a_step_costs_what_its_parts_say(runs):
    check_step(runs, within=0.01)


def test_a_step_costs_what_its_parts_say():
    check_step(40_000, within=0.04)


def check_step(runs, within):
    """On a quadratic, against drawing samples and noise."""
    p, loss = people(30), Linear()
    theta, step = somewhere(loss), Step(0.3, clip=4.0, noise=2.0, sampling=0.4)
    parts = decompose(loss, p, theta, step).set_index("group")
    local = loss.local(p.x, p.y, theta)
    norms = np.linalg.norm(local.gradients, axis=1, keepdims=True)
    clipped = local.gradients * np.minimum(1, step.clip / norms)
    rng = np.random.default_rng(0)
    coins = (rng.random((runs, p.size)) < step.sampling) / (step.sampling * p.size)
    noise = step.noise * rng.normal(size=(runs, len(theta)))
    before = p.means(loss.values(p.x, p.y, theta[:, None]))[:, 0]

    def change(each, noisy):
        found = theta[:, None] - step.rate * (coins @ each + noisy * noise).T
        total = [p.means(loss.values(p.x, p.y, part)).mean(axis=1) for part in np.array_split(found, 20, axis=1)]
        return np.mean(total, axis=0) - before

    plain, kept, private = change(local.gradients, 0), change(clipped, 0), change(clipped, 1)
    assert plain == pytest.approx(parts["plain"].to_numpy(), rel=within, abs=within)
    assert kept - plain == pytest.approx(parts["clipping"].to_numpy(), rel=within, abs=within)
    assert private - kept == pytest.approx(parts["noise"].to_numpy(), rel=within)
    assert parts["excess"].to_numpy() == pytest.approx((parts["clipping"] + parts["noise"]).to_numpy())


def test_traces_of_features_twice_as_long_are_four_times_as_large():
    """Exactly, for squared loss: and so is the part of noise."""
    p = twice()
    parts = decompose(Linear(), p, np.zeros(4), Step(0.1, clip=1.0, noise=0.5)).set_index("group")
    assert parts.trace["long"] / parts.trace["short"] == 4.0
    assert parts.noise["long"] / parts.noise["short"] == 4.0
    assert parts.trace["short"] == pytest.approx(2 * (p.x[:400] ** 2).sum(axis=1).mean())


def test_risk_under_output_perturbation_is_ordered_as_traces_are():
    p, rng = twice(), np.random.default_rng(3)
    theta = fitted(Linear(), p, 0.0)
    found = perturbed(Linear(), p, theta, 0.3, 6_000, rng)
    assert ((found.low <= found.closed) & (found.closed <= found.high)).all()
    assert list(found.sort_values("risk").group) == list(found.sort_values("trace").group)
    assert found.gap.iloc[-1] == 0
    assert found.closed[1] / found.closed[0] == 4.0


def test_noise_for_output_perturbation_is_the_least_there_is():
    """Balle and Wang's example: less than the classical formula; and their condition holds with equality."""
    sigma = spread(0.5, 1e-5, 1.0)
    assert sigma < math.sqrt(2 * math.log(1.25e5)) / 0.5
    from scipy.stats import norm

    delta = norm.cdf(0.5 / sigma - 0.5 * sigma) - math.exp(0.5) * norm.cdf(-0.5 / sigma - 0.5 * sigma)
    assert delta == pytest.approx(1e-5, rel=1e-5)


def test_the_optimum_has_no_gradient():
    p = people(200)
    theta = fitted(Logistic(), p, 0.01)
    slope = Logistic().local(p.x, p.y, theta).gradients.mean(axis=0) + 0.01 * theta
    assert np.abs(slope).max() < 1e-10


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_the_boundary_score_is_largest_where_classes_are_alike(classes):
    """Theorem 5: 1 - 1/K."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(classes), 1000)
    assert (1 - (p**2).sum(axis=1)).max() <= 1 - 1 / classes
    if classes == 2:
        assert Logistic().boundary(np.ones((1, 1)), np.zeros((1, 1)))[0, 0] == 0.5


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.5, 0.99), st.floats(0.001, 0.5))
def test_theorem_3_orders_the_parts_of_clipping(seed, share, clip):
    """Its condition asks for |g_a| many times |g_b|, so the rows of group b are made to have no residuals."""
    rng = np.random.default_rng(seed)
    rows, many = 100, round(100 * share)
    x = rng.normal(size=(rows, 2))
    group = (np.arange(rows) >= many).astype(int)
    y = np.where(group == 0, x @ [3.0, 1.0] + 5 * x[:, 0], 0.0)
    p = People(x, y, group, ("a", "b"))
    theta = np.zeros(2)
    beta = max(2 * np.linalg.eigvalsh(x[group == k].T @ x[group == k] / (group == k).sum())[-1] for k in (0, 1))
    found = decompose(Linear(), p, theta, Step(1 / beta, clip=clip)).set_index("group")
    pa, pb = many / rows, 1 - many / rows
    left = found.mean_gradient_norm["a"] * pa**2 / 2
    assume(left >= 2.5 * clip + found.mean_gradient_norm["b"] * (1 + pb + pb**2 / 2))
    assert found.clipping["a"] > found.clipping["b"]


def test_parts_over_a_training_add_up_and_hold_their_intervals():
    p, loss = people(200), Logistic()
    how = Training(0.5, 30, 50, every=10)
    found = risks(loss, p, np.zeros(3), 0.3, 2.0, how, runs=50, seed=0, samples=3)
    assert list(found.step.unique()) == [0, 10, 20, 30]
    assert np.allclose(found.excess, found.clipping + found.noise)
    last = found[found.step == 30]
    assert ((last.low < last.excess) & (last.excess < last.high)).all()
    assert (found[found.step == 0].excess == 0).all()


def test_without_clip_and_noise_nothing_is_lost():
    p = people(100)
    start = np.zeros((3, 2))
    how = Training(0.5, 10, 30)
    plain, quiet = descend(Logistic(), p, start, np.array([math.inf, 1e9]), np.zeros(2), how, np.random.default_rng(0))[
        -1
    ].T
    assert np.allclose(plain, quiet)
