"""Observers of a fit, such as a progress bar, to which its rehearsal and its steps are reported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stratsynth.progress import Tick, bar, wanted

if TYPE_CHECKING:
    from stratsynth.planning.rehearsal import Rehearsal


class Observer:
    """A listener to one fit, which does nothing; others inherit from it."""

    def rehearsed(self, rehearsal: Rehearsal) -> None:
        """Called once, before anything is reserved; not for third-party programs, which have no rehearsal.

        Args:
            rehearsal: The fit on made-up answers: its number of steps, and about how many seconds they take.
        """

    def step(self) -> None:
        """Called for every batch of questions that was answered, and for every model that was fitted."""


SILENT = Observer()
"""Observer of fits that nobody watches."""


class Bar(Observer):
    """A progress bar of the steps of a fit, out of those of its rehearsal."""

    def __init__(self, tick: Tick) -> None:
        """`tick` is the function that `progress.bar` yields."""
        self._tick = tick

    def rehearsed(self, rehearsal: Rehearsal) -> None:
        """Begin at 0 of all steps."""
        self._tick(0, rehearsal.moments)

    def step(self) -> None:
        """Count one more step."""
        self._tick(None, None)


@contextlib.contextmanager
def observing(progress: bool | None, kind: type[Bar] = Bar) -> Iterator[Observer]:
    """Yield an observer that shows a bar, by default on a terminal or in a notebook; else a silent one.

    Args:
        progress: As for `fit`.
        kind: Class of the observer.
    """
    if not wanted(progress):
        yield kind(lambda *_: None)
        return
    with bar("fitting") as tick:
        yield kind(tick)
