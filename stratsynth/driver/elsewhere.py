"""Problems solved in other processes: the largest first, and once more where a process ended in the middle.

A process may be ended from outside, as by a system without memory. The problems it was at are then solved again, one
at a time; whose process ends a second time is named. Solutions depend on their problem alone, so that neither the order
nor a second time changes a bit. What travels is a solver's name, a problem and its solution, by the transport of the
library that runs the processes (which pickles them); we keep nothing of it in a file.
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
"""The seconds between two looks of a worker whether its fit still runs."""


class Elsewhere(ABC):
    """Processes that solve problems; what each kind of them adds is how a problem gets there and back."""

    far = True
    """True if a single problem goes there too, rather than being solved in this process."""

    def __init__(self, tick: Tick) -> None:
        """`tick` is called for every problem that is solved."""
        self._tick = tick

    @abstractmethod
    def each(self, solver: Solver[Any, Any], problems: Sequence[Any], numbers: Sequence[int],
             begun: list[int]) -> Iterator[tuple[int, Any]]:  # fmt: skip
        """The solutions of the problems of these numbers, as they come; those of processes that end do not come.

        Args:
            solver: What solves them.
            problems: All of them.
            numbers: Which of them, the largest first.
            begun: Takes the number of each that was handed out.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the processes, unless somebody else started them."""

    def __call__(
        self, solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]
    ) -> Sequence[Any]:
        """The solutions, in order.

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

    def _gather(self, solver: Solver[Any, Any], problems: Sequence[Any], numbers: Sequence[int], begun: list[int],
                found: dict[int, Any]) -> None:  # fmt: skip
        for i, solution in self.each(solver, problems, numbers, begun):
            found[i] = solution
            self._tick()


class Processes(Elsewhere):
    """Processes of this machine, each with one thread for linear algebra."""

    far = False

    def __init__(self, workers: int, tick: Tick) -> None:
        """They are started with the first problems, no more than there are of them, and kept until `close`."""
        super().__init__(tick)
        self._workers = workers
        self._open = contextlib.ExitStack()

    def close(self) -> None:
        """Let the processes go."""
        self._open.close()
        vars(self).pop("_processes", None)

    def each(self, solver: Solver[Any, Any], problems: Sequence[Any], numbers: Sequence[int],
             begun: list[int]) -> Iterator[tuple[int, Any]]:  # fmt: skip
        """The solutions as they come; where a process ends, all end with it, and new ones are started next time."""
        if "_processes" not in vars(self):
            self._workers = min(self._workers, len(problems))
        try:
            yield from self._processes(_numbered(solver, i, problems[i], begun) for i in numbers)
        except BrokenProcessPool:
            self.close()

    @cached_property
    def _processes(self) -> Any:
        import joblib

        start = {"initializer": _as_worker, "initargs": (os.getpid(),)}
        self._open.enter_context(joblib.parallel_config("loky", inner_max_num_threads=1, **start))
        # one task at a time: strata differ in how long they take; nothing is put into shared memory
        settings = {"batch_size": 1, "max_nbytes": None, "return_as": "generator_unordered"}
        return self._open.enter_context(joblib.Parallel(self._workers, **settings))


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


def _numbered(solver: Solver[Any, Any], i: int, problem: Any, begun: list[int]) -> Any:
    import joblib

    begun.append(i)
    return joblib.delayed(_solved)(solver, i, problem)


def _solved(solver: Solver[Any, Any], i: int, problem: Any) -> tuple[int, Any]:
    return i, there(solver, problem)


def there(solver: Solver[Any, Any], problem: Any) -> Any:
    """In the other process: the solution; or a failure that can be sent, which is none but in words of ours."""
    solution = alone(solver, problem)
    if isinstance(solution, Failed) and not isinstance(solution.error, StratsynthError):
        return Failed(solution.kind, None)
    return solution
