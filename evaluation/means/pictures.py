"""Pictures of the experiments, and of a release's group means with their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.report.drawing import check_path, new_figure, save

if TYPE_CHECKING:
    import pandas as pd

COLOURS = {
    "pooled": "tab:orange",
    "stratified": "tab:blue",
    "public-stratified": "tab:green",
    "plain": "0.45",
    "plain, public": "0.7",
}
STATUS = {"ok": "tab:blue", "small": "tab:orange", "not_estimable": "0.6"}
MOST_GROUPS = 60


def mixture_picture(frame: pd.DataFrame, path: Path) -> None:
    """Error and parity error as n, k and alpha vary: a column of panels each."""
    varied = ["n", "k", "alpha"]
    figure, axes = _panels(2, len(varied))
    for j, key in enumerate(varied):
        part = frame[frame["experiment"] == f"mixture, {key}"]
        for i, measure in enumerate(("error", "parity of large groups")):
            _lines(axes[i][j], part, key, measure)
            axes[i][j].set(xscale="linear" if key == "n" else "log", yscale="log", xlabel=key)
        axes[0][j].set_title(f"mixtures, {key} varied")
    axes[0][0].set_ylabel("relative error of the mean of all")
    axes[1][0].set_ylabel("parity error, groups of 500 or more")
    axes[0][0].legend(fontsize=8)
    save(figure, path)


def census_picture(frame: pd.DataFrame, path: Path) -> None:
    """Error and parity error of census columns by ever finer groups."""
    names = list(frame["column"].unique())
    figure, axes = _panels(2, len(names))
    for j, name in enumerate(names):
        part = frame[frame["column"] == name]
        for i, measure in enumerate(("error", "parity of large groups")):
            # what is exact has no place on a scale of ratios
            _lines(axes[i][j], part[part[measure] > 1e-9], "k", measure)
            axes[i][j].set(xscale="log", yscale="log", xlabel="groups with people in them")
        axes[0][j].set_title(name)
    axes[0][0].set_ylabel("relative error of the mean of all")
    axes[1][0].set_ylabel("parity error, groups of 500 or more")
    axes[0][0].legend(fontsize=8)
    save(figure, path)


def means_picture(table: pd.DataFrame, path: Path, *, internal: bool) -> None:
    """Each column's group means with their intervals; with `internal`, the true ones beside them."""
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


def _lines(axis: Any, part: pd.DataFrame, key: str, measure: str) -> None:
    means = part.pivot_table(index=key, columns="method", values=measure)
    for method, colour in COLOURS.items():
        if method in means:
            style = "--" if method.startswith("plain") else "o-"
            axis.plot(means.index, means[method], style, color=colour, markersize=3, label=method)


def _panels(rows: int, columns: int) -> tuple[Any, Any]:
    figure = new_figure(4.0 * columns + 0.6, 3.2 * rows)
    return figure, figure.subplots(rows, columns, squeeze=False)
