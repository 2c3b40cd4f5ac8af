"""Drawing of parents with their child rows: first the parent with its first row, then each further row in its turn.

Counts are exact because the state forces the last rows; a sum is that of the rows, and its band is the parent's where
the rows allow it. A parent's numbers, such as the first row's income, are drawn before the rows that share
what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.engine.completing import Completion
from stratsynth.adapters.linked.amounts import Amounts, between, unit_of
from stratsynth.adapters.linked.drawn import DrawCounts, DrawnTables
from stratsynth.adapters.linked.limits import Limits, OpenParents, reachable
from stratsynth.adapters.linked.roles import (
    ALL,
    BACK_OFF,
    DIFFERENCE,
    FIRST,
    PREVIOUS,
    REMAINS,
    STATE,
    CountRole,
    LinkedModels,
    LinkRoles,
    bands,
    state_code,
)
from stratsynth.errors import MechanismError
from stratsynth.models.rules import draw_allowed
from stratsynth.schema.codec import numbers_in_bins
from stratsynth.schema.inside import Inside, declared

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.models import Codes, Where

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]

BLOCK = 50_000
"""Number of parents drawn at a time."""
ROUNDS = 50
"""Times that parents are drawn anew whose rows do not meet a condition on derived columns."""


class Assembly:
    """Models of two linked tables, prepared for drawing."""

    def __init__(
        self,
        roles: LinkRoles,
        models: LinkedModels,
        laws: Mapping[str, Inside] | None = None,
        back_off: tuple[str, ...] = BACK_OFF,
    ) -> None:
        """Prepare.

        Args:
            roles: Roles of columns.
            models: The fitted models.
            laws: Laws of numbers within bins, by column of the child; of others the schema's own.
            back_off: Known columns to be given up first where a row has probability 0.
        """
        self.roles, self.models, self.laws, self._first = roles, models, laws or {}, back_off
        self._slots: dict[int, _Slot] = {}

    def blocks(
        self, n: int, rng: Generator, where: Where | None = None, counted: DrawCounts | None = None, block: int = BLOCK
    ) -> Iterator[DrawnTables]:
        """Yield `DrawnTables`, `n` parents in all with their child rows, drawn by `rng`, at most `block` at a time.

        What was given up is added to the `DrawCounts`. `where` has allowed codes by column of the parent's model,
        without its prefix. Raises MechanismError if no parent meets it.
        """
        for start in range(0, n, block):
            yield self._meeting(min(block, n - start), rng, where or {}, counted or DrawCounts())

    def draw(self, n: int, rng: Generator, where: Where | None = None) -> tuple[DrawnTables, DrawCounts]:
        """Return a pair: `DrawnTables` of n parents and child rows, by `rng`, and `DrawCounts` of what was given up.

        `where` is column -> level numbers allowed; see `blocks`.
        """
        counted = DrawCounts()
        return DrawnTables.joined(
            list(self.blocks(max(n, 0), rng, where, counted)) or [self._draw(0, rng, {}, counted)]
        ), counted

    def _meeting(self, n: int, rng: Generator, where: Where, counted: DrawCounts) -> DrawnTables:
        """Return `DrawnTables` by `rng` of `n` parents that meet `where`, of derived columns too: child rows decide.

        `where` is column -> level numbers allowed; what is given up is added to the `DrawCounts`. MechanismError if
        hardly any parent meets it.
        """
        parts: list[DrawnTables] = []
        missing = n
        for _ in range(ROUNDS):
            drawn = self._draw(missing, rng, where, counted)
            kept = self._meets(drawn, where)
            parts.append(drawn.take(kept) if not kept.all() else drawn)
            missing -= int(kept.sum())
            if not missing:
                return DrawnTables.joined(parts)
        raise MechanismError("hardly any parent meets this condition on what its child rows add up to.")

    def _meets(self, drawn: DrawnTables, where: Where) -> NDArray[np.bool_]:
        """Return a mask of the parents in `DrawnTables` that meet `where`, column -> level numbers, if derived."""
        found = np.ones(len(next(iter(drawn.counts.values()))), dtype=bool)
        schema, prefix = self.models.parent.schema, self.models.prefixes[0]
        for column, allowed in where.items():
            if column in self.roles.counts:
                size, least = schema.size(prefix + column), self.roles.counts[column].least
                found &= np.isin(np.clip(drawn.counts[column] - least, 0, size - 1), list(allowed))
            elif self.roles.summed is not None and column == self.roles.summed.column and drawn.total is not None:
                found &= np.isin(Amounts(self.roles).band(drawn.total), list(allowed))
        return found

    def _draw(self, n: int, rng: Generator, where: Where, counted: DrawCounts) -> DrawnTables:
        """Return the `DrawnTables` of `n` parents given `where`, by `rng`; `DrawCounts` get what is given up."""
        roles, prefix = self.roles, self.models.prefixes[0]
        model = self.models.parent
        conditions = {prefix + column: levels for column, levels in where.items()}
        codes = draw_allowed(
            model.schema, n, rng, lambda some, _: model.sample(some, rng, conditions), tuple(conditions), counted.rules
        )
        parent = {name.removeprefix(prefix): values for name, values in codes.items()}
        first = {name: parent[FIRST + name] for name in roles.child.names}
        size = self._sizes(parent[roles.size], rng)
        numbers = {name: self._number(name, first[name], rng) for name in self._exact}
        now = self._begin(parent, first, numbers, size, rng)
        places = [_Placed(np.arange(n)[size > 0], _at(first, size > 0), _at(numbers, size > 0))]
        for place in range(1, int(size.max(initial=0))):
            rows = np.flatnonzero(size > place)
            placed = self._row(place, rows, parent, now.take(rows), rng, counted)
            self._go_on(now, placed)
            places.append(placed)
        return self._joined(n, parent, places, counted)

    @property
    def _exact(self) -> tuple[str, ...]:
        """Tuple of the names of the child's columns of which numbers are drawn along with codes."""
        summed = () if self.roles.summed is None else (self.roles.summed.of,)
        return tuple(dict.fromkeys((*summed, *(() if self.roles.stepped is None else (self.roles.stepped,)))))

    def _sizes(self, codes: NDArray[Any], rng: Generator) -> Ints:
        """Return an array, the number of child rows of each parent, by its level number `codes` of the size column.

        The last level stands for several numbers: one is drawn by `rng` with the public shares. None exceeds the most.
        """
        roles, prefix = self.roles, self.models.prefixes[0]
        last = self.models.parent.schema.size(prefix + roles.size) - 1
        size = codes.astype(np.intp) + roles.counts[roles.size].least
        beyond = np.flatnonzero(codes == last)
        if len(roles.tail) > 1:
            size[beyond] += rng.choice(len(roles.tail), size=len(beyond), p=np.array(roles.tail) / sum(roles.tail))
        found: Ints = np.minimum(size, roles.most)
        return found

    def _number(self, name: str, codes: NDArray[Any], rng: Generator) -> Floats:
        """Return an array, a number, by `rng`, in the bin of each of `codes`, by the law of the column `name`.

        NaN for a level without a number.
        """
        column = self.roles.number(name)
        found = numbers_in_bins(column, codes.astype(np.int64), rng, self.laws.get(name) or declared(column))
        return np.where(codes < len(column.extents), found.astype(np.float64), np.nan)

    def _begin(
        self, parent: Codes, first: Codes, numbers: dict[str, Floats], size: Ints, rng: Generator
    ) -> OpenParents:
        """Return the `OpenParents` after the first row, whose number of the summed column may be drawn again by `rng`.

        `parent` and `first` are codes by column of the parents and their first rows, `size` the numbers of rows. A
        number drawn again replaces that in `numbers`, arrays by column.
        """
        roles, n = self.roles, len(size)
        rest = np.maximum(size - 1, 0)
        met = np.zeros(n, dtype=np.intp)
        if roles.state is not None:
            count = roles.counts[roles.state]
            met = parent[roles.state].astype(np.intp) + count.least
            if not count.besides_first:
                met -= roles.meets(count, first, n)
            met = np.clip(met, 0, rest)
        left = np.zeros(n)
        if roles.summed is not None:
            own, left = Amounts(roles).shared(parent, numbers[roles.summed.of], rest, rng, self._usual)
            numbers[roles.summed.of] = own
        before = np.full(n, np.nan) if roles.stepped is None else numbers[roles.stepped].copy()
        return OpenParents(met, rest - met, left, before)

    @cached_property
    def _usual(self) -> Floats | None:
        """Array of the share of each level of the summed column in the second rows; None where nothing is known."""
        summed, second = self.roles.summed, self.models.second or self.models.others
        if summed is None or second is None:
            return None
        name = self.models.prefixes[1 if self.models.second is not None else 2] + summed.of
        return np.asarray(second.oneway(name), np.float64) if name in second.schema.columns else None

    def _row(
        self, place: int, rows: Ints, parent: Codes, now: OpenParents, rng: Generator, counted: DrawCounts
    ) -> _Placed:
        """Return the `_Placed` child rows, by `rng`, at one place of the parents `rows`, given the `OpenParents`.

        `parent` is the codes of all parents by column; the `DrawCounts` get what was given up.
        """
        slot = self._slot(place)
        state = {
            STATE: state_code(now.met, now.others, condition=bool(self.roles.condition)),
            REMAINS: bands(() if self.roles.summed is None else self.roles.summed.ends, now.left),
            PREVIOUS: bands(self.roles.previous, now.before),
        }
        given = {name: state[name] if name in state else parent[name][rows] for name in slot.known}
        codes, some = slot.draw(given, now, rng, counted, relaxed=False)
        if some.size:
            again, never = slot.draw(_at(given, some), now.take(some), rng, counted, relaxed=True)
            if never.size:
                raise MechanismError("linked: the schema's rules leave a child row no value at all.")
            counted.relaxed += len(some)
            for name, values in again.items():
                codes[name][some] = values
        numbers = {name: self._number(name, codes[name], rng) for name in self._exact}
        if self.roles.stepped in numbers and DIFFERENCE in codes:
            self._step(numbers, codes, now, rng)
        if self.roles.summed is not None:
            Amounts(self.roles).take(numbers[self.roles.summed.of], codes, now, rng)
        return _Placed(rows, {name: codes[name] for name in self.roles.child.names}, numbers)

    def _slot(self, place: int) -> _Slot:
        place = min(place, 2)
        if place not in self._slots:
            self._slots[place] = _Slot.of(self.roles, self.models, place, self._first)
        return self._slots[place]

    def _step(self, numbers: dict[str, Floats], codes: Codes, now: OpenParents, rng: Generator) -> None:
        """Set numbers of the stepped column, in place, to ones drawn by `rng` in the band of the difference as well.

        `numbers` and `codes` are those of the child rows by column, `now` the `OpenParents` before them.
        """
        stepped = self.roles.stepped
        assert stepped is not None  # noqa: S101 - the caller looked
        column = self.roles.number(stepped)
        values, row = numbers[stepped], np.arange(len(now.before))
        before, kinds = np.unique(now.before, return_inverse=True, equal_nan=True)
        low, top = reachable(self.roles, stepped, before)
        bin_, band = codes[stepped].astype(np.intp), codes[DIFFERENCE].astype(np.intp)
        real = (bin_ < low.shape[2]) & (band < low.shape[1]) & ~np.isnan(now.before)
        at = kinds.ravel()[real], band[real], bin_[real]
        least, most = low[at], top[at]
        own, rows = values[real], row[real]
        outside = (own < least) | (own > most)
        values[rows[outside]] = between(least[outside], most[outside], unit_of(column), rng)

    def _go_on(self, now: OpenParents, placed: _Placed) -> None:
        """Change the `OpenParents` in place, after the child rows `placed`, by their parents' numbers."""
        roles, rows = self.roles, placed.rows
        met = roles.meets(CountRole(where=roles.condition), placed.codes, len(rows)) & bool(roles.condition)
        now.met[rows] = np.maximum(now.met[rows] - met, 0)
        now.others[rows] = np.maximum(now.others[rows] - ~met, 0)
        if roles.summed is not None:
            left = now.left[rows] - np.nan_to_num(placed.numbers[roles.summed.of])
            now.left[rows] = Amounts(roles).rounded(left)
        if roles.stepped is not None:
            now.before[rows] = placed.numbers[roles.stepped]

    def _joined(self, n: int, parent: Codes, places: list[_Placed], counted: DrawCounts) -> DrawnTables:
        """Return the `DrawnTables` of `n` parents: rows sorted by parent and place, and what these add up to.

        `parent` is the parents' codes by column, `places` the `_Placed` rows of each place; the `DrawCounts` get the
        numbers of parents, rows, and sums in other bands.
        """
        roles = self.roles
        owner = np.concatenate([placed.rows for placed in places])
        order = np.argsort(owner, kind="stable")
        owner = owner[order]
        child = {name: np.concatenate([p.codes[name] for p in places])[order] for name in roles.child.names}
        numbers = {name: np.concatenate([p.numbers[name] for p in places])[order] for name in self._exact}
        first = np.zeros(len(owner), dtype=bool)
        first[np.flatnonzero(np.diff(owner, prepend=-1))] = True
        counts = {}
        for name, count in roles.counts.items():
            met = roles.meets(count, child, len(owner)) & ~(count.besides_first & first)
            counts[name] = np.bincount(owner[met], minlength=n).astype(np.intp)
        total: Floats | None = None
        if roles.summed is not None:
            total = Amounts(roles).rounded(np.bincount(owner, np.nan_to_num(numbers[roles.summed.of]), minlength=n))
            counted.other_bands += int((Amounts(roles).band(total) != parent[roles.summed.column]).sum())
        counted.parents += n
        counted.rows += len(owner)
        return DrawnTables(parent, counts, total, owner, child, numbers)


