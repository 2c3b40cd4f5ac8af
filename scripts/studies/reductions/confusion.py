"""Figure 2 of paper 002 by its own formulas, and private classifiers of two to five classes by these measures.

    G-mean   (prod_i C_ii / sum_j C_ij)^(1/L)                 Example 8.2
    H-mean   L / sum_i (sum_j C_ij / C_ii)                    Example 8.3, where the paper has C_ji: columns for rows

of a confusion matrix C, labels by predictions. A harmonic mean is never above the geometric one of the same rates, so
the paper's H-mean can exceed its G-mean by the exchanged indices alone. NOT PRIVATE.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import stratsynth as ss
from stratsynth.mechanisms import make

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DELTA = 1e-6
FACTOR = 1 / 3
"""Ratio of one entry to the one before, row after row, in the paper's unbalanced matrices."""
OBJECTIVES = ("error", "g_mean", "h_mean")


def g_mean(table: Floats) -> float:
    """Return the geometric mean of the labels' rates of being predicted rightly."""
    return float(np.exp(np.log(np.maximum(table.diagonal(), 1e-300) / table.sum(axis=1)).mean()))


def h_mean(table: Floats, *, printed: bool = False) -> float:
    """Return the harmonic mean of these rates; `printed`: of the predictions' rates of being right, as in the paper."""
    return float(len(table) / (table.sum(axis=0 if printed else 1) / np.maximum(table.diagonal(), 1e-300)).sum())


def balanced(levels: int) -> Floats:
    """Return the matrix of Figure 2a: all entries equal."""
    return np.full((levels, levels), levels**-2.0)


def unbalanced(levels: int) -> Floats:
    """Return the matrix of Figure 2b: each entry a third of the one before it, row after row."""
    table = FACTOR ** np.arange(levels**2, dtype=np.float64).reshape(levels, levels)
    found: Floats = table / table.sum()
    return found


def figure_two(most: int) -> pd.DataFrame:
    """Return both means of both matrices, for 2 to `most` classes."""
    return pd.DataFrame(
        [
            {
                "classes": levels,
                "matrix": name,
                "G-mean": g_mean(table),
                "H-mean": h_mean(table),
                "H-mean as printed": h_mean(table, printed=True),
            }
            for name, make_table in (("balanced", balanced), ("unbalanced", unbalanced))
            for levels in range(2, most + 1)
            for table in (make_table(levels),)
        ]
    )


def people(rows: int, levels: int, rng: np.random.Generator) -> pd.DataFrame:
    """Labels of which each is half as frequent as the one before, and goes with a feature of its own."""
    x = rng.uniform(-1, 1, (rows, levels))
    d = (3 * x - np.log(2) * np.arange(levels) * 1.5 + rng.gumbel(size=(rows, levels))).argmax(axis=1)
    return pd.DataFrame({**{f"X{i}": x[:, i] for i in range(levels)}, "D": [f"d{k}" for k in d]})


def by_classes(classes: Sequence[int], rows: int, epsilon: float, runs: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return error and means on new rows, of `reductions` by objective, and of logistic regression without privacy."""
    found = []
    for levels in classes:
        outcomes: dict[str, list[Floats]] = {}
        for _ in range(runs):
            train, test = people(rows, levels, rng), people(rows, levels, rng)
            for objective in OBJECTIVES:
                outcomes.setdefault(objective, []).append(_private(train, test, levels, epsilon, objective))
            outcomes.setdefault("not private", []).append(_plain(train, test, levels))
            outcomes.setdefault("not private, balanced", []).append(_plain(train, test, levels, balance=True))
        for name, tables in outcomes.items():
            found.append(
                {
                    "classes": levels,
                    "objective": name,
                    "error": np.mean([1 - t.trace() / t.sum() for t in tables]),
                    "G-mean": np.mean([g_mean(t) for t in tables]),
                    "H-mean": np.mean([h_mean(t) for t in tables]),
                    "macro F": np.mean([_macro_f(t) for t in tables]),
                }
            )
    return pd.DataFrame(found)


def _macro_f(table: Floats) -> float:
    return float((2 * table.diagonal() / (table.sum(axis=0) + table.sum(axis=1))).mean())


def _private(train: pd.DataFrame, test: pd.DataFrame, levels: int, epsilon: float, objective: str) -> Floats:
    """Return the confusion matrix of a private mixture on new rows: means over its draws."""
    names = [f"d{k}" for k in range(levels)]
    columns = {f"X{i}": ss.Numeric(lower=-1, upper=1, bins=2) for i in range(levels)}
    schema = ss.Schema({**columns, "D": ss.Categorical(levels=tuple(names))})
    table = ss.open_table(train, schema=schema, declared_size=len(train))
    how = make("reductions", {"target": "D", "objective": objective})
    release = ss.fit(how, table, ss.Budget(epsilon, DELTA), progress=False)
    said = release.predictions(test, seed=0)
    chances = np.column_stack([np.asarray(said.column(f"probability={name}"), np.float64) for name in names])
    return np.array([chances[(test["D"] == name).to_numpy()].sum(axis=0) for name in names])


def _plain(train: pd.DataFrame, test: pd.DataFrame, levels: int, *, balance: bool = False) -> Floats:
    from sklearn.linear_model import LogisticRegression

    names = [f"d{k}" for k in range(levels)]
    model = LogisticRegression(max_iter=300, class_weight="balanced" if balance else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train.drop(columns="D"), train["D"])
    said = model.predict(test.drop(columns="D"))
    return np.array([[((test["D"] == y) & (said == q)).sum() for q in names] for y in names], np.float64)
