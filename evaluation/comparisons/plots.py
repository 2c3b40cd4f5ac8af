"""Trade-off over epsilon of a comparison, as a figure for a paper or a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.data.draft import refuse_release_folder
from stratsynth.errors import UsageError, nearest
from stratsynth.evaluation.comparisons.paired import BASELINE, better, mean_interval, setting_name
from stratsynth.evaluation.scores.parity import PARITY
from stratsynth.evaluation.tables import EVERYBODY
from stratsynth.report.drawing import COLOURS, check_path, new_figure, save, stamp

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def plot_tradeoff(
    frame: pd.DataFrame,
    path: str | Path | None = None,
    *,
    metric: str = "workload_error",
    group: str | None = None,
) -> Figure:
    """Plot a metric against epsilon, a line for each setting: means over repetitions with 95 % intervals.

    Args:
        frame: Result of `compare`, or the frame read from its comparison.parquet.
        path: A new .pdf, .svg or .png file; None to have the figure alone.
        metric: Metric in the frame: "workload_error", "parity_means", "auc:boosting" and so on.
        group: A group by its levels, as in the frame's column `group`; by default everybody.

    Returns:
        matplotlib's figure. It says INTERNAL if the frame does.

    Raises:
        UsageError: The frame has no such metric or group, or the file cannot be written.
    """
    target = None if path is None else check_path(path)
    here = frame[frame["metric"] == metric]
    if here.empty:
        known = sorted(set(frame["metric"].astype(str)))
        raise UsageError(f"plot: there is no metric {metric!r}{nearest(metric, known)}. There are: {', '.join(known)}.")
    scope = PARITY if metric.startswith("parity") else "between" if EVERYBODY not in set(here["scope"]) else EVERYBODY
    here = here[here["scope"] == scope] if group is None else here[here["group"] == group]
    if here.empty:
        known = sorted(set(frame["group"].dropna().astype(str)))
        raise UsageError(f"plot: there is no group {group!r}. There are: {', '.join(known)}.")
    internal = "PUBLIC DATA" not in set(frame["stamp"].astype(str))
    if target is not None and internal:
        refuse_release_folder(target)
    figure = _drawn(here, metric, group)
    if internal:
        stamp(figure, "INTERNAL: computed from private rows without a charge; not for publication")
    if target is not None:
        save(figure, target)
    return figure


def _drawn(here: pd.DataFrame, metric: str, group: str | None) -> Figure:
    """Return a matplotlib figure of `here`, a frame of one metric's rows: mean by epsilon, for everybody or a `group`.

    `group` is the text of its levels; None for everybody.
    """
    own, base = here[here["stratification"] != BASELINE], here[here["stratification"] == BASELINE]
    figure = new_figure()
    axes = figure.subplots()
    for i, (keys, part) in enumerate(own.groupby(["mechanism", "stratification"], sort=False)):
        epsilons = sorted(set(part["epsilon"]))
        ends = [mean_interval(part[part["epsilon"] == e]["value"].to_numpy(float)) for e in epsilons]
        mean, low, high = (np.array([end[j] for end in ends], float) for j in range(3))
        error = np.nan_to_num(np.array([mean - low, high - mean]))
        axes.errorbar(
            epsilons,
            mean,
            yerr=error,
            fmt="o-",
            markersize=4,
            capsize=2,
            linewidth=1.2,
            color=COLOURS[i % len(COLOURS)],
            label=setting_name(str(keys[0]), str(keys[1])),
        )
    for name, style in (("(subsample)", ":"), ("(real rows)", "--")):
        value = base[base["mechanism"] == name]["value"].mean()
        if np.isfinite(value):
            said = "chance alone" if name == "(subsample)" else "real rows, not private"
            axes.axhline(value, color="0.4", linestyle=style, linewidth=1, label=said)
    axes.set_xscale("log")
    ticks = sorted(set(own["epsilon"]))
    axes.set_xticks(ticks, [f"{e:g}" for e in ticks])
    axes.minorticks_off()
    aim = {1: "more is better", -1: "less is better", 0: ""}[better(metric)]
    title = f"{metric.replace('_', ' ')}{f' ({aim})' if aim else ''}"
    axes.set(xlabel="epsilon", ylabel=title, title=f"group {group}" if group else "")
    axes.grid(linewidth=0.4)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return figure
