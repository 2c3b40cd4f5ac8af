"""Privacy loss of recorded questions: how far a neighbouring table moves their exact answers, priced by their noise."""

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
    """Return a list of `Exact`, one for each question `asked`, on these rows; a step on a sample reads all rows."""
    return list(Reader(rows, SystemEntropy()).each([(a.path, _reads_of_all_rows(a)) for a in asked]))


def _reads_of_all_rows(asked: Asked) -> Wanted:
    """Return a `Wanted`: statistics that the question of `asked` needs, of all rows: those of a sample move no more."""
    wanted = asked.question.wanted()
    return replace(wanted, sums=[(query, 1.0) for query, _ in wanted.sums])


def privacy_loss(asked: Asked, here: Exact, there: Exact, neighbours: Neighbours, answer: Answer) -> Fraction:
    """Return the cost, a Fraction, of telling `Exact` answers `here`, `there` to `asked` apart by a noisy `answer`.

    The tables are `neighbours`. It is sound if that is at most what was charged.
    """
    return asked.question.cost(Setting(asked.schema, neighbours), here, there, answer)


def standard_noise(asked: Asked, exact: Exact, neighbours: Neighbours, answer: Answer) -> list[NDArray[np.float64]]:
    """Return a list of arrays, one a table or sum of `asked`: (`answer` - `exact`) over its scale for `neighbours`."""
    return asked.question.standard_noise(Setting(asked.schema, neighbours), exact, answer)


def shape(asked: Asked, answer: Answer) -> Any:
    """Return properties of an answer to `asked` that may be public without its values, such as lengths and types."""
    return asked.question.shape(answer)
