"""Processes to be killed: a warmed-up server forks one for each order, in a few milliseconds.

`Nursery().run(task, ...)` calls a function of this module in a child, and says how the child ended and what it
printed. The children leave two traces beside the ledger, whatever becomes of them: `reads.log`, a line for
each time rows were looked at, and `seen.log`, a line for each answer that a mechanism was given.
"""

import contextlib
import gc
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

from helpers.toys import Toy
from stratsynth.questions import Counts, counts

KILLED = -signal.SIGKILL
TESTS = Path(__file__).parents[1]


# The mechanism: questions in sequence, each of which depends on the answer before it.


@dataclass(frozen=True)
class Ladder(Toy):
    """Asks for all one-way tables again and again; leaves a trace of every answer in the folder `trace`."""

    name: ClassVar[str] = "ladder"
    needs: ClassVar = frozenset({Counts})
    rungs: int = 6
    trace: str = ""

    def rehearsal(self, public, allot, rng):
        """Without a trace, and without whatever a class made of this one does."""
        return Ladder(rungs=self.rungs).steps(public, allot, rng)

    def steps(self, public, allot, rng):
        from stratsynth.adapters.independent import Product

        turn = 0
        for rung in range(self.rungs):
            columns = public.schema.oneways
            order = columns[turn:] + columns[:turn]
            tables = yield from counts(order, rho=allot.rho / self.rungs)
            trace(self.trace, "seen.log", f"{rung} {digest(tables)}")
            turn = int(tables[0].values.sum()) % len(columns)
        return Product.of(public.schema, tables)


def digest(tables):
    """Return a short hash of an answer's values."""
    return hashlib.sha256(b"".join(t.values.tobytes() for t in tables)).hexdigest()[:16]


def trace(folder, name, text):
    """One line, written at once."""
    if folder:
        with (Path(folder) / name).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


def traces(folder, name):
    """The lines of a trace, parted at spaces."""
    path = Path(folder) / name
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


# What can be done to a process


@dataclass(frozen=True)
class Fault:
    """A signal to oneself at the `at`-th call of a function, from 0, before the call proper or after it."""

    where: str
    """`module:function` or `module:class.function`."""
    at: int = 0
    after: bool = False
    signal: int | None = signal.SIGKILL
    """None only counts."""
    until: tuple[str, ...] = ()
    """Files that are waited for first."""

    def arm(self):
        """Wrap the function; returns a list that grows with each call."""
        import importlib

        module, _, names = self.where.rpartition(":")
        *path, last = names.split(".")
        owner = importlib.import_module(module)
        for name in path:
            owner = getattr(owner, name)
        plain = vars(owner)[last]
        proper = plain.__func__ if isinstance(plain, classmethod | staticmethod) else plain
        calls = []

        def wrapped(*arguments, **settings):
            calls.append(last)
            due = len(calls) == self.at + 1
            if due:
                wait_for(self.until)
            if due and self.signal and not self.after:
                os.kill(os.getpid(), self.signal)
            result = proper(*arguments, **settings)
            if due and self.signal and self.after:
                os.kill(os.getpid(), self.signal)
            return result

        kind = type(plain)
        setattr(owner, last, kind(wrapped) if kind in {classmethod, staticmethod} else wrapped)
        return calls


def wait_for(paths):
    """Sleep until there are all these files, for a minute at most."""
    deadline = time.monotonic() + 60
    while not all(Path(path).exists() for path in paths) and time.monotonic() < deadline:
        time.sleep(0.005)


def arm(faults):
    for fault in faults:
        Fault(**fault).arm()


# Tasks: what a child does


def fit(
    folder,
    *,
    faults=(),
    rungs=6,
    count=None,
    bug=None,
    after=(),
    out="release",
    torn=None,
    mark=None,
    size=None,
    epsilon=1,
    first=None,
    **options,
):
    """Fit a ladder on the folder's people, with its ledger, into its release; tells how often `count` was called.

    It begins when there are the files `after`; `mark` is a file that it makes at its end, however it ends.
    """
    from helpers import small
    from stratsynth import Budget, open_table
    from stratsynth.fitting import FitOptions, fitted

    folder = Path(folder)
    wait_for(after)
    watch_reads(folder)
    plant(bug)
    if torn is not None:
        tear(torn)
    counted = Fault(count, signal=None).arm() if count else []
    arm(faults)
    table = open_table(
        folder / "people.csv", schema=small.SCHEMA, declared_size=size or small.SIZE, ledger=folder / "people.ledger"
    )
    try:
        with fitted(
            Ladder(rungs, str(folder)), table, Budget(epsilon, 1e-9, first=first), FitOptions(**options)
        ) as release:
            release.save(folder / out, rows=50)
    finally:
        if mark is not None:
            Path(mark).touch()
    return len(counted)


