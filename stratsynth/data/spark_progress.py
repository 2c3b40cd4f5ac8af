"""The progress of a job of Spark, for a bar, and warnings of PySpark that say nothing here."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

LOOK = 0.5
"""Seconds between looks at the number of tasks that are done."""


@contextlib.contextmanager
def watched(session: Any, done: Callable[[], object]) -> Iterator[None]:
    """Call the function `done` for each task of a Spark session that ends in the block; polled every LOOK seconds."""
    tracker, over = session.sparkContext.statusTracker(), threading.Event()

    def look() -> None:
        seen: dict[int, int] = {}
        with contextlib.suppress(Exception):  # a bar that stops is no reason to stop
            while not over.wait(LOOK):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                for stage in filter(None, stages):
                    for _ in range(stage.numCompletedTasks - seen.get(stage.stageId, 0)):
                        done()
                    seen[stage.stageId] = stage.numCompletedTasks

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress PySpark's warning about versions of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield
