"""INTERNAL. Section on single columns: each level's share in the release beside that among real people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from stratsynth.report.numbers import Numbers, percent, several
from stratsynth.report.page import Figure, Section
from stratsynth.report.strip import Axis, Mark, legend, strip

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.evaluation.evaluations.evaluate import Evaluation

COLUMNS, LEVELS = 40, 12
"""Largest number of columns, by distance; and of levels in each, by share."""


def single_columns(evaluation: Evaluation) -> Section:
    """Return the page's Section with drawings of an evaluation's columns, farthest off first: shares of levels."""
    frame = evaluation.columns
    off = frame["value"].abs().groupby(frame["column"], sort=False).sum().sort_values(ascending=False, kind="stable")
    kept = list(off.index[:COLUMNS])
    drawings = [_column(str(name), frame[frame["column"] == name], evaluation) for name in kept]
    hidden = len(off) - len(kept)
    rows = frame[["column", "level", "real", "synthetic"]].to_numpy().tolist()
    return Section(
        "columns",
        "Column by column",
        text=[
            "The share of each level in the release, and among the real rows. Columns that are farthest off come first."
            + (f" {several(hidden, 'more column')} are in the numbers only." if hidden else "")
        ],
        figures=[
            Figure(
                "",
                picture=Markup('<div class="columns">{}</div>').format(Markup("").join(drawings)),
                legend=legend([("the release", 1), ("real rows", -1)]),
                numbers=Numbers("columns", ["column", "level", "real", "synthetic"], rows),
            )
        ],
    )


def _column(name: str, part: pd.DataFrame, evaluation: Evaluation) -> Markup:
    """Return the HTML of the commonest levels of column `name`, from rows `part` of an evaluation's frame."""
    most = part[["real", "synthetic"]].max(axis=1)
    # the commonest, in their own order
    shown = part.loc[most.sort_values(ascending=False, kind="stable").index[:LEVELS].sort_values()]
    scale = Axis.over([*shown["real"], *shown["synthetic"]])
    labels = evaluation.schema.column(name).labels
    lines = [_level(row, scale, labels.get(row["level"], "")) for row in shown.to_dict("records")]
    hidden = len(part) - len(shown)
    note = f"{several(hidden, 'rarer level')} in the numbers only" if hidden else ""
    return Markup("<div><h4>{}</h4><small>{}</small>{}</div>").format(name, note, Markup("").join(lines))


def _level(row: dict[Any, Any], scale: Axis, label: str) -> Markup:
    """Return the HTML of one level's line: its share of real and synthetic rows on the `Axis`, with its label.

    `row` is a mapping with "level", "real" and "synthetic"; `label` is "" for none.
    """
    name = f"{row['level']} ({label})" if label else row["level"]
    marks = [Mark("the release", row["synthetic"], series=1), Mark("real rows", row["real"], series=-1)]
    return Markup('<div class="level"><span>{}</span>{}<span>{}</span></div>').format(
        name, strip(scale, marks, joined=False, what=str(name)), percent(row["synthetic"])
    )
