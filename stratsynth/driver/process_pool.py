"""Solving in other processes: the largest problems first, and a second time after a process ended.

A process may be ended from outside, as by a system without memory. The problems it was at are then solved again, one
at a time; one whose process ends a second time is named. A solution depends on its problem alone, so neither the order
nor a second time changes a bit. A solver's name, a problem and its solution are sent, by the transport of the
library that runs the processes (which pickles them); nothing of it is kept in a file.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stratsynth.driver.solving import Failed, alone, named, raised
from stratsynth.errors import MechanismError, StratsynthError

if TYPE_CHECKING:
    from stratsynth.driver.solving import Tick
    from stratsynth.questions import Solver
    from stratsynth.strata import StratumPath

LOOK = 0.5
"""Seconds between two checks of a worker that its fit still runs."""


class Elsewhere(ABC):
    """Processes that solve problems; a subclass defines the transport of problems and solutions."""

    far = True
    """True if single problems are sent too, rather than solved in this process."""

    def __init__(self, tick: Tick) -> None:
        """`tick` is called for every problem that is solved."""
        self._tick = tick

    @abstractmethod
    def each(
        self, solver: Solver[Any, Any], problems: Sequence[Any], numbers: Sequence[int], begun: list[int]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (index, solution or `Failed`) of these problems, as they come; those of processes that end are missing.

        Args:
            solver: The solver of the problems.
            problems: All problems, a sequence.
            numbers: Indices of those to solve, the largest first.
            begun: List to which is added the index of each problem that was handed out.
        """

    @abstractmethod
    def close(self) -> None:
        """End the processes that were started here; leave alone those that somebody else started."""

    def __call__(
        self, solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]
    ) -> Sequence[Any]:
        """Return the `solver`'s solution of each of `problems`, in order, found elsewhere; errors name `paths`.

        Raises:
            MechanismError: A stratum whose process was ended twice, or whose problem has no solution.
        """
        size, waiting = solver.size, list(range(len(problems)))
        if size is not None:
            waiting.sort(key=lambda i: -size(problems[i]))
        found: dict[int, Any] = {}
        while waiting:
            begun: list[int] = []
            self._gather(solver, problems, waiting, begun, found)
            for i in begun:
                if i not in found:
                    self._gather(solver, problems, [i], [], found)
                if i not in found:
                    raise MechanismError(
                        f"{named(paths[i])}: the process that fitted its model was ended twice, perhaps for lack of "
                        "memory. What was charged stays charged; with a ledger the same fit goes on from here: run it "
                        "again with fewer workers, or where there is more memory."
                    )
            waiting = [i for i in waiting if i not in found]
        return [raised(found[i], path) for i, path in enumerate(paths)]

    def _gather(
        self,
        solver: Solver[Any, Any],
        problems: Sequence[Any],
        numbers: Sequence[int],
        begun: list[int],
        found: dict[int, Any],
    ) -> None:
        for i, solution in self.each(solver, problems, numbers, begun):
            found[i] = solution
            self._tick()


class Processes(Elsewhere):
    """Processes of this machine, each with one thread for linear algebra."""

    far = False

    def __init__(self, workers: int, tick: Tick) -> None:
        """Start none of `workers` processes yet: they start with the first problems; `tick` is called for each."""
        super().__init__(tick)
        self._workers = workers
        self._open = contextlib.ExitStack()

    def close(self) -> None:
        """End all processes of the pool."""
        self._open.close()
        vars(self).pop("_processes", None)

    def each(
        self, solver: Solver[Any, Any], problems: Sequence[Any], numbers: Sequence[int], begun: list[int]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (index in `problems`, the `Solver`'s solution or `Failed`) for the indices `numbers`, as they come.

        The indices of problems that were sent are appended to the list `begun`; if a process ends, the pool is closed.
        """
        if "_processes" not in vars(self):
            self._workers = min(self._workers, len(problems))
        try:
            yield from self._processes(_numbered(solver, i, problems[i], begun) for i in numbers)
        except BrokenProcessPool:
            self.close()

    @cached_property
    def _processes(self) -> Any:
        """Pool of processes, a joblib Parallel, started on first use."""
        import joblib

        start = {"initializer": _as_worker, "initargs": (os.getpid(),)}
        self._open.enter_context(joblib.parallel_config("loky", inner_max_num_threads=1, **start))
        # one task at a time: strata differ in how long they take; nothing is put into shared memory
        settings = {"batch_size": 1, "max_nbytes": None, "return_as": "generator_unordered"}
        return self._open.enter_context(joblib.Parallel(self._workers, **settings))


def _as_worker(parent: int) -> None:
    """Silence this worker, and let it end when the process of id `parent` (the fit's) does, however that ends."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.close(silent)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _numbered(solver: Solver[Any, Any], i: int, problem: Any, begun: list[int]) -> Any:
    import joblib

    begun.append(i)
    return joblib.delayed(_solved)(solver, i, problem)


def _solved(solver: Solver[Any, Any], i: int, problem: Any) -> tuple[int, Any]:
    """Return (index `i`, the `Solver`'s solution of the problem or a `Failed`)."""
    return i, there(solver, problem)


def there(solver: Solver[Any, Any], problem: Any) -> Any:
    """Return solver(problem), or a `Failed` without foreign exceptions, which can be sent.

    The function is called in another process.
    """
    solution = alone(solver, problem)
    if isinstance(solution, Failed) and not isinstance(solution.error, StratsynthError):
        return Failed(solution.kind, None)
    return solution
