"""AdaSSP by hand: least squares on exact moments, the ridge by its formula, rounds on residuals, and the charges."""

import math

import numpy as np
import pytest

import stratsynth as ss
from helpers.regressing import SCHEMA, exactly, people
from stratsynth.adapters import AdaSSP
from stratsynth.adapters.predictors.adassp import FAILURE
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms import Public
from stratsynth.questions import Gradients, Moments, NoisySum
from stratsynth.questions.sums.base import GRID

FEATURES = ("G", "X", "Z", "C")
BUDGET = ss.Budget(epsilon=1, delta=1e-6)
LARGE = ss.Budget(epsilon=20, delta=1e-6)


def design(frame):
    """Features as the design has them: the intercept, levels but the first, numbers scaled to [-1, 1]."""
    columns = [np.ones(len(frame)), frame.G == "b", frame.X, frame.Z / 5 - 1, frame.C == "q", frame.C == "r"]
    return np.column_stack(columns).astype(float)


def test_exact_moments_of_many_rows_give_least_squares():
    frame = people(20_000)
    model, asked = exactly(AdaSSP(target="Y", features=FEATURES), frame, budget=LARGE)
    expected = np.linalg.lstsq(design(frame), frame.Y.to_numpy(), rcond=None)[0]
    assert model.facts["ridge"] == 0
    assert np.allclose(model.theta, expected, atol=1e-3)
    assert [type(a.question.query) for a, _ in asked] == [Moments]


def answered(settings, answers):
    """The model of a program that is sent these values, one list of sums a question; each block has the noise 2."""
    program = AdaSSP(target="Y", features=["X"], **settings).steps(
        Public(SCHEMA, 100), BUDGET.zcdp(), np.random.default_rng(0)
    )
    asked = [next(program)]
    try:
        for sums in answers:
            blocks = tuple(NoisySum(np.rint(np.array(s) * GRID).astype(np.int64), 1 / GRID, 2.0) for s in sums)
            asked.append(program.send(blocks))
    except StopIteration as done:
        return done.value, asked
    raise AssertionError("the program asks more")


A, B = np.array([[100.0, 3.0], [3.0, 4.0]]), np.array([20.0, 8.0])
NEEDED = 2.0 * math.sqrt(2 * math.log(2 * 2**2 / FAILURE))


def test_the_ridge_lifts_the_smallest_eigenvalue_to_the_bound_of_the_noise():
    model, _ = answered({}, [(A[np.triu_indices(2)], B)])
    ridge = NEEDED - np.linalg.eigvalsh(A)[0]
    assert 0 < ridge < NEEDED
    assert model.facts["ridge"] == pytest.approx(ridge)
    assert np.allclose(model.theta, np.linalg.solve(A + ridge * np.eye(2), B), atol=1e-6)


def test_a_matrix_that_noise_made_indefinite_has_the_whole_ridge_and_a_bounded_inverse():
    noisy = np.array([[100.0, 3.0], [3.0, -50.0]])
    model, _ = answered({}, [(noisy[np.triu_indices(2)], B)])
    assert model.facts["ridge"] == pytest.approx(NEEDED)
    levels, vectors = np.linalg.eigh(noisy)
    lifted = np.maximum(levels + NEEDED, 2 * math.sqrt(2))
    assert np.allclose(model.theta, (vectors / lifted) @ vectors.T @ B, atol=1e-6)


def test_a_further_round_solves_the_same_equations_for_the_gradient():
    whole = 100 * np.eye(2)
    gradient = np.array([4.0, -6.0])
    model, asked = answered({"rounds": 2}, [(whole[np.triu_indices(2)], B), (gradient,)])
    assert model.facts["ridge"] == 0
    first, query = B / 100, asked[1].query
    assert type(query) is Gradients
    assert query.link == "linear"
    assert np.allclose(query.thetas[0], first, atol=1e-5)
    assert query.clip == pytest.approx(0.5 * math.sqrt(2))
    assert np.allclose(model.theta, first - gradient / 100, atol=1e-5)


def test_coefficients_keep_to_the_radius():
    model, _ = answered({"radius": 0.1}, [((100 * np.eye(2))[np.triu_indices(2)], B)])
    assert model.theta.tolist() == [0.1, pytest.approx(0.08)]


@pytest.mark.parametrize("rounds", [1, 4])
def test_the_whole_budget_is_charged_moments_by_share_and_rounds_alike(rounds):
    _, asked = exactly(AdaSSP(target="Y", features=FEATURES, rounds=rounds, share=0.4), people(50), budget=BUDGET)
    rho = BUDGET.zcdp().rho
    charges = [charge.amount for _, made in asked for charge in made]
    assert sum(charges) <= rho
    assert np.allclose(charges, [0.4 * rho, *[0.6 * rho / rounds] * rounds])


def test_sensitivities_are_those_of_clipped_moments():
    """Four columns: a row's features are no longer than sqrt 5, which the moments are clipped to."""
    _, asked = exactly(AdaSSP(target="Y", features=FEATURES), people(50))
    norm = math.sqrt(5)
    (square, product) = asked[0][1]
    assert [float(s) for s in square.sensitivity.values()] == pytest.approx([norm**2, math.sqrt(2) * norm**2])
    assert [float(s) for s in product.sensitivity.values()] == pytest.approx([norm, 2 * norm])


def test_a_release_predicts_says_its_ridge_and_has_no_intervals(seeded_noise, tmp_path):
    frame = people(2_000)
    table = ss.open_table(frame, schema=SCHEMA)  # no size is needed
    release = ss.fit(AdaSSP(target="Y", features=FEATURES, rounds=3), table, BUDGET)
    said = release.predict(frame)
    assert 1 - np.mean((said - frame.Y) ** 2) / frame.Y.var() > 0.1
    assert set(release.model.coefficients().status) == {"not_estimable"}
    release.save(tmp_path / "release")
    page = (tmp_path / "release" / "report.html").read_text(encoding="utf-8")
    assert "by AdaSSP in 3 rounds" in page
    assert "These coefficients have no intervals." in page
    again = ss.Release.load(tmp_path / "release")
    assert np.array_equal(again.predict(frame), said)
    assert "wang2018revisiting" in again.cite()


def test_a_plan_says_noise_and_ridge():
    plan = ss.plan(AdaSSP(target="Y", features=["X"]), SCHEMA, BUDGET, declared_size=1_000)
    assert "1 round, ridge at most" in str(plan)


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"target": "D"}, Unsupported, "a numeric column"),
        ({"target": "Y", "features": ["Y"]}, UsageError, "neither a feature"),
        ({"target": "Y", "features": ["NO"]}, Unsupported, "NO"),
        ({"rounds": 0}, UsageError, "rounds"),
        ({"share": 1.0}, UsageError, "share"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_anything_is_asked(settings, error, said):
    with pytest.raises(error, match=said):
        AdaSSP(**settings).price(Public(SCHEMA, 100), BUDGET)
