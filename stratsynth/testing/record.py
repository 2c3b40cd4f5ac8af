"""Recording what a program asks, and replaying the answers on other rows."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.account import Account
from stratsynth.accounting.ledger import ProcessLedger, Request
from stratsynth.accounting.units import whole
from stratsynth.data.table import open_table
from stratsynth.digest import digest
from stratsynth.driver.handlers import declared
from stratsynth.driver.lockstep import Asked, run
from stratsynth.driver.private import PrivateAnswers
from stratsynth.files.npz import State
from stratsynth.mechanisms import Mechanism, prepare
from stratsynth.models import Model
from stratsynth.noise import SeededEntropy
from stratsynth.testing.moved import shape

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.accounting.budget import Budget
    from stratsynth.accounting.charges import Charge
    from stratsynth.noise import Entropy
    from stratsynth.questions import Answer
    from stratsynth.questions.handler import Rows
    from stratsynth.testing.worlds import World

Driver = Callable[[Callable[[], "Rows"], Account, "Entropy"], "PrivateAnswers"]
"""Makes what answers from rows; tests put broken ones in its place."""


@dataclass
class Run:
    """One fit, as seen from outside."""

    batches: list[list[Asked]] = field(default_factory=list)
    """What was asked, moment by moment."""
    answers: list[list[Answer]] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)
    shapes: list[Any] = field(default_factory=list)
    """Shapes, types and noise of the answers the driver gave, whatever was passed on."""
    heard: str = ""
    """Everything written to the logs, as warnings and to the terminal."""
    result: Any = None
    """The model's state."""
    failure: str = ""
    """The exception, if there was one."""

    def questions(self) -> list[str]:
        """What was asked, moment by moment, as digests."""
        return [_what(batch) for batch in self.batches]


class _Parted(Exception):
    """Raised to stop a replay whose questions differ from the recorded ones."""


def record(
    mechanism: Mechanism[Any], world: World, rows: pd.DataFrame, budget: Budget, driver: Driver = PrivateAnswers,
    frozen: Run | None = None, seed: int = 0,
) -> Run:  # fmt: skip
    """Fit once; with `frozen`, questions are answered as they were then, whatever these rows would say."""
    seen = Run()

    def fit() -> None:
        table = open_table(rows, schema=world.schema, declared_size=world.declared_size)
        prepared = prepare(mechanism, world.schema, budget, world.declared_size)
        account = ProcessLedger().open(Request("", mechanism.name, prepared.budget, whole(prepared.allot), 0))
        answers = driver(table.backend.rows, account, SeededEntropy(seed))

        def answer(asked: Sequence[Asked]) -> Sequence[Answer]:
            prepared.admit(declared(asked))
            given = answers(asked)
            seen.batches.append(list(asked))
            seen.charges = list(account.spending.charges)
            seen.shapes.append([shape(a, g) for a, g in zip(asked, given, strict=True)])
            if frozen is not None:
                at = len(seen.batches) - 1
                if at >= len(frozen.batches) or _what(asked) != _what(frozen.batches[at]):
                    raise _Parted
                given = frozen.answers[at]
            seen.answers.append(list(given))
            return given

        model = run(mechanism.steps(prepared.public, prepared.allot, np.random.default_rng(0)), world.schema, answer)
        seen.result = model.state() if isinstance(model, Model) else model

    seen.heard = _listen(fit, seen)
    return seen


def _listen(fit: Callable[[], None], seen: Run) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(stream),
            contextlib.redirect_stderr(stream),
        ):
            warnings.simplefilter("always")
            try:
                fit()
            except _Parted:
                pass
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
                seen.failure = f"{type(error).__name__}: {error}"
    finally:
        logging.getLogger().removeHandler(handler)
    return stream.getvalue() + "".join(f"{w.category.__name__}: {w.message}\n" for w in warned)


def _what(asked: Sequence[Asked]) -> str:
    return digest([(a.path, a.schema.sha256, a.question) for a in asked])


def same(a: Any, b: Any) -> bool:
    """Whether two results are equal to the last bit, arrays included."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return (
            isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
            and a.dtype == b.dtype and a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
        )  # fmt: skip
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if type(a) is not type(b):
        return False
    if isinstance(a, State):
        return same(a.facts, b.facts) and same(a.arrays, b.arrays)
    return bool(a == b)
