"""How far a neighbouring table moves the exact answers to recorded questions, as a share of what was paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stratsynth.driver.answering import Reader
from stratsynth.noise import SystemEntropy
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Exact, Rows, Wanted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Neighbours
    from stratsynth.driver.lockstep import Asked
    from stratsynth.questions import Answer


def exact_answers(rows: Rows, asked: Sequence[Asked]) -> list[Exact]:
    """What each question is about, without noise."""
    return Reader(rows, SystemEntropy()).read([(a.path, _whole(a)) for a in asked])


def _whole(asked: Asked) -> Wanted:
    """What a question wants, of all rows: a sample of them moves by no more."""
    wanted = asked.question.wanted()
    return replace(wanted, sums=[(query, 1.0) for query, _ in wanted.sums])


def moved(asked: Asked, here: Exact, there: Exact, neighbours: Neighbours, answer: Answer) -> Fraction:
    """What telling two tables apart by this answer costs, in the fit's currency: at most what was charged."""
    return asked.question.cost(Setting(asked.schema, neighbours), here, there, answer)


def standard_noise(asked: Asked, exact: Exact, neighbours: Neighbours, answer: Answer) -> list[NDArray[np.float64]]:
    """The noise that was added, in units of the noise that was declared."""
    return asked.question.standard_noise(Setting(asked.schema, neighbours), exact, answer)


def shape(asked: Asked, answer: Answer) -> Any:
    """What may be known of an answer without its values."""
    return asked.question.shape(answer)
