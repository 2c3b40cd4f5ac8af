"""The sums that regressions ask for: right, clipped whatever the rows hold, and no dearer than is charged."""

import math
from functools import partial

import numpy as np
import pytest

from helpers.exactly import exact_sums
from helpers.regressing import SCHEMA, people
from stratsynth.accounting.budget import PRICED, Neighbours
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.digest import digest
from stratsynth.driver.answering import Answerer
from stratsynth.driver.lockstep import Asked
from stratsynth.errors import MechanismError
from stratsynth.noise import SystemEntropy
from stratsynth.questions import Coded, Columns, Curvature, Design, Gradients, Losses, Moments, Total
from stratsynth.questions.sums.base import GRID, check_query

CODED = Coded(("G", "X", "C"), reference=(("C", "q"),), interactions=(("X", "G"),))
THETAS = np.array([[0.1, -0.2, 0.3, 0.4, -0.5, 0.6], [0.0] * 6])
FLAT = Coded(("G", "X"))
SOFT = np.random.default_rng(5).normal(size=(2, 3, 3))
"""Two softmax models of C by FLAT."""


exact = partial(exact_sums, schema=SCHEMA)


def by_hand(frame):
    """The features of CODED, worked out in plain numpy."""
    g, x, c = (frame.G == "b").to_numpy(float), frame.X.to_numpy(), frame.C
    return np.column_stack([np.ones(len(frame)), g, x, c == "p", c == "r", x * g]).astype(float)


def test_features_leave_reference_levels_out_and_multiply_what_they_are_told():
    assert CODED.names(SCHEMA) == ("1", "G=b", "X", "C=p", "C=r", "X*G=b")
    assert CODED.most_features == 5


@pytest.mark.parametrize("link", ["linear", "logistic"])
def test_each_model_gets_the_sum_of_its_own_clipped_gradients(link):
    frame, clip = people(300), 0.4
    x, z = by_hand(frame), by_hand(frame) @ THETAS.T
    target = "Y" if link == "linear" else "D"
    truth = frame.Y.to_numpy() if link == "linear" else (frame.D == "yes").to_numpy(float)
    mean = z if link == "linear" else 1 / (1 + np.exp(-z))
    gradients = (mean - truth[:, None])[:, :, None] * x[:, None, :]
    length = np.linalg.norm(gradients, axis=2, keepdims=True)
    expected = (gradients * np.minimum(1, clip / np.maximum(length, 1e-300))).sum(axis=0)
    found = exact(Gradients(CODED, target, link, THETAS, clip), frame)
    assert np.allclose(np.array(found) * clip / GRID, expected, atol=2e-3 * 300**0.5)


def softmax(thetas, by=(), parts=None):
    return Gradients(FLAT, "C", "softmax", thetas, 0.3, by, parts)


def soft_chances(frame):
    """The probabilities of C's levels under both models of SOFT, and which level each row has."""
    x = np.column_stack([np.ones(len(frame)), frame.G == "b", frame.X]).astype(float)
    power = np.exp(np.einsum("if,mfk->mik", x, SOFT))
    yes = np.array([level == frame.C for level in "pqr"]).T.astype(float)
    return x, power / power.sum(axis=2, keepdims=True), yes


def test_softmax_gradients_and_losses_are_those_by_hand():
    frame, clip = people(300), 0.6
    x, chances, yes = soft_chances(frame)
    each = np.einsum("if,mik->mifk", x, chances - yes)
    length = np.sqrt((each**2).sum(axis=(2, 3), keepdims=True))
    expected = (each * np.minimum(1, clip / length)).sum(axis=1)
    found = exact(Gradients(FLAT, "C", "softmax", SOFT, clip), frame)
    assert np.allclose(np.array(found).reshape(expected.shape) * clip / GRID, expected, atol=2e-3 * 300**0.5)
    log = -np.log((chances * yes).sum(axis=2))
    squared = ((chances - yes) ** 2).sum(axis=2)
    for measure, losses in (("log", log), ("squared", squared)):
        sums = np.concatenate(exact(Losses(FLAT, "C", "softmax", SOFT, 0.9, measure), frame)) * 0.9 / GRID
        assert np.allclose(sums, np.minimum(losses, 0.9).sum(axis=1), rtol=2e-3)


