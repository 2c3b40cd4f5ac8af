"""Predictions of a release for rows: post-processing of a published model, which keeps none of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.checks import check_integer, is_texts
from stratsynth.data.sources import open_source
from stratsynth.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.data.sources import Data
    from stratsynth.models.predictor import Predictor

ROW = "row"
"""Column of a row's index, from 0."""


def predicted(model: Predictor, data: Data, seed: int | None) -> NDArray[Any]:
    """Return an array of the model's prediction for each row of `data`, in its order; `seed` is for chance, None: none.

    Raises:
        UsageError: Rows that have no order.
    """
    return _seeded(model, seed).predict(model.encoded(_read(data, model.inputs, ordered=True)))


def predicted_table(model: Predictor, data: Data, seed: int | None, keep: Sequence[str] = ()) -> pa.Table:
    """Return an Arrow table, a row for each of `data`: the columns `keep` of it, or `row`; `prediction`; more.

    `seed` is for models that predict by chance; further columns are the model's.

    Raises:
        UsageError: Rows without order, if no column is kept; columns named as the predictions are.
        SchemaError: Columns that do not exist.
    """
    import pyarrow as pa

    if not is_texts(keep):
        raise UsageError('keep must be a list of columns, such as ["number"].')
    rows = _read(data, tuple(dict.fromkeys((*model.inputs, *keep))), ordered=not keep)
    told = _seeded(model, seed).table(model.encoded(rows))
    kept = {name: _as_it_stands(data, name, rows) for name in keep} or {ROW: pa.array(np.arange(rows.num_rows))}
    if clash := kept.keys() & told.keys():
        raise UsageError(f"keep: {min(clash)} is what a column of the predictions is called; keep another one.")
    return pa.table({**kept, **{name: pa.array(values) for name, values in told.items()}})


def _as_it_stands(data: Data, name: str, rows: pa.Table) -> pa.ChunkedArray | pa.Array:
    """Return column `name` of `data`, with pandas' own type if that is a frame; UsageError for mixed types.

    Of another source, that of `rows`, the table read from it.
    """
    import pandas as pd
    import pyarrow as pa

    if not isinstance(data, pd.DataFrame):
        return rows.column(name)
    try:
        return pa.Array.from_pandas(data[name])
    except pa.ArrowException:
        raise UsageError(f"keep: the values of {name} are of several types; make them text.") from None


def _read(data: Data, columns: Sequence[str], *, ordered: bool) -> pa.Table:
    """Return an Arrow table of the columns of `data`, any source of rows.

    If `ordered`, UsageError for a database, Spark, or a file with lines left out.
    """
    source = open_source(data)
    if ordered and source.engine is not None:
        raise UsageError(
            "predict: rows of a database or of Spark have no order, so predictions alone would be nobody's. Keep a "
            "column that tells the rows apart: --keep COLUMN, or release.predictions(data, keep=[COLUMN])."
        )
    if ordered and any(asdict(source.left_out()).values()):
        raise UsageError(
            "predict: some lines of the file are no records and are left out, so the rows' numbers would be those of "
            "others. Mend these lines (`stratsynth schema check` counts them), or keep a column that tells rows apart: "
            "--keep COLUMN, or release.predictions(data, keep=[COLUMN])."
        )
    return source.read(columns)


def _seeded(model: Predictor, seed: int | None) -> Predictor:
    """Return the model with this `seed`, itself for None; UsageError for a seed that is no whole number."""
    if seed is None:
        return model
    check_integer("predict: seed", seed)
    return model.seeded(seed)
