"""The parts of excessive risk over a training, one panel a world and model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


def picture(frame: pd.DataFrame, path: Path) -> None:
    """Each group's excessive risk with its interval, and its parts of clipping (dashed) and of noise (dotted)."""
    from matplotlib.figure import Figure

    frame = frame[frame["scaled"] == "by bounds"]
    names = list(dict.fromkeys(zip(frame["world"], frame["model"], strict=True)))
    down = -(-len(names) // 2)
    figure = Figure(figsize=(9, 2.8 * down + 0.8), layout="constrained")
    for panel, (world, model) in zip(figure.subplots(down, 2, squeeze=False).ravel(), names, strict=False):
        part = frame[(frame["world"] == world) & (frame["model"] == model)]
        for colour, group in (("C0", "majority"), ("C1", "minority")):
            line = part[part["group"] == group]
            panel.plot(line["step"], line["excess"], "-", color=colour, label=f"{group}: excessive risk")
            panel.fill_between(line["step"], line["low"], line["high"], color=colour, alpha=0.2)
            panel.plot(line["step"], line["clipping"], "--", color=colour, label=f"{group}: clipping")
            panel.plot(line["step"], line["noise"], ":", color=colour, label=f"{group}: noise")
        panel.set(title=f"{world}, {model}", xlabel="step", ylabel="loss")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    figure.savefig(path, dpi=120)
