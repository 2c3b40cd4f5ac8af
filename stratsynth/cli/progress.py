"""Progress on a terminal: how many moments are answered and strata fitted, and how long the rest will take."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stratsynth.planning.rehearsal import Rehearsal
    from stratsynth.recipes.recipe import Recipe
    from stratsynth.release import Release


def fit_with_progress(recipe: Recipe, folder: Path, workers: int = 1, new_account: str | None = None) -> Release:
    """Run a recipe; on a terminal, with a bar on stderr. Elsewhere nothing is printed."""
    if not sys.stderr.isatty():
        return recipe.run(folder, workers=workers, new_account=new_account)
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("fitting", total=None)
        tick = partial(bar.advance, task)

        def foretold(rehearsal: Rehearsal) -> None:
            bar.update(task, total=rehearsal.moments)

        return recipe.run(folder, tick=tick, foretold=foretold, workers=workers, new_account=new_account)
