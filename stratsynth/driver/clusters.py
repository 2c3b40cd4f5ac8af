"""Workers by name: processes of this machine, a Dask cluster, a Ray cluster.

A cluster that is not named by an address is started on this machine for one fit, reachable from it alone, and ends
with it; one with an address was started by somebody, and stays. Before anything is charged it is reached, and has to
have the same versions of this package and of numpy. Tasks are handed to each library by itself, one future per problem:
through joblib's backends for them nobody could say which problem a lost worker was at.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stratsynth.driver.counting import cores
from stratsynth.driver.process_pool import Elsewhere, Processes, there
from stratsynth.driver.solving import Failed
from stratsynth.errors import StratsynthError, UsageError, nearest
from stratsynth.version import VERSION

if TYPE_CHECKING:
    from stratsynth.driver.solving import Tick
    from stratsynth.questions import Solver

PATIENCE = 30
"""Seconds after which a cluster counts as unreachable."""
_PACKAGES = {"processes": None, "dask": "distributed", "ray": "ray"}
"""Package that each kind of workers needs; None for none."""


@contextlib.contextmanager
def opened(workers: int | str, tick: Tick) -> Iterator[Elsewhere]:
    """Yield the workers of that number or name, an `Elsewhere`, while the `with` block lasts; `tick` is shown progress.

    Raises:
        UsageError: A cluster that cannot be reached, or has other versions.
    """
    kind, _, address = str(workers).partition(":")
    made = _KINDS[kind](address, tick) if isinstance(workers, str) else Processes(workers, tick)
    try:
        yield made
    finally:
        made.close()


def check_name(workers: str) -> None:
    """Raise UsageError for workers of unknown name, with a misplaced or empty address, or without their package."""
    kind, colon, address = workers.partition(":")
    if kind not in _PACKAGES:
        raise UsageError(
            f"workers: there is no {kind!r}{nearest(kind, _PACKAGES)}; it is a number of processes or one of "
            f"{', '.join(_PACKAGES)}."
        )
    if colon and (not address or kind == "processes"):
        raise UsageError('workers: an address stands behind "dask:" or "ray:", as in "dask:tcp://10.0.0.1:8786".')
    package = _PACKAGES[kind]
    if package is not None:
        _library(package, kind)


class Dask(Elsewhere):
    """A Dask cluster; retries after a lost worker are its own setting, and one in a cluster started here."""

    def __init__(self, address: str, tick: Tick) -> None:
        """Connect to the cluster at `address`, or start one here if it is empty; `tick` is called for each solution."""
        super().__init__(tick)
        distributed = _library("distributed", "dask")
        settings: dict[str, Any] = {"set_as_default": False, "timeout": PATIENCE}
        if not address:
            settings |= {
                "n_workers": cores(),
                "threads_per_worker": 1,
                "processes": True,
                "silence_logs": 50,
                "dashboard_address": "127.0.0.1:0",
            }
        with import_module("dask").config.set({} if address else {"distributed.scheduler.allowed-failures": 1}):
            self._client = _reached("dask", partial(distributed.Client, address or None, **settings))
        self._own = self._client.cluster if not address else None
        try:
            _reached("dask", partial(self._client.wait_for_workers, 1, timeout=PATIENCE))
            _check_versions("dask", _reached("dask", partial(self._client.run, _versions)).values())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Disconnect from the cluster, and end it if it was started here."""
        self._client.close()
        if self._own is not None:
            self._own.close()

    def each(
        self, solver: Solver[Any, Any], problems: Sequence[Any], numbers: Sequence[int], begun: list[int]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (index in `problems`, the `Solver`'s solution or `Failed`) for the indices `numbers`, as they come.

        The indices of problems that were sent are appended to the list `begun`; lost ones are not yielded.
        """
        distributed = _library("distributed", "dask")
        futures = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a large problem travels with its task: it cannot get lost
            for place, i in enumerate(numbers):  # the largest first, as they stand
                task = partial(self._client.submit, pure=False, priority=-place)
                futures[task(_solved, _versions(), solver, problems[i])] = i
                begun.append(i)
        for future in distributed.as_completed(futures, loop=self._client.loop):
            if future.status == "finished":
                with contextlib.suppress(Exception):  # its worker ended meanwhile
                    yield futures[future], future.result()
            elif future.status == "error":
                error = future.exception()
                if not isinstance(error, distributed.KilledWorker):
                    yield futures[future], Failed(type(error).__name__, None)


class Ray(Elsewhere):
    """A Ray cluster; Ray tries a task again once if its worker ended."""

    def __init__(self, address: str, tick: Tick) -> None:
        """Connect to the cluster at `address`, or start one here if it is empty; `tick` is called for each solution.

        A cluster that this process is connected to already is used.

        Raises:
            UsageError: The cluster cannot be reached, has other versions, or is another than the one reached already.
        """
        super().__init__(tick)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
        self._ray = _library("ray", "ray")
        quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        self._own = not self._ray.is_initialized()
        if address and not self._own:
            self._refuse_other(address)
        if self._own:
            where = (
                {"address": address}
                if address
                else {"address": "local", "num_cpus": cores(), "include_dashboard": False}
            )
            _reached("ray", partial(self._ray.init, **where, **quiet))
        try:
            _check_versions("ray", [self._get(self._ray.remote(_versions).remote())])
        except BaseException:
            self.close()
            raise

    def _refuse_other(self, address: str) -> None:
        """Raise UsageError if this process is connected to another Ray cluster than the one at `address`."""
        here = self._ray.get_runtime_context().gcs_address
        if address not in {here, "auto"}:
            raise UsageError(
                f"workers: this process is at work with the Ray cluster at {here} already, and not at {address}. Name "
                'that one, say "ray" alone, or call ray.shutdown() first. Nothing was charged.'
            )

    def close(self) -> None:
        """Disconnect, which ends a cluster that was started here; leave a connection alone that was there before."""
        if self._own:
            self._ray.shutdown()

    def each(
        self, solver: Solver[Any, Any], problems: Sequence[Any], numbers: Sequence[int], begun: list[int]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (index in `problems`, the `Solver`'s solution or `Failed`) for the indices `numbers`, as they come.

        The indices of problems that were sent are appended to the list `begun`; problems lost twice are not yielded.
        """
        task = self._ray.remote(max_retries=1, num_cpus=1)(_solved)
        references = {}
        for i in numbers:
            references[task.remote(_versions(), solver, problems[i])] = i
            begun.append(i)
        waiting, errors = list(references), self._ray.exceptions
        while waiting:
            (done,), waiting = self._ray.wait(waiting, num_returns=1)
            try:
                yield references[done], self._ray.get(done)
            except errors.RayTaskError as error:  # it ran, and could not be made ready there
                yield references[done], Failed(type(error).__name__, None)
            except errors.RayError:
                continue

    def _get(self, reference: Any) -> Any:
        return _reached("ray", partial(self._ray.get, reference, timeout=PATIENCE))


_KINDS: dict[str, Callable[[str, Any], Elsewhere]] = {
    "processes": lambda _, tick: Processes(cores(), tick),
    "dask": Dask,
    "ray": Ray,
}


def _library(package: str, extra: str) -> Any:
    """Return the module `package`; UsageError, with the way to install `extra`, if it is absent."""
    try:
        return import_module(package)
    except ImportError:
        raise UsageError(f'workers: "{extra}" needs its extra: pip install "stratsynth[{extra}]"') from None


def _reached(kind: str, attempt: Callable[[], Any]) -> Any:
    """Return the value of the function `attempt`, called without arguments.

    Turn any error into a UsageError on a `kind` of cluster, naming its class alone.
    """
    try:
        return attempt()
    except Exception as error:  # noqa: BLE001 - another library's
        raise UsageError(
            f"workers: the {kind} cluster cannot be reached, or has no worker ({type(error).__name__}). Nothing was "
            "charged."
        ) from None


def _versions() -> tuple[str, str]:
    """Return (this package's version, numpy's) here, on which solutions depend; called in a worker too."""
    import numpy as np

    return VERSION, np.__version__


_versions_here = _versions


def _check_versions(kind: str, found: Any) -> None:
    """Raise UsageError if one of `found`, pairs of versions on a `kind` of cluster, is not that used here."""
    mine = _versions_here()
    for theirs in found:
        if tuple(theirs) != mine:
            raise UsageError(
                f"workers: the {kind} cluster has stratsynth {theirs[0]} with numpy {theirs[1]}, and here are "
                f"{mine[0]} and {mine[1]}: solutions would differ. Install the same there. Nothing was charged."
            )


def _solved(versions: tuple[str, str], solver: Solver[Any, Any], problem: Any) -> Any:
    """Return solver(problem), by one thread of linear algebra, or a `Failed` if `versions` are not those here.

    `versions` is the pair of texts of `_versions`. The function is called in a worker.
    """
    from threadpoolctl import threadpool_limits

    mine = _versions()
    if tuple(versions) != mine:
        return Failed(
            "WrongVersion",
            StratsynthError(
                f"a worker that joined the cluster has stratsynth {mine[0]} with numpy {mine[1]}, and here are "
                f"{versions[0]} and {versions[1]}: solutions would differ. What was charged stays charged; end that "
                "worker, and with a ledger the same fit goes on from here."
            ),
        )
    with threadpool_limits(1, "blas"):
        return there(solver, problem)
