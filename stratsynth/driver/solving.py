"""Solving what strata hand out as `Work`: in this process, in a pool of others, or wherever the caller's solver does.

Only problems made of noisy answers come here; a row never crosses a process's border. Each problem's solution must
depend on that problem alone, so that it is the same, bit for bit, whichever of them are solved together. A stratum
whose problem fails is named, and nothing of the problem is.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

from stratsynth.checks import whole
from stratsynth.errors import MechanismError, StratsynthError
from stratsynth.strata import StratumPath, label

if TYPE_CHECKING:
    from stratsynth.questions import Solver

Tick = Callable[[], object]


class Solving(Protocol):
    """Solves the problems that one solver was handed at one moment, each by the stratum of its path."""

    def __call__(
        self, solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]
    ) -> Sequence[Any]:
        """The solutions, in order."""


def together(solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]) -> Sequence[Any]:
    """All at once in this process; if that fails, one by one, which finds the stratum or needs less memory."""
    try:
        return solver.solve(problems)
    except Exception:
        if len(problems) == 1:
            raise
    return [_raised(_alone(solver, problem), path) for problem, path in zip(problems, paths, strict=True)]


class Here:
    """Solves in this process, with one thread for linear algebra; problems that are apart side by side, a core each."""

    def __call__(
        self, solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]
    ) -> Sequence[Any]:
        """The solutions, in order."""
        cores = min(len(problems), os.cpu_count() or 1)
        with self._threads.limit(limits=1, user_api="blas"):
            if not solver.apart or cores < 2:
                return together(solver, problems, paths)
            with ThreadPoolExecutor(cores) as pool:
                solved = list(pool.map(partial(_alone, solver), problems))
        return [_raised(solution, path) for solution, path in zip(solved, paths, strict=True)]

    @cached_property
    def _threads(self) -> Any:
        from threadpoolctl import ThreadpoolController

        return ThreadpoolController()


class Pool:
    """Solves in other processes, the largest problem first, each with one thread for linear algebra."""

    def __init__(self, workers: int, tick: Tick) -> None:
        """Processes are started with the first problems, no more than there are of them, and kept until `close`."""
        self._workers = workers
        self._tick = tick
        self._open = contextlib.ExitStack()

    def close(self) -> None:
        """Let the processes go."""
        self._open.close()

    def __call__(
        self, solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]
    ) -> Sequence[Any]:
        """The solutions, in order."""
        order = range(len(problems))
        size = solver.size
        largest_first = order if size is None else sorted(order, key=lambda i: -size(problems[i]))
        found = {}
        self._workers = min(self._workers, len(problems)) if "_processes" not in vars(self) else self._workers
        try:
            for i, solution in self._processes(_numbered(solver, i, problems[i]) for i in largest_first):
                found[i] = solution
                self._tick()
        except BrokenProcessPool:
            raise MechanismError(
                "a worker process was ended from outside, perhaps for lack of memory. What was charged stays charged; "
                "with a ledger the same fit goes on from here: run it again with fewer workers."
            ) from None
        return [_raised(found[i], path) for i, path in enumerate(paths)]

    @cached_property
    def _processes(self) -> Any:
        import joblib

        start = {"initializer": _as_worker, "initargs": (os.getpid(),)}
        self._open.enter_context(joblib.parallel_config("loky", inner_max_num_threads=1, **start))
        # one task at a time: strata differ in how long they take; nothing is put into shared memory
        settings = {"batch_size": 1, "max_nbytes": None, "return_as": "generator_unordered"}
        return self._open.enter_context(joblib.Parallel(self._workers, **settings))


@contextlib.contextmanager
def solving(workers: int | Solving = 1, tick: Tick = lambda: None) -> Iterator[Solving]:
    """What solves for one fit.

    Args:
        workers: A number of processes, which are let go at the end; 1 solves in this one. Or a solver of the caller's
            own, any callable of the form of `Solving`, which may hand problems to a cluster and is not closed here.
        tick: Called for every problem that is solved.

    Raises:
        UsageError: A number that is no whole number of at least 1.
    """
    check_workers(workers)
    here: Solving = workers if callable(workers) else Here()
    pool = Pool(workers, tick) if isinstance(workers, int) and workers > 1 else None

    def solve(solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]) -> Sequence[Any]:
        if pool is not None and len(problems) > 1:
            return pool(solver, problems, paths)
        solved = here(solver, problems, paths)
        for _ in problems:
            tick()
        return solved

    try:
        yield solve
    finally:
        if pool is not None:
            pool.close()


def check_workers(workers: object) -> None:
    """A number of processes is a whole number of at least 1; a solver can be called."""
    if not callable(workers):
        whole("workers", workers, 1)


LOOK = 0.5
"""The seconds between two looks of a worker whether its fit still runs."""


def _as_worker(parent: int) -> None:
    """Made ready in a worker: it says nothing, and it ends when the fit's process does, however that was killed."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.close(silent)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass(frozen=True)
class _Failed:
    """A problem that was not solved, and why."""

    kind: str
    error: Exception | None
    """The error itself; None where it came from another process and is not ours: not all can be sent."""


def _numbered(solver: Solver[Any, Any], i: int, problem: Any) -> Any:
    import joblib

    return joblib.delayed(_solved)(solver, i, problem)


def _solved(solver: Solver[Any, Any], i: int, problem: Any) -> tuple[int, Any]:
    solution = _alone(solver, problem)
    if isinstance(solution, _Failed) and not isinstance(solution.error, StratsynthError):
        solution = _Failed(solution.kind, None)
    return i, solution


def _alone(solver: Solver[Any, Any], problem: Any) -> Any:
    try:
        (solution,) = solver.solve([problem])
    except Exception as error:  # noqa: BLE001 - whatever it is, the stratum is named beside its kind
        return _Failed(type(error).__name__, error)
    return solution


def _raised(solution: Any, path: StratumPath) -> Any:
    """A solution; or the failure, with the stratum's name. What strange errors say may be long, or of the answers."""
    if not isinstance(solution, _Failed):
        return solution
    error, where = solution.error, f"stratum {label(path)}" if path else "everybody"
    if isinstance(error, StratsynthError):
        raise type(error)(f"{where}: {error}") from error
    raise MechanismError(f"{where}: the fit of the model failed ({solution.kind}).") from error
