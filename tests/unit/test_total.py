"""A sum that cannot be priced is refused before anything is read."""

import numpy as np
import pytest
from scipy.stats import chi2

from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.noise import SeededEntropy
from stratsynth.questions import (
    Block,
    Choose,
    Columns,
    Design,
    Distance,
    Gradients,
    Moments,
    NoisySum,
    RowVectors,
    Total,
)
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Exact
from stratsynth.schema import Categorical, Numeric, Schema

SCHEMA = Schema(
    {
        "SEX": Categorical(levels=("1", "2")),
        "AGE": Numeric(lower=0, upper=90, integer=True),
        "PAY": Numeric(lower=0, upper=1e6),
    }
)
DESIGN = Design(("SEX", "AGE"))
MEAN = Columns(("AGE", "PAY"), (40.0, 1e4), (10.0, 1e4), clip=2.0)


@pytest.mark.parametrize(
    "query",
    [MEAN, Moments(DESIGN, "PAY", clip=1.0), Gradients(DESIGN, "PAY", "linear", np.zeros((1, 4)), clip=1.0)],
    ids=type,
)
def test_pure_epsilon_is_refused_for_an_l2_clip(query):
    """Laplace noise for an L2 clip would be too small by up to the square root of the dimension."""
    with pytest.raises(MechanismError, match="l1"):
        Total(query, 1.0, Currency.PURE).check(SCHEMA)


BAD = {
    "a clip of 0": Columns(("AGE",), (0.0,), (1.0,), clip=0.0),
    "a clip beyond squaring": Moments(DESIGN, "PAY", clip=1e200),
    "a clip below squaring": Moments(DESIGN, "PAY", clip=1e-200),
    "an unknown norm": Columns(("AGE",), (0.0,), (1.0,), clip=1.0, norm="l3"),
    "a text for a clip": Columns(("AGE",), (0.0,), (1.0,), clip="1"),
    "a categorical column": Columns(("SEX",), (0.0,), (1.0,), clip=1.0),
    "an infinite centre": Columns(("AGE",), (np.inf,), (1.0,), clip=1.0),
    "a scale of 0": Columns(("AGE",), (0.0,), (0.0,), clip=1.0),
    "a target among the features": Moments(Design(("SEX", "AGE")), "AGE", clip=1.0),
    "a list for thetas": Gradients(DESIGN, "PAY", "linear", [[0.0] * 4], clip=1.0),
    "thetas of the wrong shape": Gradients(DESIGN, "PAY", "linear", np.zeros((1, 3)), clip=1.0),
    "a logistic target of many levels": Gradients(Design(("AGE",)), "PAY", "logistic", np.zeros((1, 2)), clip=1.0),
    "a function that is none": RowVectors("nothing", 1, clip=1.0),
    "a function of no size": RowVectors(len, 0, clip=1.0),
}


@pytest.mark.parametrize("case", BAD)
def test_a_query_that_makes_no_sense_is_refused(case):
    with pytest.raises(MechanismError):
        Total(BAD[case], 1.0).check(SCHEMA)


@pytest.mark.parametrize(
    "question",
    [
        Total(MEAN, 0.0),
        Total(MEAN, float("nan")),
        Total(MEAN, 1.0, rate=0.5),
        Total(MEAN, 1.0, Currency.SAMPLED, rate=0.0),
        Total(MEAN, 1.0, weights=(1.0, 2.0)),
    ],
    ids=["no price", "nan", "a sample in zcdp", "an empty sample", "weights for no block"],
)
def test_a_total_that_makes_no_sense_is_refused(question):
    with pytest.raises(MechanismError):
        question.check(SCHEMA)


class Cheap(Columns):
    """Says that a row moves it by next to nothing."""

    def blocks(self, schema):
        return tuple(Block(b.size, b.clip * 1e-6) for b in super().blocks(schema))


def test_a_query_that_restates_its_sensitivity_is_refused():
    with pytest.raises(MechanismError, match="known queries"):
        Total(Cheap(("AGE",), (0.0,), (1.0,), clip=1.0), 1.0).check(SCHEMA)


@pytest.mark.parametrize(
    "reference", [np.array([-(2**63), 0]), np.array([2**63, 2**63], np.uint64), [0.0, 0.0]], ids=str
)
def test_a_reference_in_another_type_is_refused(reference):
    """Its size would wrap around in its own arithmetic."""
    with pytest.raises(MechanismError, match="float64"):
        Choose((Distance(("SEX",), reference),), 1.0).check(SCHEMA)


def test_a_vector_too_long_and_an_epsilon_too_small_are_refused():
    wide = Schema({"A": Categorical(levels=tuple(map(str, range(8000)))), "AGE": Numeric(lower=0, upper=90)})
    with pytest.raises(Unsupported, match="too long"):
        Total(Moments(Design(("A",)), "AGE", clip=1.0), 1.0).check(wide)
    with pytest.raises(MechanismError, match="too small"):
        Total(Columns(("AGE",), (0.0,), (1.0,), clip=1.0, norm="l1"), 1e-9, Currency.PURE).check(SCHEMA)


@pytest.mark.parametrize(("scale", "fits"), [(1.0, True), (0.7, False), (1.3, False)])
def test_standard_noise_of_pure_epsilon_is_normal_at_the_declared_scale_and_no_other(scale, fits):
    """The sum of squares of n of them has the law of chi-square, whose bounds it passes once in 10^9."""
    schema = Schema({f"AGE {i}": Numeric(lower=0, upper=90, integer=True) for i in range(50)})
    question = Total(Columns(schema.names, (0.0,) * 50, (1.0,) * 50, clip=1.0, norm="l1"), 1.0, Currency.PURE)
    at, zero, entropy = Setting(schema, Neighbours.ADD_REMOVE), Exact(sums=[[np.zeros(50, np.int64)]]), SeededEntropy(5)
    drawn = Total(question.query, question.price / scale, Currency.PURE)
    answers = [drawn.answer(at, zero, entropy, {}) for _ in range(40)]
    answers = [(NoisySum(part.units, part.grid, part.sigma / scale),) for (part,) in answers]
    noise = np.concatenate([part for answer in answers for part in question.standard_noise(at, zero, answer)])
    low, high = chi2(len(noise)).ppf([1e-9, 1 - 1e-9])
    assert (low < np.sum(noise**2) < high) == fits
