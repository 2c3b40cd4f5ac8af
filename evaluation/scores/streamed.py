"""INTERNAL. The error of marginals from counts alone, for files larger than memory.

Rows of both files lie in scratch files while they are counted, as those of a streamed fit do. What needs the rows
themselves, such as intervals, is not there: see `workload_error` for tables that fit into memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from stratsynth.evaluation.scores.marginals import all_cliques
from stratsynth.evaluation.tables import FEW, By, as_schema, groups_of
from stratsynth.evaluation.tables.frames import judged, statuses, tidy

from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.files.scratch import Scratch
from stratsynth.progress import steps
from stratsynth.questions.counts import check_cells

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.driver.rows import StoredRows
    from stratsynth.strata import StratumPath

AT_ONCE = 100
"""Marginals counted in one pass over the rows."""


def streamed_workload_error(
    real: Any,
    synthetic: Any,
    schema: Any,
    k: int = 3,
    by: By = None,
    *,
    most: int | None = 1_000,
    few: int = FEW,
    progress: bool | None = None,
) -> pd.DataFrame:
    """The mean L1 distance of two files' k-way marginals within each group and for everybody, in constant memory.

    The same values as `workload_error`, which also gives intervals; `low` and `high` are null here.

    Args:
        real: The private table: a path of a file or folder.
        synthetic: The release's rows, such as a folder that `stratsynth sample -o folder` filled.
        schema: The schema of both, or its path.
        k: How many columns a marginal has.
        by: Columns whose crossing makes the groups; None for everybody alone.
        most: The largest number of sets of columns, the same ones every time; None for all.
        few: Groups with fewer rows in either table are `small`.
        progress: Whether to show a bar; by default on a terminal and in a notebook.

    Returns:
        A row for each declared group, then one for everybody; `cliques` is the number of sets of columns.

    Raises:
        UsageError: k out of range, a column that is not in the schema, or marginals of too many cells.
        StratsynthError: No room on the disk for the scratch files, under TMPDIR.
    """
    schema = as_schema(schema) if isinstance(schema, str | Path) else schema
    names, groups = groups_of(schema, by)
    cliques = all_cliques(schema.names, k, most)
    tables = [load_rows(schema, open_source(data), Scratch(), numbers=False) for data in (real, synthetic)]
    scopes: list[StratumPath] = [*((group,) for group in groups if names), ()]
    pieces = range(0, len(cliques), AT_ONCE)
    totals, rows = np.zeros(len(scopes)), np.zeros((2, len(scopes)), np.int64)
    with steps("counting", len(pieces) * len(scopes), progress) as done:
        for place, path in enumerate(scopes):
            fixed = set(path[0].columns) if path else set()  # constant in the group, so no marginal differs there
            sizes = np.array([rows_of(table, path, schema.names[0], fixed, schema.names) for table in tables])
            rows[:, place] = sizes
            for start in pieces:
                asked = [tuple(c for c in clique if c not in fixed) for clique in cliques[start : start + AT_ONCE]]
                asked = [clique for clique in asked if clique]
                check_cells("evaluation", asked, schema)
                totals[place] += distance(tables, path, asked, sizes)
                done(None)
    mean = np.where(rows.min(axis=0) > 0, totals / len(cliques), np.nan)
    frame = tidy(
        names, groups, 2 * mean[None, :], None, None, counts={"n": rows[0], "n_synthetic": rows[1]},
        status=statuses(mean[None, :], rows.min(axis=0), few), more={"cliques": np.full(mean.shape, len(cliques))},
    )  # fmt: skip
    return judged(frame, mean)


def rows_of(table: StoredRows, path: StratumPath, first: str, fixed: set[str], names: Sequence[str]) -> int:
    """The number of rows of a path, from a table of one of its columns."""
    column = next((name for name in names if name not in fixed), first)
    [[counts]] = table.counts([(path, [(column,)])])
    return int(counts.sum())


def distance(
    tables: Sequence[StoredRows], path: StratumPath, cliques: Sequence[tuple[str, ...]], sizes: NDArray[np.int64]
) -> float:
    """The sum over marginals of their total variation; 0 where a table has no row."""
    if not cliques or not sizes.all():
        return 0.0
    real, synthetic = (table.counts([(path, cliques)])[0] for table in tables)
    found = 0.0
    for one, other in zip(real, synthetic, strict=True):
        found += float(np.abs(one / sizes[0] - other / sizes[1]).sum()) / 2
    return found
