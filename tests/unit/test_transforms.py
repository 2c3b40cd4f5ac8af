"""The scales that columns declare: accurate, increasing, row-local to the last bit, and brought back."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratsynth import Numeric, Schema
from stratsynth.driver.sums import exact_sums
from stratsynth.errors import SchemaError
from stratsynth.questions import Columns
from stratsynth.questions.sums.base import GRID
from stratsynth.schema import transforms
from stratsynth.schema.rows import CodedRows

KINDS = ["log", "square-root", "fourth-root"]
REALS = st.floats(-1e12, 1e12)


def column(transform, unit=1000.0):
    return Numeric(lower=-1e12, upper=1e12, transform=transform, transform_unit=unit)


@given(st.lists(REALS, min_size=1, max_size=50), st.sampled_from([1, 1000, 0.01]))
def test_the_logarithm_is_the_logarithm(numbers, unit):
    x = np.array(numbers)
    wanted = np.copysign(np.log1p(np.abs(x) / unit), x)
    assert np.allclose(transforms.forward(column("log", unit), x), wanted, rtol=1e-13, atol=3e-16)


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(REALS, min_size=2, max_size=50))
def test_a_transform_increases_keeps_zero_and_comes_back(kind, numbers):
    x = np.sort(np.array([*numbers, 0.0]))
    there = transforms.forward(column(kind), x)
    assert (np.diff(there) >= 0).all()
    assert (there[x == 0] == 0).all()
    assert np.allclose(transforms.backward(column(kind), there), x, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(REALS, min_size=1, max_size=40), st.integers(0, 9))
def test_a_number_never_depends_on_where_it_stands(kind, numbers, before):
    x = np.array(numbers)
    together = transforms.forward(column(kind), np.concatenate([np.full(before, 3.7), x]))[before:]
    alone = [transforms.forward(column(kind), np.array([value]))[0] for value in numbers]
    assert together.tobytes() == np.array(alone).tobytes()


def test_missing_stays_missing():
    for kind in [None, *KINDS]:
        assert math.isnan(transforms.forward(column(kind, 1000.0 if kind else 1.0), np.array([math.nan]))[0])


def test_the_bias_of_a_log_normal_column():
    """x + 1 is log-normal: its mean is exp(m + s^2 / 2), half a spread squared above exp(m) on the log scale."""
    incomes = Numeric(lower=0, upper=1e9, transform="log")
    assert transforms.mean_back(incomes, 10.0, 0.8) == pytest.approx(math.exp(10 + 0.32) - 1, rel=1e-6)
    assert transforms.backward(incomes, np.array([10.0]))[0] == pytest.approx(math.exp(10) - 1)


def test_the_mean_of_a_square():
    """With the fourth or square root the moments of a normal law are polynomials."""
    roots = Numeric(lower=0, upper=1e9, transform="square-root")
    assert transforms.mean_back(roots, 50.0, 2.0) == pytest.approx(50**2 + 4)
    assert transforms.mean_back(Numeric(lower=0, upper=9), 5.0, 2.0) == 5
    assert math.isnan(transforms.mean_back(roots, 50.0, math.nan))


def test_sums_are_taken_on_the_declared_scale():
    schema = Schema({"pay": Numeric(lower=-5000, upper=1e6, transform="log", transform_unit=100, missing=True)})
    pay = np.array([0.0, 100.0, -300.0, 12_345.0, math.nan])
    rows = CodedRows(schema, {"pay": np.zeros(5, np.uint8)}, {"pay": pay}, 5)
    for square in (False, True):
        query = Columns(("pay",), (1.0,), (2.0,), 50.0, square=square)
        wanted = (np.copysign(np.log1p(np.abs(pay[:4]) / 100), pay[:4]) - 1) / 2
        (units,) = exact_sums(query, rows)
        assert units[0] * 50 / GRID == pytest.approx((wanted**2 if square else wanted).sum(), abs=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"transform": "cube"},
        {"transform": ""},
        {"transform": "log", "transform_unit": 0},
        {"transform": "log", "transform_unit": -1},
        {"transform": "log", "transform_unit": math.nan},
        {"transform": "log", "transform_unit": True},
        {"transform": "log", "transform_unit": "1000"},
        {"transform_unit": 1000},
    ],
)
def test_a_wrong_transform_is_refused(wrong):
    with pytest.raises(SchemaError, match="transform"):
        Numeric(lower=0, upper=10, **wrong)


def test_a_transform_changes_the_schema_and_its_absence_does_not():
    plain = Schema({"pay": Numeric(lower=0, upper=10)})
    log = Schema({"pay": Numeric(lower=0, upper=10, transform="log", transform_unit=5)})
    assert plain != log
    assert "transform" not in plain.to_toml()
    assert Schema.from_toml_text(log.to_toml()) == log
