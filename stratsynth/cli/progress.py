"""Progress on a terminal: how many moments are answered and strata fitted, and how long the rest will take."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
        task = bar.add_task("fitting", total=_moments(recipe))
        tick = partial(bar.advance, task)
        return recipe.run(folder, tick=tick, workers=workers, new_account=new_account)


def _moments(recipe: Recipe) -> int | None:
    """How many moments and models there will be, from a simulated run; None where no size is declared."""
    from stratsynth.planning.foresee import moments

    return None if recipe.data.declared_size is None else moments(recipe.prepared)
