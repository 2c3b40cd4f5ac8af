"""The errors of the smallest group against rho, or by setting, one line a method."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


def picture(frame: pd.DataFrame, path: Path) -> None:
    """A panel for each thing that is varied; both axes are logarithmic."""
    from matplotlib.figure import Figure

    ends = frame.groupby(["varied", "rho"])["group"].transform("max")
    smallest = frame[frame["group"] == ends]
    if smallest.groupby("varied")["rho"].nunique().max() == 1:  # rho is what is varied
        smallest = smallest.assign(varied=smallest["experiment"])
    names = list(smallest["varied"].unique())
    across = min(4, len(names))
    down = -(-len(names) // across)
    figure = Figure(figsize=(max(7, 4 * across), 3.2 * down + 1.2), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for panel, name in zip(panels, names, strict=False):
        part = smallest[smallest["varied"] == name]
        for (weighting, accounting, mode), line in part.groupby(["weighting", "accounting", "mode"], sort=False):
            points = line.sort_values("rho")
            style = {"pooled": "--", "balanced": "-"}[str(weighting)]
            name_of = f"{mode}, {accounting}, {weighting}"
            panel.plot(points["rho"], points["error"], style, marker="o", ms=3, label=name_of)
        panel.set(xscale="log", yscale="log", title=str(name), xlabel="rho", ylabel="mean squared error")
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2 if across < 3 else 4, fontsize=8
    )
    figure.suptitle("Error of the smallest group, at true budgets")
    figure.savefig(path, dpi=120)
