"""Objective of a fit: misfit of all tables, plus the prior times the divergence from the base.

The fitted distribution is base x exp(sum of a term for each table), so a model is given by its tables' terms. The terms
of all models' tables lie one after another in one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.engine.forest import NEVER, Floats, Forest, Indices
from stratsynth.adapters.engine.structure import Clique

if TYPE_CHECKING:
    from stratsynth.adapters.engine.solve import Problem


LEAST_TURNED = 8
"""Number of models from which their sums are taken along the rows of one padded array."""


class Objectives:
    """Objectives of several models' fits, misfit plus prior, with their gradients by term, evaluated together."""

    def __init__(self, forest: Forest, problems: Sequence[Problem], totals: Floats) -> None:
        owner, noisy, weight, place = [], [], [], 0
        self._problems = problems
        self._places: list[list[tuple[Clique, slice]]] = [[] for _ in problems]
        """Cliques of each model's tables, with their ranges of terms."""
        for number, problem in enumerate(problems):
            for table in problem.tables:
                size = table.values.size
                self._places[number].append((table.clique, slice(place, place + size)))
                place += size
                owner.append(np.full(size, number, dtype=np.intp))
                noisy.append(table.values.ravel() / totals[number])
                # marginals are probabilities: a difference counts total / sigma times
                counted = 1.0 if table.counted is None else table.counted.ravel()
                weight.append(np.full(size, (totals[number] / table.sigma) ** 2) * counted)
        empty = [np.zeros(0, dtype=np.intp)]
        self._maps = forest.maps([(i, table.clique) for i, each in enumerate(problems) for table in each.tables])
        self.owner = np.concatenate(owner or empty)
        """Number of each term's model."""
        self._turned = _turned(self.owner, len(problems))
        self._noisy, self._weight = (np.concatenate(x or [np.zeros(0)]) for x in (noisy, weight))
        self._forest, self._number = forest, len(problems)
        self._prior = np.array([problem.prior for problem in problems])
        self._fixed, self._out = fixed_part(forest, problems)
        self._base = forest.calibrated(self._fixed)[1]
        """Log partition sum of each base."""
        # an impossible cell has no gradient, whatever its noisy count
        possible = self._maps.gather(np.where(self._out, 0.0, 1.0)) > 0
        self._pulls = self._weight * possible

    def first(self) -> Floats:
        """Return the initial terms in one array: those of a warm start for tables of its cliques, else 0."""
        terms = np.zeros(len(self._noisy))
        for problem, places in zip(self._problems, self._places, strict=True):
            known: dict[Clique, Floats] = {}
            for clique, term in problem.start.terms if problem.start is not None else ():
                known[clique] = known.get(clique, 0.0) + term
            for clique, place in places:
                terms[place] = known.pop(clique, 0.0)  # of two tables of a clique, the first takes all
        return terms

    def split(self, number: int, terms: Floats) -> tuple[tuple[Clique, Floats], ...]:
        """Return a tuple of pairs (clique, flat copy of its terms), one a table of the model `number`.

        `terms` is a flat array of all models' terms.
        """
        return tuple((clique, terms[place].copy()) for clique, place in self._places[number])

    def each(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return an array with `values`, an array of one a model, repeated for each of its terms.

        Unchanged for one model.
        """
        return values if self._number == 1 else values[self.owner]

    def potentials(self, terms: Floats) -> Floats:
        """Return all cells' log potentials, an array: base plus the tables' `terms`; NEVER in impossible cells."""
        return np.where(self._out, NEVER, self._fixed + self._maps.spread(terms))

    def _sum(self, values: Floats) -> Floats:
        """Return an array, one a model: the sum of the `values` of its terms, an array of one a term."""
        if self._forest.alone:
            return np.array([values.sum()])
        if self._turned is not None:
            turned: Floats = np.append(values, 0.0)[self._turned].sum(axis=0)  # row by row
            return turned
        found = np.bincount(self.owner, weights=values, minlength=self._number)
        return found.astype(np.float64, copy=False)

    def _fitted(self, terms: Floats) -> tuple[Floats, Floats]:
        """Return two arrays: probabilities of all tables' cells under `terms`, and each model's log partition sum.

        `terms` is a flat array, a number for each of these cells.
        """
        cells, constants = self._forest.calibrated(self.potentials(terms))
        return self._maps.gather(cells), constants

    def at(self, terms: Floats) -> tuple[Floats, Floats, Floats]:
        """Return three arrays: table cells' probabilities, the objective by model, its gradient by term.

        `terms` is the flat array of all models' terms, at which they are.
        """
        fitted, constants = self._fitted(terms)
        off = fitted - self._noisy
        value, gradient = self._sum(0.5 * self._weight * off * off), self._pulls * off
        if self._prior.any():  # KL(p, base) = mean of the terms under p - (log Z of p - log Z of base)
            value += self._prior * (self._sum(terms * fitted) - constants + self._base)
            gradient += self.each(self._prior) * terms
        return fitted, value, gradient

    def weights(self) -> Floats:
        """Return each model's fraction of all cells, an array that adds up to 1: a proxy for its time."""
        cells = np.bincount(self._forest.owner, minlength=self._number)
        return cells / max(1, self._forest.cells)

    def misfit(self, terms: Floats) -> Floats:
        """Return an array, one a model: half the sum of squared (fitted - noisy count) / sigma over its table cells.

        `terms` is the flat array of all tables' terms, at which models are fitted.
        """
        off = self._fitted(terms)[0] - self._noisy
        return self._sum(0.5 * self._weight * off * off)

    def promised(self, gradient: Floats, before: Floats, after: Floats) -> Floats:
        """Return an array by model, the objective's linear fall: the sum of `gradient` x (`before` - `after`).

        All three are arrays of an entry a term, the last two of marginals.
        """
        return self._sum(gradient * (before - after))

    def steepest(self, values: Floats, least: float) -> Floats:
        """Return an array: for each model the largest of the `values`, one a term, or `least` if that is larger."""
        if self._number == 1:
            return np.array([values.max(initial=least)])
        found = np.full(self._number, least)
        np.maximum.at(found, self.owner, values)
        return found

    def steepness(self) -> Floats:
        """Return an array by model, the largest weight of a cell, at least 1: a curvature bound for its first step."""
        return self.steepest(self._weight, 1.0)


def _turned(owner: Indices, number: int) -> Indices | None:
    """Return an array with the places of each of `number` models' terms (`owner`), padded; None if padding costs much.

    Padding points one place behind the last term, where the caller appends 0. Added up row by row, each column is the
    sum in the order of its terms, as in `bincount`, in less than half the time: `bincount` adds to one number again and
    again, and waits for it each time.
    """
    sizes = np.bincount(owner, minlength=number)
    longest = int(sizes.max(initial=0))
    if number < LEAST_TURNED or longest * number > 2 * len(owner):
        return None
    places = np.full((longest, number), len(owner), np.intp)
    starts = np.cumsum(sizes) - sizes
    places[np.arange(len(owner)) - starts[owner], owner] = np.arange(len(owner))
    return places


def fixed_part(forest: Forest, problems: Sequence[Problem]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return (flat array of log potentials of the forest's cells under the problems' bases, or 0.

    Mask of impossible ones).
    """
    potentials, out = np.zeros(forest.cells), np.zeros(forest.cells, dtype=bool)
    for number, problem in enumerate(problems):
        if problem.base is not None:
            for clique, table in zip(problem.base.tree.cliques, problem.base.potentials, strict=True):
                cells, part = forest.cells_of(number, clique)
                potentials[cells] += table.ravel()[part]
        for clique, never in problem.forbidden.items():
            cells, part = forest.cells_of(number, clique)
            out[cells[np.isin(part, never)]] = True
    out |= potentials < NEVER / 2  # a cell impossible under the base stays impossible
    potentials[out] = NEVER
    return potentials, out
