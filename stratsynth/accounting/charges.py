"""Charges, how they add up, and their sums under other notions of neighbour.

    cost(node)    = own charges + for each split below it the maximum over its strata
    move/replace  = the same, with a record that may leave one stratum and enter another

The maximum holds for strata that have no cell in common. Strata of the same columns that do, as a group and a
merge that holds it, are two splits.

All sums are exact: a float is a fraction, and fractions are added as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from stratsynth.accounting.budget import PRICED, Currency, Neighbours
from stratsynth.checks import is_whole
from stratsynth.strata import Cell, Stratum, StratumPath

MOST_TIMES = 2**31
"""Largest number of answers that one entry of a joined list may stand for."""
FIRST = "usable"
"""Kind of a fit's first question, which is asked of everybody before the rest is reserved."""
POWER = {Currency.ZCDP: 2, Currency.EXACT: 2, Currency.PURE: 1, Currency.SAMPLED: 0, Currency.CLAIMED: 0}
"""Exponent of sensitivity in the price at equal noise: 2 for rho, 1 for epsilon; 0 if priced by a formula of its
own."""


@lru_cache(maxsize=1024, typed=True)
def _priced(amount: float, declared: float, other: float, power: int) -> Fraction:
    """Return the price at sensitivity `other` of an answer that costs `amount` at `declared`: times ratio^power."""
    return Fraction(amount) * (Fraction(other) / Fraction(declared)) ** power


def interned(items: tuple[tuple[Any, Any], ...]) -> Mapping[Any, Any]:
    """Return a read-only mapping of the (key, value) pairs `items`, one object for equal pairs: strata repeat them."""
    return _interned(items, tuple(type(value) for _, value in items))


@lru_cache(maxsize=2**12)
def _interned(items: tuple[tuple[Any, Any], ...], _: tuple[type, ...]) -> Mapping[Any, Any]:
    """Return the read-only mapping of pairs `items`, cached by them and types `_`: 1 and 1.0 are equal."""
    return MappingProxyType(dict(items))


@dataclass(frozen=True, slots=True)
class Charge:
    """Price of one question at one path, as ledger and certificate record it."""

    path: StratumPath
    """Strata that the question was asked in, outermost first; empty for all records."""
    kind: str
    """Kind of the question, as certificates name it: `counts`, `choose`, `total` or `raw`."""
    amount: float
    """Price under the declared neighbours, in `currency`; for one row where a question states it, for a whole unit
    where an account records it (`for_units`)."""
    sensitivity: Mapping[Neighbours, float]
    """Largest change of the exact answer in one step of each notion of neighbour, in the norm that the noise is priced
    in."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Other numbers needed to check the price: sigma and the number of tables, or the epsilon of a choice."""
    currency: Currency = Currency.ZCDP
    times: int = 1
    """Number of equal charges that this one stands for; above 1 in joined lists only."""

    def factor(self, declared: Neighbours, other: Neighbours) -> Fraction:
        """Return a fraction: the answer's price under `other` neighbours over that under `declared`, at equal noise."""
        if declared == other:
            return Fraction(1)
        return _priced(1, self.sensitivity[declared], self.sensitivity[other], POWER[self.currency])

    def at(self, declared: Neighbours, other: Neighbours) -> Fraction:
        """Return the charge's exact price under `other` neighbours, if `declared` ones paid, all `times` together."""
        power = 0 if declared == other else POWER[self.currency]
        one = _priced(self.amount, self.sensitivity[declared], self.sensitivity[other], power)
        return one if self.times == 1 else self.times * one

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for certificates and ledgers: path, kind, price of all `times`, details, sensitivity."""
        joined = {} if self.times == 1 else {"times": self.times, "each": self.amount}
        return {
            "path": [stratum.to_dict() for stratum in self.path],
            "kind": self.kind,
            self.currency.unit: self.times * self.amount,
            **joined,
            **self.details,
            "sensitivity": {str(notion): self.sensitivity[notion] for notion in PRICED},
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], currency: Currency) -> Charge:
        """Return the `Charge` in `currency` of a `to_dict` record; ValueError if a joined one's numbers disagree."""
        named = {"path", "kind", currency.unit, "sensitivity", "times", "each"}
        times, amount = record.get("times", 1), record[currency.unit]
        if "times" in record or "each" in record:
            if not is_whole(times) or not 2 <= times <= MOST_TIMES or times * record["each"] != amount:
                raise ValueError("a charge of several answers does not cost as many times what each does")
            amount = record["each"]
        return cls(
            tuple(Stratum.from_dict(step) for step in record["path"]),
            record["kind"],
            amount,
            {Neighbours(k): v for k, v in record["sensitivity"].items()},
            {k: v for k, v in record.items() if k not in named},
            currency,
            times,
        )


_Key = tuple[tuple[str, tuple[str, ...]], ...]


@lru_cache(maxsize=2**15)  # every stratum is charged at every moment
def _keyed(stratum: Stratum) -> tuple[tuple[str, ...], _Key]:
    """Return (tuple of a stratum's column names, sorted; tuple of its (column, tuple of levels) pairs, sorted)."""
    return tuple(sorted(stratum.columns)), tuple(sorted(stratum.items))