@pytest.mark.parametrize("clip", [3.0, 1.2])
def test_curvature_and_gradient_of_a_newton_step_are_those_by_hand(clip):
    frame, theta = people(300), THETAS[0]
    x = by_hand(frame)
    x *= np.minimum(1, clip / np.linalg.norm(x, axis=1, keepdims=True))
    p = 1 / (1 + np.exp(-by_hand(frame) @ theta))
    weighted = by_hand(frame) * np.sqrt(4 * p * (1 - p))[:, None]
    weighted *= np.minimum(1, clip / np.linalg.norm(weighted, axis=1, keepdims=True))
    square, gradient = exact(Curvature(CODED, "D", theta, clip), frame)
    assert np.allclose(square * clip**2 / GRID, (weighted.T @ weighted)[np.triu_indices(6)], atol=0.05)
    assert np.allclose(gradient * clip / GRID, x.T @ (p - (frame.D == "yes")), atol=0.05)


def test_models_side_by_side_are_bit_for_bit_those_alone():
    frame = people(500)
    both = exact(Gradients(CODED, "Y", "linear", THETAS, 0.4), frame)
    for theta, found in zip(THETAS, both, strict=True):
        (alone,) = exact(Gradients(CODED, "Y", "linear", theta[None], 0.4), frame)
        assert (found == alone).all()
    for theta, found in zip(SOFT, exact(Gradients(FLAT, "C", "softmax", SOFT, 0.4), frame), strict=True):
        (alone,) = exact(Gradients(FLAT, "C", "softmax", theta[None], 0.4), frame)
        assert (found == alone).all()


def test_parts_scale_a_rows_clipped_gradient_and_never_make_it_count_for_more():
    frame = people(400)
    parts = np.array([0.25, 1.0])
    (found,) = exact(Gradients(CODED, "Y", "linear", THETAS[:1], 0.4, ("G",), parts), frame)
    (a,), (b,) = (exact(Gradients(CODED, "Y", "linear", THETAS[:1], 0.4), frame[g == frame.G]) for g in "ab")
    assert np.abs(found - (a / 4 + b)).max() <= 400 * 4096  # less than a unit a row, times a whole feature
    for bad in (np.array([0.5, 1.1]), np.array([-0.1, 1.0]), np.array([np.nan, 1.0]), np.array([1.0])):
        with pytest.raises(MechanismError, match="from 0 to 1"):
            check_query("total", Gradients(CODED, "Y", "linear", THETAS[:1], 0.4, ("G",), bad), SCHEMA)


@pytest.mark.parametrize("measure", ["squared", "log"])
def test_losses_are_cut_at_the_clip(measure):
    frame, clip = people(300), 0.5
    z = by_hand(frame) @ THETAS.T
    yes = (frame.D == "yes").to_numpy(float)[:, None]
    p = 1 / (1 + np.exp(-z))
    each = (p - yes) ** 2 if measure == "squared" else -np.log(np.where(yes == 1, p, 1 - p))
    found = exact(Losses(CODED, "D", "logistic", THETAS, clip, measure), frame)
    assert np.allclose(np.concatenate(found) * clip / GRID, np.minimum(each, clip).sum(axis=0), rtol=1e-3)


def test_squared_residuals_of_a_linear_model():
    frame = people(300)
    each = (by_hand(frame) @ THETAS[0] - frame.Y.to_numpy()) ** 2
    (found,) = exact(Losses(CODED, "Y", "linear", THETAS[:1], 0.2), frame)
    assert found[0] * 0.2 / GRID == pytest.approx(np.minimum(each, 0.2).sum(), rel=1e-3)


