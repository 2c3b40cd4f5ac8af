"""Joined lists of charges: charges of one stratum with equal prices become one entry.

MST makes as many choices in each stratum as its tree has edges, all at one price. In tens of thousands of strata a
certificate of single charges would be larger than the largest file that is read as untrusted. Joined lists cost
the same in total.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from stratsynth.accounting.budget import PRICED
from stratsynth.accounting.charges import Charge

MOST_SINGLE = 100_000
"""Largest number of charges that a certificate lists one by one."""
CANDIDATES = "candidates"
"""Detail in which charges of one entry may differ, since no price depends on it: the entry lists all of them."""


def listed(charges: Sequence[Charge]) -> Sequence[Charge]:
    """Return a sequence of `Charge` as a certificate lists them: unchanged up to MOST_SINGLE of them, else joined."""
    return charges if len(charges) <= MOST_SINGLE else joined(charges)


def joined(charges: Iterable[Charge]) -> list[Charge]:
    """Return a list of `Charge`, one for all that differ in nothing but their candidates, in order of first ones."""
    groups: dict[tuple[Any, ...], tuple[Charge, list[Any]]] = {}
    for charge in charges:
        _, several = groups.setdefault(_key(charge), (charge, []))
        own = charge.details.get(CANDIDATES)
        several += own if isinstance(own, list) else [own] * charge.times
    return [_one(first, several) for first, several in groups.values()]


def entries(charges: Iterable[Charge]) -> int:
    """Return the number of charges that `joined` would return for these."""
    return len(set(map(_key, charges)))


def _key(charge: Charge) -> tuple[Any, ...]:
    """Return a tuple, equal for charges that can be joined: all of a charge but its number of candidates."""
    details = tuple((name, value) for name, value in charge.details.items() if name != CANDIDATES)
    moved = tuple(charge.sensitivity[notion] for notion in PRICED)
    return charge.path, charge.kind, charge.amount, moved, details, charge.currency, CANDIDATES in charge.details


def _one(first: Charge, several: list[Any]) -> Charge:
    """Return the charge `first` with the count and candidates `several` of all equal to it; itself if it is alone."""
    if len(several) == first.times:
        return first
    details = {**first.details, CANDIDATES: several} if CANDIDATES in first.details else first.details
    return replace(first, details=details, times=len(several))
