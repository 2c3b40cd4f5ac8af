"""The bound on rho, where a mechanism chooses as well as counts; and mechanisms that make strata themselves."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from helpers.audits import judged_twice
from stratsynth.accounting.budget import Budget
from stratsynth.evaluation.audit import audit_mechanism
from stratsynth.evaluation.audit import estimators as est
from stratsynth.evaluation.audit.claims import WITHOUT_CHOICES, claimed
from stratsynth.evaluation.audit.mechanism import QUICK
from stratsynth.evaluation.audit.pair import NeighbouringTables, recorded
from stratsynth.mechanisms import make

BUDGET = Budget(3, 1e-6)


@pytest.mark.parametrize("mu", [0.01, 0.17, 1.0, 3.0])
def test_a_test_of_gaussian_noise_shows_its_part_of_rho_and_never_more(mu):
    rate = stats.norm.sf(mu / 2)
    found = est.root_of_rho(rate, rate)
    assert found <= mu
    assert found == pytest.approx(mu * math.sqrt(2 / math.pi), rel=0.02 + mu**2 / 10)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
def test_no_choice_shows_more_than_it_is_charged(epsilon):
    """Of two candidates, one of which a record raises and the other lowers; charged epsilon^2 / 8 of rho."""
    odds = 1 / (1 + math.exp(epsilon / 2))
    assert est.root_of_rho(odds, odds) <= math.sqrt(2 * epsilon**2 / 8)


def test_no_evidence_is_zero_and_more_errors_are_less():
    assert est.root_of_rho(0.5, 0.5) == est.root_of_rho(0.9, 0.8) == est.root_of_rho(1.0, 1.0) == 0
    found = est.root_of_rho(np.array([0.1, 0.2, 0.3, 0.4]), np.full(4, 0.3))
    assert all(a > b for a, b in pairwise(found))


@pytest.fixture(scope="module")
def mst():
    """A recorded run with choices, and its worst neighbour."""
    world, first, base = recorded(lambda world: make("mst", {}), None, BUDGET)
    return first, NeighbouringTables.worst(world, first, base, BUDGET, 20)


def test_claims_are_of_everything_and_of_what_is_gaussian(mst):
    first, _ = mst
    whole, gaussian = claimed(first.charges, BUDGET)
    assert (whole.unit, gaussian.unit, gaussian.score) == ("sqrt(2 rho)", "mu", WITHOUT_CHOICES)
    assert whole.claim == pytest.approx(math.sqrt(2 * BUDGET.zcdp().rho), rel=1e-6)
    assert gaussian.claim < whole.claim


def test_laws_are_no_further_apart_than_they_cost(mst):
    _, pair = mst
    assert 0 < pair.noisy < pair.information <= float(pair.cost) * (1 + 1e-9)


def test_the_score_without_choices_is_that_of_the_tables(mst):
    _, pair = mst
    one, two = pair.draw(None, 2000)
    assert one.shape == (2, 2000)
    mu2 = (
        2 * pair.noisy
    )  # the log-likelihood ratio is N(-mu^2 / 2, mu^2) on one table and N(mu^2 / 2, mu^2) on the other
    for scores, middle in ((one[1], -mu2 / 2), (two[1], mu2 / 2)):
        assert np.mean(scores) == pytest.approx(middle, abs=6.5 * math.sqrt(mu2 / 2000))
        assert np.var(scores) == pytest.approx(mu2, rel=0.2)
    assert np.var(one[0]) > np.var(one[1])


def test_a_mechanism_that_makes_strata_itself_is_audited():
    def build(world):
        return make("pooled", {"base": "mst", "by": world.by, "weights": world.weights})

    report = judged_twice(lambda: audit_mechanism(build, runs=1500, tables=0, seconds=1e9))
    (found,) = report.audits
    assert report.passed, report.to_text()
    assert found.what.startswith("pooled mst by")
    assert found.verdict == "within"


def test_a_network_is_audited_with_its_choices():
    _, first, _ = recorded(lambda world: make("gem", QUICK["gem"]), None, BUDGET)
    assert {charge.kind for charge in first.charges} == {"counts", "choose"}
