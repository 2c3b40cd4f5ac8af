"""Pictures of the experiments: errors of mixtures and of census columns by method."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.report.drawing import new_figure, save

if TYPE_CHECKING:
    import pandas as pd

COLOURS = {
    "pooled": "tab:orange",
    "stratified": "tab:blue",
    "public-stratified": "tab:green",
    "plain": "0.45",
    "plain, public": "0.7",
}


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


def alpha_picture(frame: pd.DataFrame, path: Path) -> None:
    """Figure 1: the sum of the logarithms of the groups' sizes, between its worst and its best case, by alpha."""
    figure, axes = _panels(1, 1)
    for name, style in (("worst", "--"), ("expected", "-"), ("expected, whole people", ":"), ("best", "--")):
        axes[0][0].plot(frame["alpha"], frame[name], style, label=name)
    axes[0][0].set(xlabel="alpha", ylabel="sum of log group sizes")
    axes[0][0].legend(fontsize=8)
    save(figure, path)


def laplace_picture(frame: pd.DataFrame, path: Path) -> None:
    """Error of the mean of all, stratified over fresh, by the number of groups, beside the root of it."""
    radii, ks = sorted(frame["radius"].unique()), sorted(frame["k"].unique())
    figure, axes = _panels(1, len(radii))
    for axis, radius in zip(axes[0], radii, strict=True):
        part = frame[frame["radius"] == radius]
        means = part.pivot_table(index=["alpha", "k"], columns="method", values="error")
        for alpha, ratio in (means["stratified"] / means["fresh"]).groupby(level="alpha"):
            axis.plot(ks, ratio.to_numpy(), "o-", label="equal groups" if alpha == float("inf") else f"alpha {alpha:g}")
        axis.plot(ks, [k**0.5 for k in ks], "--", color="0.45", label="root of k")
        axis.set(xscale="log", yscale="log", xlabel="groups", title=f"Laplace means, R = {radius:g}")
        axis.set_xticks(ks, [f"{k:g}" for k in ks])
        axis.xaxis.set_minor_formatter("")
        for formatted in (axis.yaxis.set_major_formatter, axis.yaxis.set_minor_formatter):
            formatted("{x:g}")
    axes[0][0].set_ylabel("error, stratified over fresh")
    axes[0][0].legend(fontsize=8)
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
