"""Budgets of single strata: some groups may have less than the whole epsilon.

Under parallel composition a fit costs its dearest stratum, so every other one may cost less. The table is
public: it must not be made from the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from stratsynth.checks import number
from stratsynth.errors import UsageError, WeightsError
from stratsynth.files.outside import level, records
from stratsynth.strata import Stratum
from stratsynth.weights.table import Tabular, figure_of, match

UNITS = ("factor", "epsilon")


@dataclass(frozen=True)
class StratumBudgets:
    """Epsilons of single strata; strata not named have the fit's whole epsilon."""

    unit: Literal["factor", "epsilon"]
    """Meaning of the figures: "factor" of the fit's epsilon, at most 1, or "epsilon"."""
    rows: tuple[tuple[str | tuple[tuple[str, str], ...], float], ...] = field(repr=False)
    """Pairs of a stratum, by its label or its (column, level) pairs, and its figure."""

    @classmethod
    def read(cls, table: Tabular) -> StratumBudgets:
        """Return the budgets, by stratum, in a CSV file or a frame.

        Args:
            table: A CSV file or a frame with the strata's columns, and `factor` (of the fit's epsilon, at most 1) or
                `epsilon`. Strata that it does not name get the fit's whole epsilon.

        Raises:
            UsageError: A table with neither column, or both.
        """
        lines = records("budgets", table, WeightsError)
        have = [unit for unit in UNITS if unit in lines[0]]
        if len(have) != 1:
            raise UsageError("budgets: give the strata's columns and one column, `factor` or `epsilon`.")
        unit: Literal["factor", "epsilon"] = "factor" if have == ["factor"] else "epsilon"
        rows = []
        for i, line in enumerate(lines):
            items = tuple((str(k), level(v)) for k, v in line.items() if k != unit)
            rows.append((items, figure_of(line[unit], i + 2, f"budgets: the {unit}")))
        return cls(unit, tuple(rows))

    @classmethod
    def factors(cls, factors: Mapping[str, float]) -> StratumBudgets:
        """Return budgets from factors by label: `{"1|9": 0.5}` gives the stratum 1|9 half of the fit's epsilon."""
        return cls("factor", _labelled(factors))

    @classmethod
    def epsilons(cls, epsilons: Mapping[str, float]) -> StratumBudgets:
        """Return budgets from epsilons by label: `{"1|9": 0.5}` gives the stratum 1|9 an epsilon of 0.5."""
        return cls("epsilon", _labelled(epsilons))

    def relative(self, epsilon: float) -> StratumBudgets:
        """Return the budgets as factors, at most 1, of the fit's `epsilon`, so that another epsilon rescales them."""
        if self.unit == "factor":
            return self
        return StratumBudgets("factor", tuple((what, min(1.0, figure / epsilon)) for what, figure in self.rows))

    def resolve(self, strata: Sequence[Stratum], epsilon: float) -> dict[Stratum, float]:
        """Return {stratum: epsilon} of `strata`: the smallest of their members' figures, times `epsilon` if factors.

        Without a figure it is the fit's `epsilon`. UsageError for an epsilon of 0, or of more than the fit's.
        """
        columns = strata[0].columns
        lines = [
            (tuple(zip(columns, what.split("|"), strict=False)) if isinstance(what, str) else what, figure)
            for what, figure in self.rows
        ]
        found = match(lines, strata, "budgets", self.unit, whole=False)
        epsilons = {}
        for stratum, figures in found.items():
            own = min(figures, default=1.0 if self.unit == "factor" else epsilon)
            epsilons[stratum] = own * epsilon if self.unit == "factor" else own
            if not 0 < epsilons[stratum] <= epsilon:
                raise UsageError(
                    f"budgets: stratum {stratum.label} would have epsilon {epsilons[stratum]:g}; it must be above 0, "
                    f"and at most the fit's {epsilon:g}, which is the largest of all."
                )
        return epsilons


def _labelled(figures: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Return a tuple of pairs (label, float), items of the mapping `figures`; UsageError for other keys or values."""
    if not isinstance(figures, Mapping) or not all(isinstance(label, str) for label in figures):
        raise UsageError('budgets: give a table from label to number, as {"1|9": 0.5}.')
    for label, figure in figures.items():
        number(f"budgets: {label}", figure)
    return tuple((label, float(figure)) for label, figure in figures.items())
