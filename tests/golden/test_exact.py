"""The exact price of Gaussian noise: against a second implementation, many digits, and the discrete law itself."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss
from hypothesis import given
from hypothesis import strategies as st

from stratsynth import Budget
from stratsynth.accounting.exact import LEAST, SLACK, delta_of, epsilon_exact, narrowed, widened
from stratsynth.accounting.zcdp import epsilon_of, rho_of
from stratsynth.release.consistency import tradeoff

CASES = [(e, d) for e in (0.01, 0.1, 1.0, 10.0, 25.0) for d in (1e-5, 1e-9, 1e-30)]
RHO = {(1.0, 1e-9): 0.0165574152, (1.0, 1e-5): 0.0359257023, (0.1, 1e-9): 0.000198331962, (10.0, 1e-9): 1.18253335}
"""Half of mu squared, to nine digits, by mpmath."""


def curve(epsilon, mu):
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("promise", "rho"), RHO.items(), ids=str)
def test_figures_are_those_of_the_closed_form(promise, rho):
    assert rho_of(*promise, epsilon_exact) == pytest.approx(rho, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_a_second_implementation_agrees(epsilon, delta):
    mu = math.sqrt(2 * rho_of(epsilon, delta, epsilon_exact))
    theirs = GaussianPrivacyLoss(1 / mu, adjacency_type=AdjacencyType.ADD)
    assert theirs.get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=1e-4)
    assert delta_of(epsilon, mu) == pytest.approx(float(theirs.get_delta_for_epsilon(epsilon)), rel=1e-6)


@given(st.floats(1e-3, 25), st.floats(1e-30, 1e-2))
def test_nothing_is_overstated_in_many_digits(epsilon, delta):
    rho = rho_of(epsilon, delta, epsilon_exact)
    with mpmath.workdps(60):
        slack = mpmath.mpf(SLACK) * rho
        assert mpmath.exp(slack) * curve(mpmath.mpf(epsilon) - slack, mpmath.sqrt(2 * mpmath.mpf(rho))) <= delta


TINY = [(2.0215262020893416e-26, 1.5631373637216792e-71), (1.7460399634983407e-25, 2.4803041134672057e-91)]
LARGE = [(351.0, 1e-32), (378.195240112625, 2.1720170669930515e-28), (461.71845227492736, 2.5465663645491194e-16)]


@pytest.mark.parametrize(("rho", "delta"), [*TINY, *LARGE])
def test_nothing_is_understated_at_the_ends_of_what_floats_tell_apart(rho, delta):
    epsilon = epsilon_exact(rho, delta)
    with mpmath.workdps(120):
        slack = mpmath.mpf(SLACK) * mpmath.mpf(rho)
        spent = mpmath.exp(slack) * curve(mpmath.mpf(epsilon) - slack, mpmath.sqrt(2 * mpmath.mpf(rho)))
        assert spent <= mpmath.mpf(delta)


@given(st.floats(1e-6, 20), st.floats(1e-30, 1e-2))
def test_the_curve_is_below_that_of_zcdp_and_rises(rho, delta):
    assert epsilon_exact(rho, delta) <= epsilon_of(rho, delta) + 2 * SLACK * rho + 1e-9
    assert epsilon_exact(rho, delta) < epsilon_exact(rho * 1.01, delta)


def test_no_rho_costs_nothing():
    assert epsilon_exact(0.0, 1e-9) == 0


def discrete(sigma, far):
    """Probabilities of the discrete Gaussian on -far, ..., far, as exactly as floats have them."""
    weights = np.exp(-(np.arange(-far, far + 1.0) ** 2) / (2 * sigma**2))
    return weights / math.fsum(weights)


@pytest.mark.parametrize("s", [LEAST, 5.0, 10.13, 40.0])
def test_discrete_noise_is_continuous_noise_and_what_follows_from_it(s):
    """Continuous noise s, then the discrete Gaussian of variance r^2 around it, by quadrature and sums."""
    r2 = 1 + s / 100
    far, step = math.ceil(9 * s), 1 / 32
    w = np.arange(-far - 10, far + 10, step)
    density = np.exp(-(w**2) / (2 * s * s)) * step / (s * math.sqrt(2 * math.pi))
    theta = sum(np.exp(-((np.rint(w) + j - w) ** 2) / (2 * r2)) for j in range(-16, 17))
    law = discrete(widened(s), far + 40)
    bound = 2 * 2.01 * math.exp(-2 * math.pi**2 * r2)
    for k in range(0, math.ceil(4 * s), max(1, round(s / 4))):
        made = math.fsum(density * np.exp(-((k - w) ** 2) / (2 * r2)) / theta)
        assert abs(math.log(made / law[far + 40 + k])) <= bound + 1e-12
    assert 2 * bound * 2 * s * s <= SLACK


@pytest.mark.parametrize("s", [LEAST, 6.0, 15.0])
@pytest.mark.parametrize("moved", [1, 2, 7])
def test_discrete_noise_keeps_to_the_curve(s, moved):
    """Sums over the integers of what one law has beyond exp(epsilon) times the other."""
    law = discrete(widened(s), math.ceil(25 * s))
    one, other = np.pad(law, (0, moved)), np.pad(law, (moved, 0))
    mu = moved / s
    for epsilon in np.linspace(0.0, mu * 6, 13):
        lost = math.fsum(np.maximum(one - math.exp(epsilon) * other, 0))
        assert lost <= math.exp(SLACK * mu * mu) * delta_of(epsilon - SLACK * mu * mu, mu) + 1e-14


def test_discrete_noise_of_the_continuous_width_does_not_keep_to_it():
    """The variance r^2 on top is needed: at the same variance the discrete law loses more somewhere."""
    s = LEAST
    law = discrete(s, math.ceil(25 * s))
    one, other = np.pad(law, (0, 1)), np.pad(law, (1, 0))
    beyond = [
        math.fsum(np.maximum(one - math.exp(e) * other, 0)) / delta_of(e, 1 / s) for e in np.linspace(0.0, 1.5, 200)
    ]
    assert max(beyond) > 1.001


def test_two_cells_of_an_exchange_keep_to_the_curve():
    s = LEAST
    law = discrete(widened(s), math.ceil(16 * s))
    one, other = np.pad(law, (0, 1)), np.pad(law, (1, 0))
    here, there = np.outer(one, other), np.outer(other, one)
    mu = math.sqrt(2) / s
    for epsilon in (0.1, 0.5, 1.0, 1.5):
        lost = float(np.maximum(here - math.exp(epsilon) * there, 0).sum())
        assert lost <= math.exp(SLACK * mu * mu) * delta_of(epsilon - SLACK * mu * mu, mu) + 1e-14


@given(st.floats(LEAST, 1e12))
def test_narrowing_undoes_widening_and_never_by_more(s):
    assert s <= narrowed(widened(s)) <= s * (1 + 1e-13)


@given(st.floats(1e-4, 5), st.floats(1e-4, 0.999))
def test_no_test_of_the_discrete_law_beats_the_stated_errors(rho, alpha):
    """The best threshold test between two means that a sum of unit noise tells apart by mu."""
    with mpmath.workdps(30):
        mu = mpmath.sqrt(2 * mpmath.mpf(rho))
        threshold = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(alpha))
        assert tradeoff(alpha, rho, 1e-15) <= mpmath.ncdf(threshold - mu)
    assert tradeoff(alpha, rho, 1e-15) >= float(mpmath.ncdf(threshold - mu)) - 1e-4


def test_an_exact_budget_has_more_rho_and_nobody_takes_the_smaller_of_two():
    for epsilon, delta in CASES:
        plain, exact = (Budget(epsilon, delta, accounting=a).zcdp() for a in ("zcdp", "exact"))
        assert (plain.currency, exact.currency) == ("zcdp", "exact")
        assert exact.amount > plain.amount
        assert plain.amount == pytest.approx(rho_of(epsilon, delta * (1 - 1e-6)), rel=1e-12)
