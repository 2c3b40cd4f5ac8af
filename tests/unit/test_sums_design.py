"""Features of a design: which is where, bounds of any size, and what is kept."""

import numpy as np
import pytest

from stratsynth.driver.sums import exact_sums
from stratsynth.errors import MechanismError
from stratsynth.questions import Coded, Design, Gradients
from stratsynth.questions.sums import design
from stratsynth.schema import Categorical, Numeric, Schema
from stratsynth.schema.rows import CodedRows

SCHEMA = Schema(
    {
        "age": Numeric(lower=0, upper=100, bins=4, missing=True, not_applicable="N"),
        "kind": Categorical(levels=("a", "b")),
        "yes": Categorical(levels=("no", "yes")),
    }
)
AGE, KIND = Design(("age",)), Design(("kind", "age"), intercept=False)


def made():
    codes = {"age": [0, 3, 4, 5, 5], "kind": [0, 1, 0, 1, 0], "yes": [1, 0, 1, 1, 0]}
    numbers = np.array([0.0, 75.0, np.nan, np.nan, 60.0])  # the last one belongs to no bin
    return CodedRows(SCHEMA, {c: np.array(a, np.uint8) for c, a in codes.items()}, {"age": numbers}, 5)


class Text(str):
    """A text that may say one thing now and another later."""

    __slots__ = ()


@pytest.mark.parametrize(
    "asked",
    [
        Design(["age"]),
        Design((Text("age"),)),
        Coded(["age"]),
        Coded(("kind",), reference=(["kind", "b"],)),
        Coded(("kind",), reference=(("kind", Text("b")),)),
        Coded(("kind", "age"), interactions=[("kind", "age")]),
    ],
)
def test_a_design_is_of_plain_tuples(asked):
    """The design checked and priced is then the one read; names of features are remembered by these values."""
    with pytest.raises(MechanismError, match="tuple"):
        asked.check("glm", SCHEMA)


def test_names_are_of_the_schema_they_are_asked_for():
    other = Schema({**SCHEMA.columns, "kind": Categorical(levels=("a", "b", "c"))})
    for _ in range(2):
        assert Coded(("kind",)).names(SCHEMA) == ("1", "kind=b")
        assert Coded(("kind",)).names(other) == ("1", "kind=b", "kind=c")
        assert Coded(("kind",), reference=(("kind", "b"),)).names(SCHEMA) == ("1", "kind=a")


def test_features_are_in_the_order_of_their_names():
    assert KIND.names(SCHEMA) == ("kind=a", "kind=b", "age", "age=N", "age=missing")
    assert design.features(KIND, made()).T.tolist() == [
        [1, 0, -1, 0, 0],
        [0, 1, 0.5, 0, 0],
        [1, 0, 0, 1, 0],
        [0, 1, 0, 0, 1],
        [1, 0, 0, 0, 1],
    ]


@pytest.mark.parametrize(
    ("lower", "upper", "middle"), [(-1.7e308, 1.7e308, 0.0), (0.0, 1e-323, 5e-324), (1e308, 1.7e308, 1.35e308)]
)
def test_bounds_of_any_size_are_scaled(lower, upper, middle):
    column = Numeric(lower=lower, upper=upper, bins=1)
    with np.errstate(all="ignore"):
        found = design.scaled(column, np.array([lower, upper, middle, np.nan]))
    np.testing.assert_allclose(found, [-1, 1, 0, np.nan], atol=1e-15)


def test_the_reach_is_the_largest_that_fits():
    _, reach = design.integer_features(KIND, made(), slice(None))
    x = np.rint(design.features(KIND, made()).T * design.UNIT).astype(int)
    for m, row in zip(reach.tolist(), x.tolist(), strict=True):
        square = sum(v * v for v in row)
        assert m * m * square <= 2**60 < (m + 1) ** 2 * square


def test_designs_are_kept_apart_and_within_a_limit(monkeypatch):
    queries = [
        Gradients(d, "yes", "logistic", np.linspace(-1, 1, len(d.names(SCHEMA)))[None], 1.0) for d in (AGE, KIND)
    ]
    alone = [exact_sums(query, made())[0].tolist() for query in queries]
    rows = made()
    kept = []
    for limit in (2**28, 29, 10):  # both fit; one at a time; none
        monkeypatch.setattr(design, "KEPT", limit)
        rows.cache.clear()
        for _ in range(2):
            assert [exact_sums(query, rows)[0].tolist() for query in queries] == alone
        kept.append(len(rows.cache["whole features"]))
    assert kept == [2, 1, 0]
