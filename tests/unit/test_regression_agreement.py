"""The study's closed form is the shipped mechanism: one descent, and noise of one width, by every accounting."""

import math

import numpy as np
import pandas as pd
import pytest

from helpers.regressing import exactly
from stratsynth import Budget, Categorical, Numeric, Schema
from stratsynth.adapters import GroupRegression
from stratsynth.questions import Gradients, Losses, Moments
from stratsynth.questions.sums.base import GRID
from studies.regression.simulate import Bound, Steps, Way, descend, make_people, spread
from studies.regression.trials import FIRST, METHODS, RESIDUAL, Trial, errors, way

SIZES, STEPS, REACH = (400, 100), Steps(number=8, rate=0.2, radius=3.0), 8.0
SCHEMA = Schema(
    {
        "G": Categorical(levels=("a", "b")),
        **{f"X{i}": Numeric(lower=-1, upper=1, bins=2) for i in range(2)},
        "Y": Numeric(lower=-REACH, upper=REACH, bins=2),
    }
)
BUDGET = Budget(1, 1e-6)


@pytest.fixture(scope="module")
def people():
    slopes = np.array([[2.0, -1.0], [-1.5, 0.5]])
    return make_people(SIZES, slopes, (0.3, 0.6), np.random.default_rng(0))


def shipped(people, method, **more):
    """The mechanism on exact answers, in units of half the target's range, whose gradients are half the paper's."""
    mode, accounting, objective = method
    frame = pd.DataFrame(people.x[:, 1:], columns=["X0", "X1"]).assign(Y=people.y, G=np.repeat(["a", "b"], SIZES))
    how = GroupRegression(
        target="Y",
        features=["X0", "X1"],
        groups=["G"],
        sizes={"a": 400, "b": 100},
        sizes_citation="U.S. Census Bureau, 2020 Census, table P9",
        mode=mode,
        accounting=accounting,
        objective=objective,
        iterations=STEPS.number,
        rate=2 * STEPS.rate,
        clip=STEPS.clip / 2 / REACH,
        radius=STEPS.radius / REACH,
        momentum=0,
        tail=0,
        most_weight=1e9,
        **more,
    )
    return exactly(how, frame, schema=SCHEMA, budget=BUDGET)


def deviations(asked, kind):
    """The deviation of the noise in a sum of this kind, by group in the order they were asked; of the first step."""
    found = []
    for a, _ in asked:
        if isinstance(a.question.query, kind):
            blocks, scales = a.question.query.blocks(a.schema), a.question.scales(a.schema, BUDGET.neighbours)
            found.append([scale * block.clip / GRID for scale, block in zip(scales, blocks, strict=True)])
    return np.array(found)


def trial(people, **more):
    """The study's experiment on these people at that budget."""
    return Trial("agreement", "", people, people, BUDGET.zcdp().rho * (1 - 1e-9), STEPS, **more)


@pytest.mark.parametrize("method", METHODS)
def test_one_descent_and_noise_of_one_width(people, method):
    model, asked = shipped(people, method, loss_clip=RESIDUAL / REACH**2)
    rng, (mode, accounting, _) = np.random.default_rng(0), method
    chosen = way(trial(people), method, 1, rng)
    noise = deviations(asked, Gradients)[: 1 if accounting == "combined" else 2, 0]
    if mode == "DPSE":
        shares, start = errors(people, 1e12, accounting, 1, rng)  # as if without noise, as the mechanism's are here
        first = deviations(asked, Moments)[0]
        part = trial(people).rho * FIRST * (1 / 3 if accounting == "paper" else 1 / 2)
        assert first == pytest.approx([3 / math.sqrt(part), math.sqrt(3 / part)], rel=1e-4)
        (one, other) = deviations(asked, Losses)[:, 0]
        assert one == other == pytest.approx(RESIDUAL / REACH**2 / math.sqrt(2 * part), rel=1e-4)
        rhos = shares[0] / (1 if accounting == "paper" else shares.max()) * chosen.rho
        sigmas = STEPS.clip / np.sqrt(2 * rhos)
        assert noise * 2 * REACH == pytest.approx(sigmas, rel=1e-3)
    else:
        start = None
        v = (chosen.slopes / people.sizes)[:, None]
        ours = spread(chosen, v, STEPS.clip)[0]
        theirs = noise[0] * v.max() if accounting == "combined" else float(np.linalg.norm(v[:, 0] * noise))
        assert theirs * 2 * REACH == pytest.approx(ours, rel=1e-4)
    exact = Way(chosen.slopes, np.zeros((1, 2)), chosen.rho, start=start)
    (theta,) = descend(people, exact, STEPS, 1, rng)
    assert np.asarray(model.theta) * REACH == pytest.approx(theta, abs=2e-3)


@pytest.mark.parametrize("method", [METHODS[0], METHODS[2]])
def test_bounds_have_one_multiplier_and_losses_one_noise(people, method):
    bound = Bound(most=0.5, clip=4.0, multiplier=3.0)
    model, asked = shipped(
        people, method, loss_clip=bound.clip / REACH**2, loss_bounds={"": bound.most / bound.clip}, multiplier=3.0
    )
    rng = np.random.default_rng(0)
    chosen = way(trial(people, bound=bound), method, 1, rng)
    assert deviations(asked, Losses)[:2, 0] * REACH**2 == pytest.approx(chosen.losses[0], rel=1e-4)
    exact = Way(chosen.slopes, np.zeros((1, 2)), chosen.rho, np.zeros((1, 2)))
    (theta,) = descend(people, exact, STEPS, 1, rng, bound)
    # the mechanism divides its default rate by 1 + G, and takes a given one as it is
    other = Steps(STEPS.number, STEPS.clip, STEPS.rate * 4, STEPS.radius)
    (same,) = descend(people, exact, other, 1, rng, bound)
    assert np.asarray(model.theta) * REACH == pytest.approx(same, abs=2e-3)
    assert not np.allclose(theta, same, atol=0.01)