def estimate(folder):
    """Fit an estimator for scikit-learn on made-up arrays, charged to the folder's ledger; returns its coefficients."""
    import numpy as np

    from stratsynth.adapters.sklearn import GroupClassifier

    folder, cycle = Path(folder), np.arange(2000)
    watch_reads(folder)
    how = GroupClassifier(
        epsilon=1.0, delta=1e-9, bounds=(0, 6), classes=[0, 1], groups=["a", "b"], iterations=6, declared_size=2000,
        ledger=folder / "people.ledger",
    )  # fmt: skip
    how.fit((cycle % 7)[:, None].astype(float), cycle % 3 % 2, sensitive_features=np.array(["a", "b"])[cycle % 5 % 2])
    return np.ravel(how.coef_).tolist()


def command(*arguments, cwd, faults=(), limit=None, wait=0.0, unprivileged=False):
    """`stratsynth ...` with the ladder installed; `limit` is the largest file it may write.

    `unprivileged` takes all rights to write in the folder away.
    """
    from stratsynth import cli
    from stratsynth.mechanisms import registry

    os.chdir(cwd)
    time.sleep(wait)
    registry.installed()["ladder"] = EntryPoint("ladder", "helpers.crash:Ladder", registry.GROUP)
    watch_reads(Path(cwd))
    arm(faults)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    if unprivileged:
        os.umask(0o022)
        os.setresuid(65534, 65534, 65534)
    sys.exit(cli.run(list(arguments)))


def capped(code, folder, *, memory):
    """Run code that knows the folder's name, in at most so many bytes more than there are now, and in a minute."""
    signal.alarm(60)
    used = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + memory,) * 2)
    exec(code, {"folder": folder})  # noqa: S102 - a test's


def program(*arguments, cwd):
    """Become the command `stratsynth`, in this very process."""
    from helpers.command import STRATSYNTH

    os.chdir(cwd)
    os.execv(STRATSYNTH, [str(STRATSYNTH), *arguments])  # noqa: S606 - it has to be this very process


def append_forever(path, *, size):
    """Append long lines, and note each that is there for good."""
    from stratsynth.accounting.chain import Chain

    chain = Chain(Path(path))
    while True:
        with chain.locked() as append:
            append({"n": len(chain.lines), "filler": "x" * size})
        trace(Path(path).parent, "done.log", f"{len(chain.lines)}")


