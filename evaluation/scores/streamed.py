"""INTERNAL. Error of marginals from counts alone, for tables larger than memory.

Rows of files and databases lie in scratch files while they are counted, as those of a streamed fit do; Spark counts its
own. Results that need the rows themselves, such as intervals, are missing: see `workload_error` for tables that fit
into memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.data.backends import backend, check_engine
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.errors import StratsynthError
from stratsynth.evaluation.scores.marginals import all_cliques
from stratsynth.evaluation.tables import FEW, Array, By, as_schema, groups_of
from stratsynth.evaluation.tables.frames import judged, statuses, tidy
from stratsynth.files.scratch import Scratch
from stratsynth.progress import steps
from stratsynth.questions.counts import check_cells
from stratsynth.schema.encoding import check_source
from stratsynth.schema.weight import ONE

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.data.sources import Source
    from stratsynth.questions import Clique
    from stratsynth.questions.reading import Rows
    from stratsynth.schema import Schema
    from stratsynth.strata import Stratum, StratumPath

AT_ONCE = 100
"""Number of marginals of one group that are counted together."""
MOST_CELLS = 1 << 23
"""Largest number of cells of the tables counted in one pass over the rows."""


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
    engine: str = "auto",
) -> pd.DataFrame:
    """Mean L1 distance of two tables' k-way marginals in each group and for everybody, in constant memory; a frame.

    The values equal those of `workload_error`, which also gives intervals; `low` and `high` are null here.

    Args:
        real: The private table: a path of a file or folder, `ss.database(...)`, or a Spark DataFrame. If the schema
            names a column of weights, its rows count as these; synthetic rows count 1 each. All rows of a unit count.
        synthetic: The release's rows, such as a folder that `stratsynth sample -o folder` filled.
        schema: The schema of both, or its path.
        k: Number of columns of a marginal.
        by: Columns whose crossing makes the groups; None for everybody alone.
        most: The largest number of sets of columns, a fixed choice; None for all.
        few: Groups with fewer rows in either table are `small`.
        progress: True to show a bar; by default on a terminal and in a notebook.
        engine: Engine for the real rows, as for `open_table`: with "spark" its executors count Parquet files too.

    Returns:
        A row for each declared group, then one for everybody; `cliques` is the number of sets of columns.

    Raises:
        UsageError: k out of range, a column that is not in the schema, or marginals of too many cells.
        Unsupported: An engine that does not hold these rows.
        StratsynthError: Rows that cannot be read, or no room on the disk for the scratch files, under TMPDIR.
    """
    schema = as_schema(schema)
    names, groups = groups_of(schema, by)
    cliques = all_cliques(schema.names, k, most)
    schema, sources = replace(schema, unit="record"), [open_source(data) for data in (real, synthetic)]
    single = replace(schema, row_weight=ONE)
    weighed = single if schema.row_weight.column is None else schema
    for source, known in zip(sources, (weighed, single), strict=True):
        check_source(known, source.columns(), source.types())
    with _in_words():
        return _scored(sources, (weighed, single), names, groups, cliques, engine, few, progress)


def _scored(
    sources: Sequence[Source],
    schemas: tuple[Schema, Schema],
    names: tuple[str, ...],
    groups: Sequence[Stratum],
    cliques: Sequence[Clique],
    engine: str,
    few: int,
    progress: bool | None,
) -> pd.DataFrame:
    """Frame of mean L1 distances of the marginals `cliques` in each of `groups`, of columns `names`, then everybody.

    `sources` and `schemas` are those of the real table, then of the synthetic one; `engine` is for the former. Groups
    are strata; those below `few` rows are small; `progress` shows a bar.
    """
    weighed, schema = schemas
    scopes: list[StratumPath] = [*((group,) for group in groups if names), ()]
    fixed = [set(path[0].columns) if path else set() for path in scopes]  # constant there
    first = [[(next((c for c in schema.names if c not in those), schema.names[0]),)] for those in fixed]
    sizes = list(zip(scopes, first, strict=True))
    rows = None if weighed is schema else _sizes([counter(sources[0], schema, engine)], sizes)  # then freed
    tables = [counter(sources[0], weighed, engine), counter(sources[1], schema, "auto")]
    mass = _sizes(tables, sizes)
    rows = mass if rows is None else np.concatenate([rows, mass[1:]])
    totals = np.zeros(len(scopes))
    work = [
        (place, [free for free in (tuple(c for c in clique if c not in fixed[place]) for clique in some) if free])
        for some in (cliques[start : start + AT_ONCE] for start in range(0, len(cliques), AT_ONCE))
        for place in range(len(scopes))
    ]
    with steps("counting", len(work), progress) as done:
        for part in in_passes(work, schema):
            asked = [(scopes[place], some) for place, some in part]
            for (place, _), *both in zip(part, *(table.counts(asked) for table in tables), strict=True):
                totals[place] += distance(both[0], both[1], mass[:, place])
                done(None)
    mean = np.where(mass.min(axis=0) > 0, totals / len(cliques), np.nan)
    frame = tidy(
        names,
        groups,
        2 * mean[None, :],
        None,
        None,
        counts={"n": rows[0], "n_synthetic": rows[1]},
        status=statuses(mean[None, :], rows.min(axis=0), few),
        more={"cliques": np.full(mean.shape, len(cliques))},
    )
    return judged(frame, mean)


def counter(source: Source, schema: Schema, engine: str = "auto") -> Rows:
    """Rows of a source in a schema that can be counted out of memory: in Spark, in a database, in a scratch file.

    `engine` names which.
    """
    check_engine(engine)
    held = "spark" if source.engine == "spark" else engine
    if held in {"spark", "duckdb"} or source.engine is not None:
        return backend(held, source, schema).rows(numbers=False)
    return load_rows(schema, source, Scratch(), numbers=False)


def _sizes(tables: Sequence[Rows], sizes: Sequence[tuple[StratumPath, Sequence[Clique]]]) -> NDArray[np.int64]:
    """Array (tables, groups, then everybody) of numbers of rows, or sums of weights, of rows that can be counted.

    `sizes` are the questions for them, pairs (path, list of one marginal), one a group.
    """
    return np.array([[int(one.sum()) for (one,) in table.counts(sizes)] for table in tables])


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """Context that words a StratsynthError in reading rows, told for a fit and its charge, for an evaluation.

    Errors of its subclasses pass unchanged.
    """
    try:
        yield
    except StratsynthError as error:
        if type(error) is not StratsynthError:
            raise
        raise StratsynthError("evaluation: the rows could not be read or counted. Are the files whole?") from None


def in_passes(work: Sequence[tuple[int, list[Clique]]], schema: Schema) -> Iterator[list[tuple[int, list[Clique]]]]:
    """Yield parts of `work`, lists of pairs (scope's number, marginals), each of at most `MOST_CELLS` cells.

    The schema says how many cells a marginal has.
    """
    part: list[tuple[int, list[Clique]]] = []
    cells = 0
    for place, cliques in work:
        check_cells("evaluation", cliques, schema)
        more = sum(schema.cells(clique) for clique in cliques)
        if part and cells + more > MOST_CELLS:
            yield part
            part, cells = [], 0
        part.append((place, cliques))
        cells += more
    yield part


def distance(real: Sequence[Array], synthetic: Sequence[Array], sizes: NDArray[np.int64]) -> float:
    """Sum over marginals of the total variation of two tables' counts, `real` and `synthetic`.

    Each is a list of arrays, one a marginal. `sizes` is the array of the numbers of rows of both; 0 if one of them is
    0.
    """
    if not sizes.all():
        return 0.0
    pairs = zip(real, synthetic, strict=True)
    return sum(float(np.abs(one / sizes[0] - other / sizes[1]).sum()) / 2 for one, other in pairs)
