"""Record what a program asks, and replay the answers on other rows."""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.account import FitAccount
from stratsynth.accounting.ledger import Request
from stratsynth.accounting.process import ProcessLedger
from stratsynth.accounting.units import per_unit
from stratsynth.data.table import open_table
from stratsynth.digest import digest
from stratsynth.driver.lockstep import AnswerSource, Asked, run
from stratsynth.driver.private import PrivateAnswers
from stratsynth.driver.solving import together
from stratsynth.files.npz import State
from stratsynth.mechanisms import Mechanism, Prepared, describe, prepare
from stratsynth.models import Model
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Split
from stratsynth.release.certificate import certificate
from stratsynth.testing.content import content
from stratsynth.testing.contract_inputs import given_out
from stratsynth.testing.privacy_loss import shape
from stratsynth.testing.watch import Interrupted, Watched, watching

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.accounting.budget import Budget
    from stratsynth.accounting.charges import Charge
    from stratsynth.data.table import PrivateTable
    from stratsynth.noise import Entropy
    from stratsynth.questions import Answer, Solver
    from stratsynth.questions.reading import Rows
    from stratsynth.schema import Schema
    from stratsynth.strata import StratumPath
    from stratsynth.testing.worlds import World

Driver = Callable[[Callable[[], "Rows"], FitAccount, "Entropy"], "PrivateAnswers"]
"""Maker of the answers from rows; tests replace it by broken ones."""


@dataclass
class Run:
    """Record of one fit as observed from outside."""

    schema: Schema | None = None
    """Schema that rows are read by: the world's, or that with code lists in groups and numbers in bands."""
    batches: list[list[Asked]] = field(default_factory=list)
    """Questions asked, in batches."""
    questions: list[str] = field(default_factory=list)
    """Digest of each batch."""
    answers: list[list[Answer]] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)
    shapes: list[Any] = field(default_factory=list)
    """Shapes, types and noise of the answers that the driver gave, even if others were passed on."""
    works: list[Any] = field(default_factory=list)
    """Digests of the problems handed out as `Work`, in order, each with its path and solver."""
    stated: str = ""
    """Digest of the mechanism's declarations: settings, name, price and others."""
    certified: str = ""
    """Digest of the certificate."""
    watched: Watched = field(default_factory=Watched)
    """Output and side effects of the fit."""
    result: Any = None
    """State of the model."""
    given: str = ""
    """Digest of the model's outputs with a fixed seed: rows, masses, estimates, predictions."""
    failure: str = ""
    """Type and text of the exception; empty if there was none."""

    def parts(self) -> dict[str, str]:
        """Return {kind of finding: digest} of all that may depend on rows only through the answers."""
        return {
            "questions": digest(self.questions),
            "charges": content(self.charges),
            "work": content(self.works),
            "settings": content([self.stated, self.certified]),
            "output": content(self.watched.heard),
            "files": content(self.watched.did),
            "state": content(self.watched.changed),
            "result": content([self.result, self.given]),
            "failure": content(self.failure),
        }


class _Parted(Exception):
    """Stop of a replay whose questions differ from the recorded ones."""


@dataclass
class _Recorder(AnswerSource):
    """Answers that record the driver's, and pass on those of `frozen`, or of the driver on the twin table."""

    answers: AnswerSource
    others: AnswerSource | None
    account: FitAccount
    prepared: Prepared
    run: Run
    frozen: Run | None

    @property
    def exact(self) -> bool:
        """True if the fit spends in the currency `exact`."""
        return self.answers.exact

    def admit(self, asked: Asked) -> None:
        """Refuse a question `asked` that the mechanism has not declared, with a MechanismError as in a fit."""
        super().admit(asked)
        if type(asked.question) is not Split:
            self.prepared.admit(asked.path, asked.question.needs())

    def __call__(self, asked: Sequence[Asked]) -> Sequence[Answer]:
        """Return one answer per question, and record all; answers are the recorded run's or the twin's, if any."""
        answers = self.answers(asked)
        self.run.batches.append(list(asked))
        self.run.questions.append(_what(asked))
        self.run.charges = list(self.account.spending.charges)
        self.run.shapes.append([shape(a, answer) for a, answer in zip(asked, answers, strict=True)])
        if self.frozen is not None:
            at = len(self.run.batches) - 1
            if self.run.questions[at:] != self.frozen.questions[at : at + 1]:
                raise _Parted
            answers = self.frozen.answers[at]
        if self.others is not None:
            answers = self.others(asked)
        self.run.answers.append(list(answers))
        return answers


