"""Sums of clipped rows against the same in plain floating point, and values worked out by hand."""

import os
import subprocess
import sys

import numpy as np
import pytest

from stratsynth.driver.sums import exact_sums
from stratsynth.questions import Columns, Design, Gradients, Moments, RowVectors
from stratsynth.questions.sums.base import GRID
from stratsynth.schema import Categorical, Numeric, Schema
from stratsynth.schema.rows import CodedRows

SCHEMA = Schema(
    {
        "age": Numeric(lower=10, upper=90, bins=2, missing=True, not_applicable="N"),
        "kind": Categorical(levels=("a", "b", "c")),
        "pay": Numeric(lower=0, upper=100, missing=True),
        "yes": Categorical(levels=("no", "yes")),
        "class": Categorical(levels=("p", "q", "r")),
    }
)
DESIGN = Design(("kind", "age"))
N = 400


def made(n=N, seed=0):
    rng = np.random.default_rng(seed)
    codes = {name: rng.integers(SCHEMA.size(name), size=n).astype(np.uint8) for name in SCHEMA.names}
    age = np.where(codes["age"] < 2, 10 + 40 * (codes["age"] + rng.random(n)), np.nan)
    pay = np.where(codes["pay"] < 20, 5 * (codes["pay"] + rng.random(n)), np.nan)
    return CodedRows(SCHEMA, codes, {"age": age, "pay": pay}, n)


def by_hand(rows):
    """Features and scaled target, one row at a time."""
    x, y = [], []
    for i in range(rows.size):
        age, pay = float(rows.numbers["age"][i]), float(rows.numbers["pay"][i])
        feature = dict.fromkeys(DESIGN.names(SCHEMA), 0.0) | {"1": 1.0}
        feature["kind=" + "abc"[rows.codes["kind"][i]]] = 1.0
        if np.isnan(age):
            feature["age=" + SCHEMA.levels("age")[rows.codes["age"][i]]] = 1.0
        else:
            feature["age"] = (age - 50) / 40
        x.append(list(feature.values()))
        y.append((pay - 50) / 50)
    return np.array(x), np.array(y)


def clipped(vectors, clip):
    lengths = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    return (vectors * np.minimum(1, clip / np.maximum(lengths, 1e-300))).sum(axis=0)


def values(query, rows, chosen=None):
    blocks = query.blocks(rows.schema)
    return [s * (b.clip / GRID) for s, b in zip(exact_sums(query, rows, chosen), blocks, strict=True)]


def test_the_clipped_mean_of_coinpress_by_hand():
    """900 zeros and 100 values of 100, clipped at 4.6371: the mean is a tenth of the clip."""
    schema = Schema({"x": Numeric(lower=0, upper=100)})
    x = np.repeat([0.0, 100.0], [900, 100])
    rows = CodedRows(schema, {"x": np.zeros(1000, np.uint8)}, {"x": x}, 1000)
    (units,) = exact_sums(Columns(("x",), (0.0,), (1.0,), 4.6371), rows)
    assert units.tolist() == [100 * GRID]
    assert units[0] * (4.6371 / GRID) / 1000 == pytest.approx(0.46371, rel=1e-15)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_columns(norm):
    rows = made()
    query = Columns(("age", "pay"), (50.0, 40.0), (20.0, 25.0), 1.5, norm)
    v = np.stack([(rows.numbers["age"] - 50) / 20, (rows.numbers["pay"] - 40) / 25], axis=1)
    v = v[~np.isnan(v).any(axis=1)]
    lengths = np.abs(v).sum(axis=1) if norm == "l1" else np.sqrt((v**2).sum(axis=1))
    assert 0.2 < (lengths > 1.5).mean() < 0.8
    expected = (v * np.minimum(1, 1.5 / lengths)[:, None]).sum(axis=0)
    np.testing.assert_allclose(values(query, rows)[0], expected, atol=1e-5)


@pytest.mark.parametrize(("clip", "bound"), [(2.0, 1.0), (1.5, 0.4)])
def test_moments(clip, bound):
    rows = made()
    x, y = by_hand(rows)
    x, y = x[~np.isnan(y)], y[~np.isnan(y)]
    x = x * np.minimum(1, clip / np.sqrt((x**2).sum(axis=1)))[:, None]
    square, product = values(Moments(DESIGN, "pay", clip, bound), rows)
    np.testing.assert_allclose(square, (x.T @ x)[np.triu_indices(x.shape[1])], atol=3e-4 * N)
    np.testing.assert_allclose(product, x.T @ np.clip(y, -bound, bound), atol=3e-4 * N)


