"""Only plain arrays get into questions, and nobody can change one between its check and its use."""

import numpy as np
import pandas as pd
import pytest

from helpers.by_row import by_row
from stratsynth.errors import MechanismError
from stratsynth.questions import (
    Choose,
    Columns,
    Composite,
    Confusions,
    Curvature,
    Design,
    Distance,
    FairGradients,
    Gradients,
    GroupLosses,
    Losses,
    Mitigated,
    NetworkGradients,
    NetworkLosses,
    Peak,
    PerRowGradients,
    Term,
    Total,
)
from stratsynth.schema import Categorical, Numeric, Schema

SCHEMA = Schema({"SEX": Categorical(levels=("1", "2")), "AGE": Numeric(lower=0, upper=90)})
AGE = Columns(("AGE",), (40.0,), (10.0,), clip=2.0)


class Sly(np.ndarray):
    """An array that says of itself what it likes."""

    def __abs__(self):
        return np.zeros(self.shape)

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        return np.zeros(self.shape)


def masked(values):
    """NaNs that no check of a masked array sees."""
    array, mask = np.array(values), np.zeros(np.shape(values), bool)
    array.flat[0], mask.flat[0] = np.nan, True
    return np.ma.MaskedArray(array, mask)


DISGUISES = {
    "a masked array": masked,
    "a subclass": lambda values: np.full(np.shape(values), np.nan).view(Sly),
    "a series": lambda values: pd.Series(np.ravel(values)),
    "a list": lambda values: np.asarray(values).tolist(),
    "objects": lambda values: np.asarray(values).astype(object),
    "text": lambda values: np.asarray(values).astype(str),
    "complex numbers": lambda values: np.asarray(values).astype(complex),
    "half precision": lambda values: np.asarray(values).astype(np.float16),
}
NET = Design(("AGE",)), "SEX"
BY_SEX, THETAS = Design(("SEX",)), np.ones((1, 3))
ONE, TWO, TABLE = np.array([1.0]), np.array([1.0, 2.0]), np.array([[1.0]])
COUNTS = Confusions(Design(("AGE",)), "SEX", np.ones((1, 2)))
CELLS = np.ones((1, 4))


def scored(slopes, offsets):
    return Choose((Composite(COUNTS, 0, (Term("largest", slopes, offsets),)),), 0.1)


TAKERS = {
    "reference": lambda array: Choose((Distance(("SEX",), array(TWO)),), 0.1),
    "slopes": lambda array: Choose((Peak(AGE, array(TABLE), ONE),), 0.1),
    "offsets": lambda array: Choose((Peak(AGE, TABLE, array(ONE)),), 0.1),
    "thetas": lambda array: Total(Gradients(BY_SEX, "AGE", "linear", array(THETAS), clip=1.0), 0.1),
    "parts": lambda array: Total(Gradients(BY_SEX, "AGE", "linear", THETAS, 1.0, ("SEX",), array(TWO / 2)), 0.1),
    "hidden": lambda array: Total(NetworkGradients(*NET, array(np.ones((1, 2))), TWO[:, None], 1.0), 0.1),
    "output": lambda array: Total(NetworkLosses(*NET, np.ones((1, 2)), array(TWO[:, None]), 1.0), 0.1),
    "losses": lambda array: Total(Losses(BY_SEX, "AGE", "linear", array(THETAS), clip=1.0), 0.1),
    "confusions": lambda array: Total(Confusions(Design(("AGE",)), "SEX", array(np.ones((1, 2)))), 0.1),
    "group losses": lambda array: Total(GroupLosses(Design(("AGE",)), "SEX", array(np.ones((1, 2))), 1.0), 0.1),
    "term slopes": lambda array: scored(array(CELLS), ONE),
    "term offsets": lambda array: scored(CELLS, array(ONE)),
    "fair thetas": lambda array: Total(FairGradients(*NET, "logistic", array(np.ones((1, 2))), 1.0), 0.1),
    "fair slopes": lambda array: Total(
        FairGradients(*NET, "logistic", np.ones((1, 2)), 1.0, ("SEX",), array(np.ones((1, 2, 2)))), 0.1
    ),
    "mitigated": lambda array: Total(Mitigated(Design(("AGE",)), "SEX", "logistic", array(np.ones(2)), 1.0), 0.1),
    "noise_slopes": lambda array: Total(
        Mitigated(Design(("AGE",)), "SEX", "logistic", np.ones(2), 1.0, ("SEX",), noise_slopes=array(TWO)), 0.1
    ),
    "per-row weights": lambda array: Total(PerRowGradients(*NET, by_row(1, 2), array(TWO)), 0.1),
    "per-row slopes": lambda array: Total(
        PerRowGradients(*NET, by_row(1, 2), TWO, ("SEX",), array(np.ones((2, 2)))), 0.1
    ),
    "curvature": lambda array: Total(Curvature(Design(("AGE",)), "SEX", array(np.ones(2)), clip=1.0), 0.1),
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("taker", TAKERS)
def test_what_is_no_plain_array_is_refused(taker, disguise):
    with pytest.raises(MechanismError):
        TAKERS[taker](DISGUISES[disguise]).check(SCHEMA)


@pytest.mark.parametrize("taker", TAKERS)
def test_a_plain_array_is_taken(taker):
    TAKERS[taker](lambda values: values).check(SCHEMA)
    TAKERS[taker](np.asfortranarray).check(SCHEMA)


def held(question):
    """Parts of a question that use the array."""
    if isinstance(question, Choose) and isinstance(question.scores[0], Composite):
        return question.scores[0].terms[0]
    return question.scores[0] if isinstance(question, Choose) else question.query


@pytest.mark.parametrize("taker", TAKERS)
def test_nobody_can_change_an_array_after_its_check(taker):
    given = []

    def keep(values):
        given.append(np.array(values))
        return given[-1]

    question = TAKERS[taker](keep)
    question.check(SCHEMA)
    called = {
        "losses": "thetas",
        "confusions": "thetas",
        "group losses": "thetas",
        "curvature": "theta",
        "mitigated": "theta",
    }
    used = getattr(held(question), called.get(taker, taker.split()[-1]))
    before = used.copy()
    given[0].fill(np.nan)
    np.testing.assert_array_equal(used, before)
    with pytest.raises(ValueError, match="read-only"):
        used[...] = np.nan
    with pytest.raises(ValueError, match="WRITEABLE"):
        used.flags.writeable = True
