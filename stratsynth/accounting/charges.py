"""Charges, how they add up, and what the same charges cost under other notions of neighbour.

    cost(node)    = own charges + for each split below it the maximum over its strata
    move/replace  = the same, with a record that may leave one stratum and enter another

All sums are exact: a float is a fraction, and fractions are added as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from stratsynth.accounting.budget import Neighbours
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.strata import Path, Stratum


@dataclass(frozen=True)
class Charge:
    """One answered question, as the ledger and the certificate record it."""

    path: Path
    """The stratum it was asked of; empty for everybody."""
    kind: str
    """The kind of question."""
    rho: float
    """Its price for the declared neighbours."""
    sensitivity: Mapping[Neighbours, float]
    """The most that one step of each notion of neighbour can move the answer before noise."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else is needed to check the price: sigma and the number of cliques, or the epsilon of a choice."""

    def factor(self, declared: Neighbours, other: Neighbours) -> Fraction:
        """How many times the price the same answer costs under another notion: sensitivities squared."""
        if declared == other:
            return Fraction(1)
        return (Fraction(self.sensitivity[other]) / Fraction(self.sensitivity[declared])) ** 2

    def to_dict(self) -> dict[str, Any]:
        """The certificate's form."""
        return {
            "path": [stratum.to_dict() for stratum in self.path],
            "kind": self.kind,
            "rho": self.rho,
            **self.details,
            "sensitivity": {str(k): v for k, v in self.sensitivity.items()},
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Charge:
        """The charge that `to_dict` wrote."""
        named = ("path", "kind", "rho", "sensitivity")
        return cls(
            tuple(Stratum.of(step) for step in record["path"]),
            record["kind"],
            record["rho"],
            {Neighbours(k): v for k, v in record["sensitivity"].items()},
            {k: v for k, v in record.items() if k not in named},
        )


@dataclass
class _Node:
    """What was charged at one path, and below it: for each set of columns, the strata of that split."""

    own: dict[Neighbours, Fraction] = field(default_factory=lambda: dict.fromkeys(Neighbours, Fraction(0)))
    splits: dict[tuple[str, ...], dict[tuple[tuple[str, str], ...], _Node]] = field(default_factory=dict)
    """Keyed by sorted columns and sorted levels: SEX x RAC1P and RAC1P x SEX are the same groups."""

    def add(self, charge: Charge, declared: Neighbours, times: int = 1) -> None:
        node = self
        for stratum in charge.path:
            strata = node.splits.setdefault(tuple(sorted(stratum.columns)), {})
            node = strata.setdefault(tuple(sorted(stratum.items)), _Node())
        for notion in Neighbours:
            node.own[notion] += times * Fraction(charge.rho) * charge.factor(declared, notion)

    def add_remove(self) -> Fraction:
        """One record more or fewer: it lies in one stratum of each split."""
        below = (max(n.add_remove() for n in strata.values()) for strata in self.splits.values())
        return self.own[Neighbours.ADD_REMOVE] + sum(below)

    def replace(self) -> Fraction:
        """One record exchanged: it stays in a stratum of each split, or leaves one and enters another."""
        below = (max(_two_dearest(s), *(n.replace() for n in s.values())) for s in self.splits.values())
        return self.own[Neighbours.REPLACE] + sum(below)

    def move(self) -> Fraction:
        """One record that only changes its stratum: whoever sees all strata sees it exchanged."""
        return self.own[Neighbours.REPLACE] + sum(_two_dearest(s) for s in self.splits.values())


def _two_dearest(strata: Mapping[tuple[tuple[str, str], ...], _Node]) -> Fraction:
    """Leaving one stratum and entering another: an added and a removed record in two disjoint tables."""
    return sum(sorted((n.add_remove() for n in strata.values()), reverse=True)[:2], Fraction(0))


class Spending:
    """The charges of one fit, and what they come to."""

    def __init__(self, neighbours: Neighbours, charges: Iterable[Charge] = ()) -> None:
        """Start from some charges, made for the declared neighbours."""
        self.neighbours = neighbours
        self.charges: list[Charge] = []
        self._root = _Node()
        self.add(charges)

    def add(self, charges: Iterable[Charge]) -> None:
        """Record charges; what they cost is known afterwards."""
        for charge in charges:
            self.charges.append(charge)
            self._root.add(charge, self.neighbours)

    def withdraw(self, charges: Sequence[Charge]) -> None:
        """Take back the charges added last, which were refused before anything was read for them."""
        del self.charges[len(self.charges) - len(charges) :]
        for charge in charges:
            self._root.add(charge, self.neighbours, times=-1)

    def rho(self) -> Fraction:
        """What has been spent for the declared neighbours."""
        return self._root.add_remove() if self.neighbours == Neighbours.ADD_REMOVE else self._root.replace()

    def prices(self, reserved: float, delta: float) -> dict[str, float]:
        """Epsilon at `delta` of what was reserved, if one record is added or removed, moves, or is exchanged.

        Charges that were made are priced one by one. What was reserved and not spent could have gone to the
        dearest kind of question, one whose sensitivity doubles when a record is exchanged: four times the rho.
        """
        unspent = max(Fraction(0), Fraction(reserved) - self.rho())
        dearest = 4 if self.neighbours == Neighbours.ADD_REMOVE else 1
        rho = {
            "add-remove": self._root.add_remove() + unspent,
            "move": self._root.move() + dearest * unspent,
            "replace": self._root.replace() + dearest * unspent,
        }
        return {step: epsilon_of(float(value), delta) for step, value in rho.items()}
