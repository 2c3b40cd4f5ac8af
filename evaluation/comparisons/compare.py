"""Comparisons: every setting of a grid fitted and scored several times, in a folder that a later call can continue.

    DIR/comparison.parquet, .csv   one tidy frame: a row for each setting, repetition, metric and group
    DIR/paired.parquet, .csv       differences between settings, with intervals over repetitions
    DIR/roads.parquet, .csv        if models are trained, or predictors compared: which road is better, for whom
    DIR/comparison.json            what was compared, and with what
    DIR/report.html                a page to read
    DIR/cells/                     a file for each cell of the grid; existing files are not computed again

On data declared public nothing is charged. On all others every fit is charged to the recipe's ledger, and the scores,
which no budget pays for, are INTERNAL: a setting that is chosen by them has learned from private rows.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.history import coming
from stratsynth.accounting.ledger_file import FileLedger
from stratsynth.accounting.standing import Outlook, afford_all
from stratsynth.checks import check_integer
from stratsynth.data.draft import refuse_release_folder
from stratsynth.data.fingerprint import fingerprint
from stratsynth.digest import digest
from stratsynth.errors import StratsynthError, UsageError
from stratsynth.evaluation.comparisons import compare_text, pool
from stratsynth.evaluation.comparisons.cells import PUBLIC, load_frame, save_frame
from stratsynth.evaluation.comparisons.competitors import described, inner_name
from stratsynth.evaluation.comparisons.grid import Grid, GridFit
from stratsynth.evaluation.comparisons.page import grid_page
from stratsynth.evaluation.comparisons.paired import COVERAGE, ENOUGH, paired, setting_name
from stratsynth.evaluation.comparisons.roads import roads
from stratsynth.evaluation.comparisons.roads_page import roads_section
from stratsynth.evaluation.comparisons.scoring import plain
from stratsynth.evaluation.evaluations.output import NOTICE
from stratsynth.evaluation.scores.baseline import MEANINGS, RELEASE
from stratsynth.evaluation.tables import STAMP, joined
from stratsynth.files.atomic import new_file, new_folder, write_text
from stratsynth.fitting import Fit
from stratsynth.noise import SystemEntropy
from stratsynth.recipes.recipe import Recipe
from stratsynth.recipes.rows_argument import rows_of
from stratsynth.release.declared import DECLARED
from stratsynth.report.html import render

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "stratsynth-comparison/1"
CELLS, KEY, LOCK = "cells", "key", "lock"


def compare(
    recipe: str | Path,
    out: str | Path,
    *,
    mechanisms: Mapping[str, Any] | None = None,
    workers: int | None = None,
    tick: Callable[[int, int], None] | None = None,
    note: Callable[[str], None] | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Fit and score the grid of a recipe's section [compare], and return the tidy frame that `out` holds.

    The same call continues an interrupted comparison, and adds to one whose grid has grown: more repetitions, epsilons,
    stratifications or mechanisms. If anything else has changed, the folder is refused.

    `seed` in the frame is the number of the repetition, from 1. It seeds what comes after the noise; noise is fresh in
    every fit. The baselines have the stratification "(baseline)", an infinite epsilon and seed 0.

    Args:
        recipe: The recipe file.
        out: A new folder, or one that holds a part of this very comparison.
        mechanisms: Further mechanisms by label, as objects: `{"mst small": MST(workload=...), "mine":
            External.plain(my_function)}`. They are added to those of the recipe, and are fitted in this process.
        workers: Number of processes that fit at a time, each on one thread; by default the recipe's, or 1.
        tick: Called with the number of cells done and the number of all cells, at first and after each.
        note: Called with a line on the coming charges, before the first fit.
        progress: True to show a bar with the time that is left, if there is no `tick`; by default on a terminal
            and in a notebook.

    Returns:
        A row for each setting, repetition, metric, scope and group; `attrs["stamp"]` is its notice.

    Raises:
        UsageError: The recipe's grid makes no sense, or `out` holds another comparison or is in use.
        BudgetRefused: The fits cost more than the ledger's cap leaves.
        StratsynthError: A file cannot be written or is damaged, or a worker process died.
    """
    grid = Grid.read(Recipe.read(Path(recipe)), mechanisms)
    count = grid.workers if workers is None else workers
    check_integer("compare: workers", count, 1)
    folder = Path(out).absolute()
    refuse_other(folder)
    if not (folder / CELLS / KEY).is_file():
        foresee(grid, folder)  # a refusal leaves nothing behind
    with opened(folder):
        known = digests(grid, folder)
        files = {cell: folder / CELLS / f"{name}.parquet" for cell, name in known.items()}
        refuse_mixing(folder, list(files.values()))
        cost = foresee(grid, folder)
        if cost is not None and note is not None:
            note(charge_line(cost.new))
        _write_facts(grid, folder, cost)
        with contextlib.nullcontext() if tick is not None else compare_text.progress(progress) as bar:
            pool.compute(grid, files, count, tick or bar or (lambda *_: None))
        if digests(grid, folder) != known:
            raise UsageError(
                f"data, schema or weights were changed while they were compared; begin anew, not in {out}."
            )
        frame = joined([load_frame(file) for file in files.values()])
        tests, whither = paired(frame, grid.by, grid.pairs), roads(frame, grid.by, pooled(grid))
        tables = {"comparison": frame, "paired": tests} | ({} if whither.empty else {"roads": whither})
        for name, table in tables.items():
            for suffix in (".parquet", ".csv"):
                save_frame(table, folder / f"{name}{suffix}")
        schema = grid.recipe.schema()
        chapters = roads_section(frame, whither, grid.by, pooled(grid), schema)
        page = grid_page(frame, tests, bases(grid), schema, stamp(grid), chapters, grid.recipe.release.groups)
        write_text(folder / "report.html", render(page))
    frame.attrs["stamp"] = stamp(grid)
    return frame


