"""INTERNAL. Error rates of predictions as figures: group by group, and the differences between groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stratsynth.evaluation.report.figures import listing
from stratsynth.evaluation.report.groups import GroupErrors, card, group_errors
from stratsynth.report.page import Figure

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema


def errors_by_group(
    rows: pd.DataFrame, by: Sequence[str], shown: Mapping[str, str], schema: Schema, *, title: str, of: str
) -> Figure:
    """Return a Figure with a row for each group and one for everybody; accuracies become shares of wrong predictions.

    Args:
        rows: Frame of one metric's rows of `prediction_rates`, by `table`.
        by: The groups' columns.
        shown: Mapping from each table that is to be shown to its name in the report.
        schema: Schema, for the meaning of levels.
        title: Of the figure.
        of: Words for whose predictions these are.
    """
    (metric,) = rows["metric"].unique()
    error = str(metric).replace("_", " ")
    if metric == "accuracy":
        rows = rows.assign(value=1 - rows["value"], low=1 - rows["high"], high=1 - rows["low"])
        error = "share of wrong predictions"
    groups, everybody = group_errors(rows, by, shown, None, schema)
    made = card(
        groups,
        GroupErrors(everybody.name, everybody.n, everybody.errors, status=everybody.status),
        title=title,
        note=f"The {error} in each group, of {of}.",
        interval=f"Lines: 95 % intervals of chance among {of}.",
    )
    return replace(made, detail=True)


def differences(rows: pd.DataFrame, shown: Mapping[str, str], keys: Sequence[str] = ()) -> list[Figure]:
    """Return a list of one Figure, a table of differences between groups by fairlearn's definitions; [] without any.

    Args:
        rows: Frame of `prediction_rates`' rows with scope "between", by `table` and `keys`.
        shown: Mapping from each table that is to be shown to its name in the report.
        keys: Further columns by which rows differ.
    """
    table = []
    for key, part in rows.groupby([*keys, "metric"], sort=False):
        values = part.set_index("table")["value"]
        table.append([*(str(k).replace("_", " ") for k in key), *(values.get(name) for name in shown)])
    if not table:
        return []
    return [
        listing(
            "How unequal the predictions are",
            "Differences between the groups that serve best and worst, by fairlearn's definitions; groups too small "
            "for a rate are left out.",
            [*((key, "text") for key in keys), ("between groups", "text"), *((n, "number") for n in shown.values())],
            table,
            "For differences, 0 is equal; for ratios, 1.",
        )
    ]
