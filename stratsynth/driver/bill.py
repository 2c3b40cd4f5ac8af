"""Bill of a batch: the charges of its questions, and the total-variation error of its noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stratsynth.accounting.charges import Charge
from stratsynth.accounting.units import for_units
from stratsynth.questions import PublicRows
from stratsynth.questions.base import Setting

if TYPE_CHECKING:
    from stratsynth.accounting.budget import Budget, Neighbours
    from stratsynth.driver.lockstep import Asked


def bill(asked: Sequence[Asked], budget: Budget) -> tuple[list[Charge], float]:
    """Return the charges of a batch per privacy unit, and the total-variation error of its samplers."""
    for a in asked:
        if type(a.question) is PublicRows:
            a.question.permit(budget)
    charges = [charge for a in asked for charge in a.question.charges(a.schema, a.path, budget.neighbours.priced)]
    return for_units(charges, budget) if budget.rows > 1 else charges, tv_error(asked, budget.neighbours)


def tv_error(asked: Sequence[Asked], neighbours: Neighbours) -> float:
    """Return the total variation between the noise as sampled and as priced, summed over all questions."""
    return math.fsum(a.question.tv_error(Setting(a.schema, neighbours)) for a in asked)
