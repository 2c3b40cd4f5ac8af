"""The audit's estimators against closed forms, and against the power table of the design notes (trust.md)."""

import math

import numpy as np
import pytest
from scipy import stats

from stratsynth.evaluation.audit import estimators as est
from stratsynth.evaluation.audit.estimators import AuditErrors
from stratsynth.evaluation.audit.harness import Point

RUNS = 1000


def mu_bound(found, alpha):
    return Point(claim=0.0, threshold=0.0).bound(found, alpha)


def epsilon_bound(found, delta, alpha):
    return Point(claim=0.0, threshold=0.0, delta=delta).bound(found, alpha)


@pytest.mark.parametrize("alpha", [0.05, 1e-4])
@pytest.mark.parametrize("count", [0, 1, 17, 500, 998])
def test_upper_bound_solves_its_equation(count, alpha):
    p = est.upper(count, RUNS, alpha)
    assert stats.binom.cdf(count, RUNS, p) == pytest.approx(alpha, rel=1e-6)


def test_bounds_at_the_ends():
    assert est.upper(RUNS, RUNS, 0.05) == 1
    assert est.upper(0, RUNS, 0.05) == pytest.approx(1 - 0.05 ** (1 / RUNS))


def test_bounds_take_arrays():
    counts = np.array([0, 17, RUNS])
    assert list(est.upper(counts, RUNS, 0.05)) == [est.upper(int(c), RUNS, 0.05) for c in counts]


@pytest.mark.parametrize("p", [0.001, 0.3, 0.9])
def test_bounds_hold_as_often_as_they_say(p):
    """Exactly: the probability, over the binomial law, that the bound is below the truth."""
    counts = np.arange(RUNS + 1)
    wrong = stats.binom.pmf(counts, RUNS, p)[est.upper(counts, RUNS, 0.05) < p].sum()
    assert wrong <= 0.05
    assert wrong > 0.01 or p == 0.001  # and they are not far too careful


def test_mu_of_the_exact_error_rates_is_mu():
    for mu in (0.2, 1.0, 3.0):
        for t in (-1.0, 0.5, 2.0):
            assert est.mu_of(stats.norm.sf(t), stats.norm.cdf(t - mu)) == pytest.approx(mu)


def test_epsilon_of_the_exact_error_rates_of_randomised_response_is_epsilon():
    lie = 1 / (1 + math.exp(2.0))
    assert est.epsilon_of_errors(lie, lie, 0.0) == pytest.approx(2)
    assert est.epsilon_of_errors(lie, lie, 0.1) == pytest.approx(math.log((1 - lie - 0.1) / lie))


def test_no_evidence_is_zero_not_less():
    assert est.mu_of(0.9, 0.9) == est.epsilon_of_errors(0.9, 0.9, 0.0) == est.epsilon_of_errors(0.5, 0.2, 0.9) == 0
    assert mu_bound(AuditErrors(RUNS, RUNS, RUNS), 0.05) == epsilon_bound(AuditErrors(RUNS, RUNS, RUNS), 0.0, 0.05) == 0


def test_a_test_that_is_always_right_is_bounded_by_the_number_of_runs():
    assert epsilon_bound(AuditErrors(0, 0, RUNS), 0.0, 0.05) == pytest.approx(
        math.log((1 - 0.00368) / 0.00368), rel=0.01
    )


def test_a_score_at_the_threshold_says_neighbour():
    assert est.errors(np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.0, 0.0]), 1.0) == AuditErrors(2, 2, 3)


def test_scores_that_differ_by_floating_point_only_are_equal():
    """The sum 0.1 + 0.2 is not 0.3: a test at 0.3 would tell apart what is the same."""
    assert est.errors(np.array([0.3, 0.3]), np.array([0.1 + 0.2, 0.3]), 0.1 + 0.2) == AuditErrors(2, 0, 2)
    assert est.errors(np.array([0.1 + 0.2]), np.array([0.3]), 0.3) == AuditErrors(1, 0, 1)


def test_both_tables_need_as_many_runs():
    with pytest.raises(ValueError, match="same number"):
        est.errors(np.zeros(3), np.zeros(4), 0.0)


def test_jitter_reaches_every_error_rate_and_stays_within_the_lattice_spacing():
    scores = np.repeat([0.0, 1.0], 50_000)
    moved = est.jittered(scores, 1.0, np.random.default_rng(1)) - scores
    assert np.abs(moved).max() <= 0.5
    assert (moved + scores >= 0.25).mean() == pytest.approx(0.625, abs=0.01)


@pytest.mark.parametrize(
    ("mu", "runs", "share", "half"),
    [
        (0.1820, 1_000, 0.21, 0.57),
        (0.1820, 2_000, 0.42, 1),
        (0.1820, 20_000, 0.82, 1),
        (0.1820, 100_000, 0.93, 1),
        (0.2367, 1_000, 0.31, 0.85),
        (0.2367, 5_000, 0.71, 1),
        (0.2367, 20_000, 0.86, 1),
        (0.5325, 1_000, 0.71, 1),
        (0.5325, 5_000, 0.87, 1),
        (0.6477, 2_000, 0.82, 1),
        (1.848, 1_000, 0.89, 1),
    ],
)
def test_power_table(mu, runs, share, half):
    """The mean of the bound as a share of mu, and how often half the noise is caught: trust.md section 3."""
    rng, repeats = np.random.default_rng(7), 150

    def bounds(true):
        rate = stats.norm.sf(true / 2)
        drawn = (rng.binomial(runs, rate, repeats) for _ in range(2))
        return mu_bound(AuditErrors(*drawn, runs), 0.05)

    found = bounds(mu)
    assert np.mean(found) / mu == pytest.approx(share, abs=0.08)
    assert np.mean(found > mu) <= 0.05
    # the table's figures are of a few repeats too
    assert np.mean(bounds(2 * mu) > mu) == pytest.approx(half, abs=0.2 if half < 1 else 0.06)


def test_three_quarters_of_the_noise_is_caught_as_the_table_says():
    rng, runs, mu = np.random.default_rng(7), 100_000, 0.1820
    rate = stats.norm.sf(mu / 0.75 / 2)
    found = mu_bound(AuditErrors(*(rng.binomial(runs, rate, 300) for _ in range(2)), runs), 0.05)
    assert (found > mu).all()


def test_the_bound_from_two_normal_samples_is_close_below_their_mu():
    rng = np.random.default_rng(7)
    one, two = rng.normal(size=20_000), 1 + rng.normal(size=20_000)
    assert 0.9 < mu_bound(est.errors(one, two, 0.5), 0.05) < 1


def test_the_bound_at_a_tiny_delta_misses_what_mu_finds():
    """COINPRESS with half its noise (trust.md section 0): epsilon at 1e-6 stays below its claim, mu does not."""
    rng, claim = np.random.default_rng(7), 4.887
    one, two = rng.normal(size=20_000), 2 + rng.normal(size=20_000)
    assert all(epsilon_bound(est.errors(one, two, t), 1e-6, 0.05) < claim for t in (1.0, 2.0, 3.0))
    assert mu_bound(est.errors(one, two, 1.0), 1e-4) > 1.8
