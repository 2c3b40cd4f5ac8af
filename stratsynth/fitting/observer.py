"""Watching a fit: its rehearsal and its steps are reported to an `Observer`, such as a progress bar."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stratsynth.progress import Tick, bar, wanted

if TYPE_CHECKING:
    from stratsynth.planning.rehearsal import Rehearsal


class Observer:
    """A listener to one fit that does nothing; whoever wants to hear of a fit inherits it."""

    def rehearsed(self, rehearsal: Rehearsal) -> None:
        """Called once, before anything is reserved; a program of somebody else's has no rehearsal.

        Args:
            rehearsal: The fit on made-up answers: how many steps it will take, and about how many seconds.
        """

    def step(self) -> None:
        """Called whenever the questions of one moment have been answered, and for every model that was fitted."""


SILENT = Observer()
"""An observer of fits that nobody watches."""


class Bar(Observer):
    """A progress bar that counts the steps of a fit to those of its rehearsal."""

    def __init__(self, tick: Tick) -> None:
        """`tick` is what `progress.bar` hands out."""
        self._tick = tick

    def rehearsed(self, rehearsal: Rehearsal) -> None:
        """Begin at none of all steps."""
        self._tick(0, rehearsal.moments)

    def step(self) -> None:
        """One more step is done."""
        self._tick(None, None)


@contextlib.contextmanager
def observing(progress: bool | None, kind: type[Bar] = Bar) -> Iterator[Observer]:
    """An observer that shows a bar as asked, and by default where a person looks on; else it shows nothing.

    Args:
        progress: As for `fit`.
        kind: The observer that is made.
    """
    if not wanted(progress):
        yield kind(lambda *_: None)
        return
    with bar("fitting") as tick:
        yield kind(tick)
