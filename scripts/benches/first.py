"""`first`: the cost of the first question, which every fit asks by default, to all others.

Of the built-in census and of every file that is given: the mean total variation between the counts of all pairs of
columns and those of MST's synthetic rows, at epsilon 1 and delta 1e-9, with a first question at the default share and
without one.
Both are fitted to the same rows in one run. The schema is drafted from the rows, as for public data. Only noise differs
between fits, so that the standard error of the difference is that over fits.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import stratsynth as ss
from stratsynth import census
from stratsynth.evaluation.tables.encoded import EncodedRows
from stratsynth.mechanisms.first import SHARE
from studies.figures import Figure

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

ROWS, EPSILON, DELTA = 20_000, 1.0, 1e-9


def run(tables: Sequence[str] = (), seeds: int = 5) -> list[Figure]:
    """Return figures for the built-in census and for each file, CSV or Parquet, over `seeds` fits of each kind."""
    import pandas as pd

    found = _figures(f"{ROWS:,} simulated people", census.make(ROWS, seed=1), census.schema(), seeds)
    for path in tables:
        if path.endswith(".parquet"):
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            schema = ss.Schema.draft(frame).reviewed("a bench, of public data")
        found += _figures(Path(path).name, frame, schema, seeds)
    return found


def _figures(name: str, frame: pd.DataFrame, schema: ss.Schema, seeds: int) -> list[Figure]:
    true = _pairs(EncodedRows.read(frame, schema))
    errors = {share: [_error(frame, schema, share, true, seed) for seed in range(seeds)] for share in (SHARE, 0.0)}
    asked, none = (np.array(errors[share]) for share in (SHARE, 0.0))
    spread = math.sqrt((asked.var(ddof=1) + none.var(ddof=1)) / seeds) if seeds > 1 else math.nan
    against = f"{none.mean():.5f} without; difference {asked.mean() - none.mean():+.5f}, standard error {spread:.5f}"
    text = f"{name}: error of pairs with a first question at {SHARE:g} of the budget"
    return [Figure(text, float(asked.mean()), "", seeds, float(np.ptp(asked)) / 2, against, None)]


def _error(frame: pd.DataFrame, schema: ss.Schema, share: float, true: list[NDArray[np.float64]], seed: int) -> float:
    """Return the mean total variation of all pairs of one fit's rows from the true ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = ss.open_table(frame, schema=schema, declared_size=len(frame))
        release = ss.fit("mst", table, ss.Budget(EPSILON, DELTA, first=share), seed=seed, progress=False)
        made = _pairs(EncodedRows.read(release.sample(len(frame), seed=seed), release.model.schema))
    return float(np.mean([0.5 * np.abs(a - b).sum() for a, b in zip(true, made, strict=True)]))


def _pairs(rows: EncodedRows) -> list[NDArray[np.float64]]:
    """Return the shares of the cells of every pair of columns."""
    sizes, found = {name: rows.schema.size(name) for name in rows.schema.names}, []
    for one, other in itertools.combinations(rows.schema.names, 2):
        cells = rows.codes[one].astype(np.int64) * sizes[other] + rows.codes[other]
        found.append(np.bincount(cells, minlength=sizes[one] * sizes[other]) / max(rows.rows, 1))
    return found
