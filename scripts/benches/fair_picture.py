"""Picture of `fair`: accuracy by gap on test rows, a panel a problem and a mark a method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np

from benches.fair_fits import PLAIN
from stratsynth.report.drawing import COLOURS, new_figure, save

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benches.fair_fits import Scored

FAMILIES: Mapping[str, Sequence[str]] = {
    "nothing asked: fermi, penalty 0; group left out": ("fermi, no penalty", "fermi, no penalty, group left out"),
    "fermi, gap .05 and .1": ("fermi, gap .05", "fermi, gap .1"),
    "fermi, gap .05 and .1 by thresholds (uses the group)": (
        "fermi, gap .05 by thresholds",
        "fermi, gap .1 by thresholds",
    ),
    "fermi, penalty 1 and 5": ("fermi, penalty 1", "fermi, penalty 5"),
    "fair_sgd, by default": ("fair_sgd",),
    "fair_sgd, surrogate": ("fair_sgd, surrogate",),
    "reductions, parity .05 and .1": ("reductions, parity .05", "reductions, parity .1"),
}
"""Methods by the name that a legend has for them; two of a name are joined by a line."""
OPEN: Mapping[str, Sequence[str]] = {
    "logistic regression, not private": (PLAIN,),
    "fairlearn, parity .05 and .1, not private": (
        "fairlearn, parity .05, not private",
        "fairlearn, parity .1, not private",
    ),
}
"""Methods without privacy, drawn in grey and red."""
MARKS = "oDs^vP*"
WANTED = 0.05
HEIGHT = 0.012
"""Smallest range of accuracies in a panel, so that differences of chance look small."""
ACROSS = 3
"""Panels in a line."""


def draw(found: Mapping[str, Mapping[str, Sequence[Scored]]], path: Path, title: str) -> None:
    """Draw to `path` the means over fits, by problem and method, under a title."""
    down = -(-len(found) // ACROSS)
    figure = new_figure(11, 3.0 * down + 1.3)
    panels = np.atleast_1d(figure.subplots(down, ACROSS, squeeze=False)).ravel()
    looks = {
        **{name: (COLOURS[i % len(COLOURS)], MARKS[i]) for i, name in enumerate(FAMILIES)},
        **dict(zip(OPEN, (("tab:gray", "o"), ("tab:red", "X")), strict=True)),
    }
    for panel, (problem, methods) in zip(panels, found.items(), strict=False):
        panel.axvline(WANTED, color="lightgray", lw=1, ls="--", zorder=0)
        for family, members in {**FAMILIES, **OPEN}.items():
            points = [methods[name] for name in members if name in methods]
            colour, mark = looks[family]
            gap, right = ([float(np.mean([getattr(s, key) for s in p])) for p in points] for key in ("gap", "accuracy"))
            panel.plot(gap, right, "-", marker=mark, color=colour, ms=6, lw=1, label=family)
        panel.set_title(problem, fontsize=9)
        panel.set(xlabel="gap of parity on test rows", ylabel="accuracy")
        panel.set_xlim(left=0)
        low, high = panel.get_ylim()
        spare = max(0.0, HEIGHT - (high - low)) / 2
        panel.set_ylim(low - spare, high + spare)
        panel.tick_params(labelsize=8)
    for panel in panels[len(found) :]:
        panel.set_visible(False)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    figure.suptitle(title, fontsize=10)
    with mpl.rc_context({"svg.fonttype": "none"}):  # letters as letters: a quarter of the size
        save(figure, path)
