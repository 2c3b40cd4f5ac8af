"""INTERNAL. Errors of linked tables: total variation of each table, beside the floor and the ceiling of such errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.linked.rows import LinkedCodes, LinkedColumns
from stratsynth.evaluation.linked.tables import KINDS, tables_of
from stratsynth.evaluation.tables.encoded import Array
from stratsynth.evaluation.tables.frames import NOT_ESTIMABLE, OK, SMALL

if TYPE_CHECKING:
    import pandas as pd

FEW = 30
"""Number of entries of a table below which its error is mostly chance."""


def linked_errors(
    real: tuple[Any, Any],
    synthetic: tuple[Any, Any],
    columns: LinkedColumns,
    *,
    kinds: tuple[str, ...] = KINDS,
    repetitions: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """INTERNAL. Total variation of every table of two linked releases, beside what chance and disorder would have.

    Args:
        real: The private tables, a pair (parents, children): frames or Arrow tables.
        synthetic: The released ones, a pair alike.
        columns: Their LinkedColumns.
        kinds: Kinds of tables, of "H", "HP", "P2", "P3", "W", "S" and "G" (`evaluation.linked.tables`).
        repetitions: Number of bootstrap samples of parents, with all their rows, for the floor.
        seed: Seed of these, and of the random assignment of child rows to parents, which is the ceiling.

    Returns:
        A frame with a row for each table: `kind`, `table`, `n` and `n_synthetic` (entries), `value`, `floor`,
        `ceiling`, each from 0 to 1, and `status`: "ok"; "small", with few real entries; "not_estimable", without any in
        one of the tables.
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    one, other = (LinkedCodes.read(*each, columns) for each in (real, synthetic))
    shuffled, n = one.shuffled(rng), len(one.size)
    weights = [np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(repetitions)] if n else []
    found = []
    for table in tables_of(columns, kinds):
        cells, made, mixed = (table.cells(rows) for rows in (one, other, shuffled))
        own = cells.shares()
        both = len(cells.cell) and len(made.cell)
        chance = [_distance(own, cells.shares(each)) for each in weights]
        found.append(
            {
                "kind": table.kind,
                "table": table.name,
                "n": len(cells.cell),
                "n_synthetic": len(made.cell),
                "value": _distance(own, made.shares()) if both else np.nan,
                "floor": float(np.mean(chance)) if chance and len(cells.cell) else np.nan,
                "ceiling": _distance(own, mixed.shares()) if len(mixed.cell) and len(cells.cell) else np.nan,
                "status": NOT_ESTIMABLE if not both else SMALL if len(cells.cell) < FEW else OK,
            }
        )
    return pd.DataFrame(found)


def linked_means(errors: pd.DataFrame) -> pd.DataFrame:
    """INTERNAL. Frame with the mean error, floor and ceiling of each kind of table, a row a kind.

    It is of a frame of `linked_errors`; tables of few entries are left out.
    """
    kept = errors[errors["status"] == OK]
    return kept.groupby("kind", sort=False)[["value", "floor", "ceiling"]].mean().reset_index()


def _distance(one: Array, other: Array) -> float:
    return float(np.abs(one - other).sum() / 2)
