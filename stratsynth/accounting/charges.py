"""Charges, how they add up, and what the same charges cost under other notions of neighbour.

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
"""The most answers that one entry of a list may stand for."""
POWER = {Currency.ZCDP: 2, Currency.PURE: 1, Currency.SAMPLED: 0, Currency.CLAIMED: 0}
"""How an amount grows with sensitivity at equal noise: rho with its square, epsilon with itself."""


@lru_cache(maxsize=1024, typed=True)  # strata are asked the same
def _factor(declared: float, other: float, power: int) -> Fraction:
    return (Fraction(other) / Fraction(declared)) ** power


@lru_cache(maxsize=1024, typed=True)
def _priced(amount: float, declared: float, other: float, power: int) -> Fraction:
    """An amount that was priced for one sensitivity, at another."""
    return Fraction(amount) * _factor(declared, other, power)


def alike(items: tuple[tuple[Any, Any], ...]) -> Mapping[Any, Any]:
    """One read-only table for all charges that say the same: thousands of strata are charged alike."""
    return _alike(items, tuple(type(value) for _, value in items))


@lru_cache(maxsize=2**12)
def _alike(items: tuple[tuple[Any, Any], ...], _: tuple[type, ...]) -> Mapping[Any, Any]:
    """By the types too: 1 and 1.0 are equal, and written otherwise."""
    return MappingProxyType(dict(items))


@dataclass(frozen=True, slots=True)
class Charge:
    """One answered question, as the ledger and the certificate record it."""

    path: StratumPath
    """The stratum it was asked of; empty for everybody."""
    kind: str
    """The kind of question."""
    amount: float
    """Its price for the declared neighbours, in the fit's currency."""
    sensitivity: Mapping[Neighbours, float]
    """The most that one step of each notion of neighbour can move the answer before noise."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else is needed to check the price: sigma and the number of cliques, or the epsilon of a choice."""
    currency: Currency = Currency.ZCDP
    times: int = 1
    """How many answers were charged alike; only lists of very many charges join them."""

    def factor(self, declared: Neighbours, other: Neighbours) -> Fraction:
        """The price factor of the same answer under another notion of neighbour."""
        if declared == other:
            return Fraction(1)
        return _factor(self.sensitivity[declared], self.sensitivity[other], POWER[self.currency])

    def at(self, declared: Neighbours, other: Neighbours) -> Fraction:
        """What it costs under another notion of neighbour, all its answers together."""
        power = 0 if declared == other else POWER[self.currency]
        one = _priced(self.amount, self.sensitivity[declared], self.sensitivity[other], power)
        return one if self.times == 1 else self.times * one

    def to_dict(self) -> dict[str, Any]:
        """The certificate's form. Of answers that are joined it states what all of them cost, and what each does."""
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
        """The charge that `to_dict` wrote, in the currency of its fit; ValueError where its numbers contradict."""
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
    """A stratum's columns, and its columns with their levels, both sorted."""
    return tuple(sorted(stratum.columns)), tuple(sorted(stratum.items))


@dataclass
class _Split:
    """Disjoint strata of the same columns, and what was charged in each."""

    strata: dict[_Key, _Node] = field(default_factory=dict)
    """Keyed by sorted columns: SEX x RAC1P and RAC1P x SEX are the same groups."""
    cells: set[Cell] = field(default_factory=set)
    """The cells that these strata are made of."""


@dataclass
class _Node:
    """What was charged at one path, and below it: for each set of columns, the splits by them."""

    own: dict[Neighbours, Fraction] = field(default_factory=lambda: dict.fromkeys(PRICED, Fraction(0)))
    by: dict[tuple[str, ...], list[_Split]] = field(default_factory=dict)

    @property
    def splits(self) -> list[dict[_Key, _Node]]:
        """The strata of each split."""
        return [split.strata for splits in self.by.values() for split in splits]

    def add(self, charge: Charge, declared: Neighbours) -> None:
        node = self
        for stratum in charge.path:
            node = node._below(stratum)
        for notion in PRICED:
            node.own[notion] += charge.at(declared, notion)

    def _below(self, stratum: Stratum) -> _Node:
        """The stratum's node, in the first split by its columns that has it or has room for it."""
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
        """One record more or fewer: it lies in one stratum of each split."""
        below = (max(n.add_remove() for n in strata.values()) for strata in self.splits)
        return sum(below, self.own[Neighbours.ADD_REMOVE])

    def within(self) -> Fraction:
        """One record whose other values change: it stays in its stratum of each split, which sees it exchanged."""
        return sum((max(n.within() for n in s.values()) for s in self.splits), self.own[Neighbours.REPLACE])

    def replace(self) -> Fraction:
        """One record exchanged: it stays in a stratum of each split, or leaves one and enters another."""
        below = (max(_two_dearest(s), *(n.replace() for n in s.values())) for s in self.splits)
        return sum(below, self.own[Neighbours.REPLACE])

    def move(self) -> Fraction:
        """One record that only changes its stratum, at some split; whoever sees all its strata sees it exchanged."""
        if len(self.splits) != 1:  # whoever moves in one split may stay, and be seen changed, in another
            return self.replace()
        (strata,) = self.splits
        inside = (n.move() for n in strata.values() if n.splits)
        return self.own[Neighbours.REPLACE] + max(_two_dearest(strata), *inside, Fraction(0))


def _two_dearest(strata: Mapping[_Key, _Node]) -> Fraction:
    """Leaving one stratum and entering another: an added and a removed record in two disjoint tables."""
    return sum(sorted((n.add_remove() for n in strata.values()), reverse=True)[:2], Fraction(0))


DECLARED = {
    Neighbours.ADD_REMOVE: "add-remove",
    Neighbours.REPLACE: "replace",
    Neighbours.ATTRIBUTE: "replace-within-group",
}
"""The step that each notion is about. Strata are of public columns where an attribute changes, so nobody moves."""


class Spending:
    """The charges of one fit, and what they come to."""

    def __init__(self, neighbours: Neighbours, charges: Iterable[Charge] = ()) -> None:
        """Start from some charges, made for the declared neighbours."""
        self.neighbours = neighbours
        self._priced = neighbours.priced
        self.charges: list[Charge] = []
        self._root = _Node()
        self.add(charges)

    def add(self, charges: Iterable[Charge]) -> None:
        """Record charges; what they cost is known afterwards."""
        for charge in charges:
            self.charges.append(charge)
            self._root.add(charge, self._priced)

    def withdraw(self, held: int) -> None:
        """Hold the first `held` charges alone: the others were refused, or failed halfway, and nothing was read."""
        before = Spending(self.neighbours, self.charges[:held])
        self.charges, self._root = before.charges, before._root

    def spent(self) -> Fraction:
        """What has been spent for the declared neighbours."""
        return self.step(DECLARED[self.neighbours])

    def spent_on(self, stratum: Stratum) -> Fraction:
        """What a record of one stratum has cost, if it is added or removed: asked of everybody, and there."""
        columns, key = _keyed(stratum)
        splits = self._root.by.get(columns, ())
        inside = (split.strata[key].add_remove() for split in splits if key in split.strata)
        return self._root.own[Neighbours.ADD_REMOVE] + sum(inside, Fraction(0))

    def step(self, name: str) -> Fraction:
        """What has been spent if one record takes a step: `add-remove`, `move`, `replace-within-group` or `replace`."""
        steps = {
            "add-remove": self._root.add_remove,
            "move": self._root.move,
            "replace-within-group": self._root.within,
            "replace": self._root.replace,
        }
        return steps[name]()
