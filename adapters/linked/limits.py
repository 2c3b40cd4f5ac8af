"""Codes that the state of a parent allows its next child row.

Three sets of columns are limited together, as far as the row's model has them: the condition of the state and the
difference from the row before, by the number before and by rows that have to be of one kind; the summed column with
`ALL`, by what is left; `ALL` with the condition, where this row is the last that may take what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.engine.completing import Allowed
from stratsynth.adapters.linked.amounts import below
from stratsynth.adapters.linked.roles import ALL, DIFFERENCE, bands, extent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.adapters.linked.roles import LinkRoles
    from stratsynth.schema import Numeric

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]
    Mask = NDArray[np.bool_]

_Part = Callable[["OpenParents"], Allowed]
PLACES = 64
"""Largest number of numbers in a band that a mean over it is taken of."""
LEAST = 1e-9
"""Length of a single number among reals."""
FREE, MEETS, MEETS_NOT = 0, 1, 2
"""Kinds of rows by the state: any; one that has to meet its condition; one that must not."""


@dataclass(eq=False)
class OpenParents:
    """State of some parents before their next child row."""

    met: Ints
    """Child rows left that meet the condition of the state."""
    others: Ints
    """Child rows left that do not; all that are left where the state has no condition."""
    left: Floats
    """Sum that is left."""
    before: Floats
    """Number of the stepped column in the row before; NaN for none."""

    def take(self, rows: Ints) -> OpenParents:
        """Return the states of some of the parents."""
        return OpenParents(self.met[rows], self.others[rows], self.left[rows], self.before[rows])


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of the next child row in a model that has the columns `names`."""

    roles: LinkRoles
    names: frozenset[str]
    """Columns of the row, with `DIFFERENCE` and `ALL`, that the model has."""
    known: tuple[float, ...] = ()
    """Ends between the bands by which the model knows the number of the row before; none if it does not."""

    @property
    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """Sets of columns that are limited together, in the order of `allowed`."""
        return tuple(columns for columns, _ in self._parts())

    def allowed(self, now: OpenParents, *, relaxed: bool = False) -> Iterator[Allowed]:
        """Yield the allowed codes of each set; if `relaxed`, nothing is asked of what is left of the sum."""
        for columns, part in self._parts():
            found = part(now)
            if relaxed and ALL in columns:
                found = Allowed(np.zeros_like(found.kinds), np.ones_like(found.cells[:1]))
            yield found

    def _parts(self) -> Iterator[tuple[tuple[str, ...], _Part]]:
        condition, stepping = tuple(self.roles.condition), self._stepping
        if stepping:
            yield (DIFFERENCE, *stepping), self._steps
        if condition and self.roles.stepped not in set(condition) & set(stepping):
            yield condition, self._condition
        if self.roles.summed is not None and ALL in self.names:
            yield (ALL, self.roles.summed.of), self._amounts
            yield (ALL, *condition), self._last

    @property
    def _stepping(self) -> tuple[str, ...]:
        """Columns limited with the difference: the stepped one, and the condition's if that is about it too."""
        stepped, condition = self.roles.stepped, tuple(self.roles.condition)
        if stepped is None or DIFFERENCE not in self.names:
            return ()
        return condition if stepped in condition else (stepped,)

    def _met(self, columns: tuple[str, ...]) -> Mask:
        """Return a table of codes of some columns: True where they meet the condition of the state."""
        child, condition = self.roles.child, self.roles.condition
        found = np.ones(child.shape(columns), dtype=bool)
        for axis, name in enumerate(columns):
            if name in condition:
                own = np.isin(np.arange(child.size(name)), list(condition[name]))
                found &= own.reshape([-1 if i == axis else 1 for i in range(len(columns))])
        return found

    def _forced(self, now: OpenParents) -> Ints:
        if not self.roles.condition:
            return np.zeros(len(now.met), dtype=np.intp)
        return np.where(now.others == 0, MEETS, np.where(now.met == 0, MEETS_NOT, FREE))

    def _condition(self, now: OpenParents) -> Allowed:
        met = self._met(tuple(self.roles.condition))
        return Allowed(self._forced(now), np.stack([np.ones_like(met), met, ~met]))

    def _steps(self, now: OpenParents) -> Allowed:
        """Return the codes of the difference and the stepped column that some number has, by the number before."""
        columns, stepped = self._stepping, self.roles.stepped
        assert stepped is not None  # noqa: S101 - see _parts
        forced = self._forced(now) if stepped in self.roles.condition else np.zeros(len(now.met), dtype=np.intp)
        pairs, kinds = np.unique(np.stack([now.before, forced]), axis=1, return_inverse=True, equal_nan=True)
        before, own = pairs[0], pairs[1].astype(np.intp)
        column = self.roles.number(stepped)
        fits = np.zeros((len(before), len(self.roles.differences) + 2, column.size))
        bins = len(column.extents)
        # the last band is of rows without a number before or after
        fits[:, :-1, :bins] = self._weights(stepped, before)
        fits[:, -1, bins:] = 1
        fits[np.isnan(before), -1] = 1
        axes = [-1 if name == stepped else 1 for name in columns]
        shape = [len(before), fits.shape[1], *(column.size if size == -1 else 1 for size in axes)]
        met = self._met(columns)
        kind = np.stack([np.ones_like(met), met, ~met])[own]
        return Allowed(kinds.ravel().astype(np.intp), fits.reshape(shape) * kind[:, None])

    def _weights(self, stepped: str, before: Floats) -> Floats:
        """Return an array (numbers before, bands of the difference, bins): weights of cells, 0 where no number fits.

        The model knows the number before by its band. So its probability of a cell is a mean over the band's numbers,
        and is multiplied by how many numbers fit the cell at this number, over the mean of that in the band. Cells
        would otherwise count the less, the fewer of the band's numbers they go with.
        """
        column, ends = self.roles.number(stepped), np.asarray(self.known, np.float64)
        own, band = _numbers(self.roles, stepped, before), np.searchsorted(ends, before, side="right")
        starts, stops = np.append(column.lower, ends), np.append(ends, column.upper + column.integer)
        for code in np.unique(band[~np.isnan(before)]):
            low, high = max(starts[code], column.lower), min(stops[code], column.upper + column.integer)
            points = np.linspace(low, high, PLACES, endpoint=False)
            points = np.unique(np.floor(points)) if column.integer else points
            mean = _numbers(self.roles, stepped, points).mean(axis=0)
            here = band == code
            own[here] = np.where(mean > 0, own[here] / np.where(mean > 0, mean, 1), own[here] > 0)
        own[np.isnan(before)] = 0
        return own

    def _amounts(self, now: OpenParents) -> Allowed:
        """Return weights of `ALL` and the summed column by what is left: all of it, or something else.

        The model knows what is left by its band: its probability of a cell is a mean over the band, and is divided by
        the part of these rows of the band that the cell goes with.
        """
        assert self.roles.summed is not None  # noqa: S101 - see _parts
        column = self.roles.number(self.roles.summed.of)
        low, top = np.asarray(column.extents, np.float64).T
        known = np.stack([bands(self.roles.summed.ends, now.left), *codes_left(column, now.left)])
        lefts, kinds, times = np.unique(known, axis=1, return_inverse=True, return_counts=True)
        cells = np.zeros((lefts.shape[1], 2, column.size), dtype=bool)
        bins = len(low)
        for kind, (_, code, sign) in enumerate(lefts.T):
            cells[kind, 1, code] = True  # everything; code is -1 beyond the bounds, and this one cleared
            cells[kind, 1, -1] &= code >= 0
            cells[kind, 0] = True
            if sign == 0:
                cells[kind, 1, bins:] = True
                cells[kind, 0, bins:] = False
            if code >= 0 and low[code] == top[code]:
                cells[kind, 0, code] = False  # a bin of one number, which is all
            if sign > 0 and code >= 0:
                cells[kind, 0, :bins] &= np.arange(bins) <= code
        weights = cells.astype(np.float64)
        for band in np.unique(lefts[0]):
            here = lefts[0] == band
            part = np.average(weights[here], axis=0, weights=times[here])
            weights[here] /= np.where(part > 0, part, 1)
        return Allowed(kinds.ravel().astype(np.intp), weights)

    def _last(self, now: OpenParents) -> Allowed:
        """Return the codes of `ALL` and of the condition: the last row that does not meet it takes all."""
        assert self.roles.summed is not None  # noqa: S101 - see _parts
        inside = codes_left(self.roles.number(self.roles.summed.of), now.left)[0] >= 0
        met = self._met(tuple(self.roles.condition)) if self.roles.condition else np.zeros((), dtype=bool)
        last = np.stack([met, np.ones_like(met)])
        return Allowed(((now.others == 1) & inside).astype(np.intp), np.stack([np.ones_like(last), last]))