@dataclass
class _Split:
    """Disjoint strata of the same columns, each with its charges."""

    strata: dict[_Key, _Node] = field(default_factory=dict)
    """Node of each stratum, keyed by sorted columns: SEX x RAC1P and RAC1P x SEX are the same groups."""
    cells: set[Cell] = field(default_factory=set)
    """Cells of these strata: a further stratum must have none of them."""


@dataclass
class _Node:
    """Charges at one path of strata, and the splits below it."""

    own: dict[Neighbours, Fraction] = field(default_factory=lambda: dict.fromkeys(PRICED, Fraction(0)))
    # Splits by their sorted columns; more than one per set of columns where strata overlap.
    by: dict[tuple[str, ...], list[_Split]] = field(default_factory=dict)

    @property
    def splits(self) -> list[dict[_Key, _Node]]:
        """List with one dict per split below this node, from each stratum's key to its node."""
        return [split.strata for splits in self.by.values() for split in splits]

    # Exact fractions: the sum depends neither on the order of charges nor on rounding.
    def add(self, charge: Charge, declared: Neighbours) -> None:
        node = self
        for stratum in charge.path:
            node = node._below(stratum)
        for notion in PRICED:
            node.own[notion] += charge.at(declared, notion)

    def _below(self, stratum: Stratum) -> _Node:
        """Return the stratum's node, in the first split by its columns that has it or is disjoint from it, or new."""
        columns, key = _keyed(stratum)
        splits = self.by.setdefault(columns, [])
        for split in splits:
            if key in split.strata:
                return split.strata[key]
        cells = set(Stratum(key).cells())
        room = next((split for split in splits if split.cells.isdisjoint(cells)), None)
        if room is None:
            room = _Split()
            splits.append(room)
        room.cells |= cells
        room.strata[key] = _Node()
        return room.strata[key]

    def add_remove(self) -> Fraction:
        """Return the cost of one record more or fewer: own charges, and in each split the dearest stratum's."""
        below = (max(n.add_remove() for n in strata.values()) for strata in self.splits)
        return sum(below, self.own[Neighbours.ADD_REMOVE])

    def within(self) -> Fraction:
        """Return the cost of changing a record's values, not its strata: own, and each split's dearest stratum's."""
        return sum((max(n.within() for n in s.values()) for s in self.splits), self.own[Neighbours.REPLACE])

    def replace(self) -> Fraction:
        """Return the cost of exchanging a record: in each split it keeps its stratum, or enters another one."""
        below = (max(_two_dearest(s), *(n.replace() for n in s.values())) for s in self.splits)
        return sum(below, self.own[Neighbours.REPLACE])

    def move(self) -> Fraction:
        """Return the cost of moving a record to another stratum: replaced above the split, removed and added below."""
        if len(self.splits) != 1:  # a record that moves in one split may stay, and be exchanged, in another
            return self.replace()
        (strata,) = self.splits
        inside = (n.move() for n in strata.values() if n.splits)
        return self.own[Neighbours.REPLACE] + max(_two_dearest(strata), *inside, Fraction(0))


def _two_dearest(strata: Mapping[_Key, _Node]) -> Fraction:
    """Return the exact cost of leaving one of `strata` (key -> node) for another: two largest add-remove costs' sum."""
    return sum(sorted((n.add_remove() for n in strata.values()), reverse=True)[:2], Fraction(0))


DECLARED = {
    Neighbours.ADD_REMOVE: "add-remove",
    Neighbours.REPLACE: "replace",
    Neighbours.ATTRIBUTE: "replace-within-group",
}
"""Step that each notion of neighbour is about. Under `attribute` strata are of public columns, so no record moves."""


class Spending:
    """The charges of one fit, and their cost to one privacy unit under each notion of neighbour."""

    def __init__(self, neighbours: Neighbours, charges: Iterable[Charge] = ()) -> None:
        """Start from `charges`, priced for the declared neighbours `neighbours`."""
        self.neighbours = neighbours
        self._priced = neighbours.priced
        self.charges: list[Charge] = []
        self._root = _Node()
        self.add(charges)

    def add(self, charges: Iterable[Charge]) -> None:
        """Record charges in `charges`, and add their prices to the tree of costs."""
        for charge in charges:
            self.charges.append(charge)
            self._root.add(charge, self._priced)

    def withdraw(self, held: int) -> None:
        """Keep the first `held` charges alone: the others were refused or failed halfway, before anything was read."""
        before = Spending(self.neighbours, self.charges[:held])
        self.charges, self._root = before.charges, before._root

    def spent(self) -> Fraction:
        """Return the exact cost to the worst-case unit of a step of the declared neighbours, in the fit's currency."""
        return self.step(DECLARED[self.neighbours])

    def spent_on(self, stratum: Stratum) -> Fraction:
        """Return the add-remove cost of a record in `stratum`: charges to everybody plus those in that stratum."""
        columns, key = _keyed(stratum)
        splits = self._root.by.get(columns, ())
        inside = (split.strata[key].add_remove() for split in splits if key in split.strata)
        return self._root.own[Neighbours.ADD_REMOVE] + sum(inside, Fraction(0))

    def step(self, name: str) -> Fraction:
        """Return one record's exact cost of step `name`: add-remove, move, replace-within-group or replace."""
        steps = {
            "add-remove": self._root.add_remove,
            "move": self._root.move,
            "replace-within-group": self._root.within,
            "replace": self._root.replace,
        }
        return steps[name]()
