"""Every answer is an integer plus integer noise, so that no low digit of a float tells a count of 0 from one of 1."""

import numpy as np
import pandas as pd
import pytest

from stratsynth.accounting.budget import Budget, Currency, Neighbours
from stratsynth.adapters import Independent
from stratsynth.data.table import open_table
from stratsynth.fitting import fit
from stratsynth.noise import SystemEntropy
from stratsynth.questions import Columns, Counts, Total
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Exact
from stratsynth.questions.sums.base import GRID
from stratsynth.schema import Categorical, Numeric, Schema

SCHEMA = Schema({"CELL": Categorical(levels=tuple(map(str, range(2000)))), "PAY": Numeric(lower=0, upper=10)})
SETTING = Setting(SCHEMA, Neighbours.ADD_REMOVE)
PAY, PAY_L1 = (Columns(("PAY",), (0.0,), (1.0,), 1.0, norm) for norm in ("l2", "l1"))
QUESTIONS = {
    "counts": Counts((("CELL",),), 0.5),
    "a sum": Total(PAY, 0.5),
    "a sum in pure epsilon": Total(PAY_L1, 1.0, Currency.PURE),
    "a sum over a sample": Total(PAY, 1.0, Currency.SAMPLED, rate=0.5),
}


def exact(question, each):
    """Reads of rows that put the same number into every cell or sum."""
    if isinstance(question, Counts):
        return Exact(tables=[np.full(2000, each, np.int64)])
    return Exact(sums=[[np.full(block.size, each * GRID, np.int64) for block in question.query.blocks(SCHEMA)]])


def values(question, each, times):
    """The numbers that an answer holds, over and over."""
    drawn = []
    for _ in range(times):
        (part,) = question.answer(SETTING, exact(question, each), SystemEntropy(), {})
        drawn.append(part.values if isinstance(question, Counts) else part.units)
    return np.concatenate(drawn)


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_are_integers(name):
    question = QUESTIONS[name]
    for each in (0, 1):
        found = values(question, each, 3)
        assert found.dtype == np.int64


def precision_event(answer):
    """Happens to floats near zero only: nearly half of noisy zeros, and next to no noisy one."""
    return (((answer - 1.0) + 1.0) != answer).mean()


def test_what_a_mechanism_is_given_has_no_low_digits():
    """Noisy numbers of records have none; the event sees noise of this width that was drawn as a float."""
    rng = np.random.default_rng(0)
    floats = [precision_event(each + rng.normal(size=100_000)) for each in (0, 1)]
    assert floats[0] > 0.4
    assert floats[1] < 0.01
    question = QUESTIONS["counts"]
    assert [precision_event(values(question, each, 50).astype(np.float64)) for each in (0, 1)] == [0, 0]


def test_what_a_release_holds_are_integers():
    table = open_table(pd.DataFrame({"CELL": ["0", "1"], "PAY": [1, 2]}), schema=SCHEMA, declared_size=2)
    release = fit(Independent(), table, Budget(1, 1e-9))
    found = release.measurements.column("value").to_numpy()
    assert np.array_equal(found, np.rint(found))
