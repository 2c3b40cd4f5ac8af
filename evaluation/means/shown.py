"""`stratsynth means`: a release's means as a table and a picture, against the true ones where that is allowed.

The true means are read from the private rows without a charge. What holds them is stamped INTERNAL and is never
written into a release.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stratsynth.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.recipe import Recipe
    from stratsynth.release import Release
    from stratsynth.schema import Schema

STAMP = "INTERNAL: true means were computed from the data without a charge; not for publication."


def show_means(
    path: Path, out: Path | None, *, plot: Path | None, internal: bool, level: float
) -> tuple[pd.DataFrame, str]:
    """The table to show, with a column `true` if it is internal, and where the release is."""
    from stratsynth.evaluation.means.pictures import check_picture, means_picture

    from stratsynth.mechanism import draws_rows
    from stratsynth.recipe import Recipe
    from stratsynth.schema.draft import refuse_release_folder

    if not 0 < level < 1:
        raise UsageError("--level lies between 0 and 1; 0.95 is usual.")
    recipe = Recipe.read(path)
    if draws_rows(recipe.how()):
        raise UsageError(f"{recipe.mechanism['name']} releases rows, not means; a mean is coinpress or clipped_mean.")
    folder = out if out is not None else recipe.directory
    if plot is not None:
        check_picture(plot)
        refuse_release_folder(plot)
    release, note = _release(recipe, folder)
    table = release.estimates(level)
    if internal:
        table = _with_truth(table, recipe)
    if plot is not None:
        means_picture(table, plot, internal=internal)
    return table, note


def _release(recipe: Recipe, folder: Path) -> tuple[Release, str]:
    """The release that this recipe made, or makes now."""
    from stratsynth.cli.progress import fit_with_progress
    from stratsynth.release import Release

    if not folder.exists():
        release = fit_with_progress(recipe, folder)
        return release, f"The recipe's budget was spent; its release was written to {folder}."
    release = Release.load(folder)
    _check_same(release, recipe, folder)
    return release, f"Read from the release {folder}; nothing was spent."


def _check_same(release: Release, recipe: Recipe, folder: Path) -> None:
    """A release by another recipe must not pass for this one's."""
    from stratsynth.mechanism import describe as described
    from stratsynth.stratified import Stratified

    how, budget, record = recipe.how(), recipe.budget(), release.certificate
    inner = how.mechanism if isinstance(how, Stratified) else how
    by = list(how.by) if isinstance(how, Stratified) else []
    mine = [described(inner), by, recipe.schema().sha256, budget.epsilon, str(budget.neighbours)]
    theirs = [
        record["mechanism"],
        record["strata"]["by"],
        record["schema"]["sha256"],
        record["guarantee"]["epsilon"],
        record["neighbours"],
    ]
    if mine != theirs:
        raise UsageError(f"{folder} was made by another recipe; name another folder with -o.")


def _with_truth(table: pd.DataFrame, recipe: Recipe) -> pd.DataFrame:
    """The means of the very rows that were summed; brought back from a column's scale as the estimates are."""
    from stratsynth.schema.codec import encode
    from stratsynth.sources import open_source

    schema, by = recipe.schema(), tuple(recipe.strata["by"]) if recipe.strata is not None else ()
    columns = list(table["column"].unique())
    coded = encode(schema, open_source(recipe.folder / recipe.data["path"]).read(schema.names), columns)
    labels = np.array([""] * coded.n, dtype=object)
    for name in by:
        levels = np.array(schema.levels(name), dtype=object)[coded.codes[name].astype(np.intp)]
        labels = levels if name == by[0] else labels + "|" + levels
    keep = {name: ~np.isnan(coded.numbers[name]) for name in columns}
    if recipe.mechanism.get("joint", False):  # records that lack one column counted for none
        all_there = np.all(list(keep.values()), axis=0)
        keep.update((name, all_there) for name in columns)
    found = []
    for row in table.to_dict("records"):
        name = str(row["column"])
        chosen = keep[name] & ((labels == row["stratum"]) if row["stratum"] else True)
        found.append(_mean(schema, name, coded.numbers[name][chosen]))
    return table.assign(true=found)


def _mean(schema: Schema, name: str, numbers: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """The mean on the column's scale, brought back; NaN where there is nobody."""
    from stratsynth.schema import Numeric
    from stratsynth.schema.transforms import backward, forward

    column = cast("Numeric", schema.column(name))
    if not numbers.size:
        return math.nan
    return float(backward(column, np.array([forward(column, numbers).mean()]))[0])


def describe(table: pd.DataFrame, level: float, *, internal: bool) -> str:
    """The table for a reader: a block for each column, everybody first."""
    lines = [STAMP, ""] if internal else []
    width = max(9, *(len(str(label)) for label in table["stratum"]))
    for name in table["column"].unique():
        part = table[table["column"] == name]
        scale = str(part["scale"].iloc[0])
        lines.append(f"{name}{f': typical values, means on the {scale} scale brought back' if scale else ''}")
        true = f"{'true':>11} " if internal else ""
        lines.append(f"{'group':{width}} {'people':>9} {'mean':>11} {true}{f'{100 * level:g} % interval':>25}  remarks")
        lines.extend(_line(row, width, internal=internal) for row in part.to_dict("records"))
        lines.append("")
    lines.append("people: as noisy as the mean. small: noise is larger than sampling error.")
    return "\n".join(lines)


def _line(row: dict[Any, Any], width: int, *, internal: bool) -> str:
    true = f"{row['true']:>11,.5g} " if internal else ""
    interval = f"{row['lower']:,.5g} to {row['upper']:,.5g}"
    return (
        f"{row['stratum'] or 'everybody':{width}} {row['size']:>9,.0f} {row['value']:>11,.5g} {true}{interval:>25}  "
        + ", ".join(_remarks(row))
    ).rstrip()


def _remarks(row: dict[Any, Any]) -> list[str]:
    """What a reader must know of one mean."""
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
    """For programs; what is unknown is null."""
    return [
        {str(k): None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        for row in table.to_dict("records")
    ]
