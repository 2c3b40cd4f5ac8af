"""Computation of cells in this process, or by several processes at a time; rows never cross between processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

from stratsynth.errors import StratsynthError
from stratsynth.evaluation.comparisons.cells import CellRunner
from stratsynth.evaluation.comparisons.grid import Grid, GridFit
from stratsynth.mechanisms import Mechanism

_RUNNERS: list[CellRunner] = []
"""Runner of a worker process, which holds one."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def compute(grid: Grid, files: Mapping[GridFit | None, Path], workers: int, tick: Callable[[int, int], None]) -> None:
    """Fit and score the grid's cells whose path in `files` is missing, in `workers` processes.

    `files` maps each GridFit to a path, and None to that of the baselines. `tick` is called with the numbers of cells
    done and of all. The hold-out is read first, so that an unreadable one is refused before the first fit.
    """
    from threadpoolctl import threadpool_limits

    todo = [cell for cell in files if not files[cell].exists()]
    done, whole = len(files) - len(todo), len(files)
    tick(done, whole)
    runner = CellRunner(grid)
    with threadpool_limits(1):
        if None in todo:
            runner.baselines(files[None])
            done += 1
            tick(done, whole)
        cells = [cell for cell in todo if cell is not None]
        # the caller's own objects may not be picklable, and are fitted in this process
        here = [cell for cell in cells if isinstance(grid.mechanisms[cell.mechanism], Mechanism)]
        if workers == 1 or len(cells) < 2:
            here = cells
        for cell in here:
            runner.fit(cell, files[cell])
            done += 1
            tick(done, whole)
    cells = [cell for cell in cells if cell not in here]
    if not cells:
        return
    del runner  # frees the rows it has read
    named = {label: one for label, one in grid.mechanisms.items() if not isinstance(one, Mechanism)}
    grid = replace(grid, mechanisms=named)
    _share_out(grid, {cell: files[cell] for cell in cells}, min(workers, len(cells)), lambda i: tick(done + i, whole))


def _share_out(grid: Grid, files: Mapping[GridFit, Path], workers: int, tick: Callable[[int], None]) -> None:
    context = multiprocessing.get_context("spawn")  # a fork would copy locks and threads in whatever state they are
    with _single(), ProcessPoolExecutor(workers, context, _begin, (grid,)) as pool:
        try:
            with _no_interrupt():  # workers are started here, and would print a traceback until `_begin` has run
                futures = [pool.submit(_fit, cell, file) for cell, file in files.items()]
            for i, future in enumerate(as_completed(futures), start=1):
                future.result()
                tick(i)
        except BrokenProcessPool:
            raise StratsynthError(
                "compare: a worker process died, perhaps for want of memory. Run the same again, with fewer workers, "
                "and it goes on from here."
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # cells that were begun are finished and kept
            raise


@contextlib.contextmanager
def _single() -> Iterator[None]:
    """Context in which thread limits of numerical libraries are 1 in the environment, for worker processes.

    They are restored after.
    """
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Context that holds Ctrl-C back; processes that are started in it hold it back until they let it through."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(grid: Grid) -> None:
    """Set up a worker: one runner of the grid, default handling of Ctrl-C, an exit when the parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    _RUNNERS.append(CellRunner(grid))


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _fit(cell: GridFit, file: Path) -> None:
    _RUNNERS[0].fit(cell, file)
