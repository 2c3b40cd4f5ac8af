"""`frames`: one call from a frame to a release and back, for frames of any types.

For a simulated table of bills, with zeros and long tails, and for every file that is given: whether types come back as
they went in, how far means and quartiles of numeric columns are off, in standard deviations, at epsilon 3, and whether
scikit-learn takes the sample without a cast. The schema is drafted from the rows, as for public data.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import stratsynth as ss
from stratsynth.data.draft import drafted
from stratsynth.data.sources import open_source
from stratsynth.evaluation.scores.raw import farthest, raw_values
from studies.figures import Figure, limited

if TYPE_CHECKING:
    import pandas as pd

EPSILON = 3.0
MOST = 0.1
"""The target: no mean and no quartile is farther off than this, in standard deviations."""
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


def run(tables: Sequence[str] = ()) -> list[Figure]:
    """Figures for the simulated table, and for each file: CSV or Parquet."""
    import pandas as pd

    found = _figures(f"{ROWS:,} simulated bills", bills())
    for path in tables:
        frame = pd.read_parquet(path) if path.endswith(".parquet") else pd.read_csv(path)
        found += _figures(Path(path).name, frame)
    return found


def _figures(name: str, frame: pd.DataFrame) -> list[Figure]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        release = ss.synthesize(frame, epsilon=EPSILON, public=True)
        sample = release.sample(len(frame), seed=1)
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