def bases(grid: Grid) -> dict[str, str]:
    """Mapping from each pooled mechanism's label in a grid to its base's name, if that is compared by itself too."""
    inner = {label: inner_name(competitor) for label, competitor in grid.mechanisms.items()}
    return {label: name for label, name in inner.items() if name is not None and name in grid.mechanisms}


def pooled(grid: Grid) -> set[str]:
    """Set of the labels of those mechanisms in the grid that pool strata."""
    return {label for label, competitor in grid.mechanisms.items() if inner_name(competitor) is not None}


def stamp(grid: Grid) -> str:
    """Notice, a text, in every output of a grid: that of public data if the recipe declares them so, else INTERNAL."""
    return PUBLIC if grid.recipe.data.public else STAMP


def digests(grid: Grid, folder: Path) -> dict[GridFit | None, str]:
    """Mapping from each cell of a grid, a `GridFit`, to a digest (text) of everything its scores depend on.

    The grid's baselines have the key None. Data are represented by a hash keyed by the file in `folder`: a plain one
    would confirm guesses.
    """
    recipe, scoring = grid.recipe, grid.scoring
    key = (folder / CELLS / KEY).read_bytes()
    table = recipe.table()
    marks = [table.backend.fingerprint(key)]
    if scoring.holdout is not None:
        marks.append(fingerprint(rows_of(scoring.holdout).source, key))
    shared = digest(
        FORMAT,
        version("stratsynth"),
        table.schema.sha256,
        table.declared_size,
        table.public,
        recipe.rows,
        marks,
        plain(scoring),
    )
    found: dict[GridFit | None, str] = {None: digest(shared, "baselines")[:32]}
    hows = {(cell.mechanism, cell.by): grid.how(cell) for cell in grid.cells()}
    for cell in grid.cells():
        how = hows[cell.mechanism, cell.by]
        prior = grid.prior(cell)
        given = [] if prior is None else [prior.in_schema(table.schema).digest]
        given += [] if grid.groups(cell) == DECLARED else [grid.groups(cell)]
        found[cell] = digest(shared, cell.mechanism, cell.by, how.name, how, grid.budget(cell), cell.seed, *given)[:32]
    return found


@dataclass(frozen=True)
class GridCost:
    """Privacy cost of a grid on private data."""

    new: Outlook
    """Cost of the cells not computed yet, on top of the ledger's earlier fits."""
    grid_epsilon: float
    """Epsilon of all cells composed, without the ledger's other fits."""

    def to_dict(self) -> dict[str, Any]:
        """Mapping for JSON: "grid_epsilon", of the whole grid (null if infinite), and the figures of `Outlook.to_dict`.

        These are on the coming fits, under their own names, such as "fits" and "asked_epsilon".
        """
        return {"grid_epsilon": self.grid_epsilon if math.isfinite(self.grid_epsilon) else None, **self.new.to_dict()}


def foresee(grid: Grid, folder: Path) -> GridCost | None:
    """Privacy cost (GridCost) of those of the grid's cells that `folder` lacks; None without a ledger file.

    Before anything is fitted, raise the refusals of any of the fits; UsageError for private data without a ledger file,
    BudgetRefused for costs beyond the ledger's cap.
    """
    table = grid.recipe.table()
    if not table.public and not isinstance(table.ledger, FileLedger):
        raise UsageError(
            "compare: private data need a ledger file, [budget] ledger, so that nothing is charged twice. "
            "Or declare the data public, if they are."
        )
    done = {path.stem for path in (folder / CELLS).glob("*.parquet")}
    known = digests(grid, folder) if done else {}
    hows = {(cell.mechanism, cell.by): grid.how(cell) for cell in grid.cells()}
    requests = {
        cell: Fit.prepare(hows[cell.mechanism, cell.by], table, grid.budget(cell), grid.options(cell)).request
        for cell in grid.cells()
    }
    if not isinstance(table.ledger, FileLedger):
        return None
    new = [request for cell, request in requests.items() if known.get(cell) not in done]
    whole = afford_all(None, [], [request.allot for request in requests.values()], grid.recipe.budget().delta)
    return GridCost(coming(table.ledger, new) if new else Outlook(0, 0.0, 0.0, 0.0, None), whole.asked_epsilon)


