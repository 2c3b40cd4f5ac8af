"""The errors of the smallest group against rho, or by setting, one line a method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.report.drawing import new_figure, save

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


def picture(frame: pd.DataFrame, path: Path) -> None:
    """A panel for each thing that is varied; both axes are logarithmic."""
    ends = frame.groupby(["varied", "rho"])["group"].transform("max")
    smallest = frame[frame["group"] == ends]
    if smallest.groupby("varied")["rho"].nunique().max() == 1:  # rho is what is varied
        smallest = smallest.assign(varied=smallest["experiment"])
    names = list(smallest["varied"].unique())
    across = min(4, len(names))
    down = -(-len(names) // across)
    figure = new_figure(max(7, 4 * across), 3.2 * down + 1.2)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for panel, name in zip(panels, names, strict=False):
        part = smallest[smallest["varied"] == name]
        for (weighting, accounting, mode), line in part.groupby(["weighting", "accounting", "mode"], sort=False):
            points = line.sort_values("rho")
            style = {"pooled": "--", "balanced": "-"}[str(weighting)]
            name_of = f"{mode}, {accounting}, {weighting}"
            panel.plot(points["rho"], points["error"], style, marker="o", ms=3, label=name_of)
        panel.set(xscale="log", yscale="log", title=str(name), xlabel="rho", ylabel="mean squared error")
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_formatter("{x:g}")
        panel.tick_params(axis="y", which="both", labelsize=7)
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2 if across < 3 else 4, fontsize=8
    )
    figure.suptitle("Error of the smallest group, at true budgets")
    save(figure, path)


def digits_picture(frame: pd.DataFrame, path: Path) -> None:
    """The errors of either digit by method: the mean, and the range over seeds. A panel for each training set."""
    sets, methods = list(frame["set"].unique()), list(frame["method"].unique())
    figure = new_figure(5 * len(sets) + 2.5, 0.42 * len(methods) + 1.8)
    panels = figure.subplots(1, len(sets), squeeze=False, sharey=True)[0]
    for panel, name in zip(panels, sets, strict=True):
        part = frame[frame["set"] == name]
        for (digit, lines), marker, shift in zip(part.groupby("digit"), "os", (-0.12, 0.12), strict=True):
            errors = lines.groupby("method", sort=False)["error"].agg(["mean", "min", "max"]).loc[methods]
            places = [i + shift for i in range(len(methods))]
            (drawn,) = panel.plot(
                errors["mean"], places, marker, ms=5, label=f"{digit}, about {lines['size'].mean():,.0f} of them"
            )
            panel.hlines(places, errors["min"], errors["max"], colors=drawn.get_color(), lw=1)
        panel.set(title=name, xlabel="part of test images told wrongly", xlim=(-0.02, 1.02))
        panel.set_yticks(range(len(methods)), methods, fontsize=8)
        panel.grid(axis="x", alpha=0.3)
        panel.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.11), ncols=2, frameon=False)
    panels[0].invert_yaxis()
    figure.suptitle("Eights against twos: mean and range over seeds")
    save(figure, path)
