"""Group totals of a public file, such as a survey of an earlier year: counts for `Weights.public`.

The totals are exact, so only files that anybody may read qualify. A file that has an account is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import WeightsError
from stratsynth.inputs import output_path
from stratsynth.schema import Schema
from stratsynth.strata import crossing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


def group_totals(data: Any, schema: Schema, by: Sequence[str], weight: str | None = None) -> pd.DataFrame:
    """Return a pandas frame, a row for each declared group in public rows: the columns `by`, and `count`, weighted.

    Of weights of the American Community Survey whose 80 replicates the rows have, and of 2,000 groups at most, also
    `count_1` to `count_80`, the counts by each replicate weight.

    Args:
        data: Public rows: a frame, an Arrow table or a path.
        schema: The schema whose levels define the groups; rows with other values are left out, by its policy.
        by: The strata's columns.
        weight: The column of row weights; the schema's own if None. Public weights are not cut: a weight
            below 0, or no finite number, counts 0.

    Raises:
        UsageError: Columns that do not exist; a WeightsError if nothing is counted.
    """
    import pandas as pd

    from stratsynth.data.sources import open_source
    from stratsynth.schema import Numeric
    from stratsynth.schema.columns import Categorical
    from stratsynth.schema.encoding import encode_categorical, encode_numeric, locate
    from stratsynth.schema.values import check_type, floats
    from stratsynth.weights.design import MOST_REPLICATED
    from stratsynth.weights.replicates import replicate_weights
    from stratsynth.weights.table import REPLICATE

    strata, column = crossing(schema, by), schema.row_weight.column if weight is None else weight
    source = open_source(data)
    wanted = (*by, *(() if column is None else (column,)))
    locate(wanted, source.columns())
    table = source.read(wanted)
    cell, known = np.zeros(table.num_rows, np.int64), np.ones(table.num_rows, bool)
    for name in by:
        kind, values = schema.column(name), table.column(name)
        check_type(name, values.type)
        codes, *_ = encode_categorical(kind, values) if isinstance(kind, Categorical) else encode_numeric(kind, values)
        known &= codes >= 0
        cell = cell * kind.size + codes
    counts = known.astype(float)
    if column is not None:
        check_type(column, table.column(column).type)
        weights, _ = floats(Numeric(lower=0, upper=1, bins=1), table.column(column))
        counts *= np.where(np.isnan(weights), 0.0, np.maximum(weights, 0.0))
    totals = np.bincount(np.where(known, cell, 0), counts, len(strata))
    if not totals.sum() > 0:
        raise WeightsError("weights: no row of this file counts anything in the groups of the schema.")
    found = pd.DataFrame([s.to_dict() | {"count": t} for s, t in zip(strata, totals.tolist(), strict=True)])
    replicated = None if column is None or len(strata) > MOST_REPLICATED else replicate_weights(source, column)
    if replicated is None:
        return found
    place = np.where(known, cell, 0)
    counts_by = [np.bincount(place, np.where(known, weights, 0.0), len(strata)) for weights in replicated]
    return found.join(pd.DataFrame(np.stack(counts_by, axis=1), columns=list(REPLICATE["count"])))


def write_totals(
    data: Path,
    schema: Path,
    by: Sequence[str],
    weight: str | None,
    out: Path,
    table: str | None = None,
    query: str | None = None,
) -> tuple[float, int]:
    """Write the weighted count of each group by columns `by` of the file `schema` in public `data` to a CSV file `out`.

    `weight` is the column of row weights, None for the schema's; `table` or `query` select a database's rows. Return
    (sum of all counts, number of groups).
    """
    from stratsynth.data.overlap import check_public_inputs
    from stratsynth.data.sources import open_source

    output_path(out)
    source, levels = open_source(data, table, query), Schema.load(schema)
    check_public_inputs(declared=[source], schema=levels)
    found = group_totals(source, levels, by, weight)
    for name in found.columns[len(by) :]:
        found[name] = [int(c) if float(c).is_integer() else c for c in found[name]]
    found.to_csv(out, index=False, lineterminator="\n")
    return float(found["count"].sum()), len(found)
