"""Cost of a change of one value of a record, on a Poisson sample: by quadrature, against the accountant.

A row takes part with probability q, and its clipped vector then goes from v to v', |v| and |v'| <= 1; everything else
about the sample has the same law on both sides. Given the other rows' sum, the answers are (1 - q) N(0, z^2) +
q N(v, z^2) and the same with v': the pair with v = 1 and v' = -1 dominates, and is that of an exchanged record. Adding
or removing a record is another pair, and a cheaper one.

Paper 004 protects the sensitive attribute alone, and adds the gradients of the loss, which need no protection then, as
they are. These are part of the vector, and of no bounded length: v and v' lie far from 0, who takes part shows, and
epsilon is hardly amplified by sampling.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm

from stratsynth.accounting.budget import Neighbours
from stratsynth.accounting.sampled import epsilon_sampled

GRID = np.linspace(-40, 40, 40_001)
WIDTH = GRID[1] - GRID[0]


def mixture(q, v, z):
    """The density of one answer on the grid."""
    return (1 - q) * norm.pdf(GRID, 0, z) + q * norm.pdf(GRID, v, z)


def delta_of(epsilon, p, q):
    """The hockey stick divergence of two densities on the grid."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * WIDTH)


def epsilon_by_quadrature(delta, p, q):
    """The least epsilon, by halving."""
    low, high = 0.0, 30.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, p, q) > delta else (low, middle)
    return high


SLOW = [pytest.param(*one, marks=pytest.mark.slow) for one in [(0.01, 1.0), (0.1, 1.0), (1.0, 4.0)]]
SETTINGS = [(0.1, 3.0), (0.5, 2.0), *SLOW]


@pytest.mark.parametrize(("q", "z"), SETTINGS)
@pytest.mark.parametrize("delta", [1e-5, 1e-3])
def test_one_step_by_quadrature(q, z, delta):
    by_hand = epsilon_by_quadrature(delta, mixture(q, 1, z), mixture(q, -1, z))
    found = epsilon_sampled(z, q, 1, delta, Neighbours.REPLACE)
    assert by_hand <= found + 1e-6  # connect-the-dots bounds from above
    assert found == pytest.approx(by_hand, abs=2e-4)


@pytest.mark.parametrize(("q", "z"), [(0.3, 2.0), pytest.param(0.1, 1.0, marks=pytest.mark.slow)])
def test_two_steps_by_quadrature(q, z):
    """Losses of two independent answers add up: the hockey stick divergence of the products, on a coarser grid."""
    x = np.linspace(-12 * z, 12 * z, 1501)
    step, delta = x[1] - x[0], 1e-3
    p, r = ((1 - q) * norm.pdf(x, 0, z) + q * norm.pdf(x, v, z) for v in (1, -1))
    both, other = np.outer(p, p), np.outer(r, r)
    found = epsilon_sampled(z, q, 2, delta, Neighbours.REPLACE)
    assert np.maximum(both - math.exp(found) * other, 0).sum() * step**2 == pytest.approx(delta, rel=0.01)


@pytest.mark.parametrize(("q", "z"), SETTINGS[:4])
def test_no_other_change_within_the_clip_costs_more(q, z):
    """Pairs of ends on a line, in both directions."""
    for delta in (1e-5, 1e-2):
        most = epsilon_sampled(z, q, 1, delta, Neighbours.REPLACE)
        for v in (-1.0, -0.5, 0.5):
            for other in (-0.5, 0.0, 1.0):
                assert epsilon_by_quadrature(delta, mixture(q, v, z), mixture(q, other, z)) <= most + 1e-6


@pytest.mark.parametrize(("q", "z"), SETTINGS)
def test_the_price_of_an_added_record_would_be_too_low(q, z):
    added, changed = (epsilon_sampled(z, q, 1, 1e-3, n) for n in (Neighbours.ADD_REMOVE, Neighbours.REPLACE))
    assert delta_of(added, mixture(q, 1, z), mixture(q, -1, z)) > 1.05e-3
    assert changed > 1.05 * added


@pytest.mark.parametrize(("q", "z"), [(0.1, 3.0), SLOW[0]])
def test_a_part_that_is_not_clipped_undoes_what_sampling_gains(q, z):
    """A change of 2 beside a loss gradient of length 20 is not hidden by the sample's noise."""
    priced = epsilon_sampled(z, q, 1, 1e-4, Neighbours.REPLACE)
    assert epsilon_by_quadrature(1e-4, mixture(q, 21, z), mixture(q, 19, z)) > 1.2 * priced


@pytest.mark.parametrize(("q", "z"), [(0.3, 2.0), pytest.param(0.1, 1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("angle", [60, 90, 120, 150])
def test_no_two_directions_cost_more_than_opposite_ones(q, z, angle):
    """In the plane, as for three groups or more: v and v' of length 1, at an angle."""
    x = np.linspace(-8 * z, 8 * z, 1201)
    step, delta = x[1] - x[0], 1e-3
    radians = math.radians(angle)

    def density(a, b):
        here = np.outer(norm.pdf(x, a, z), norm.pdf(x, b, z))
        return (1 - q) * np.outer(norm.pdf(x, 0, z), norm.pdf(x, 0, z)) + q * here

    most = epsilon_sampled(z, q, 1, delta, Neighbours.REPLACE)
    for one, other in (((1, 0), (math.cos(radians), math.sin(radians))), ((1, 0), (0.5 * math.cos(radians), 0.5))):
        p, r = density(*one), density(*other)
        for a, b in ((p, r), (r, p)):
            assert np.maximum(a - math.exp(most) * b, 0).sum() * step**2 <= delta * (1 + 1e-6)
