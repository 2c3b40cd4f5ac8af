"""Control totals of a population, and raking to them: iterative proportional fitting of bounded ratios.

A control is a table of totals over groups of levels of some columns. Raking finds one factor for each of its cells so
that rows, each counted by the product of its cells' factors, have every control's totals (Deming and Stephan 1940). The
product, a row's ratio, may be bounded (Deville and Saerndal 1992): totals that need more are then missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import ReleaseError
from stratsynth.models.base import Codes, Where

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

ROUNDS = 5_000
"""Largest number of rounds over all controls."""
QUICK = 300
"""Rounds after which Newton's method takes over, once."""
STEPS = 100
"""Largest number of its steps."""
FARTHEST = 5.0
"""Largest change of a factor's logarithm in one of them."""
MOST_CELLS = 500
"""Largest number of cells of all controls for which it is used."""
CLOSE = 1e-9
"""Largest distance of a share from its control at which raking stops."""
CONVERGED = 1e-6
"""Largest distance of a share from its control, as a part of everybody, at which controls are reached."""
STALLED = 200
"""Number of rounds in which the distance has to fall by a tenth, or raking has stopped."""
LARGEST = 1e12
"""Largest factor of a cell, where no rows are there to reach its total."""


@dataclass(frozen=True, eq=False)
class ControlTotals:
    """Totals over cells: one group of levels for each of some columns."""

    columns: tuple[str, ...]
    groups: tuple[NDArray[np.intp], ...]
    """Number of the group that each level is in, by column; groups are numbered from 0."""
    totals: Floats
    """Total of each cell, at least 0; an axis for each column."""

    @property
    def shares(self) -> Floats:
        """Flat array of the totals as parts of their sum, row-major."""
        found: Floats = self.totals.ravel() / self.totals.sum()
        return found

    def places(self, rows: Codes) -> Places:
        """Return an array: for each of `rows`, level numbers by column, the number of its cell in these totals."""
        inside = [group[rows[name].astype(np.intp)] for name, group in zip(self.columns, self.groups, strict=True)]
        return np.ravel_multi_index(inside, self.totals.shape)

    def where(self, cell: int) -> Where:
        """Return {column: set of level numbers} of the rows that lie in the cell of this number."""
        inside = np.unravel_index(cell, self.totals.shape)
        return {
            name: frozenset(np.flatnonzero(group == number).tolist())
            for name, group, number in zip(self.columns, self.groups, inside, strict=True)
        }

    def facts(self) -> dict[str, Any]:
        """Return a dict of JSON values, for the file of a model: these columns, groups and totals."""
        groups = [group.tolist() for group in self.groups]
        return {"columns": list(self.columns), "groups": groups, "totals": self.totals.tolist()}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any], schema: Schema) -> ControlTotals:
        """Return the control of stored `facts` over the schema's columns; ReleaseError for damaged ones."""
        columns, totals = tuple(facts["columns"]), np.asarray(facts["totals"], dtype=np.float64)
        groups = tuple(np.asarray(group, dtype=np.intp) for group in facts["groups"])
        shape = tuple(int(group.max()) + 1 for group in groups)
        sound = len(columns) == len(groups) == len(set(columns)) > 0 and totals.shape == shape
        sound = sound and all(g.shape == (schema.size(c),) for c, g in zip(columns, groups, strict=True))
        whole = sound and all(set(group.tolist()) == set(range(int(group.max()) + 1)) for group in groups)
        if not whole or not np.isfinite(totals).all() or not (totals >= 0).all() or not totals.sum() > 0:
            raise ReleaseError("model: its control totals are damaged.")
        return cls(columns, groups, totals)


@dataclass(frozen=True, eq=False)
class RakedFactors:
    """Result of raking."""

    factors: tuple[Floats, ...]
    """Factor of each cell of each control."""
    ratios: Floats
    """Bounded product of its cells' factors, for each of the kinds of rows that were raked."""
    missed: Floats
    """Largest distance of a share of everybody from each control."""

    @property
    def reached(self) -> bool:
        """True if the largest distance of a cell's share from its target is small enough for every control."""
        return bool(self.missed.max() <= CONVERGED)


