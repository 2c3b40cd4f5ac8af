"""The pictures of the experiments: traces and risks, the parts over a training, and what mitigation does to gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from stratsynth.evaluation.tables import FEW
from stratsynth.report.drawing import new_figure, save
from studies.lens.sweeps import gaps_over

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

SHOWN = 5
"""Largest number of groups of a panel, by size."""


def _panels(across: int, number: int, height: float, **more: Any) -> tuple[Any, list[Any]]:
    """A figure of this many panels in rows of `across`; places without a panel are left empty."""
    down = -(-number // across)
    figure = new_figure(10, height * down + 0.8)
    panels = list(figure.subplots(down, across, squeeze=False, **more).ravel())
    for empty in panels[number:]:
        empty.set_axis_off()
    return figure, panels


def traces(frame: pd.DataFrame, path: Path) -> None:
    """Each group's trace against its excessive risk under output perturbation; the line is the closed form."""
    models = list(dict.fromkeys(frame["model"]))
    figure, panels = _panels(len(models), len(models), 4.2)
    marks = "os^Dvp*hX"
    for panel, model in zip(panels, models, strict=False):
        own = frame[(frame["model"] == model) & (frame["group"] != "everybody") & (frame["n"] >= FEW)]
        for number, (world, part) in enumerate(own.groupby("world", sort=False)):
            colour = f"C{number}"
            panel.plot(part["trace"], part["closed"], "-", color=colour, linewidth=0.8)
            panel.errorbar(
                part["trace"],
                part["risk"],
                [part["risk"] - part["low"], part["high"] - part["risk"]],
                fmt=marks[number % len(marks)],
                color=colour,
                markersize=5,
                label=str(world),
            )
        panel.set(title=model, xlabel="trace of the group's Hessian", ylabel="excessive risk")
        panel.set(yscale="log")
    figure.suptitle("Output perturbation: groups by draws, lines by the closed form")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    save(figure, path)


def parts(frame: pd.DataFrame, path: Path) -> None:
    """Each group's excessive risk with its interval, and its parts of clipping (dashed) and of noise (dotted)."""
    frame = frame[(frame["scaled"] == "by bounds") & (frame["group"] != "everybody") & (frame["n"] >= FEW)]
    names = list(dict.fromkeys(zip(frame["world"], frame["model"], strict=True)))
    figure, panels = _panels(2, len(names), 2.6)
    for panel, (world, model) in zip(panels, names, strict=False):
        part = frame[(frame["world"] == world) & (frame["model"] == model)]
        largest = part[part["step"] == part["step"].max()].nlargest(SHOWN, "n")["group"]
        for number, group in enumerate(largest):
            line, colour = part[part["group"] == group], f"C{number}"
            panel.plot(line["step"], line["excess"], "-", color=colour, label=group)
            panel.fill_between(line["step"], line["low"], line["high"], color=colour, alpha=0.2)
            panel.plot(line["step"], line["clipping"], "--", color=colour)
            panel.plot(line["step"], line["noise"], ":", color=colour)
        panel.set(title=f"{world}, {model}", xlabel="step", ylabel="loss")
        panel.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.suptitle("Excessive risk over a training (solid), its parts of clipping (dashed) and of noise (dotted)")
    save(figure, path)


def mitigated(gaps: pd.DataFrame, path: Path) -> None:
    """The gap between the groups with its interval: one panel a case, one line a way, both models beside each other."""
    worlds = list(dict.fromkeys(gaps.index.get_level_values("world")))
    models = list(dict.fromkeys(gaps.index.get_level_values("model")))
    ways = list(dict.fromkeys(gaps.index.get_level_values("mitigation")))
    figure, panels = _panels(2, len(worlds), 2.9, sharey=True)
    for panel, world in zip(panels, worlds, strict=False):
        for number, model in enumerate(models):
            own = gaps.loc[world, model].reindex(ways)
            height = [place + 0.24 * (number - (len(models) - 1) / 2) for place in range(len(ways))]
            panel.errorbar(own["gap"], height, xerr=own["spread"], fmt="os"[number], color=f"C{number}", label=model)
        panel.set(title=world, xlabel="gap between the groups' excessive risk")
        panel.set_yticks(range(len(ways)), ways, fontsize=8)
        panel.margins(y=0.1)
        panel.set_xlim(left=0)
        panel.grid(axis="x", alpha=0.3)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8)
    save(figure, path)


def swept(epsilons: pd.DataFrame, clips: pd.DataFrame, ratios: pd.DataFrame, budgets: pd.DataFrame, path: Path) -> None:
    """The gap between the groups over each sweep: one panel a sweep, one line a case."""
    figure, panels = _panels(2, 4, 3.2)
    drawn = (
        (gaps_over(epsilons, "epsilon")["risk"], "epsilon, output perturbation"),
        (gaps_over(clips, "clip")["excess"], "clip C, a private training"),
        (gaps_over(ratios, "ratio")["excess"], "size of the smaller group in the larger's"),
        (
            budgets["gap"].xs("none", level="mitigation").reorder_levels([1, 2, 0]),
            "epsilon, fair_sgd unmitigated",
        ),
    )
    worlds = list(dict.fromkeys(clips["world"]))
    for panel, (gap, title) in zip(panels, drawn, strict=True):
        for case, line in gap.groupby(level=[0, 1], sort=False):
            world, model = cast("tuple[str, str]", case)
            places = line.index.get_level_values(2)
            style = {"color": f"C{worlds.index(world)}", "linestyle": "-" if model == "logistic" else "--"}
            label = world if model == "logistic" else None
            panel.plot(places, line, marker="o", markersize=3, linewidth=0.9, label=label, **style)
        panel.set(xlabel=title, ylabel="gap of excessive risk", xscale="log", yscale="log")
        panel.set_xticks(places, [f"{place:g}" for place in places])
        panel.minorticks_off()
    handles, labels = panels[1].get_legend_handles_labels()
    figure.suptitle("Gap between the groups; logistic models solid, networks dashed")
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    save(figure, path)
