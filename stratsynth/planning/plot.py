"""Picture of a plan: expected error against group size, for some epsilons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Budget
from stratsynth.errors import UsageError
from stratsynth.planning.foresee import plan
from stratsynth.planning.stratum import StratumPlan
from stratsynth.report.drawing import check_path, new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from stratsynth.mechanisms import Mechanism
    from stratsynth.schema import Schema

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)


def plot(mechanism: Mechanism[Any], schema: Schema, budget: Budget, path: Path, *, declared_size: int) -> None:
    """Draw expected errors of one-way counts by group size, a line an epsilon, to the file `path`; nothing is read.

    They are those of a mechanism on a schema, around the `budget`, at the declared size. Each stratum is a point. Of
    the budget asked for, bars show between which sizes a group may lie, and hollow points groups that are small.
    UsageError if no stratum with people is asked for one-way tables.
    """
    check_path(path)
    figure = new_figure()
    axes = figure.subplots()
    epsilons = sorted({*EPSILONS, budget.epsilon})
    mechanism = mechanism.relative(budget.epsilon)
    for i, epsilon in enumerate(epsilons):
        strata = plan(mechanism, schema, replace(budget, epsilon=epsilon), declared_size=declared_size).strata
        points = sorted((s.size, s.oneway_error) for s in strata if s.size > 0 and s.oneway_error is not None)
        if not points:
            raise UsageError("there is nothing to plot: no stratum with people in it is asked for one-way tables.")
        sizes, errors = zip(*points, strict=True)
        chosen = epsilon == budget.epsilon
        shade = str(0.6 - 0.5 * i / (len(epsilons) - 1)) if not chosen else "tab:red"
        if chosen:
            _details(axes, strata)
        axes.plot(sizes, errors, "o-", color=shade, markersize=4, linewidth=2.2 if chosen else 1.2)
        axes.annotate(
            f"epsilon {epsilon:g}",
            (sizes[-1], errors[-1]),
            xytext=(5, 0),
            textcoords="offset points",
            color=shade,
            va="center",
            fontsize=9,
        )
    axes.set(xscale="log", yscale="log", xlabel="public size of the group", ylabel="expected relative error")
    axes.axhline(1, color="0.5", linewidth=0.8, linestyle=":")
    axes.margins(x=0.16)
    axes.set_title("Error of a one-way count from noise alone, a point for each group", fontsize=11)
    save(figure, path)


def _details(axes: Axes, strata: Sequence[StratumPlan]) -> None:
    """Draw into `axes` the intervals of sizes of a plan's `strata`, as lines, and small ones as hollow points."""
    for s in strata:
        if s.size <= 0 or s.oneway_error is None:
            continue
        if s.size_low is not None and s.size_high is not None:
            axes.plot([max(s.size_low, 0.5), s.size_high], [s.oneway_error] * 2, color="tab:red", linewidth=0.8)
        if s.small:
            axes.plot(s.size, s.oneway_error, "o", color="tab:red", markerfacecolor="white", markersize=7, zorder=3)