@pytest.mark.parametrize("theta", [1e12, -1e12, 1.0])
def test_one_row_moves_nothing_by_more_than_its_clip(theta):
    """Whatever the coefficients: the norm is checked in exact integers."""
    thetas, rng = np.full((2, 6), theta), np.random.default_rng(3)
    parts = rng.random(2)
    for seed in range(30):
        row = people(1, seed)
        for link, target in (("linear", "Y"), ("logistic", "D")):
            for query in (
                Gradients(CODED, target, link, thetas, 0.3),
                Gradients(CODED, target, link, thetas, 0.3, ("G",), parts),
            ):
                for block in exact(query, row):
                    assert int((block.astype(object) ** 2).sum()) <= GRID**2
            for block in exact(Losses(CODED, target, link, thetas, 0.3), row):
                assert 0 <= int(block[0]) <= GRID
        soft = [(), ("G",)]
        for block in (b for by in soft for b in exact(softmax(SOFT * theta, by, parts if by else None), row)):
            assert int((block.astype(object) ** 2).sum()) <= GRID**2
        for measure in ("log", "squared"):
            for block in exact(Losses(FLAT, "C", "softmax", SOFT * theta, 0.3, measure), row):
                assert 0 <= int(block[0]) <= GRID
        for block in exact(Curvature(CODED, "D", thetas[0] * 1e-12, 0.7), row):
            assert int((block.astype(object) ** 2).sum()) <= GRID**2


def test_exchanging_a_row_moves_a_curvature_by_no_more_than_sqrt_two():
    """Pairs of rows, whole and clipped: the triangles of two rows never point away from each other."""
    rng, most = np.random.default_rng(8), math.sqrt(2)
    for seed in range(40):
        query = Curvature(CODED, "D", rng.normal(0, 2, 6), float(rng.uniform(0.3, 3)))
        one, other = (exact(query, people(1, 2 * seed + i)) for i in range(2))
        moved = (one[0] - other[0]).astype(object)
        assert int((moved**2).sum()) <= 2 * GRID**2
        assert query.blocks(SCHEMA)[0].reach(Neighbours.REPLACE) == pytest.approx(most)


@pytest.mark.parametrize("kind", ["gradients", "parts", "losses", "log", "softmax", "soft losses", "curvature"])
def test_a_rows_part_depends_on_that_row_alone_to_the_last_bit(kind):
    """The sum over a table is the sum of the rows' own sums, in whatever order and company."""
    frame = people(150)
    query = {
        "gradients": Gradients(CODED, "D", "logistic", THETAS, 0.3),
        "parts": Gradients(CODED, "Y", "linear", THETAS, 0.3, ("G",), np.array([0.3, 1.0])),
        "losses": Losses(CODED, "Y", "linear", THETAS, 0.3),
        "log": Losses(CODED, "D", "logistic", THETAS, 0.3, "log"),
        "softmax": softmax(SOFT),
        "soft losses": Losses(FLAT, "C", "softmax", SOFT, 0.9, "log"),
        "curvature": Curvature(CODED, "D", THETAS[0], 1.1),
    }[kind]
    alone = [exact(query, frame.iloc[[i]]) for i in range(len(frame))]
    for model, block in enumerate(exact(query, frame.sample(frac=1, random_state=1))):
        assert (block == np.sum([one[model] for one in alone], axis=0)).all()


def test_sensitivities_of_the_paper_corrected():
    """Moments of rows |x| <= U: U^2 and sqrt(2) U^2; a cut loss moves as far if exchanged as if added."""
    u = 1.7
    square, product = Moments(CODED, "Y", u).blocks(SCHEMA)
    assert square.sensitivity(Neighbours.ADD_REMOVE) == pytest.approx(u**2)
    assert square.sensitivity(Neighbours.REPLACE) == pytest.approx(math.sqrt(2) * u**2)
    assert product.sensitivity(Neighbours.ADD_REMOVE) == pytest.approx(u)
    (gradient,) = Gradients(CODED, "Y", "linear", THETAS[:1], 0.4).blocks(SCHEMA)
    assert [gradient.sensitivity(n) for n in PRICED] == [0.4, 0.8]
    (loss,) = Losses(CODED, "Y", "linear", THETAS[:1], 0.4).blocks(SCHEMA)
    assert {loss.sensitivity(n) for n in PRICED} == {0.4}


