"""Paper 003's synthesizers in strata at the stated budget; `scripts/reproduce_stratification` runs this.

With --roads, models trained on tables stand beside private predictors at the same budget instead.

DIR holds the people, a recipe and `comparison/`, which `stratsynth compare` continues too: started again after it was
killed at any moment, it goes on where it stopped. The rows are public, nothing is charged, nothing is a release.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from stratsynth.evaluation.comparisons.compare import compare
from stratsynth.evaluation.comparisons.paired import mean_interval
from stratsynth.evaluation.comparisons.roads import roads as beside_predictors
from stratsynth.evaluation.comparisons.roads import words as roads_in_words
from stratsynth.files.atomic import write_text
from stratsynth.report.numbers import listed, several
from studies.harness import Found
from studies.stratification import authors, grids, people
from studies.stratification.claims import POOLED, Figures, words
from studies.stratification.grids import DELTA

if TYPE_CHECKING:
    from studies.stratification.people import Study

ROWS, HELD = 50_000, 5_000
"""Simulated people that are fitted, and held out."""
REPETITIONS, QUICK_REPETITIONS = 5, 3
HOW = (
    "A difference counts where its 95 % interval over repetitions leaves 0 out, each by itself. Ratios and ranks are "
    "of means, and allow for no chance."
)
THEIRS = (
    "The authors' figures are of folktables' employment task (16 columns, some 197,000 people), with models that were "
    "tested on rows they were fitted to, everybody counted for 1/12 in parity error, and for MST and AIM strata that "
    "the code seems to pair with the sizes of others. GEM's nominal epsilons .01, .05, .1, .5, 1, 5 really cost .42, "
    "2.24, 4.71, 30, 74, 935 at delta 1e-9. Our parity error counts every declared group that has a real row, however "
    "small, alike: a handful of people can dominate it, so that verdicts are given for the larger groups too. Only the "
    "direction of a difference can be compared, no level."
)


def run(
    *,
    acs: Path | None,
    year: int,
    rows: int | None,
    full: bool,
    roads: bool,
    seeds: int | None,
    workers: int,
    out: Path | None,
) -> Found:
    """The grid, or what is left of it; its page is printed, and lies in `out` as stratification.md or roads.md."""
    out = out or Path("roads" if roads else "stratification")
    study = people.built_in(rows or ROWS, HELD) if acs is None else people.brought(acs, year, rows)
    seeds = seeds or (REPETITIONS if full or roads else QUICK_REPETITIONS)
    study.write(out)
    grid = grids.roads(seeds) if roads else grids.tables(seeds, full=full)
    write_text(out / "recipe.toml", grids.recipe(study, grid))
    frame = compare(out / "recipe.toml", out / "comparison", workers=workers, tick=_tick)
    if roads:
        text = roads_page(study, frame, out)
        write_text(out / "roads.md", text)
        return Found(text)
    beside = beside_authors(frame)
    beside.to_csv(out / "beside_authors.csv", index=False)
    text = page(study, frame, beside, out)
    write_text(out / "stratification.md", text)
    return Found(text)


def _tick(done: int, cells: int) -> None:
    sys.stderr.write(f"{done} of {cells} done\n" if done % 25 == 0 or done == cells else "")


def beside_authors(frame: pd.DataFrame) -> pd.DataFrame:
    """Our means with 95 % intervals over repetitions, and the authors' figures where there are any."""
    found, theirs = Figures(frame), authors.figures()
    rows = []
    for one in theirs.to_dict("records"):
        values = found.of(one["metric"], one["mechanism"], one["stratification"], one["epsilon"])
        if len(values):
            mean, low, high = (float(end) for end in mean_interval(values))
            spent = authors.GEM_SPENT[one["epsilon"]] if one["mechanism"] == "gem" else None
            rows.append({**one, "ours": mean, "low": low, "high": high, "authors_really_spent": spent})
    names = [
        "metric",
        "mechanism",
        "stratification",
        "epsilon",
        "ours",
        "low",
        "high",
        "authors",
        "authors_really_spent",
    ]
    return pd.DataFrame(rows, columns=names)


def page(study: Study, frame: pd.DataFrame, beside: pd.DataFrame, out: Path) -> str:
    """Return the results in plain words."""
    found = Figures(frame)
    seeds = int(frame["seed"].max())
    head = (
        f"On {study.name}; public rows, NOT PRIVATE and no release. Delta {DELTA:g}, epsilon "
        f"{listed([f'{e:g}' for e in found.epsilons])}, {several(seeds, 'repetition')} each of"
    )
    foot = f"Every figure: {out / 'comparison' / 'comparison.csv'}; to read: {out / 'comparison' / 'report.html'}."
    settings = listed(
        [
            f"{mechanism} by {stratification}" if stratification != "vanilla" else f"{mechanism} vanilla"
            for mechanism, stratification in found.settings
        ]
    )
    return "\n\n".join(
        [
            "# Stratified synthesizers at the stated budget (paper 003, redone)",
            f"{head} {settings}. Groups are by {' x '.join(people.BY)}; accuracy: a random forest's on held-out rows.",
            "## Which claims hold",
            HOW,
            words(frame, people.BY),
            "## Beside the authors' figures",
            THEIRS,
            _table(beside),
            foot,
        ]
    )


def roads_page(study: Study, frame: pd.DataFrame, out: Path) -> str:
    """Return in plain words which road is better, for whom."""
    found = beside_predictors(frame, people.BY, {f"mst{POOLED}"})
    seeds = int(frame["seed"].max())
    foot = f"For every group, with pictures: {out / 'comparison' / 'report.html'}; figures: roads.csv beside it."
    return "\n\n".join(
        [
            "# Roads to a prediction at one budget",
            f"On {study.name}; public rows, NOT PRIVATE, no release. Delta {DELTA:g}, {several(seeds, 'repetition')}.",
            "\n".join(f"- {line}" for line in roads_in_words(found)),
            foot,
        ]
    )


def _table(beside: pd.DataFrame) -> str:
    """The epsilons of the run in a table of Markdown."""
    lines = ["| measure | setting | epsilon | ours | 95 % interval | authors |", "|---|---|---|---|---|---|"]
    ordered = beside.sort_values(["metric", "mechanism", "stratification", "epsilon"], kind="stable")
    for row in ordered.to_dict("records"):
        kind, _, over = str(row["metric"]).partition(":")
        what = "accuracy, forest" if kind == "accuracy" else f"parity error of means, {over or authors.BOTH}"
        interval = "–" if pd.isna(row["low"]) else f"{row['low']:.3f} to {row['high']:.3f}"
        lines.append(
            f"| {what} | {row['mechanism']}, {row['stratification']} | {row['epsilon']:g} | {row['ours']:.3f} | "
            f"{interval} | {row['authors']:.3f} |"
        )
    return "\n".join(lines)
