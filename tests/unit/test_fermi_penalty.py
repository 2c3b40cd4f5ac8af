"""The penalty of DP-FERMI in closed form: unit values of ERMI, its derivatives, and the maximum that it is."""

import numpy as np
import pytest

from stratsynth.adapters.fermi import ermi

RNG = np.random.default_rng(5)
SHARES = np.array([0.5, 0.3, 0.2])
W = RNG.normal(size=(3, 4))
F = RNG.dirichlet(np.ones(4), size=200)
S = RNG.choice(3, size=200, p=SHARES)


def binary(share, first, second):
    """The joint distribution where the groups' rates of the second class are these."""
    return np.array([[share * (1 - first), share * first], [(1 - share) * (1 - second), (1 - share) * second]])


def psi(w, f, s, shares):
    """Objective of the paper: -tr(W diag(F) W') + 2 tr(W' P^(-1/2) s F') - 1."""
    one = np.eye(len(shares))[s][:, None]
    return -np.trace(w @ np.diag(f) @ w.T) + 2 * np.trace(w.T @ np.diag(shares**-0.5) @ one @ f[None]) - 1


@pytest.mark.parametrize(("first", "second"), [(0.8, 0.3), (0.3, 0.8), (0.5, 0.5), (0.9, 0.1), (1.0, 0.0)])
def test_unit_values(first, second):
    middle = (first + second) / 2
    expected = ((first - second) / 2) ** 2 / (middle * (1 - middle))
    assert ermi.ermi(binary(0.5, first, second)) == pytest.approx(expected, abs=1e-12)


def test_the_value_that_the_specification_names():
    assert ermi.ermi(binary(0.5, 0.8, 0.3)) == pytest.approx(0.252525, abs=1e-6)
    assert ermi.ermi(np.eye(4)) == pytest.approx(3)  # predictions that name the group: groups - 1


def test_it_is_nothing_for_independent_predictions_and_knows_no_first_group():
    joint = RNG.dirichlet(np.ones(12)).reshape(3, 4)
    assert ermi.ermi(np.outer(joint.sum(axis=1), joint.sum(axis=0))) == pytest.approx(0, abs=1e-12)
    assert ermi.ermi(joint[[2, 0, 1]]) == pytest.approx(ermi.ermi(joint))
    w = ermi.independent(SHARES, 4)
    slope = ermi.slopes(w, SHARES)
    assert np.allclose(slope, slope[0, 0])  # alike for all classes: no gradient
    flat = np.outer(SHARES, np.array([0.1, 0.2, 0.3, 0.4]))
    assert np.allclose(ermi.ascent(w, SHARES, flat), 0)
    assert ermi.value(w, SHARES, flat) == pytest.approx(0, abs=1e-12)


def test_derivatives_are_those_of_the_papers_psi():
    step = 1e-5
    slope = ermi.slopes(W, SHARES)
    for i in range(20):
        for j in range(4):
            up = np.eye(4)[j] * step
            by_f = (psi(W, F[i] + up, S[i], SHARES) - psi(W, F[i] - up, S[i], SHARES)) / (2 * step)
            assert slope[S[i], j] == pytest.approx(by_f, abs=1e-6)
    sums = np.zeros((3, 4))
    np.add.at(sums, S, F)
    uphill = ermi.ascent(W, SHARES, sums)
    for r, j in np.ndindex(3, 4):
        up = np.zeros((3, 4))
        up[r, j] = step
        by_w = sum(psi(W + up, f, s, SHARES) - psi(W - up, f, s, SHARES) for f, s in zip(F, S, strict=True)) / (
            2 * step
        )
        assert uphill[r, j] == pytest.approx(by_w, abs=1e-6 * len(F))


def test_its_sum_is_told_by_the_sums_alone():
    sums = np.zeros((3, 4))
    np.add.at(sums, S, F)
    assert ermi.value(W, SHARES, sums) == pytest.approx(sum(psi(W, f, s, SHARES) for f, s in zip(F, S, strict=True)))


def test_the_maximum_over_w_is_ermi():
    joint = np.zeros((3, 4))
    np.add.at(joint, S, F / len(F))
    shares = joint.sum(axis=1)
    top = ermi.best(joint, shares)
    assert ermi.value(top, shares, joint) == pytest.approx(ermi.ermi(joint), abs=1e-8)
    for _ in range(50):
        assert ermi.value(top + 0.1 * RNG.normal(size=top.shape), shares, joint) < ermi.ermi(joint)


def test_the_ascent_ends_at_the_maximum():
    joint = np.zeros((3, 4))
    np.add.at(joint, S, F / len(F))
    shares, w = joint.sum(axis=1), ermi.independent(joint.sum(axis=1), 4)
    for _ in range(400):
        w = w + 0.5 * ermi.ascent(w, shares, joint)
    assert np.allclose(w, ermi.best(joint, shares), atol=1e-8)


def test_matrices_of_several_models_and_true_classes_side_by_side():
    w, shares = RNG.normal(size=(2, 3, 3, 4)), RNG.dirichlet(np.ones(3), size=(2, 3))
    sums = RNG.random((2, 3, 3, 4))
    for m, y in np.ndindex(2, 3):
        assert np.allclose(ermi.slopes(w, shares)[m, y], ermi.slopes(w[m, y], shares[m, y]))
        assert np.allclose(ermi.ascent(w, shares, sums)[m, y], ermi.ascent(w[m, y], shares[m, y], sums[m, y]))
        assert ermi.value(w, shares, sums)[m, y] == pytest.approx(ermi.value(w[m, y], shares[m, y], sums[m, y]))


def test_the_ball():
    length = np.linalg.norm(W)
    assert np.allclose(ermi.into_ball(W, 2 * length), W)
    assert np.linalg.norm(ermi.into_ball(W, length / 3)) == pytest.approx(length / 3)
    assert (ermi.into_ball(np.zeros((2, 2)), 1.0) == 0).all()
