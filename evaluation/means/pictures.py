"""Picture of a release's group means with their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.report.drawing import check_path, new_figure, save

if TYPE_CHECKING:
    import pandas as pd

STATUS = {"ok": "tab:blue", "small": "tab:orange", "not_estimable": "0.6"}
MOST_GROUPS = 60


def means_picture(table: pd.DataFrame, path: Path, *, internal: bool) -> None:
    """Plot the means and intervals of `table`, by `show_means`, to the file `path`: a panel a column, a line a group.

    With `internal`, the true means are beside them.
    """
    check_path(path)
    names = list(table["column"].unique())
    groups = min(table["stratum"].nunique(), MOST_GROUPS)
    figure = new_figure(4.0 * len(names) + 0.6, 1.6 + 0.24 * groups)
    axes = figure.subplots(1, len(names), squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        part = table[table["column"] == name].head(MOST_GROUPS)
        places = range(len(part), 0, -1)
        for place, row in zip(places, part.to_dict("records"), strict=True):
            colour = STATUS[row["status"]]
            axis.plot([row["lower"], row["upper"]], [place, place], color=colour, linewidth=2)
            axis.plot(row["value"], place, "o", color=colour, markersize=4)
            if internal:
                axis.plot(row["true"], place, "|", color="black", markersize=11)
        axis.set_yticks(list(places), [label or "everybody" for label in part["stratum"]], fontsize=8)
        axis.set_title(name + (" (INTERNAL: with true means)" if internal else ""), fontsize=10)
    words = ("blue: ok", "orange: small, more noise than sampling error", "grey: not estimable")
    figure.supxlabel(", ".join([*words, "bar: true mean"] if internal else words), fontsize=9)
    save(figure, path)
