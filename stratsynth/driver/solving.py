"""Solving of `Work`: in this process, in a pool of others, or by the caller's own solver.

Only problems made of noisy answers come here; a row never crosses a process's border. Each problem's solution must
depend on that problem alone, so that it is equal, bit for bit, whichever problems are solved together. A stratum
whose problem fails is named, and nothing of the problem is quoted.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from stratsynth.checks import check_integer
from stratsynth.errors import MechanismError, StratsynthError
from stratsynth.strata import StratumPath, label

if TYPE_CHECKING:
    from stratsynth.driver.process_pool import Elsewhere
    from stratsynth.questions import Solver

Tick = Callable[[], object]


class Solving(Protocol):
    """A solver of the problems that strata hand to one `Solver` at one moment."""

    def __call__(
        self, solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]
    ) -> Sequence[Any]:
        """Return the `solver`'s solution per problem, in order; `paths` has each one's stratum, for messages."""


def together(solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]) -> Sequence[Any]:
    """Return the solver's solutions of `problems`, in order, by one call; if it fails, one by one, naming its path."""
    try:
        return solver.solve(problems)
    except Exception:
        if len(problems) == 1:
            raise
    return [raised(alone(solver, problem), path) for problem, path in zip(problems, paths, strict=True)]


def in_process(solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]) -> Sequence[Any]:
    """Return a sequence of the solver's solutions of `problems`, in order; errors name the problem's path of `paths`.

    Linear algebra has one thread meanwhile.
    """
    cores = min(len(problems), os.cpu_count() or 1)
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        if not solver.apart or cores < 2:
            return together(solver, problems, paths)
        with ThreadPoolExecutor(cores) as pool:
            solved = list(pool.map(partial(alone, solver), problems))
    return [raised(solution, path) for solution, path in zip(solved, paths, strict=True)]


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:  # noqa: ARG001 - it is what the answer is kept for
    """Return the controller of the loaded libraries for linear algebra, made anew if the number of modules has changed.

    A look-up takes milliseconds, more than a small problem; libraries are loaded with the modules that use them.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread(kind: str | None = None) -> contextlib.AbstractContextManager[object]:
    """Return a context in which numerical libraries use one thread: those of a kind, such as `blas`, or all if None."""
    limits: contextlib.AbstractContextManager[object] = _libraries(len(sys.modules)).limit(limits=1, user_api=kind)
    return limits


Workers: TypeAlias = "int | str | Solving"
"""A number of processes, the name of a kind of workers, or a solver of the caller's own."""


@contextlib.contextmanager
def solving(workers: Workers = 1, tick: Tick = lambda: None) -> Iterator[Solving]:
    """Yield the solver of one fit; whatever is started for it ends with it.

    Args:
        workers: A number of processes; 1 solves in this one. Or "processes", as many as there are cores; "dask" or
            "ray", a cluster on this machine, or with an address behind a colon ("dask:tcp://10.0.0.1:8786") one that
            runs already. Or a solver of the caller's own, any callable of the form of `Solving`.
        tick: Called for every problem that is solved.

    Raises:
        UsageError: No such workers, or a cluster that cannot be reached.
    """
    check_workers(workers)
    with contextlib.ExitStack() as held:
        here: Solving = workers if callable(workers) else in_process
        elsewhere: Elsewhere | None = None
        if not callable(workers) and workers != 1:
            from stratsynth.driver.clusters import opened

            elsewhere = held.enter_context(opened(workers, tick))

        def solve(solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]) -> Sequence[Any]:
            if elsewhere is not None and (len(problems) > 1 or elsewhere.far):
                return elsewhere(solver, problems, paths)
            solved = here(solver, problems, paths)
            for _ in problems:
                tick()
            return solved

        yield solve


def check_workers(workers: object) -> None:
    """Raise UsageError on `workers` but a number of processes from 1, a known name with its package, a callable."""
    if isinstance(workers, str):
        from stratsynth.driver.clusters import check_name

        check_name(workers)
    elif not callable(workers):
        check_integer("workers", workers, 1)


@dataclass(frozen=True)
class Failed:
    """A problem without a solution, and the reason."""

    kind: str
    error: Exception | None
    """The error itself; None if it came from another process and is foreign, as not all can be sent."""


def alone(solver: Solver[Any, Any], problem: Any) -> Any:
    """Return the solver's solution of one problem; a `Failed` with the error if it raises, whatever it raises."""
    try:
        (solution,) = solver.solve([problem])
    except Exception as error:  # noqa: BLE001 - whatever it is, the stratum is named beside its kind
        return Failed(type(error).__name__, error)
    return solution


def named(path: StratumPath) -> str:
    """Return `stratum ...` with the path's labels, for messages; `everybody` for the empty path."""
    return f"stratum {label(path)}" if path else "everybody"


def raised(solution: Any, path: StratumPath) -> Any:
    """Return a solution; raise a `Failed`, a MechanismError naming `path`'s stratum, without foreign words."""
    if not isinstance(solution, Failed):
        return solution
    error, where = solution.error, named(path)
    if isinstance(error, StratsynthError):
        raise type(error)(f"{where}: {error}") from error
    raise MechanismError(f"{where}: the fit of the model failed ({solution.kind}).") from error