@dataclass(frozen=True, eq=False)
class _Placed:
    """Child rows at one place of some parents."""

    rows: Ints
    """Numbers of the parents."""
    codes: Codes
    numbers: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class _Slot:
    """Model of the child row at one place, with what is known of it."""

    completion: Completion
    limits: Limits
    prefix: str

    @classmethod
    def of(cls, roles: LinkRoles, models: LinkedModels, place: int, first: tuple[str, ...]) -> _Slot:
        """Return the `_Slot`, a prepared one of the `LinkedModels`, of a place, 1 for the second child row.

        The `LinkRoles` have the columns; those named `first` are given up before all other known ones.
        """
        model, prefix = models.slot(place)
        names = [name.removeprefix(prefix) for name in model.schema.names]
        drawn = frozenset((*roles.child.names, DIFFERENCE, ALL)) & frozenset(names)
        known = [name for name in names if name not in drawn]
        limits = Limits(roles, drawn, frozenset(known))
        back_off = [*(name for name in first if name in known), *(n for n in known[::-1] if n not in (*first, STATE))]
        return cls(
            Completion(
                model,
                [prefix + name for name in known],
                [tuple(prefix + name for name in clique) for clique in limits.cliques],
                [prefix + name for name in back_off],
            ),
            limits,
            prefix,
        )

    @property
    def known(self) -> tuple[str, ...]:
        """Tuple of names of columns that are known before the row is drawn, without the model's prefix."""
        return tuple(name.removeprefix(self.prefix) for name in self.completion.known)

    def draw(
        self,
        given: Mapping[str, NDArray[np.integer[Any]]],
        now: OpenParents,
        rng: Generator,
        counted: DrawCounts,
        *,
        relaxed: bool,
    ) -> tuple[Codes, Ints]:
        """Return (codes of a child row by column, drawn by `rng`; numbers of the states without a possible cell).

        There is a row for each of the `OpenParents`, whose known codes are `given`, column -> codes. Columns given up
        are added to the `DrawCounts`; with `relaxed`, a flag, nothing is asked of what is left of the sum.
        """
        evidence = {self.prefix + name: codes for name, codes in given.items()}
        found = self.completion.attempt(evidence, rng, *self.limits.allowed(now, relaxed=relaxed))
        for name, number in found.backed_off.items():
            short = name.removeprefix(self.prefix)
            counted.backed_off[short] = counted.backed_off.get(short, 0) + number
        return {name.removeprefix(self.prefix): codes for name, codes in found.codes.items()}, found.impossible


def _at(values: Mapping[str, NDArray[Any]], rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return {name: each[rows] for name, each in values.items()}
