"""The first question of a fit, by public facts: its price, its noise, and whether it is asked.

It is asked of everybody, for a small part of the budget, before the rest is reserved: how many records a fit would
count, and how many values of each column are outside the schema. A fit of the wrong file, or of other spellings than
the schema's, stops there, and the rest of the budget is saved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from stratsynth.questions import Usable
from stratsynth.schema.counted_tables import CountedTables
from stratsynth.schema.weight import ONE

if TYPE_CHECKING:
    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.mechanisms.contract import Mechanism, Public

SHARE = 0.01
"""Share of a fit's amount that its first question costs, where the budget states none."""
CHANCE = 0.001
"""Probability with which the noise passes the bound by which a fit stops."""
LEAST = 0.5
"""Share of the declared records below which a fit stops."""

MOST_RECORDS = 1e10
"""Number of records that no table has, where none is declared."""

OFF = "switched off: [budget] first = 0"
ONE_WEIGHT = "every record has one weight above 1, so a declared size may be of records or of weights"

LINKED = "two linked tables are counted by the parent's weight, and it would count records"


@dataclass(frozen=True)
class FirstQuestion:
    """The first question of a fit as public facts decide it."""

    share: float = 0.0
    """Part of the fit's amount that it costs; of the smallest amount, where strata have budgets of their own."""
    price: float = 0.0
    """Cost to one unit: rho, or epsilon in pure and claimed."""
    unit: str = "rho"
    """"rho", or "epsilon"."""
    noise_sd: float = 0.0
    """Standard deviation of the noise of each of its numbers, in records."""
    columns: int = 0
    """Number of columns."""
    declared: int | None = None
    """Declared number of records; None if no size is declared."""
    why_not: str = ""
    """Reason why it is not asked; empty if it is."""
    counted: str = "records"
    """Noun of its numbers: "people" where records count by their weights."""

    @property
    def asked(self) -> bool:
        """True if the fit asks the number of usable records first: there is no reason why not."""
        return not self.why_not

    def __str__(self) -> str:
        """Return a sentence for a plan."""
        if not self.asked:
            return f"no first question is asked: {self.why_not}"
        least = f"{LEAST * self.declared:,.0f}" if self.declared is not None else "half of those that it finds"
        return (
            f"for {100 * self.share:g} % of the budget ({self.unit} {self.price:.3g}): how many {self.counted} are "
            "usable, and how many values of each column are outside the schema, give or take "
            f"{NORMAL_95 * self.noise_sd:,.0f} (95 %). The fit stops there if fewer than {least} are usable, by the "
            f"upper {1 - CHANCE:.1%} bound"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return {"asked": False, "why": text}, or "asked", "share", price, "noise_sd", "declared" and "level"."""
        if not self.asked:
            return {"asked": False, "why": self.why_not}
        return {
            "asked": True, "share": self.share, self.unit: self.price, "noise_sd": self.noise_sd,
            "declared": self.declared, "level": 1 - CHANCE,
        }  # fmt: skip

    def bound(self, times: int = 1) -> float:
        """Return the number of records that the noise of one of `times` numbers passes with probability CHANCE."""
        chance = CHANCE / times
        if self.unit == "rho":
            return -NormalDist().inv_cdf(chance) * self.noise_sd
        return -math.log(2 * chance) / math.sqrt(2) * self.noise_sd


NORMAL_95 = NormalDist().inv_cdf(0.975)


def first_question(
    mechanism: Mechanism[Any], public: Public, budget: Budget
) -> tuple[Budget, Allotment, FirstQuestion]:
    """Return (`Budget` with the first question's share settled, `Allotment` of `mechanism` under it, `FirstQuestion`).

    Public facts decide, and the question has a reason not to be asked, if any: weights of rows, or that noise would
    hide all. It could not tell half of the declared records from none where the upper bound of an empty table would
    pass that half with a probability above CHANCE; where no size is declared, half of MOST_RECORDS.
    """
    schema, share = public.schema, SHARE if budget.first is None else budget.first
    why = ""
    if isinstance(schema, CountedTables):
        why = LINKED
    elif not share:
        why = OFF
    elif schema.row_weight.column is None and schema.row_weight != ONE:
        why = ONE_WEIGHT
    else:
        layout = mechanism.strata(public, budget)
        least = min(layout.epsilons.values()) if layout is not None and layout.own_budgets else None
        budget = replace(budget, first=share, least=least)
        allot = mechanism.price(public, budget)
        found = _priced(public, allot)
        if found.asked:
            return budget, allot, found
        why = found.why_not
    return budget.plain, mechanism.price(public, budget.plain), FirstQuestion(why_not=why)


def _priced(public: Public, allot: Allotment) -> FirstQuestion:
    """Return the first question that `allot` pays on public facts; with a reason not to ask it if noise hides all."""
    budget, schema, rows = allot.promise, public.schema, allot.promise.rows
    price = budget.opening(allot.currency)
    question = Usable(price, allot.currency)
    noise, unit, power = question.deviation(schema), *(("rho", 2) if question.gaussian else ("epsilon", 1))
    columns = len(schema.names)
    counted = "records" if schema.row_weight.column is None else "people"
    share = budget.first or 0.0
    found = FirstQuestion(share, price * rows**power, unit, noise, columns, public.size, counted=counted)
    if 2 * found.bound() <= LEAST * (MOST_RECORDS if public.size is None else public.size):
        return found
    of = "all that there may be" if public.size is None else f"the {public.size:,} that are declared"
    why = (
        f"at {budget.first:g} of the budget its noise, give or take {NORMAL_95 * noise:,.0f} {counted}, could not tell "
        f"half of {of} from none"
    )
    return FirstQuestion(why_not=why)