def ratios_of(factors: Sequence[Floats], places: Sequence[Places], most: float) -> Floats:
    """Return an array, by row: the product of its cells' `factors`, an array by cell for each control, at most `most`.

    `places` has for each control an array of the rows' cells.
    """
    product = np.ones(len(places[0]))
    for factor, place in zip(factors, places, strict=True):
        product *= factor[place]
    return np.minimum(product, most)


def raked(
    start: Floats,
    places: Sequence[Places],
    targets: Sequence[Floats],
    most: float = np.inf,
    rounds: int = ROUNDS,
) -> RakedFactors:
    """Return the `RakedFactors` by which kinds of rows reach all targets, or come near them.

    Args:
        start: Array: share of each kind of rows, in all 1.
        places: For each control an array, the cell of each kind.
        targets: For each control an array, the share of each cell.
        most: Largest ratio of a kind of rows.
        rounds: Largest number of rounds.
    """
    factors = tuple(np.ones(len(target)) for target in targets)
    _fit_in_turn(start, places, targets, factors, np.inf, min(rounds, QUICK))
    if _missed(start, places, targets, factors, np.inf) > CLOSE:
        _fit_together(start, places, targets, factors)
        _fit_in_turn(start, places, targets, factors, np.inf, rounds)
    ratios = ratios_of(factors, places, most)
    if most < np.inf and (ratios[start > 0] >= most).any():
        factors = tuple(np.ones(len(target)) for target in targets)
        _fit_in_turn(start, places, targets, factors, most, rounds)
        ratios = ratios_of(factors, places, most)
    return RakedFactors(factors, ratios, distances(start * ratios, places, targets))


def _missed(
    start: Floats, places: Sequence[Places], targets: Sequence[Floats], factors: Sequence[Floats], most: float
) -> float:
    """Return the largest distance of a cell's share from its target, after weights, the array `start`, are adjusted.

    A weight is multiplied by the row's ratio by `factors`, at most `most`. `places`, `factors` and `targets` have an
    array for each control: cells by row, and factors and targets by cell.
    """
    return float(distances(start * ratios_of(factors, places, most), places, targets).max())


def _fit_in_turn(
    start: Floats,
    places: Sequence[Places],
    targets: Sequence[Floats],
    factors: Sequence[Floats],
    most: float,
    rounds: int,
) -> None:
    """Change `factors` in place, at most `rounds` times, until shares reach `targets` or come no nearer.

    One control after the other: the cells' factors are multiplied by target over present share of the rows, the array
    `start` times ratios up to `most`. `places` has for each control an array of the rows' cells; the others, by cell.
    """
    best, since = np.inf, 0
    for _ in range(rounds):
        for factor, place, target in zip(factors, places, targets, strict=True):
            have = np.bincount(place, start * ratios_of(factors, places, most), len(target))
            # Iterative proportional fitting: multiply each cell's factor by target over present share.
            step = np.divide(target, have, out=np.zeros_like(target), where=have > 0)
            np.minimum(factor * step, LARGEST, out=factor)
        missed = _missed(start, places, targets, factors, most)
        since = since + 1 if missed > 0.9 * best else 0
        best = best if since else missed
        if missed <= CLOSE or since >= STALLED:
            return


def _fit_together(
    start: Floats, places: Sequence[Places], targets: Sequence[Floats], factors: Sequence[Floats]
) -> None:
    """Change `factors` in place by Newton's method on the convex dual of raking, where fitting in turn is slow.

    Arrays are as in `_fit_in_turn`. With logarithms t of the factors, sum of start x exp(sum of t over a row's cells) -
    sum of target x t is least where all targets are reached; steps are halved until it falls. Not done for very many
    cells.
    """
    cells = sum(len(target) for target in targets)
    if cells > MOST_CELLS:
        return
    wanted = np.concatenate(targets)
    ends = np.cumsum([len(target) for target in targets])
    shifted = [place + end - len(target) for place, end, target in zip(places, ends, targets, strict=True)]
    for _ in range(STEPS):
        shares = start * ratios_of(factors, places, np.inf)
        gap = wanted - np.sum([np.bincount(place, shares, cells) for place in shifted], axis=0)
        if np.abs(gap).max() <= CLOSE:
            return
        curvature = np.zeros((cells, cells))
        for one in shifted:
            for other in shifted:
                curvature += np.bincount(one * cells + other, shares, cells**2).reshape(cells, cells)
        step = np.linalg.lstsq(curvature, gap, rcond=1e-14)[0]
        step /= max(1.0, float(np.abs(step).max()) / FARTHEST)
        moves = np.sum([step[place] for place in shifted], axis=0)
        falls = (float(shares @ np.expm1(moves * part)) - part * float(wanted @ step) for part in 0.5 ** np.arange(30))
        size = next((0.5**number for number, fall in enumerate(falls) if fall < 0), 0.0)
        if not size:
            return
        for factor, part in zip(factors, np.split(step, ends[:-1]), strict=True):
            np.minimum(factor * np.exp(size * part), LARGEST, out=factor)