def tear(at):
    """Be killed in the middle of a write, as it happens where a line crosses a page."""
    proper, calls = os.pwrite, []

    def write(handle, content, offset):
        calls.append(offset)
        if len(calls) == at + 1:
            proper(handle, content[: len(content) // 2], offset)
            os.kill(os.getpid(), signal.SIGKILL)
        return proper(handle, content, offset)

    os.pwrite = write


def reserve(path, *, times, name, epsilon=1e-3, cap=0.1, unlocked=False):
    """Reserve pure epsilon so often, each time for another fit; returns how often it was granted."""
    import fcntl

    from stratsynth import Budget
    from stratsynth.accounting.account import Request
    from stratsynth.accounting.ledger_file import FileLedger
    from stratsynth.errors import BudgetRefused

    if unlocked:  # the planted bug: nobody waits for anybody
        fcntl.flock = lambda *arguments: None
    budget = Budget(epsilon, 1e-9)
    granted = 0
    for i in range(times):
        ledger = FileLedger(Path(path), lambda key: "these data", cap)
        with contextlib.suppress(BudgetRefused):
            ledger.open(Request(hashlib.sha256(f"{name} {i}".encode()).hexdigest(), "test", budget, budget.pure(), 0))
            granted += 1
    return granted


def watch_reads(folder):
    """Leave a line for each look at the rows: the moment, and how many charges the ledger file holds by then."""
    from stratsynth.driver.answering import Answerer

    answer = Answerer.answer

    def watched(self, asked):
        ledger = folder / "people.ledger"
        charged = ledger.read_bytes().count(b'"kind":"charge"') if ledger.exists() else 0
        trace(folder, "reads.log", f"{charged}")
        return answer(self, asked)

    Answerer.answer = watched


# Bugs


def plant(bug):
    """A bug that the tests must notice."""
    if bug == "no journal":
        from stratsynth.accounting.ledger_file import FileAccount

        FileAccount.recall = lambda *arguments: None
    elif bug == "reads before the charge":
        from stratsynth.driver.private import PrivateAnswers

        proper = PrivateAnswers.__call__

        def hasty(self, asked):
            self._answer(asked)
            return proper(self, asked)

        PrivateAnswers.__call__ = hasty
    elif bug == "refunds":
        from stratsynth.accounting.chain import Chain

        proper_locked = Chain.locked

        def forgetful(self):
            raw = self.path.read_bytes() if self.path.exists() else b""
            self.path.write_bytes(b"".join(raw.splitlines(keepends=True)[:3]))
            return proper_locked(self)

        Chain.locked = forgetful


# The server


@dataclass(frozen=True)
class Ended:
    """Result of a child process."""

    code: int
    """Exit code, or minus the signal that ended the child."""
    result: object
    said: str
    """Standard output and standard error."""
    seconds: float


class Nursery:
    """A process with everything imported that forks a child for each order."""

    def __init__(self):
        paths = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._server = subprocess.Popen(
            [sys.executable, "-c", "from helpers.crash import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **single, "PYTHONPATH": paths},
        )

    def together(self, *orders):
        """Run several tasks at the same time; each order is (task, arguments, settings)."""
        return self._order([order(task, a, s) for task, a, s in orders])

    def run(self, task, *arguments, kill=None, by=signal.SIGKILL, **settings):
        """Run one task; `kill` is when it gets the signal `by`, in seconds."""
        [ended] = self._order([{**order(task, arguments, settings), "kill": kill, "by": by}])
        return ended

    def _order(self, orders):
        self._server.stdin.write(json.dumps(orders, default=plain) + "\n")
        self._server.stdin.flush()
        return [Ended(**ended) for ended in json.loads(self._server.stdout.readline())]

    def close(self):
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait(30)


def order(task, arguments, settings):
    return {"task": task.__name__, "arguments": arguments, "settings": settings, "kill": None, "by": None}


def plain(value):
    return vars(value) if isinstance(value, Fault) else os.fspath(value)


def serve():
    """Import the adapters and fit once, so that no child has to load libraries, templates and commands; then fork."""
    import importlib

    from helpers import small
    from helpers.command import stratsynth

    for name in ("aim", "gem", "mst", "pooled", "independent", "sklearn"):
        importlib.import_module(f"stratsynth.adapters.{name}")
    with tempfile.TemporaryDirectory() as folder:
        recipe = small.write_recipe(Path(folder))
        assert stratsynth("fit", recipe.name, cwd=folder).returncode == 0
    gc.collect()
    gc.freeze()  # a child that collects garbage need not copy what was there before
    os.fsync = os.fstat  # a killed process loses nothing that it wrote: waiting for the disk would prove nothing
    for line in sys.stdin:
        orders = json.loads(line)
        children = [start(wanted) for wanted in orders]
        sys.stdout.write(json.dumps([end(*pair) for pair in zip(children, orders, strict=True)]))
        sys.stdout.write("\n")
        sys.stdout.flush()


def start(wanted):
    """Fork a child; what it prints and returns waits in pipes until it has ended."""
    said, result = os.pipe(), os.pipe()
    began = time.perf_counter()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the child can tell
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        os.close(said[1])
        os.close(result[1])
        return pid, began, said[0], result[0]
    code, running = 1, [True]

    def interrupt(*_):
        if running:
            raise KeyboardInterrupt

    try:
        signal.signal(signal.SIGINT, interrupt)  # a background job would ignore it
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        os.dup2(said[1], 1)
        os.dup2(said[1], 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - the descriptor, for good
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
        try:
            returned = globals()[wanted["task"]](*wanted["arguments"], **wanted["settings"])
        finally:
            running.clear()
        os.write(result[1], json.dumps(returned).encode())
        code = 0
    except SystemExit as leave:
        code = leave.code
    except KeyboardInterrupt as late:  # before the command had begun, or when it had ended
        code = late.__context__.code if isinstance(late.__context__, SystemExit) else 130
    except BaseException:  # noqa: BLE001 - whatever it is, whoever gave the order wants to see it
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(code)


def end(child, wanted):
    """Wait for a child; send it its signal when the time has come."""
    pid, began, said, result = child
    if wanted["kill"] is not None:
        time.sleep(max(0.0, began + wanted["kill"] - time.perf_counter()))
        os.kill(pid, wanted["by"])  # it is not waited for yet, so that nobody else can have its number
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - began
    returned = content(result)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "result": json.loads(returned) if returned else None,
        "said": content(said).decode(errors="replace"),
        "seconds": seconds,
    }


def content(handle):
    with open(handle, "rb") as pipe:  # noqa: PTH123 - a descriptor
        return pipe.read()
