"""The answer to a fit's first question: whether the fit stops, the likely causes, and what certificates state of it.

All of it follows from the noisy numbers and from public facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from stratsynth.mechanisms.first import CHANCE, LEAST, FirstQuestion
from stratsynth.release.declared import MeasuredCount
from stratsynth.schema.text import MISSING

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate
    from stratsynth.mechanisms import Prepared
    from stratsynth.questions import NoisyTable

NAMED = 5
"""Largest number of columns that a message names."""
CAUSE = 0.25
"""Share of the declared records from which values outside of a column are named as a cause."""
NEARLY_ALL = 0.9
"""Share for a column that declares a level for missing values, as of hours that children do not work."""
EMPTY = 0.1
"""Share of the declared records below which a release is nearly empty."""


@dataclass(frozen=True)
class FirstAnswer:
    """Noisy numbers of usable records and of values outside the schema, beside the declared number of records."""

    question: FirstQuestion
    usable: int
    outside: Mapping[str, int]
    """Noisy number of values outside, by column: unknown to the schema, or missing."""
    with_missing: frozenset[str] = frozenset()
    """Columns that declare a level for missing values."""

    @classmethod
    def of(cls, prepared: Prepared, answer: NoisyTable) -> FirstAnswer:
        """Return the `FirstAnswer` of `answer`, a noisy table of numbers, with the prepared fit's names of columns."""
        usable, *outside = answer.values.tolist()
        schema = prepared.public.schema
        with_missing = {name for name, column in schema.columns.items() if MISSING in column.all_levels}
        return cls(prepared.first, usable, dict(zip(schema.names, outside, strict=True)), frozenset(with_missing))

    @property
    def upper(self) -> float:
        """Upper bound of the number of usable records, which is wrong with probability `mechanisms.first.CHANCE`."""
        return self.usable + self.question.bound()

    @property
    def records(self) -> float:
        """Declared number of records; if none, a lower bound, a float >= 0: the most values outside of one column."""
        if self.question.declared is not None:
            return self.question.declared
        return max(0.0, *(number - self._slack for number in self.outside.values()))

    @property
    def _slack(self) -> float:
        """Number of records that the noise of some column passes with probability CHANCE, by Bonferroni."""
        return self.question.bound(max(1, len(self.outside)))

    @property
    def stops_below(self) -> float:
        """Number of usable records below which the fit stops: half of the declared."""
        return LEAST * self.records

    @property
    def too_few(self) -> bool:
        """True if the upper bound of the usable records is below half of the declared ones."""
        return self.upper < self.stops_below

    @property
    def nearly_empty(self) -> bool:
        """True if the upper bound is below a tenth of the declared records."""
        return self.upper < EMPTY * self.records

    @property
    def causes(self) -> dict[str, int]:
        """Mapping from column to noisy number of values outside, of columns that surely have many; largest first."""
        records = max(self.records, self.usable)
        far = {
            name: number
            for name, number in self.outside.items()
            if number - self._slack > records * (NEARLY_ALL if name in self.with_missing else CAUSE)
        }
        return dict(sorted(far.items(), key=lambda one: -one[1]))

    @property
    def measured(self) -> str:
        """Text on usable and declared records, and on the causes, as messages and notices say it."""
        sd, declared = self.question.noise_sd, self.question.declared
        causes = [f"{name} ({MeasuredCount(number, sd)})" for name, number in self.causes.items()]
        more = f" and {len(causes) - NAMED} more" if len(causes) > NAMED else ""
        why = (
            f"Values that are missing, or that the schema does not know, are in {', '.join(causes[:NAMED])}{more}."
            if causes
            else "No column has many values that are missing or unknown: the data may be another or a far smaller file."
        )
        of = "no number of them declared" if declared is None else f"of {declared:,} declared"
        return f"{MeasuredCount(self.usable, sd)} {self.question.counted} are usable, {of}. {why}"

    def stopped(self, *, saved: bool = True) -> str:
        """Return an error's text: the fit stops after this answer; `saved` is False where nothing was charged."""
        cost = f" for {100 * self.question.share:g} % of the budget, and the rest is not spent" if saved else ""
        return (
            f"the fit stopped after its first question{cost}: {self.measured} Correct the schema or the data; or go on "
            "with this answer, by --yes or proceed=True."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate's section `first_question`, a dict: question, noisy numbers, bounds, `too_few`."""
        return {
            **self.question.to_dict(), "usable": self.usable, "usable_at_most": self.upper,
            "stops_below": self.stops_below, "outside": dict(self.outside), "too_few": self.too_few,
        }  # fmt: skip


def is_nearly_empty(certificate: Certificate) -> bool:
    """True if a certificate's release surely (99.9 %) counts below a tenth of the declared records by a paid answer."""
    far = -NormalDist().inv_cdf(CHANCE)
    first = certificate.first_question
    ways = [(c.declared, c.measured + far * c.noise_sd) for c in certificate.declared_and_measured if not c.stratum]
    if first is not None and first.usable_at_most is not None:
        ways.append((first.declared, first.usable_at_most))
    return any(declared is not None and most < EMPTY * declared for declared, most in ways)
