"""Progress on a terminal: answered moments and fitted strata, and the remaining time."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.errors import NoticeWarning
from stratsynth.fitting.observer import Bar, observing

if TYPE_CHECKING:
    from stratsynth.planning.rehearsal import Rehearsal
    from stratsynth.recipes.recipe import Recipe, RecipeOptions
    from stratsynth.release import Release


class Terminal(Bar):
    """Progress bar, with a note on a fit of hours before anything is reserved."""

    def rehearsed(self, rehearsal: Rehearsal) -> None:
        """Print a note if the rehearsal foresees a fit of hours, and begin the bar."""
        from stratsynth.planning.rehearsal import LONG, about

        if rehearsal.seconds > LONG:
            sys.stderr.write(
                f"stratsynth: note: this fit takes {about(rehearsal.seconds)} on one core, by a rough model. Nothing "
                "is charged yet; interrupted later, it goes on from there.\n"
            )
        super().rehearsed(rehearsal)


def fit_with_progress(recipe: Recipe, folder: Path, options: RecipeOptions | None = None) -> Release:
    """Run a recipe with `RecipeOptions` (None: its own) into `folder` and return its release, with a bar on a terminal.

    Elsewhere only the note on a fit of hours is printed.
    """
    options = options or recipe.options
    with observing(options.progress, Terminal) as observer, warnings.catch_warnings():
        warnings.simplefilter("ignore", NoticeWarning)  # the command prints them first
        return recipe.run(folder, options, observer)