def _mean_square(sigma_share):
    """The mean square of a gradient's noise in units of `sigma_share` of what was declared; and how many numbers."""
    question = Total(Gradients(CODED, "Y", "linear", np.zeros((40, 6)), 0.4), 0.5)
    rows = load_rows(SCHEMA, open_source(people(5)))
    truth = exact(question.query, people(5))
    answerer = Answerer(rows, Neighbours.ADD_REMOVE, SystemEntropy())
    noise = []
    for _ in range(20):
        (answer,) = answerer.answer([Asked((), SCHEMA, question)])
        declared = 0.4 / math.sqrt(2 * 0.5 / 40)
        noise += [
            (part.units - t) * part.grid / (sigma_share * declared) for part, t in zip(answer, truth, strict=True)
        ]
    pooled = np.concatenate(noise)
    return float(np.mean(pooled**2)), pooled.size


def test_noise_is_accepted_at_sigma_and_rejected_at_seven_and_thirteen_tenths():
    for share, right in ((1.0, True), (0.7, False), (1.3, False)):
        found, number = _mean_square(share)
        assert (abs(found - 1) < 5 * (2 / number) ** 0.5) == right


def test_designs_of_earlier_versions_keep_their_identity():
    """Journals of unfinished fits go by it."""
    assert digest(Design(("A", "B"))) == IDENTITY
    assert digest(Columns(("A",), (0.0,), (1.0,), 2.0)) == digest(Columns(("A",), (0.0,), (1.0,), 2.0))


IDENTITY = "81e4fd07433dd258b62fb379dbb3a7f17497a6591a6e64cf8ab929233a1c20d6"


class Fewer(Design):
    """A design that claims to be smaller than it is."""

    def names(self, schema):
        return ("1",)


class FewerCoded(Coded):
    most_features = 1


@pytest.mark.parametrize("design", [Fewer(("X",)), FewerCoded(("X",))])
def test_a_design_of_ones_own_is_refused(design):
    with pytest.raises(MechanismError, match="not one of the known designs"):
        check_query("total", Gradients(design, "Y", "linear", np.zeros((1, 1)), 1.0), SCHEMA)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (Gradients(CODED, "Y", "logistic", THETAS, 1.0), "not a categorical column"),
        (Gradients(CODED, "C", "logistic", THETAS, 1.0), "is among the features"),
        (Gradients(Coded(("X",)), "C", "logistic", np.zeros((1, 2)), 1.0), "two levels"),
        (Gradients(CODED, "Y", "probit", THETAS, 1.0), "link"),
        (Gradients(Coded(("X",)), "C", "softmax", np.zeros((1, 2)), 1.0), r"of shape \(2, 3\)"),
        (Curvature(Coded(("X",)), "C", np.zeros(2), 1.0), "two levels"),
        (Curvature(Coded(("X",)), "Y", np.zeros(2), 1.0), "not a categorical column"),
        (Curvature(Coded(("X",)), "D", np.zeros(3), 1.0), "2 finite numbers"),
        (Curvature(Coded(("X",)), "D", np.full(2, np.nan), 1.0), "2 finite numbers"),
        (Curvature(Coded(("X",)), "D", np.zeros(2), -1.0), "clip"),
        (Gradients(CODED, "Y", "linear", THETAS[:, :3], 1.0), r"of shape \(6,\)"),
        (Gradients(CODED, "Y", "linear", THETAS + np.inf, 1.0), "finite"),
        (Gradients(CODED, "Y", "linear", THETAS, 0.0), "clip"),
        (Gradients(CODED, "Y", "linear", THETAS, 1.0, ("G",)), "go together"),
        (Losses(CODED, "Y", "linear", THETAS, 1.0, "log"), "log loss"),
        (Gradients(Coded(("X",), reference=(("X", "1"),)), "Y", "linear", THETAS, 1.0), "no level"),
        (Gradients(Coded(("X", "G"), interactions=(("X", "X"),)), "Y", "linear", THETAS, 1.0), "interaction"),
        (Gradients(Coded(("X",), intercept=False), "Y", "linear", THETAS, 1.0), "intercept"),
    ],
)
def test_what_is_malformed_is_refused_by_the_schema_alone(query, words):
    with pytest.raises(MechanismError, match=words):
        check_query("total", query, SCHEMA)