@pytest.mark.parametrize("clip", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("link", ["linear", "logistic", "softmax"])
def test_gradients(link, clip):
    rows = made()
    chosen = np.arange(0, N, 2)
    x, y = by_hand(rows)
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(x.shape[1], 3) if link == "softmax" else x.shape[1])
    logits = x @ theta
    if link == "linear":
        gradients, target = (logits - y)[:, None] * x, "pay"
        gradients[np.isnan(y)] = 0
    elif link == "logistic":
        gradients, target = (1 / (1 + np.exp(-logits)) - rows.codes["yes"])[:, None] * x, "yes"
    else:
        share = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True) - np.eye(3)[rows.codes["class"]]
        gradients, target = (x[:, :, None] * share[:, None, :]).reshape(N, -1), "class"
    (got,) = values(Gradients(DESIGN, target, link, theta[None], clip), rows, chosen)
    expected = clipped(gradients[chosen], clip)
    assert np.linalg.norm(got - expected) < 1e-3 * np.linalg.norm(expected)


@pytest.mark.parametrize(("logit", "p"), [(0.0, 0.5), (-30.0, 0.0), (30.0, 1.0), (3.0, 0.95257413), (-3.0, 0.04742587)])
def test_the_logistic_curve_at_some_points(logit, p):
    """One row of level `no`, whose gradient at the intercept is p."""
    schema = SCHEMA.restrict(["kind", "yes"])
    rows = CodedRows(schema, {"kind": np.array([0]), "yes": np.array([0])}, {}, 1)
    theta = np.array([logit, 0.0, 0.0, 0.0])
    (got,) = values(Gradients(Design(("kind",)), "yes", "logistic", theta[None], 2.0), rows)
    np.testing.assert_allclose(got, [p, p, 0, 0], atol=1e-4)


def test_coefficients_out_of_range_are_clipped_whatever_the_rows():
    rows = made()
    width = len(DESIGN.names(SCHEMA))
    far, at = (Gradients(DESIGN, "pay", "linear", np.full((1, width), v), 1.0) for v in (1e308, 1024.0))
    assert exact_sums(far, rows)[0].tolist() == exact_sums(at, rows)[0].tolist()


def test_row_vectors():
    rows = made()
    keep = ~np.isnan(rows.numbers["pay"])
    query = RowVectors(lambda frame: frame[["pay"]].to_numpy() / 100, 1, 0.5)
    expected = np.minimum(rows.numbers["pay"][keep] / 100, 0.5).sum()
    np.testing.assert_allclose(values(query, rows)[0], [expected], atol=1e-6)


SUMS = """
import hashlib, numpy as np
from test_sums_values import DESIGN, SCHEMA, made
from stratsynth.driver.sums import exact_sums
from stratsynth.questions import Columns, Gradients, Moments
rows, theta = made(30_000), np.linspace(-1, 1, len(DESIGN.names(SCHEMA)))
queries = [
    Columns(("age", "pay"), (50.0, 40.0), (20.0, 25.0), 1.5),
    Moments(DESIGN, "pay", 1.7),
    Gradients(DESIGN, "pay", "linear", theta[None], 1.0),
    Gradients(DESIGN, "yes", "logistic", theta[None], 1.0),
    Gradients(DESIGN, "class", "softmax", np.outer(theta, [1, 2, 3])[None], 1.0),
]
chosen = [None, np.arange(0, 30_000, 7)]
found = [sums.tobytes() for query in queries for c in chosen for sums in exact_sums(query, rows, c)]
print(hashlib.sha256(b"".join(found)).hexdigest())
"""


def test_threads_and_processor_kernels_change_nothing():
    """BLAS adds in another order with two threads, and with the kernels of another processor."""
    found = set()
    for settings in ({"OPENBLAS_NUM_THREADS": "1"}, {"OPENBLAS_NUM_THREADS": "2"}, {"OPENBLAS_CORETYPE": "Nehalem"}):
        environment = os.environ | settings | {"PYTHONPATH": os.path.dirname(__file__)}  # noqa: PTH120
        run = subprocess.run([sys.executable, "-c", SUMS], env=environment, capture_output=True, text=True, check=True)
        found.add(run.stdout)
    assert len(found) == 1
