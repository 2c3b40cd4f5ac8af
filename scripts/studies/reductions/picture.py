"""Excess risk against epsilon n, with the lower bound for every mechanism and the guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.report.drawing import new_figure, save

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


def picture(curve: pd.DataFrame, bound: pd.DataFrame, path: Path) -> None:
    """Two panels; both axes are logarithmic."""
    figure = new_figure(9, 3.6)
    left, right = figure.subplots(1, 2)
    left.plot(curve["epsilon_n"], curve["excess"], marker="o", ms=3, label="exponential sampling")
    left.set(title="Simulated people", ylabel="mean excess risk")
    right.plot(bound["epsilon_n"], bound["upper_bound"], "--", label="guarantee, log M 2 / (epsilon n)")
    right.plot(bound["epsilon_n"], bound["excess"], marker="o", ms=3, label="exponential sampling, worst table")
    right.plot(bound["epsilon_n"], bound["lower_bound"], ":", label="lower bound by packing")
    right.set(title="The tables of the lower bound")
    for panel in (left, right):
        panel.set(xscale="log", yscale="log", xlabel="epsilon n")
        marked = sorted({float(x) for line in panel.get_lines() for x in line.get_xdata()})
        panel.set_xticks(marked, [f"{x:,.0f}" for x in marked])
        panel.set_xticks([], minor=True)
        panel.legend(fontsize=7)
    save(figure, path)
