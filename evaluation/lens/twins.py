"""INTERNAL. Repeated fits of a mechanism without a charge: as it is, and its twin without noise.

Nothing of them is released: neither models nor scores are private.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.account import Request
from stratsynth.accounting.process import ProcessLedger
from stratsynth.accounting.units import per_unit
from stratsynth.driver.lockstep import Asked, run
from stratsynth.driver.private import Measurement, PrivateAnswers
from stratsynth.errors import Unsupported
from stratsynth.evaluation.audit.broken import Quieter
from stratsynth.mechanisms import Prepared
from stratsynth.noise import SystemEntropy
from stratsynth.questions import Answer, NoisySum, NoisyTable, Raw
from stratsynth.questions.base import Setting

if TYPE_CHECKING:
    from stratsynth.data.table import PrivateTable
    from stratsynth.models import Model

HUSH = Quieter(1e-6)
"""Fault that leaves a millionth of the noise's standard deviation."""


class Noiseless(PrivateAnswers):
    """NOT PRIVATE, and INTERNAL: answers with next to no noise, which state the usual noise.

    So a mechanism makes its noise-dependent decisions as always, such as which columns are worth measuring, but from
    exact answers. Coins of Poisson samples are drawn as ever: they are no noise.
    """

    def _answer(self, asked: Sequence[Asked]) -> list[Answer]:
        quiet = super()._answer([replace(a, question=HUSH(a.question)) for a in asked])
        neighbours, rng = self._account.budget.neighbours, np.random.default_rng(0)
        usual = [a.question.simulate(Setting(a.schema, neighbours), a.path, 1.0, rng)[0] for a in asked]
        return [_as_loud(truth, other) for truth, other in zip(quiet, usual, strict=True)]


def _as_loud(truth: Answer, usual: Answer) -> Answer:
    """Return the exact answer `truth`, NoisyTable or NoisySum, with the noise scale `sigma` of the `usual` noisy one.

    A tuple of answers is done one by one, and an answer of another class comes back unchanged.
    """
    if isinstance(truth, tuple):
        return tuple(_as_loud(one, other) for one, other in zip(truth, usual, strict=True))
    if isinstance(truth, NoisyTable | NoisySum):
        return replace(truth, sigma=usual.sigma)
    return truth


@dataclass(frozen=True, eq=False)
class Fitted:
    """INTERNAL. Model of one fit, with its measurements."""

    model: Model
    measurements: tuple[Measurement, ...]
    """Tables that the fit measured."""


def fit_internal(prepared: Prepared, table: PrivateTable, *, noise: bool, seed: int) -> Fitted:
    """INTERNAL. Run a prepared fit, by `seed`, on a private table without a charge; return a Fitted.

    Noise is fresh, or none.

    Raises:
        Unsupported: Third-party code, which adds its own noise.
    """
    if Raw in prepared.mechanism.needs:
        raise Unsupported(f"lens: {prepared.mechanism.name} adds its own noise, which cannot be left out.")
    request = Request("", prepared.mechanism.title, prepared.budget, per_unit(prepared.allot), 0, caps=prepared.caps)
    driver = PrivateAnswers if noise else Noiseless
    answers = driver(table.backend.rows, ProcessLedger().open(request), SystemEntropy(), prepared.admit)
    steps = prepared.mechanism.steps(prepared.public, prepared.allot, np.random.default_rng(seed))

    model: Any = run(steps, table.schema, answers)
    return Fitted(model, tuple(answers.measurements))
