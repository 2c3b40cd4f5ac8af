"""`frames`: one call from a frame to a release and back, for frames of any types.

For a simulated table of bills, with zeros and long tails, and for every file that is given: whether types come back as
they went in, how far means and quartiles of numeric columns are off, in standard deviations, and means, medians and
deciles in per cent, at epsilon 3, and whether scikit-learn takes the sample without a cast. The schema is drafted from
the rows, as for public data. Columns of credit (`CREDIT`), and those of the bills that are like them, are shown one by
one, with the share of their numbers but 0 that are multiples of 100.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import stratsynth as ss
from benches.numbers import multiples
from stratsynth.data.draft import drafted
from stratsynth.data.sources import open_source
from stratsynth.evaluation import number_errors
from stratsynth.evaluation.scores.headline import worst
from stratsynth.evaluation.scores.raw import farthest, raw_values
from studies.figures import Figure, limited

if TYPE_CHECKING:
    import pandas as pd

EPSILON = 3.0
MOST = 0.1
"""The target: no mean and no quartile is farther off than this, in standard deviations."""
CREDIT = ("LIMIT_BAL", "PAY_AMT2", "limit", "paid_2")
"""Columns that are shown one by one where a table has them."""
MOST_CREDIT = 0.05
"""The target of their means, in standard deviations."""
ROWS = 30_000


def bills(rows: int = ROWS, seed: int = 1) -> pd.DataFrame:
    """A table like those of credit: amounts with zeros and long tails that depend on each other."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    wealth = rng.normal(size=rows)
    limit = np.clip(np.round(np.exp(11.6 + 0.8 * wealth) / 1e4) * 1e4, 1e4, 1e6)
    columns: dict[str, Any] = {"limit": limit.astype(int), "age": rng.integers(21, 75, rows)}
    for month in range(1, 7):
        paid = np.round(np.exp(7.4 + 0.5 * wealth + 1.4 * rng.normal(size=rows)))
        columns[f"paid_{month}"] = np.where(rng.random(rows) < 0.2, 0, np.minimum(paid, 1.7e6)).astype(int)
    columns["since"] = pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 5_000, rows), unit="D")
    columns["late"] = rng.random(rows) < 1 / (1 + np.exp(1.2 + 0.5 * wealth))
    return pd.DataFrame(columns)


def run(tables: Sequence[str] = (), seeds: int = 1, epsilons: Sequence[float] = (EPSILON,)) -> list[Figure]:
    """Figures for the simulated table, and for each file: CSV or Parquet; at each epsilon, `seeds` times."""
    import pandas as pd

    frames = {f"{ROWS:,} simulated bills": bills()}
    for path in tables:
        frames[Path(path).name] = pd.read_parquet(path) if path.endswith(".parquet") else pd.read_csv(path)
    return [
        figure
        for name, frame in frames.items()
        for epsilon in epsilons
        for seed in range(1, seeds + 1)
        for figure in _figures(f"{name}, epsilon {epsilon:g}{f', {seed}' if seeds > 1 else ''}", frame, epsilon, seed)
    ]


def _figures(name: str, frame: pd.DataFrame, epsilon: float, seed: int) -> list[Figure]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        release = ss.synthesize(frame, epsilon=epsilon, public=True)
        sample = release.sample(len(frame), seed=seed)
        taken = time.perf_counter() - start
        left_out = drafted(open_source(frame)).left_out
    scores = raw_values(frame, sample, release.model.schema)
    far = farthest(scores)
    other = sum(not _alike(frame[c].dtype, sample[c].dtype) for c in sample)
    size = f"{name}: {len(frame):,} rows, {len(sample.columns)} columns"
    figures = [
        Figure(f"{size}, draft, fit and sample", taken, "s"),
        limited("  columns that came back in another type", float(other), 0, "columns"),
        Figure("  columns left out as identifiers or free text", float(len(left_out)), "columns"),
        limited("  models of scikit-learn that needed a cast, of 2", float(_refused(sample)), 0, "models"),
    ]
    if far is not None:
        what = f"  farthest mean or quartile, {far['statistic']} of {far['variable']}"
        figures.append(limited(what, float(far["value"]), MOST, "standard deviations"))
    return [*figures, *_numbers(frame, sample, release.model.schema, scores)]


def _numbers(frame: pd.DataFrame, sample: pd.DataFrame, schema: Any, scores: pd.DataFrame) -> list[Figure]:
    """Figures of the worst mean, median and deciles, and of the columns of `CREDIT`."""
    errors = number_errors(frame, sample, schema)
    found = {statistic: worst(errors, statistic) for statistic in ("mean", "median", "deciles")}
    figures = [
        Figure(f"  worst {statistic}, of {row['variable']}", float(row["value"]), "%")
        for statistic, row in found.items()
        if row is not None
    ]
    for column in CREDIT:
        own = scores[(scores["variable"] == column) & (scores["statistic"] == "mean")]
        if len(own) == 0:
            continue
        here = errors[errors["variable"] == column].set_index("statistic")["value"]
        real, made = (multiples(data, schema, column) for data in (frame, sample))
        figures += [
            limited(f"  {column}: mean", float(own["value"].iloc[0]), MOST_CREDIT, "standard deviations"),
            *(Figure(f"  {column}: {name}", float(here[name]), "%") for name in ("mean", "median", "deciles", "P99")),
            Figure(f"  {column}: multiples of 100, real {real:.1f} %", made, "%"),
        ]
    return figures


def _alike(went: Any, came: Any) -> bool:
    """True if two types are equal, but for the unit of moments; whole numbers and nullable ones are equal."""
    return str(went) == str(came) or (went.kind == came.kind and (went.kind in "mM" or str(went).lower() == str(came)))


def _refused(sample: pd.DataFrame) -> int:
    """Number of two ordinary models that refuse the sample: one of the numbers, one of everything else one-hot."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    few = [name for name in sample if 1 < sample[name].nunique() <= 20 and sample[name].notna().all()]
    if not few:
        return 0
    rows = sample.head(2_000)
    target = rows[few[-1]]
    rest = rows.drop(columns=few[-1])
    numbers, words = rest.select_dtypes("number"), rest.select_dtypes(exclude=["number", "datetime", "timedelta"])
    coded = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=50))
    refused = 0
    for model, features in ((HistGradientBoostingClassifier(max_iter=5), numbers), (coded, words)):
        if not features.columns.empty:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(features, target)
            except (TypeError, ValueError):
                refused += 1
    return refused