def charge_line(outlook: Outlook) -> str:
    """Return a line on an outlook: number of coming fits, epsilon they ask for together, what the cap leaves."""
    if not outlook.fits:
        return "compare: no new fit is charged."
    left = outlook.left_epsilon
    limit = "no cap was set" if left is None else f"{left:.6g} is left of {outlook.cap_epsilon:g}"
    fits = "1 fit asks" if outlook.fits == 1 else f"{outlook.fits} fits ask"
    total = "more than delta allows" if math.isinf(outlook.asked_epsilon) else f"{outlook.asked_epsilon:.6g} together"
    return f"compare: {fits} epsilon {total}; {limit}."


def refuse_other(folder: Path) -> None:
    """Raise UsageError for a folder in a release, a file, and a folder that is neither empty nor a comparison's."""
    refuse_release_folder(folder)
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / CELLS / KEY).is_file())):
        raise UsageError(f"{folder} exists already, and is no comparison; name a new folder.")


def refuse_mixing(folder: Path, files: Sequence[Path]) -> None:
    """Raise UsageError if a comparison's folder has Parquet files of cells other than `files`, this grid's own."""
    if set((folder / CELLS).glob("*.parquet")) - set(files):
        raise UsageError(
            f"{folder} holds another comparison: recipe, schema, data, weights or version have changed since. "
            "Name a new folder; only more repetitions and settings may be added to one."
        )


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[None]:
    """Context that makes the comparison's folder if missing, removes partial files, and locks it while open.

    UsageError if it is locked, StratsynthError if it cannot be written.
    """
    try:
        if not (folder / CELLS / KEY).is_file():
            with new_folder(folder) as part:
                (part / CELLS).mkdir()
                with new_file(part / CELLS / KEY, mode=0o600) as key:
                    key.write(SystemEntropy().read(32))
        handle = os.open(folder / CELLS / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StratsynthError(f"{folder} cannot be written ({error.strerror}).") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another process is at work in {folder}; wait for it.") from None
        for part in (folder / CELLS).glob(".*.part"):  # files that a killed process did not finish
            part.unlink(missing_ok=True)
        yield
    finally:
        os.close(handle)


def facts(grid: Grid, cost: GridCost | None) -> dict[str, Any]:
    """Mapping of names to plain values, comparison.json: of the grid and its `GridCost` (None: not charged)."""
    recipe = grid.recipe
    return {
        "format": FORMAT,
        "stamp": stamp(grid),
        "stratsynth": version("stratsynth"),
        "mechanisms": {label: described(competitor) for label, competitor in grid.mechanisms.items()},
        "bases": bases(grid),
        "pairs": None if grid.pairs is None else [[setting_name(*one) for one in pair] for pair in grid.pairs],
        "stratifications": [list(by) for by in grid.stratifications],
        "epsilons": list(grid.epsilons),
        "delta": recipe.budget().delta,
        "neighbours": str(recipe.budget().neighbours),
        "repetitions": grid.seeds,
        "cells": len(list(grid.cells())),
        "seed": "the number of a repetition; it seeds what comes after the noise, which is fresh in every fit",
        "intervals": f"of paired differences: {COVERAGE:.0%}, Student's t over repetitions, each by itself",
        "tests": "p_value: paired t test; p_holm: allowing for all tests of the same metric and scope; a verdict where "
        f"p_holm is below {1 - COVERAGE:.2g} over {ENOUGH} repetitions or more",
        "rows": recipe.rows,
        "groups": recipe.release.groups,
        "scores": plain(grid.scoring),
        "baselines": {f"({name})": meaning for name, meaning in MEANINGS.items() if name != RELEASE}
        | ({} if grid.scoring.holdout is None else {"(real rows)": "models trained on the real rows; not private"}),
        "charged": None if cost is None else cost.to_dict(),
    }


def _write_facts(grid: Grid, folder: Path, cost: GridCost | None) -> None:
    texts = {"comparison.json": json.dumps(facts(grid, cost), indent=1, ensure_ascii=False, default=str)}
    if cost is not None:
        texts[NOTICE] = f"{STAMP}.\nNothing here may lie in a release.\n"
    for name, text in texts.items():
        write_text(folder / name, text)