def record(
    mechanism: Mechanism[Any],
    world: World,
    rows: pd.DataFrame,
    budget: Budget,
    driver: Driver = PrivateAnswers,
    frozen: Run | None = None,
    seed: int = 0,
    twin: pd.DataFrame | None = None,
) -> Run:
    """Fit once and return a `Run`: what was seen of the fit from outside.

    Args:
        mechanism: Mechanism to fit.
        world: Public facts.
        rows: Private table.
        budget: Budget of the fit.
        driver: Makes the answers from rows.
        frozen: Recorded run: questions get the answers recorded there, independent of `rows`.
        seed: Seed of the noise.
        twin: Another table: questions are answered from it, independent of `rows`.
    """
    seen = Run()

    def fit() -> None:
        prepared = prepare(mechanism, world.schema, budget, world.declared_size, world.prior)
        seen.schema = counted = prepared.public.schema

        def opened(frame: pd.DataFrame) -> PrivateTable:
            return open_table(frame, schema=world.schema, declared_size=world.declared_size).counted_by(counted)

        table = opened(rows)
        request = Request("", mechanism.name, prepared.budget, per_unit(prepared.allot), 0, caps=prepared.caps)
        account = ProcessLedger().open(request)
        seen.stated = content(_stated(mechanism, prepared.allot))
        answers = driver(table.backend.rows, account, SeededEntropy(seed))
        others = None
        if twin is not None:
            others = driver(opened(twin).backend.rows, ProcessLedger().open(request), SeededEntropy(seed))

        def solve(solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]) -> Sequence[Any]:
            handed = zip(paths, problems, strict=True)
            seen.works.extend([content(path), content(solver), content(problem)] for path, problem in handed)
            return together(solver, problems, paths)

        steps = prepared.mechanism.steps(prepared.public, prepared.allot, np.random.default_rng(0))
        model = run(steps, counted, _Recorder(answers, others, account, prepared, seen, frozen), solve)
        seen.result = model.state() if isinstance(model, Model) else model
        stated = certificate(prepared, table, account, private=False, unverified=answers.unverified)
        seen.certified = content({**stated, "created": None})  # midnight may pass between two runs
        seen.given = content(given_out(model)) if isinstance(model, Model) else ""

    with watching(seen.watched):
        try:
            fit()
        except (_Parted, Interrupted) as stopped:
            if isinstance(stopped, Interrupted):
                raise
        # every exception is a finding, even an attempt to end the process
        except (Exception, GeneratorExit, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001
            seen.failure = f"{type(error).__name__}: {error}"
    return seen


def _stated(mechanism: Mechanism[Any], *further: Any) -> list[Any]:
    """Return a mechanism's declarations about itself, with `further` ones, as a list to be compared."""
    return [
        describe(mechanism),
        mechanism.name,
        mechanism.title,
        str(mechanism.returns),
        mechanism.adaptive,
        sorted(kind.__name__ for kind in mechanism.needs),
        mechanism.unprotected,
        mechanism.takes_row_count,
        *further,
    ]


CAN_FORK = sys.platform == "linux"
"""True if the system can fork this process, classes and closures included."""
PATIENCE = 600.0
"""Time in seconds after which a child process is killed."""


def apart(runs: Callable[[], Sequence[dict[str, str]]]) -> list[dict[str, str]] | None:
    """Return what `runs` returns in a child process, where this mechanism has not been run before.

    Returns:
        Parts of each run; None if the process ended before it wrote them.
    """
    here, there = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # Python and JAX, once imported, warn of forks in processes with threads; the child uses none of these threads
        for kind in (DeprecationWarning, RuntimeWarning):
            warnings.simplefilter("ignore", kind)
        child = os.fork()
    if child == 0:
        try:
            os.close(here)
            gc.freeze()  # keeps collections from touching, and so copying, the parent's objects
            with os.fdopen(there, "w") as pipe:
                json.dump(list(runs()), pipe)
        finally:
            os._exit(0)  # skip the parent's exit handlers in every case
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        told = b""
        while select.select([pipe], [], [], PATIENCE)[0]:
            piece = pipe.read1(2**16)
            if not piece:
                break
            told += piece
        else:
            os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        return json.loads(told)  # type: ignore[no-any-return]
    except ValueError:
        return None


def _what(asked: Sequence[Asked]) -> str:
    """Return a digest of the questions `asked`, with their paths and schemas."""
    return digest([(a.path, a.schema.sha256, a.question) for a in asked])


def identical(a: Any, b: Any) -> bool:
    """True if two results `a`, `b` are equal to the last bit, arrays included."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return (
            isinstance(a, np.ndarray)
            and isinstance(b, np.ndarray)
            and a.dtype == b.dtype
            and a.shape == b.shape
            and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
        )
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(identical(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(identical(x, y) for x, y in zip(a, b, strict=True))
    if type(a) is not type(b):
        return False
    if isinstance(a, State):
        return identical(a.facts, b.facts) and identical(a.arrays, b.arrays)
    return bool(a == b)
