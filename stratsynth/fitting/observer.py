"""Observers of a fit, such as a progress bar, to which its rehearsal and its steps are reported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stratsynth.checks import flag
from stratsynth.progress import Tick, bar, wanted

if TYPE_CHECKING:
    from stratsynth.planning.rehearsal import Rehearsal


class Observer:
    """A listener to one fit, which does nothing; others inherit from it."""

    def rehearsed(self, rehearsal: Rehearsal) -> None:
        """Note the rehearsal, once, before anything is reserved; third-party programs have none.

        Args:
            rehearsal: The fit on made-up answers: its number of steps, and about how many seconds they take.
        """

    def step(self) -> None:
        """Note one more step: a batch of questions was answered, or a model fitted."""


SILENT = Observer()
"""Observer of fits that nobody watches."""


class Bar(Observer):
    """A progress bar of the steps of a fit, out of those of its rehearsal."""

    def __init__(self, tick: Tick) -> None:
        """Keep the function that moves the bar, as `progress.bar` yields it."""
        self._tick = tick

    def rehearsed(self, rehearsal: Rehearsal) -> None:
        """Begin the bar at 0 of all steps of the rehearsal."""
        self._tick(0, rehearsal.moments)

    def step(self) -> None:
        """Move the shown bar of progress on by one step, of the total it was made with."""
        self._tick(None, None)


@contextlib.contextmanager
def observing(progress: bool | None, kind: type[Bar] = Bar) -> Iterator[Observer]:
    """Yield an observer that shows a bar, by default on a terminal or in a notebook; else a silent one.

    Args:
        progress: As for `fit`.
        kind: Class of the observer.
    """
    if progress is not None:
        flag("progress", progress)
    if not wanted(progress):
        yield kind(lambda *_: None)
        return
    with bar("fitting") as tick:
        yield kind(tick)
