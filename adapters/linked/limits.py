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
from stratsynth.adapters.linked.amounts import LEAST, below, codes_left, unit_of
from stratsynth.adapters.linked.roles import ALL, DIFFERENCE, FIRST, PREVIOUS, REMAINS, SHARE, bands, extent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.adapters.linked.roles import LinkRoles
    from stratsynth.schema import Numeric

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]
    Mask = NDArray[np.bool_]

POINTS = 257
"""Largest number of numbers that stand for a column's range."""
_Part = Callable[["OpenParents"], Allowed]
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
        """Return the `OpenParents` with the states of those at `rows`, an array of places."""
        return OpenParents(self.met[rows], self.others[rows], self.left[rows], self.before[rows])


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of the next child row in a model that has the columns `names`."""

    roles: LinkRoles
    names: frozenset[str]
    """Columns of the row, with `DIFFERENCE` and `ALL`, that the model has."""
    known: frozenset[str] = frozenset()
    """Columns that are known before the row is drawn."""

    @property
    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """Tuple of tuples of names of columns that are limited together, in the order of `allowed`."""
        return tuple(columns for columns, _ in self._parts())

    def allowed(self, now: OpenParents, *, relaxed: bool = False) -> Iterator[Allowed]:
        """Yield an `Allowed` for each limited set of columns, for the `OpenParents`.

        With `relaxed`, a flag, everything is allowed of what is left of the sum.
        """
        for _, part in self._parts():
            found = part(now)
            if relaxed and part in (self._amounts, self._last, self._rest):
                found = Allowed(np.zeros_like(found.kinds), np.ones_like(found.cells[:1]))
            yield found

    def _parts(self) -> Iterator[tuple[tuple[str, ...], _Part]]:
        """Yield pairs: names of columns limited together, and the method that returns their `Allowed`."""
        condition, stepping = tuple(self.roles.condition), self._stepping
        if stepping:
            yield (DIFFERENCE, *stepping), self._steps
        if condition and self.roles.stepped not in set(condition) & set(stepping):
            yield condition, self._condition
        if self.roles.summed is not None and ALL in self.names:
            yield (ALL, self.roles.summed.of), self._amounts
            yield (ALL, *condition), self._last
        elif self.roles.summed is not None and self.roles.summed.of in self.names - set(condition):
            yield (self.roles.summed.of, *condition), self._rest

    @property
    def _stepping(self) -> tuple[str, ...]:
        """Tuple of names of columns limited with the difference: the stepped one, or all of a condition on it.

        Empty without a stepped column or its difference.
        """
        stepped, condition = self.roles.stepped, tuple(self.roles.condition)
        if stepped is None or DIFFERENCE not in self.names:
            return ()
        return condition if stepped in condition else (stepped,)

    def _met(self, columns: tuple[str, ...]) -> Mask:
        """Return a mask with an axis for each of `columns`: True for codes that meet the condition of the state."""
        child, condition = self.roles.child, self.roles.condition
        found = np.ones(child.shape(columns), dtype=bool)
        for axis, name in enumerate(columns):
            if name in condition:
                own = np.isin(np.arange(child.size(name)), list(condition[name]))
                found &= own.reshape([-1 if i == axis else 1 for i in range(len(columns))])
        return found

    def _forced(self, now: OpenParents) -> Ints:
        """Return an array, one of `OpenParents` each: `MEETS` or `MEETS_NOT` if all rows left are so, else `FREE`."""
        if not self.roles.condition:
            return np.zeros(len(now.met), dtype=np.intp)
        return np.where(now.others == 0, MEETS, np.where(now.met == 0, MEETS_NOT, FREE))

    def _condition(self, now: OpenParents) -> Allowed:
        """Return `Allowed` codes of the condition's columns, for the `OpenParents`."""
        met = self._met(tuple(self.roles.condition))
        return Allowed(self._forced(now), np.stack([np.ones_like(met), met, ~met]))

    def _steps(self, now: OpenParents) -> Allowed:
        """Return `Allowed` codes of the difference and the stepped column, for the `OpenParents`.

        They depend on the number in the row before. Its `cells` are weights, axes kind, difference, columns: the share
        of numbers in both, 0 where there is none.
        """
        columns, stepped = self._stepping, self.roles.stepped
        assert stepped is not None  # noqa: S101 - see _parts
        forced = self._forced(now) if stepped in self.roles.condition else np.zeros(len(now.met), dtype=np.intp)
        column = self.roles.number(stepped)
        numbers, place = np.unique(np.append(_grid(column), now.before), return_inverse=True, equal_nan=True)
        place = place.ravel()
        # how many numbers of a bin lie in a band, for each number before
        low, top = reachable(self.roles, stepped, numbers)
        bins = len(column.extents)
        fits = np.zeros((len(numbers), len(self.roles.differences) + 2, column.size))
        unit = unit_of(column) or LEAST
        fits[:, :-1, :bins] = np.where(np.isnan(numbers)[:, None, None] | (low > top), 0.0, top - low + unit)
        fits = _relative(fits, self._before(numbers), np.bincount(place, minlength=len(numbers)))
        # the last band is of rows without a number before or after
        fits[:, -1, bins:] = 1.0
        fits[np.isnan(numbers), -1] = 1.0
        kinds = place[len(place) - len(now.before) :] * 3 + forced
        used, kinds = np.unique(kinds, return_inverse=True)
        met = self._met(columns)
        allowed = np.stack([np.ones_like(met), met, ~met])[used % 3]
        shape = [len(used), fits.shape[1], *(column.size if name == stepped else 1 for name in columns)]
        return Allowed(kinds.ravel().astype(np.intp), fits[used // 3].reshape(shape) * allowed[:, None])

    def _before(self, numbers: Floats) -> Ints:
        """Return an array, the band known to the model of each of `numbers` in the row before.

        Bands are the column's own, or the first row's bins; all 0 where the model knows neither.
        """
        stepped = self.roles.stepped
        assert stepped is not None  # noqa: S101 - see _parts
        if PREVIOUS in self.known:
            return bands(self.roles.previous, numbers)
        if FIRST + stepped in self.known:
            column = self.roles.number(stepped)
            found = np.searchsorted(np.asarray(column.breaks, np.float64), np.nan_to_num(numbers), side="right")
            return found.astype(np.intp)
        return np.zeros(len(numbers), dtype=np.intp)

    def _amounts(self, now: OpenParents) -> Allowed:
        """Return `Allowed` codes of `ALL` and the summed column, for the `OpenParents`.

        They depend on what is left: all of it, or something else. Its `cells` are weights, axes kind, two codes of
        `ALL` (1 for all that is left), level of the column.
        """
        assert self.roles.summed is not None  # noqa: S101 - see _parts
        column = self.roles.number(self.roles.summed.of)
        left = np.append(_between(column, self.roles.summed.ends), now.left)
        known = bool(self.known & {REMAINS, SHARE})
        band = bands(self.roles.summed.ends, left) if known else np.zeros(len(left), dtype=np.intp)
        parts, kinds = np.unique(np.vstack([codes_left(column, left), band]), axis=1, return_inverse=True)
        kinds = kinds.ravel().astype(np.intp)
        low, top = np.asarray(column.extents, np.float64).T
        cells = np.zeros((parts.shape[1], 2, column.size))
        bins = len(low)
        for kind, (code, sign, _) in enumerate(parts.T):
            cells[kind, 0] = 1.0
            if code >= 0:
                cells[kind, 1, code] = 1.0
            if sign == 0:
                cells[kind, 1, bins:] = 1.0
                cells[kind, 0, bins:] = 0.0
            if code >= 0 and low[code] == top[code]:
                cells[kind, 0, code] = 0.0  # a bin of one number, which is all
            if sign > 0 and code >= 0:
                cells[kind, 0, code + 1 : bins] = 0.0
        cells = _relative(cells, parts[2], np.bincount(kinds, minlength=len(cells)))
        return Allowed(kinds[len(kinds) - len(now.left) :], cells)

    def _last(self, now: OpenParents) -> Allowed:
        """Return `Allowed` codes of `ALL` and the condition's columns, for the `OpenParents`.

        The last row that does not meet the condition takes all.
        """
        assert self.roles.summed is not None  # noqa: S101 - see _parts
        inside = codes_left(self.roles.number(self.roles.summed.of), now.left)[0] >= 0
        met = self._met(tuple(self.roles.condition)) if self.roles.condition else np.zeros((), dtype=bool)
        last = np.stack([met, np.ones_like(met)])
        return Allowed(((now.others == 1) & inside).astype(np.intp), np.stack([np.ones_like(last), last]))

    def _rest(self, now: OpenParents) -> Allowed:
        """Return `Allowed` codes of the summed column and the condition, where a model knows nothing of what is left.

        The last row of the `OpenParents` that does not meet the condition has a number in the bin of what is left.
        """
        assert self.roles.summed is not None  # noqa: S101 - see _parts
        column = self.roles.number(self.roles.summed.of)
        code, sign = codes_left(column, now.left)
        last = (now.others == 1) & (code >= 0)
        lines, kinds = np.unique(np.where(last, 2 * code + (sign == 0), -1), return_inverse=True)
        met = self._met(tuple(self.roles.condition)) if self.roles.condition else np.zeros((), dtype=bool)
        cells = np.ones((len(lines), column.size, *met.shape), dtype=bool)
        for kind, line in enumerate(lines.tolist()):
            if line >= 0:
                own = np.arange(column.size) == line // 2
                own[len(column.extents) :] = line % 2 == 1  # nothing is left, and no number adds 0
                cells[kind] = own.reshape(-1, *(1 for _ in met.shape)) | met
        return Allowed(kinds.ravel().astype(np.intp), cells)


def _relative(cells: Floats, band: Ints, counts: Ints) -> Floats:
    """Return the array `cells`, a table a kind, divided by the tables' mean over the kinds of a band.

    `band` is each kind's band; in the mean it occurs as often as its entry of `counts` says. A model knows the band
    alone. What is possible for few kinds of it is rare in the model for that reason, and has to be more frequent where
    it is possible.
    """
    found = np.zeros_like(cells)
    for one in np.unique(band):
        mine = band == one
        mean = np.average(cells[mine], axis=0, weights=counts[mine])
        found[mine] = np.divide(cells[mine], mean, out=np.zeros_like(cells[mine]), where=mean > 0)
    return found


def _grid(column: Numeric) -> Floats:
    """Return an array of numbers all over a numeric column's range, to stand beside parents' where these are few."""
    points = np.linspace(column.lower, column.upper, POINTS)
    return np.unique(np.round(points)) if column.integer else points


def _between(column: Numeric, ends: tuple[float, ...]) -> Floats:
    """Return an array: one number in each interval between a numeric column's bins and `ends` of bands, and 0 last."""
    marks = np.unique([*column.breaks, *(end for end in ends if column.lower < end < column.upper), 0.0])
    return np.append((marks[:-1] + marks[1:]) / 2, 0.0)


def reachable(roles: LinkRoles, stepped: str, before: Floats) -> tuple[Floats, Floats]:
    """Return two arrays, the smallest and the largest number that fits all: numbers before x bands x bins.

    `stepped` names the column of the child, by the `LinkRoles`; `before` are its numbers in the row before; bands are
    of the difference.
    """
    column = roles.number(stepped)
    low, top = np.asarray(column.extents, np.float64).T
    least, end = extent(roles.differences)
    start = np.maximum(low, (before[:, None] + least)[..., None])
    return start, np.minimum(top, (before[:, None] + below(end, column))[..., None])
