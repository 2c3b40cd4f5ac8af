"""`stratsynth means`: a release's means as a table and a picture, compared with the true means if that is allowed.

The true means are read from the private rows without a charge. Output with true means is stamped INTERNAL and never
written into a release.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stratsynth.checks import number
from stratsynth.errors import UsageError
from stratsynth.models.means_section import DESIGN
from stratsynth.report.page import Column, Figure, Page, Section, Table, Value

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.recipes.recipe import Recipe
    from stratsynth.release import Release
    from stratsynth.schema import Schema

STAMP = "INTERNAL: true means were computed from the data without a charge; not for publication."


def show_means(
    path: Path, out: Path | None, *, plot: Path | None, internal: bool, level: float
) -> tuple[pd.DataFrame, str]:
    """Return (frame of the recipe's private means, with intervals at `level`; a sentence on the release).

    `path` is the recipe, `out` the release's folder (None: the recipe's): read, or made and charged for. With
    `internal` true means are added; `plot` is a file for a picture. A recipe of rows is refused.
    """
    from stratsynth.data.draft import refuse_release_folder
    from stratsynth.evaluation.means.pictures import means_picture
    from stratsynth.models import Returns
    from stratsynth.recipes.recipe import Recipe
    from stratsynth.report.drawing import check_path

    number("--level", level, above=0, below=1, hint="; 0.95 is usual")
    recipe = Recipe.read(path)
    if (kind := recipe.how().returns) != Returns.ESTIMATES:
        gives = "two linked tables" if kind == Returns.TABLES else "rows"
        raise UsageError(
            f"{recipe.mechanism.name} releases {gives}, not means; the mechanisms for means are coinpress "
            f"and clipped_mean."
        )
    folder = out if out is not None else recipe.directory
    if plot is not None:
        check_path(plot)
        refuse_release_folder(plot)
    release, note = _release(recipe, folder)
    table = release.estimates(level)
    if internal:
        table = _with_truth(table, recipe)
    if plot is not None:
        means_picture(table, plot, internal=internal)
    return table, note


def _release(recipe: Recipe, folder: Path) -> tuple[Release, str]:
    """Return (release in the folder, a sentence on it); without one, fit the recipe, which spends its budget.

    UsageError for a release that another recipe made.
    """
    from stratsynth.cli.progress import fit_with_progress
    from stratsynth.release import Release

    if not folder.exists():
        release = fit_with_progress(recipe, folder)
        return release, f"The recipe's budget was spent; its release was written to {folder}."
    release = Release.load(folder)
    _check_same(release, recipe, folder)
    return release, f"Read from the release {folder}; nothing was spent."


def _check_same(release: Release, recipe: Recipe, folder: Path) -> None:
    """Raise UsageError if the release in `folder` was made by another recipe.

    That is by mechanism, schema, epsilon, neighbours, strata, weights.
    """
    from stratsynth.mechanisms import describe as described
    from stratsynth.mechanisms import prepare

    how, budget, record = recipe.how(), recipe.budget(), release.certificate
    strata, weights = record["strata"], record["weights"]
    mine = [described(how.fitted), recipe.schema().sha256, budget.epsilon, str(budget.neighbours)]
    theirs = [
        {key: value for key, value in record["mechanism"].items() if key != "adaptive"},
        record["schema"]["sha256"],
        record["guarantee"]["epsilon"],
        record["neighbours"],
    ]
    layout = prepare(how, recipe.schema(), budget, recipe.data.declared_size).strata
    if layout is not None:
        own = {s.label: epsilon for s, epsilon in layout.epsilons.items()} if layout.own_budgets else None
        mine += [list(layout.by), layout.merged(), own, layout.weights.describe()]
        weights = {key: value for key, value in weights.items() if key != "renormalised_from"}
        theirs = [*theirs, strata["by"], strata["merged"], strata.get("epsilon"), weights]
    elif strata["by"]:
        theirs = []
    if mine != theirs:
        raise UsageError(f"{folder} was made by another recipe; name another folder with -o.")


def _with_truth(table: pd.DataFrame, recipe: Recipe) -> pd.DataFrame:
    """Return a copy of `table`, private means, with a column `true`: exact means of the recipe's rows.

    They are on the data's scale.
    """
    from stratsynth.data.load import kept
    from stratsynth.data.sources import open_source
    from stratsynth.mechanisms import prepare
    from stratsynth.schema.encoding import encode

    schema, how = recipe.schema(), recipe.how()
    columns = list(table["column"].unique())
    coded = encode(schema, kept(schema, open_source(recipe.data.rows)), columns, weigh=True)
    weights = np.ones(coded.size) if coded.weights is None else coded.weights.astype(float)
    groups = {"": np.ones(coded.size, dtype=bool)}
    layout = prepare(how, schema, recipe.budget(), recipe.data.declared_size).strata
    for stratum in layout.strata if layout is not None else ():
        inside = [np.isin(coded.codes[c], [schema.index(c, level) for level in levels]) for c, levels in stratum.items]
        groups[stratum.label] = np.all(inside, axis=0)
    keep = {name: ~np.isnan(coded.numbers[name]) for name in columns}
    if recipe.mechanism.settings.get("joint", False):  # records that lack one column counted for none
        all_there = np.all(list(keep.values()), axis=0)
        keep.update((name, all_there) for name in columns)
    found = []
    for row in table.to_dict("records"):
        name = str(row["column"])
        chosen = keep[name] & groups[str(row["stratum"])]
        found.append(_mean(schema, name, coded.numbers[name][chosen], weights[chosen]))
    return table.assign(true=found)


def _mean(schema: Schema, name: str, numbers: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Weighted mean of `numbers`, an array of column `name`, taken on the scale of its transform and brought back.

    `weights` is an array alike; NaN if their sum is 0. The schema declares the transform.
    """
    from stratsynth.schema import Numeric
    from stratsynth.schema.transforms import backward, forward

    column = cast("Numeric", schema.column(name))
    if not weights.sum():
        return math.nan
    return float(backward(column, np.array([np.average(forward(column, numbers), weights=weights)]))[0])


