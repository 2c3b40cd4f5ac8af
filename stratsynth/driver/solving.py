"""Solving what strata hand out as `Work`: in this process, or in a pool of others.

Only problems made of noisy answers come here; a row never crosses a process's border. Each problem's solution must
depend on that problem alone, so that it is the same, bit for bit, whichever of them are solved together. A stratum
whose problem fails is named, and nothing of the problem is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from stratsynth.checks import whole
from stratsynth.errors import MechanismError, StratsynthError
from stratsynth.strata import Path, label

if TYPE_CHECKING:
    from types import TracebackType

Solver = Callable[[Sequence[Any]], Sequence[Any]]


class Solving(Protocol):
    """Solves the problems that one solver was handed at one moment, each by the stratum of its path."""

    def __call__(self, solver: Solver, problems: Sequence[Any], paths: Sequence[Path]) -> Sequence[Any]:
        """The solutions, in order."""


def together(solver: Solver, problems: Sequence[Any], paths: Sequence[Path]) -> Sequence[Any]:
    """All at once in this process; if that fails, one by one, which finds the stratum or needs less memory."""
    try:
        return solver(problems)
    except Exception:
        if len(problems) == 1:
            raise
    return [_raised(_alone(solver, problem), path) for problem, path in zip(problems, paths, strict=True)]


def check_workers(workers: int) -> None:
    """A number of processes is a whole number of at least 1."""
    whole("workers", workers, 1)


class Solvers:
    """Solves in so many processes, which are kept until the fit is over; with one, in this process.

    Each process has one thread for linear algebra, and takes one stratum's problem at a time, the largest first.
    """

    def __init__(self, workers: int = 1, tick: Callable[[], None] | None = None) -> None:
        """`tick` is called for every problem that is solved."""
        check_workers(workers)
        self._workers, self._tick = workers, tick
        self._open = contextlib.ExitStack()
        self._pool: Any = None

    def __enter__(self) -> Self:
        """Processes are started with the first problems, if ever."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the processes go."""
        self._open.close()

    def __call__(self, solver: Solver, problems: Sequence[Any], paths: Sequence[Path]) -> Sequence[Any]:
        """The solutions, in order."""
        if self._workers == 1 or len(problems) == 1:
            solved = together(solver, problems, paths)
            for _ in problems if self._tick is not None else ():
                self._ticked()
            return solved
        largest_first = sorted(range(len(problems)), key=lambda i: -getattr(problems[i], "size", 0))
        found: dict[int, Any] = {}
        for i, solution in self._started()(_numbered(solver, i, problems[i]) for i in largest_first):
            found[i] = solution
            self._ticked()
        return [_raised(found[i], path) for i, path in enumerate(paths)]

    def _ticked(self) -> None:
        if self._tick is not None:
            self._tick()

    def _started(self) -> Any:
        if self._pool is None:
            import joblib

            self._open.enter_context(joblib.parallel_config("loky", inner_max_num_threads=1))
            # one task at a time: strata differ in how long they take; nothing is put into shared memory
            settings = {"batch_size": 1, "max_nbytes": None, "return_as": "generator_unordered"}
            self._pool = self._open.enter_context(joblib.Parallel(self._workers, **settings))
        return self._pool


@dataclass(frozen=True)
class _Failed:
    """A problem that was not solved, and why."""

    kind: str
    error: Exception | None
    """The error itself; None where it came from another process and is not ours: not all can be sent."""


def _numbered(solver: Solver, i: int, problem: Any) -> Any:
    import joblib

    return joblib.delayed(_solved)(solver, i, problem)


def _solved(solver: Solver, i: int, problem: Any) -> tuple[int, Any]:
    solution = _alone(solver, problem)
    if isinstance(solution, _Failed) and not isinstance(solution.error, StratsynthError):
        solution = _Failed(solution.kind, None)
    return i, solution


def _alone(solver: Solver, problem: Any) -> Any:
    try:
        (solution,) = solver([problem])
    except Exception as error:  # noqa: BLE001 - whatever it is, the stratum is named beside its kind
        return _Failed(type(error).__name__, error)
    return solution


def _raised(solution: Any, path: Path) -> Any:
    """A solution; or the failure, with the stratum's name. What strange errors say may be long, or of the answers."""
    if not isinstance(solution, _Failed):
        return solution
    error, where = solution.error, f"stratum {label(path)}" if path else "everybody"
    if isinstance(error, StratsynthError):
        raise type(error)(f"{where}: {error}") from error
    raise MechanismError(f"{where}: the fit of the model failed ({solution.kind}).") from error