def summed(cells: Places, shares: Floats, size: int) -> Floats:
    """Return an array of `size` sums by cell: of `shares`, an array by row, `cells` being each row's cell number."""
    return np.asarray(np.bincount(cells, shares, size), dtype=np.float64)


def distances(shares: Floats, places: Sequence[Places], targets: Sequence[Floats]) -> Floats:
    """Return an array by control: the largest distance of a cell's share from its target.

    `shares` is an array by row; `places` and `targets` have for each control an array: rows' cells, cells' targets.
    """
    found = [np.abs(np.bincount(p, shares, len(t)) - t).max() for p, t in zip(places, targets, strict=True)]
    return np.array(found)


def kinds_of(places: Sequence[Places], sizes: Sequence[int]) -> tuple[Places, tuple[Places, ...]]:
    """Return (array: each row's kind, a number; tuple with an array for each control: each kind's cell).

    `places` has for each control an array of the rows' cells, `sizes` the number of its cells.
    """
    kinds = np.zeros(len(places[0]), dtype=np.intp)
    first = np.zeros(0, dtype=np.intp)
    for place, size in zip(places, sizes, strict=True):
        _, first, kinds = np.unique(kinds * size + place, return_index=True, return_inverse=True)
        kinds = kinds.ravel().astype(np.intp)
    return kinds, tuple(place[first] for place in places)


def whole_numbers(
    expected: Floats, places: Sequence[Places], sizes: Sequence[int], n: int, rng: Generator
) -> NDArray[np.int64]:
    """Return an int array by kind, whole numbers that add up to n, floor or ceiling of the expected ones but for a few.

    One kind of rows after the other, in random order, is rounded up if the cells it lies in, and everybody, have been
    given too few so far: what a cell is off by is carried on, and stays at a few rows.

    Args:
        expected: Array: number of each kind, in all n.
        places: For each control an array, the cell of each kind.
        sizes: Number of each control's cells.
        n: Number of rows.
        rng: Source of the order.
    """
    numbers = np.floor(expected).astype(np.int64)
    parts = expected - numbers
    open_to = rng.permutation(np.flatnonzero(parts > 0))
    everybody, cells = 0.0, [np.zeros(size).tolist() for size in sizes]
    inside = [place.tolist() for place in places]
    half, up, down = (1 + len(sizes)) / 2, list[tuple[float, int]](), list[tuple[float, int]]()
    for kind, part in zip(open_to.tolist(), parts[open_to].tolist(), strict=True):
        everybody += part
        due = everybody
        for carried, place in zip(cells, inside, strict=True):
            carried[place[kind]] += part
            due += carried[place[kind]]
        if due > half:
            numbers[kind] += 1
            everybody -= 1
            for carried, place in zip(cells, inside, strict=True):
                carried[place[kind]] -= 1
        (up if due > half else down).append((due, kind))
    left = n - int(numbers.sum())  # a few: everybody's share is carried as well
    for _, kind in sorted(down, reverse=True)[: max(left, 0)]:
        numbers[kind] += 1
    for _, kind in sorted(up)[: max(-left, 0)]:
        numbers[kind] -= 1
    return numbers


def chosen_rows(kinds: Places, numbers: NDArray[np.int64], rng: Generator) -> Places:
    """Return an array of row numbers by `rng`, `numbers` (an array by kind) of each; `kinds` has each row's kind.

    A kind with too few rows gives its rows again.
    """
    order = rng.permutation(len(kinds))
    order = order[np.argsort(kinds[order], kind="stable")]
    there = np.bincount(kinds, minlength=len(numbers))
    start = np.cumsum(there) - there
    of = np.repeat(np.arange(len(numbers)), numbers)
    step = np.arange(len(of)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    return order[start[of] + step % there[of]]