def _numbers(roles: LinkRoles, stepped: str, before: Floats) -> Floats:
    """Return an array (numbers before, bands of the difference, bins): how many numbers fit; a length, of reals."""
    low, top = reachable(roles, stepped, before)
    found: Floats = np.where(low <= top, top - low + (1 if roles.number(stepped).integer else LEAST), 0.0)
    return found


def codes_left(column: Numeric, left: Floats) -> NDArray[np.intp]:
    """Return an array (2, rows): the code of the bin that holds what is left, -1 for none, and the sign of it."""
    breaks = np.asarray(column.breaks, np.float64)
    code = np.clip(np.searchsorted(breaks, left, side="right") - 1, 0, len(column.extents) - 1)
    inside = (left >= column.lower) & (left <= column.upper)
    return np.stack([np.where(inside, code, -1), np.sign(left).astype(np.intp)]).astype(np.intp)


def reachable(roles: LinkRoles, stepped: str, before: Floats) -> tuple[Floats, Floats]:
    """Return arrays (numbers before, bands of the difference, bins): smallest and largest number that fits all."""
    column = roles.number(stepped)
    low, top = np.asarray(column.extents, np.float64).T
    least, end = extent(roles.differences)
    start = np.maximum(low, (before[:, None] + least)[..., None])
    return start, np.minimum(top, (before[:, None] + below(end, column))[..., None])
