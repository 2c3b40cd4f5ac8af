"""Progress on a terminal: how many moments are answered and strata fitted, and how long the rest will take."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.progress import bar

if TYPE_CHECKING:
    from stratsynth.planning.rehearsal import Rehearsal
    from stratsynth.recipes.recipe import Recipe
    from stratsynth.release import Release


def fit_with_progress(
    recipe: Recipe, folder: Path, workers: int | str | None = None, new_account: str | None = None
) -> Release:
    """Run a recipe; on a terminal, with a bar on stderr. Elsewhere a fit of hours says so, and nothing else."""
    if not sys.stderr.isatty():
        warn = partial(_warn, recipe)
        return recipe.run(folder, foretold=warn, workers=workers, new_account=new_account)
    with bar("fitting") as shown:

        def foretold(rehearsal: Rehearsal) -> None:
            _warn(recipe, rehearsal)
            shown(0, rehearsal.moments)

        def tick() -> None:
            shown(None, None)

        return recipe.run(folder, tick=tick, foretold=foretold, workers=workers, new_account=new_account)


def _warn(recipe: Recipe, rehearsal: Rehearsal) -> None:
    """Say before anything is reserved that a fit will take hours."""
    from stratsynth.planning.effort import LONG, about, seconds

    estimate = seconds(recipe.prepared, rehearsal)
    if estimate > LONG:
        sys.stderr.write(
            f"stratsynth: note: this fit takes {about(estimate)} on one core, by a rough model. Nothing is "
            "charged yet; interrupted later, it goes on from there.\n"
        )
