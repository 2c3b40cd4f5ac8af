"""Progress bars with the time that is left: on a terminal's stderr and in a notebook, nowhere else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

_SHOWN: ContextVar[Progress | None] = ContextVar("_SHOWN", default=None)
"""Bar on the screen; None without one."""
T = TypeVar("T")
Tick: TypeAlias = "Callable[[int | None, int | None], None]"
"""Function of the number of steps done (None for one more) and of all steps (None for no change)."""


def wanted(progress: bool | None) -> bool:
    """True if a bar is to be shown: as `progress` says; for None on a terminal or in a notebook."""
    return (sys.stderr.isatty() or in_notebook()) if progress is None else progress


def in_notebook() -> bool:
    """True if this process is the kernel of a notebook."""
    return "ipykernel" in sys.modules


@contextlib.contextmanager
def bar(what: str, *, slow: bool = False) -> Iterator[Tick]:
    """Show a bar within the block, and yield the function that moves it: done steps and their total, None for one more.

    Args:
        what: The name of the steps.
        slow: True if steps are few and long, so that the speed is estimated over a day instead of thirty seconds.
    """
    from rich.console import Console
    from rich.errors import LiveError
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        *([MofNCompleteColumn()] if slow else []),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    period = 24 * 3600 if slow else 30.0
    console = Console() if in_notebook() else Console(stderr=True)
    shown = Progress(*columns, console=console, transient=True, speed_estimate_period=period)
    task = None

    def tick(done: int | None, total: int | None) -> None:
        nonlocal task
        if task is None:  # steps done before do not count in the speed
            task = shown.add_task(what, total=total, completed=done or 0)
        elif done is None:
            shown.update(task, advance=0 if total is not None else 1, total=total)
        else:
            shown.update(task, completed=done, total=total)

    try:
        shown.start()
    except LiveError:  # the caller has a bar of its own on the screen
        yield lambda *_: None
        return
    token = _SHOWN.set(shown)
    try:
        yield tick
    finally:
        _SHOWN.reset(token)
        shown.stop()


@contextlib.contextmanager
def phase(what: str, total: Callable[[], int | None]) -> Iterator[Callable[[], object]]:
    """Show a line under the bar within the block, for one long step; nothing if no bar is shown.

    Args:
        what: Name of the step.
        total: Approximate number of its parts, None if unknown; called only if there is a bar.

    Yields:
        The function to call after each part.
    """
    shown = _SHOWN.get()
    if shown is None:
        yield lambda: None
        return
    task = shown.add_task(what, total=total())
    try:
        yield lambda: shown.update(task, advance=1)
    finally:
        shown.remove_task(task)


class StepCounter(Protocol):
    """A function that counts one step as done when it is given its result, which it returns."""

    def __call__(self, result: T, /) -> T:
        """Count one step as done, and return `result`."""


@contextlib.contextmanager
def steps(what: str, total: int, progress: bool | None) -> Iterator[StepCounter]:
    """Show a bar `what` of `total` steps if `progress` (see `wanted`); yield a `StepCounter`, result -> result."""
    count = 0

    def done(result: T) -> T:
        nonlocal count
        count += 1
        if tick is not None:
            tick(min(count, total), total)
        return result

    if not wanted(progress):
        tick: Tick | None = None
        yield done
        return
    with bar(what, slow=True) as tick:
        tick(0, total)
        yield done
