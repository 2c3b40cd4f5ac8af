"""`ordered`: ages in single years beside ages in bands of five, and in bands that sizes and budget decide.

Of the built-in census, with its ages in single years, and of every file that is given: its drafted schema with each
column of single whole numbers that the draft calls smooth in three ways. `single`: `shape = "even"`, each number is
counted; `fives`: bands of five are declared, and numbers drawn evenly in them; `smooth`, as drafted. All three are
scored on the same rows and tables: NIST's score of 300 triples with bands of five; mean L1 of the pairs of smooth
columns and others with single numbers; L1 of the smooth columns by single numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import stratsynth as ss
from stratsynth import census
from stratsynth.evaluation.scores.marginals import coded, mean_l1
from stratsynth.mechanisms import make
from stratsynth.schema import Numeric
from stratsynth.schema.bins import EVEN, SMOOTH
from studies.figures import Figure

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

MOST_ROWS, TRIPLES, WIDTH, DELTA = 30_000, 300, 5, 1e-9
WAYS = ("single", "fives", "smooth")


def run(
    tables: Sequence[str] = (), base: str = "mst", epsilons: Sequence[float] = (1.0,), seeds: int = 3
) -> list[Figure]:
    """Return figures of a mechanism for the built-in census and each file, CSV or Parquet, over `seeds` fits each."""
    kinds = ("mst", "aim", "gem", "pooled") if base == "all" else (base,)
    cases = [_census(), *(as_drafted(Path(path)) for path in tables)]
    return [
        figure
        for name, frame, schema in cases
        for kind in kinds
        for epsilon in epsilons
        for figure in _compared(name, frame, schema, kind, epsilon, seeds)
    ]


def _census() -> tuple[str, pd.DataFrame, Schema]:
    schema = census.schema()
    ages = Numeric(lower=0, upper=95, integer=True, shape=SMOOTH)
    schema = ss.Schema({**schema.columns, "AGEP": ages})  # rules name the bins of the original
    return "20,000 simulated people", census.make(20_000, seed=1), schema


def as_drafted(path: Path) -> tuple[str, pd.DataFrame, Schema]:
    """Return name, rows (at most `MOST_ROWS`, always the same ones) and drafted schema of a file."""
    import pandas as pd

    if path.suffix == ".parquet":
        frame = pd.read_parquet(path)
    else:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, skipinitialspace=True)
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=1).reset_index(drop=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema = ss.Schema.draft(frame).reviewed("a bench, of public data")
    few = [name for name in schema.names if schema.size(name) <= 100]  # neither numbers of records nor of families
    return path.name, frame[few], schema.restrict(few)


def _smooth(schema: Schema) -> dict[str, Numeric]:
    return {n: c for n, c in schema.columns.items() if isinstance(c, Numeric) and c.shape == SMOOTH}


def _in_fives(column: Numeric) -> Numeric:
    first = int(column.lower) // WIDTH * WIDTH + WIDTH
    edges = (column.lower, *range(first, int(column.upper) + 1, WIDTH), column.upper + 1)
    return replace(column, edges=edges, bins=None, shape=EVEN)


def _compared(name: str, frame: pd.DataFrame, schema: Schema, kind: str, epsilon: float, seeds: int) -> list[Figure]:
    """Compare the three ways of one mechanism; columns that are not smooth are as drafted."""
    smooth = _smooth(schema)
    fives = {column: _in_fives(numbers) for column, numbers in smooth.items()}
    single = {column: replace(numbers, shape=EVEN) for column, numbers in smooth.items()}
    ways: Mapping[str, Mapping[str, Any]] = dict(zip(WAYS, (single, fives, smooth), strict=True))
    scored = [replace(schema, columns={**schema.columns, **ways[way]}) for way in WAYS[:2]]
    others = [column for column in schema.names if column not in smooth]
    pairs = [(column, other) for column in smooth for other in others]
    ordered = np.random.default_rng(0).permutation(np.array(list(combinations(schema.names, 3))))
    triples = [tuple(map(str, triple)) for triple in ordered[:TRIPLES]]
    figures = []
    for way, columns in ways.items():
        own = replace(schema, columns={**schema.columns, **columns})
        found = []
        for seed in range(seeds):
            drawn = _drawn(frame, own, kind, epsilon, seed)
            by_single, by_fives = ((coded(frame, s), coded(drawn, s), s) for s in scored)
            errors = [mean_l1(*by_single, some) for some in (pairs, [(column,) for column in smooth])]
            found.append([1000 * (1 - mean_l1(*by_fives, triples) / 2), *errors])
        mean, spread = np.mean(found, axis=0), np.ptp(found, axis=0) / 2
        text = f"{name}, {kind}, epsilon {epsilon:g}, {way}"
        figures += [
            Figure(f"{text}: NIST's score of triples in fives", mean[0], "of 1000", seeds, spread[0]),
            Figure("  pairs with single numbers", mean[1], "of 2", seeds, spread[1]),
            Figure("  single numbers", mean[2], "of 2", seeds, spread[2]),
        ]
    return figures


def _drawn(frame: pd.DataFrame, schema: Schema, kind: str, epsilon: float, seed: int) -> pd.DataFrame:
    """Return as many rows as there are, of one fit; `pooled` pools AIM by the first of SEX, sex and RAC1P."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = ss.open_table(frame, schema=schema, declared_size=len(frame), public=True)
        budget = ss.Budget(epsilon=epsilon, delta=DELTA)
        release = ss.fit(_mechanism(frame, schema, kind), table, budget, seed=seed, progress=False)
        found: pd.DataFrame = release.sample(len(frame), seed=seed)
    return found


def _mechanism(frame: pd.DataFrame, schema: Schema, kind: str) -> Any:
    if kind != "pooled":
        return make(kind, {})
    by = next(name for name in ("SEX", "sex") if name in schema.names)
    counted = frame[by].astype(str).value_counts(normalize=True)
    shares = counted.rename_axis(by).rename("share").reset_index()
    weights = ss.Weights.public(shares, citation="the file itself, for a benchmark")
    return make("pooled", {"base": "aim", "by": [by], "weights": weights})
