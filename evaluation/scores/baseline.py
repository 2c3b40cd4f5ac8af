"""INTERNAL. Baselines of a release: tables made from the real rows themselves, without privacy.

Each is made from private rows and protects nobody: its privacy loss is infinite. None of them is a mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import UsageError
from stratsynth.evaluation.scores.workload import workload_frame, workload_of
from stratsynth.evaluation.tables import FEW, By, EncodedRows, Pair, joined, named
from stratsynth.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

RELEASE, SUBSAMPLE = "release", "subsample"
MEANINGS = {
    RELEASE: "the synthetic table itself",
    "subsample": "real rows, as few as give the sampling error of a table of the release's size: the error of a "
    "perfect model of the real table, sampled",
    "resampled": "as many real rows as the release has, drawn with replacement; not private",
    "independent": "as many rows as the release has, each column drawn by itself from its real values: what a "
    "release of one-way marginals without noise would be; not private",
}
"""Value of the column `table` -> its meaning."""


@dataclass(frozen=True, eq=False)
class Baseline:
    """Table made from real rows, without privacy, to compare a release with."""

    name: str
    """Name: "subsample", "resampled" or "independent"."""
    table: EncodedRows
    """Rows of the baseline."""
    epsilon: float = float("inf")
    """Privacy loss: infinite, as the baseline holds real rows."""

    @property
    def meaning(self) -> str:
        """Sentence for readers that describes this baseline, from `MEANINGS`."""
        return MEANINGS[self.name]


def baselines(real: Any, schema: Schema | str | Path, rows: int, *, seed: int = 0) -> tuple[Baseline, ...]:
    """Make the subsample, the resampled rows and the product of one-way marginals, for a release of `rows` rows.

    The subsample is drawn without replacement and has n m / (n + m) rows, for n real rows and m released ones: at that
    size its sampling error, as a part of the real table, equals that of m fresh rows. For m = n it has half of the real
    rows; for a small release, nearly m.

    Args:
        real: The private table: a frame, an Arrow table or a path.
        schema: Its schema, or the path of it.
        rows: Number of rows of the release.
        seed: Seed of the draws; equal seeds give equal baselines.

    Returns:
        A tuple of the Baselines named "subsample", "resampled" and "independent", in this order.

    Raises:
        UsageError: `rows` is below 0, or the table cannot be read.
    """
    table = EncodedRows.read(real, schema, weigh=True)
    if rows < 0:
        raise UsageError("evaluation: a baseline has at least 0 rows.")
    part = subsample(table, rows, seed=seed)
    rng = np.random.default_rng([seed, 1])
    rows = rows if table.rows else 0
    resampled = replace(table.take(_drawn(table, rows, rng)), weights=None)
    columns = {name: _drawn(table, rows, rng) for name in table.schema.names}
    independent = EncodedRows(
        table.schema,
        {name: codes[columns[name]] for name, codes in table.codes.items()},
        {name: numbers[columns[name]] for name, numbers in table.numbers.items()},
        rows,
    )
    made = {"subsample": part, "resampled": resampled, "independent": independent}
    return tuple(Baseline(name, made_of) for name, made_of in made.items())


def subsample(real: EncodedRows, rows: int, *, seed: int) -> EncodedRows:
    """Draw EncodedRows of `real`, by `seed`, without replacement: as many as err like m = `rows` released rows.

    Of n rows with effective number e (n without weights), n m / (e + m) are drawn; rows with weights keep them.
    """
    n = real.rows
    fresh = rows * n / real.effective if real.effective else rows  # in rows without weights
    some = round(n * fresh / (n + fresh)) if n + fresh else 0
    return real.take(np.random.default_rng(seed).permutation(n)[:some])


def baseline_errors(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    k: int = 3,
    by: By = None,
    *,
    most: int | None = None,
    few: int = FEW,
    seed: int = 0,
) -> pd.DataFrame:
    """Frame of `workload_error` (L1) of `synthetic` against `real`, beside that of each baseline, drawn by `seed`.

    As there, errors are of marginals of `k` columns, at most `most`, by groups of `by` in a schema, small below `few`.

    Returns:
        The rows of `workload_error` for each `table`: "release", "subsample", "resampled", "independent".
    """
    real, release = EncodedRows.read(real, schema, weigh=True), EncodedRows.read(synthetic, schema)
    tables = {RELEASE: release} | {b.name: b.table for b in baselines(real, schema, release.rows, seed=seed)}
    parts = []
    for name, table in tables.items():
        pair = Pair.of(real, table, real.schema, by, few)
        parts.append(named(workload_frame(pair, workload_of(pair, k, most, None)), name))
    return joined(parts)


def _drawn(table: EncodedRows, rows: int, rng: np.random.Generator) -> Any:
    """Array of `rows` row numbers of `EncodedRows`, drawn by `rng` with replacement, by weights if any; [] of none."""
    if not table.rows:
        return np.zeros(0, np.int64)
    if table.weights is None:
        return rng.integers(0, table.rows, rows)
    return rng.choice(table.rows, rows, p=table.weights / table.weights.sum())