def means_page(table: pd.DataFrame, level: float, note: str, *, internal: bool) -> Page:
    """Return a Page with the private means of `table`: a table a column, a row a group, intervals at `level`.

    `table` is a frame of estimates, with a column "true" that `internal` shows if True; `note` is a last sentence.
    """
    heads = [
        Column("group", "text"),
        Column("people", "count"),
        Column("mean"),
        *([Column("true")] if internal else []),
        Column(f"{100 * level:g} % interval, simple random sampling"),
        *([Column(f"{100 * level:g} % interval, design-based", "text")] if (by := _designs(table)) else []),
        Column("remarks", "text"),
    ]
    figures = []
    for name, part in table.groupby("column", sort=False):
        scale = str(part["scale"].iloc[0])
        typical = f": typical values, means on the {scale} scale brought back" if scale else ""
        rows = [_row(row, internal=internal, design=bool(by)) for row in part.to_dict("records")]
        figures.append(Figure(f"{name}{typical}", table=Table("", heads, rows, most=len(rows))))
    notes = ["people: as noisy as the mean. small: noise is larger than sampling error.", *map(DESIGN.format, by), note]
    stamp = STAMP.removeprefix("INTERNAL: ") if internal else None
    return Page("Private means", sections=[Section("means", "", figures=figures, notes=notes)], internal=stamp)


def _designs(table: pd.DataFrame) -> list[str]:
    """List of texts, methods and sources of the design-based intervals in `table`, a frame of means.

    [] if it has none.
    """
    return [text for text in dict.fromkeys(table["design_by"]) if text]


def _row(row: dict[Any, Any], *, internal: bool, design: bool) -> list[Value]:
    """List of the page's values of a mean, `row` as a dict; with the true one if `internal`, interval by `design`."""
    true = [f"{row['true']:,.5g}"] if internal else []
    interval = f"{row['lower']:,.5g} to {row['upper']:,.5g}"
    low, high = row["design_lower"], row["design_upper"]
    based = "–" if math.isnan(low) else f"{low:,.5g} to {high:,.5g}"
    return [
        row["stratum"] or "everybody",
        row["size"],
        f"{row['value']:,.5g}",
        *true,
        interval,
        *([based] if design else []),
        ", ".join(_remarks(row)),
    ]


def _remarks(row: dict[Any, Any]) -> list[str]:
    """List of texts on one mean, `row` of the frame as a dict: status, kind of interval, scale and clipping.

    [] if none.
    """
    found = [] if row["status"] == "ok" else [str(row["status"]).replace("_", " ")]
    if row["conservative"]:
        found.append("interval conservative")
    if row["scale"]:
        bias = "unknown" if math.isnan(row["bias"]) else f"about {row['bias']:,.3g}"
        found.append(f"typical minus mean {bias}")
    if row["clipped"]:
        found.append(f"values clipped to {row['clip_low']:,.5g} to {row['clip_high']:,.5g}")
    return found


def plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    """List of the rows of the frame `table` as dicts of plain values, for JSON; null for infinite, unknown figures."""
    return [
        {str(k): None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        for row in table.to_dict("records")
    ]
