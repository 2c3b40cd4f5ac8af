"""INTERNAL. What a release is compared with: tables made from the real rows themselves, without privacy.

Each is made from private rows and protects nobody: its privacy loss is infinite. None of them is a mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from stratsynth.evaluation.scores.workload import workload_frame, workload_of
from stratsynth.evaluation.tables import FEW, By, EncodedRows, Pair, joined, named

from stratsynth.errors import UsageError
from stratsynth.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

RELEASE = "release"
MEANINGS = {
    RELEASE: "the synthetic table itself",
    "subsample": "real rows, so many that they are off the real table by the sampling error of as many rows as the "
    "release has: so far off is a perfect model of the real table, sampled",
    "resampled": "as many real rows as the release has, drawn with replacement; not private",
    "independent": "as many rows as the release has, each column drawn by itself from its real values: what a "
    "release of one-way marginals without noise would be; not private",
}
"""What each value of the column `table` means."""


@dataclass(frozen=True, eq=False)
class Baseline:
    """A table to compare a release with."""

    name: str
    table: EncodedRows
    epsilon: float = float("inf")
    """What it costs in privacy: all of it."""

    @property
    def meaning(self) -> str:
        """In words."""
        return MEANINGS[self.name]


def baselines(real: Any, schema: Schema | str | Path, rows: int, *, seed: int = 0) -> tuple[Baseline, ...]:
    """The subsample, the resampled rows and the product of one-way marginals, for a release of so many rows.

    The subsample is drawn without replacement and has n m / (n + m) rows, for n real rows and m released ones: what
    is left of its error, since it lies in the real table, is then that of m fresh rows. For m = n that is half of
    the real rows; for a small release, nearly m.
    """
    table = EncodedRows.read(real, schema)
    if rows < 0:
        raise UsageError("evaluation: a baseline has at least 0 rows.")
    rng = np.random.default_rng(seed)
    n = table.rows
    some = round(n * rows / (n + rows)) if n + rows else 0
    rows = rows if n else 0
    subsample = table.take(rng.permutation(n)[:some])
    resampled = table.take(_drawn(n, rows, rng))
    columns = {name: _drawn(n, rows, rng) for name in table.schema.names}
    independent = EncodedRows(
        table.schema,
        {name: codes[columns[name]] for name, codes in table.codes.items()},
        {name: numbers[columns[name]] for name, numbers in table.numbers.items()},
        rows,
    )
    made = {"subsample": subsample, "resampled": resampled, "independent": independent}
    return tuple(Baseline(name, made_of) for name, made_of in made.items())


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
    """`workload_error` (L1) of a release beside that of every baseline: the column `table` says whose it is."""
    real, release = EncodedRows.read(real, schema), EncodedRows.read(synthetic, schema)
    tables = {RELEASE: release} | {b.name: b.table for b in baselines(real, schema, release.rows, seed=seed)}
    parts = []
    for name, table in tables.items():
        pair = Pair.of(real, table, real.schema, by, few)
        parts.append(named(workload_frame(pair, workload_of(pair, k, most, None)), name))
    return joined(parts)


def _drawn(n: int, rows: int, rng: np.random.Generator) -> Any:
    return rng.integers(0, n, rows) if n else np.zeros(0, np.int64)
