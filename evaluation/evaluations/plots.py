"""INTERNAL. Figures of an evaluation for a paper or a notebook."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.data.draft import refuse_release_folder
from stratsynth.evaluation.evaluations.page import everybody_and_groups
from stratsynth.evaluation.report.groups import worst_first
from stratsynth.evaluation.tables import STAMP
from stratsynth.report.drawing import COLOURS, check_path, new_figure, save, stamp

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stratsynth.evaluation.evaluations.evaluate import Evaluation

NAME = 44
"""Largest length of a group's name, which is shortened to it."""
GROUPS = 40
"""Largest number of groups, by error."""
OWN = "release"


def groups_plot(evaluation: Evaluation, path: str | Path | None) -> Figure:
    """Return the matplotlib figure of `Evaluation.plot`, saved to `path` unless it is None; UsageError in a release."""
    target = None if path is None else check_path(path)
    if target is not None:
        refuse_release_folder(target)
    groups, everybody = everybody_and_groups(evaluation, OWN)
    kept = [*worst_first(groups)[:GROUPS], everybody]
    figure = new_figure(7.2, 1.2 + 0.26 * len(kept))
    axes = figure.subplots()
    places = -np.arange(len(kept), dtype=float)
    names = [*evaluation.facts["beside"], OWN]
    for i, name in enumerate(names):
        at = places + 0.18 * (i - (len(names) - 1) / 2)
        scores = [group.error(name) for group in kept]
        values = np.array([score.value for score in scores])
        ends = np.nan_to_num([[s.value - s.low for s in scores], [s.high - s.value for s in scores]])
        axes.errorbar(
            values,
            at,
            xerr=np.maximum(ends, 0),
            fmt="o",
            markersize=4,
            color=COLOURS[i % len(COLOURS)],
            label=name,
            linewidth=1,
        )
    axes.plot([group.chance for group in kept], places, "|", color="0.4", markersize=9, label="chance alone")
    names_shown = [f"{shorten(group.name, NAME, placeholder='...')} ({int(group.n):,})" for group in kept]
    axes.set_yticks(places, names_shown, fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel(f"mean L1 distance (0 to 2), {evaluation.facts['k']}-way marginals", fontsize=8)
    axes.set_xlim(left=0)
    axes.grid(axis="x", linewidth=0.4)
    figure.legend(loc="outside upper right", ncols=len(names) + 1, fontsize=8)
    stamp(figure, STAMP)
    if target is not None:
        save(figure, target)
    return figure
