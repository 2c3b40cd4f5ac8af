"""Public rows for tests: simulated people of one year and of the next, with an association that a tree would miss."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from stratsynth import Categorical, Prior, Schema

CITATION = "made up for testing, the year before"
LEVELS = {"A": 3, "B": 4, "C": 2, "D": 3, "G": 2}
SCHEMA = Schema({name: Categorical(levels=tuple(str(i) for i in range(size))) for name, size in LEVELS.items()})


def people(rows: int, seed: int, drift: float = 0.0) -> pd.DataFrame:
    """B follows A, D follows B and C together; `drift` moves people from the first level of A to its last."""
    return _people(rows, seed, drift).copy()


@lru_cache(maxsize=16)
def _people(rows: int, seed: int, drift: float) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.choice(3, rows, p=[0.5 - drift, 0.3, 0.2 + drift])
    b = np.where(rng.random(rows) < 0.8, a, 3)
    c = rng.integers(0, 2, rows)
    d = np.where(rng.random(rows) < 0.9, (b + c) % 3, rng.integers(0, 3, rows))
    g = (rng.random(rows) < 0.1).astype(int)
    level = np.array(["0", "1", "2", "3"])
    return pd.DataFrame({n: level[v] for n, v in zip("ABCDG", (a, b, c, d, g), strict=True)})


def last_year(rows: int = 2_000, seed: int = 1) -> Prior:
    """The year before, as a prior."""
    return Prior.public(people(rows, seed), citation=CITATION)


def shuffled(rows: int = 2_000, seed: int = 2) -> Prior:
    """Return a prior with every column shuffled by itself: right about columns, wrong about all pairs."""
    rng = np.random.default_rng(seed)
    frame = people(rows, seed)
    return Prior.public(frame.apply(lambda column: rng.permutation(column.to_numpy())), citation=CITATION)


def distance(one: pd.DataFrame, two: pd.DataFrame, columns: list[str]) -> float:
    """The L1 distance of two tables of counts, as shares."""
    here, there = (frame.groupby(columns).size() / len(frame) for frame in (one, two))
    return float(here.sub(there, fill_value=0).abs().sum())
