"""The paper's first and third case studies: weighted least squares over groups, and selecting a powerful test.

Both on simulated people, fitted privately and measured on the truth. NOT PRIVATE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

import stratsynth as ss
from stratsynth.mechanisms import make

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.1
"""The level of the test: the share of the null hypothesis that it may reject."""
SHIFT = 1.5
"""Distance of the alternative from the null hypothesis, in standard deviations."""
BOUNDS = (-4.0, 6.0)
SELECTED = {"method": "sampling", "multiplier": 3.0}
"""A penalty just above the power that a point of level can buy: the score moves by no more than need be."""
RANDOMISED = {"oracle": "exponential", "iterations": 10}
CANDIDATES = 200
"""Tests to select from."""
WEIGHTS = (0.5, 0.5)
"""Weight of each group's mean squared error."""
DELTA = 1e-6


def least_squares(rows: Sequence[int], epsilon: float, runs: int, rng: np.random.Generator) -> pd.DataFrame:
    """Weighted least squares of two groups: the weighted loss of `group_regression` less the least there is.

    The oracle that the paper sketches doubles the coefficients for each group; weights on the groups' gradients give
    one vector for everybody.
    """
    found = []
    for number in rows:
        excess = [_weighted_excess(_two_groups(number, rng), epsilon) for _ in range(runs)]
        found.append({"rows": number, "epsilon": epsilon, "excess": float(np.mean(excess))})
    return pd.DataFrame(found)


def _two_groups(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    group = np.where(rng.random(rows) < 0.2, "b", "a")
    x, z = rng.uniform(-1, 1, (2, rows))
    y = np.where(group == "a", 0.6, -0.2) * x + 0.3 * z + 0.1 * rng.normal(size=rows)
    return pd.DataFrame({"G": group, "X": x, "Z": z, "Y": np.clip(y, -1, 1)})


def _weighted_excess(frame: pd.DataFrame, epsilon: float) -> float:
    schema = ss.Schema(
        {
            "G": ss.Categorical(levels=("a", "b")),
            "X": ss.Numeric(lower=-1, upper=1, bins=2),
            "Z": ss.Numeric(lower=-1, upper=1, bins=2),
            "Y": ss.Numeric(lower=-1, upper=1, bins=2),
        }
    )
    settings = {
        "target": "Y",
        "features": ["X", "Z"],
        "groups": ["G"],
        "objective": "weights",
        "clip": 2.0,
        "group_weights": dict(zip("ab", WEIGHTS, strict=True)),
    }
    table = ss.open_table(frame, schema=schema, declared_size=len(frame))
    said = ss.fit(make("group_regression", settings), table, ss.Budget(epsilon, DELTA)).predict(frame)
    sizes = frame["G"].map(frame["G"].value_counts())
    each = frame["G"].map(dict(zip("ab", WEIGHTS, strict=True))).to_numpy() / sizes.to_numpy()
    x = np.column_stack([np.ones(len(frame)), frame["X"], frame["Z"]])
    root = np.sqrt(each)
    best = np.linalg.lstsq(x * root[:, None], frame["Y"].to_numpy() * root, rcond=None)[0]
    y = frame["Y"].to_numpy()
    return float(each @ ((said - y) ** 2 - (x @ best - y) ** 2))


def tests(rows: Sequence[int], epsilons: Sequence[float], runs: int, rng: np.random.Generator) -> pd.DataFrame:
    """The level and power of privately selected tests of a normal mean, beside those of the most powerful one.

    Each record is a statistic X with the hypothesis that it was drawn under. Tests reject where X is above, or below, a
    threshold; the power is maximised under a bound on the level, from these records alone. `selected` is one test by
    exponential sampling, `randomised` a mixture by Frank-Wolfe over the same tests.
    """
    best = 1 - ndtr(ndtri(1 - LEVEL) - SHIFT)
    found = []
    for number in rows:
        for epsilon in epsilons:
            for method in ("selected", "randomised"):
                runs_of = [_selected(_statistics(number, rng), epsilon, method) for _ in range(runs)]
                level, power = np.mean(runs_of, axis=0)
                found.append(
                    {
                        "rows": number,
                        "epsilon": epsilon,
                        "method": method,
                        "level": level,
                        "power": power,
                        "most powerful": best,
                    }
                )
    return pd.DataFrame(found)


def _statistics(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    alternative = rng.random(rows) < 0.5
    x = rng.normal(size=rows) + SHIFT * alternative
    return pd.DataFrame({"X": np.clip(x, *BOUNDS), "D": np.where(alternative, "alternative", "null")})


def _selected(frame: pd.DataFrame, epsilon: float, method: str) -> tuple[float, float]:
    """The true level and power of the test that was selected."""
    low, high = BOUNDS
    schema = ss.Schema(
        {
            "X": ss.Numeric(lower=low, upper=high, bins=2),
            "D": ss.Categorical(levels=("null", "alternative")),
        }
    )
    settings: dict[str, Any] = {
        "target": "D",
        "features": ["X"],
        "candidates": "thresholds",
        "objective": "false_negative_rate",
        "constraints": {"false_positive_rate": LEVEL},
        "number": CANDIDATES,
        **(SELECTED if method == "selected" else RANDOMISED),
    }
    release = ss.fit(make("reductions", settings), ss.open_table(frame, schema=schema), ss.Budget(epsilon, DELTA))
    grid = np.linspace(low, high, 2_001)
    table = release.predictions(pd.DataFrame({"X": grid}), seed=0)
    rejects = np.asarray(table.column("probability=alternative"), np.float64)
    middle = (rejects[1:] + rejects[:-1]) / 2
    return tuple(float(middle @ np.diff(ndtr(grid - mean))) for mean in (0.0, SHIFT))  # type: ignore[return-value]
