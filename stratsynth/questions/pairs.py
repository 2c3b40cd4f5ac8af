"""Pairs of columns as candidates of a choice: the distance of each pair's counts from those of independent columns.

Only the columns' distributions are stored; the table that a pair is compared with is computed when it is
compared: hundreds of tables in each of thousands of strata would fill the memory, and take long to check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from operator import lt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stratsynth.accounting.budget import Neighbours
from stratsynth.checks import number
from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import Setting, fixed, is_plain, is_plain_tuple
from stratsynth.questions.reading import Clique, Exact, Ints, Wanted
from stratsynth.questions.scores import LARGEST, REFERENCE_UNIT, Distance

if TYPE_CHECKING:
    from stratsynth.schema import Schema

UNKNOWN = np.int64(-1)
"""Marks a distance that was not computed yet."""
_LIKE = Distance(("a", "b"), np.zeros((1, 1)))
"""Stand-in for the sensitivity of every pair: an L1 distance of weight 1."""


@known
@dataclass(frozen=True, eq=False)
class Independence:
    """References of all pairs: the counts of independent columns, or a table given for the pair."""

    lasting: ClassVar[bool] = True
    cliques: tuple[Clique, ...]
    """All pairs."""
    shares: tuple[NDArray[np.float64], ...]
    """Distribution of each of `columns`, as read-only copies."""
    columns: tuple[str, ...]
    total: float
    """Number of records."""
    told: tuple[tuple[Clique, NDArray[np.float64]], ...] = ()
    """Pairs that are compared with a given table, in records."""

    def __post_init__(self) -> None:
        """Keep read-only copies of the arrays."""
        if type(self.shares) is tuple:
            object.__setattr__(self, "shares", tuple(map(fixed, self.shares)))
        if type(self.told) is tuple and all(type(one) is tuple and len(one) == 2 for one in self.told):
            object.__setattr__(self, "told", tuple((clique, fixed(table)) for clique, table in self.told))

    @cached_property
    def _sound_for(self) -> list[Schema]:
        """Schemas for which it passed the check: one stratum makes hundreds of choices among the same pairs.

        Admission copies fields alone, so that a copy begins with an empty list, whatever the original has.
        """
        return []

    @cached_property
    def cells(self) -> int:
        """Total number of cells of the two-way tables of all pairs."""
        size = {name: len(share) for name, share in zip(self.columns, self.shares, strict=True)}
        return sum(size[one] * size[other] for one, other in self.cliques)

    def tables(self, cliques: Sequence[Clique]) -> Iterator[NDArray[np.float64]]:
        """Yield a float table for each pair in `cliques`: `total` x product of both shares, or the one in `told`."""
        told, share = dict(self.told), dict(zip(self.columns, self.shares, strict=True))
        for one, other in cliques:
            known = told.get((one, other))
            yield self.total * np.multiply.outer(share[one], share[other]) if known is None else known

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: pairs of columns not in the schema, or without shares; misshapen tables."""
        if any(schema is known_for for known_for in self._sound_for):
            return
        plain = is_plain_tuple(self.cliques, tuple) and is_plain_tuple(tuple(chain.from_iterable(self.cliques)), str)
        if not (plain and self.cliques and is_plain_tuple(self.columns, str)):
            raise MechanismError("choose: pairs are tuples of names of columns, in a tuple.")
        _check_pairs(self.cliques, self.columns, schema.names)
        number("choose: the number of records", self.total, least=0, error=MechanismError)
        if (
            type(self.shares) is not tuple
            or len(self.shares) != len(self.columns)
            or not all(map(is_plain, self.shares))
        ):
            raise MechanismError("choose: each column has a distribution, a numpy array of float64.")
        for name, share in zip(self.columns, self.shares, strict=True):
            if share.shape != (schema.size(name),):
                raise MechanismError(f"choose: the distribution of {name} has not the column's shape.")
        largest = max((float(np.abs(share).sum()) for share in self.shares), default=0.0)
        # one by one, since the largest of some and NaN may be either
        if not (all(np.isfinite(share).all() for share in self.shares) and self.total * largest * largest < LARGEST):
            raise MechanismError("choose: a distribution is not finite, or too large.")
        if type(self.told) is not tuple or not all(type(one) is tuple and len(one) == 2 for one in self.told):
            raise MechanismError("choose: tables of pairs are a tuple of pairs with their tables.")
        for clique, table in self.told:  # as a candidate of its own is checked
            Distance(clique, table).check(schema)
        self._sound_for.append(schema)


@known
@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs as candidates, some of all there are: each is a `Distance`, made when it is asked for.

    It has the methods that `Choose` calls on the class of its candidates.
    """

    expected: Independence
    which: tuple[int, ...]
    """Candidates, by their indices among the pairs, in ascending order."""

    @property
    def cliques(self) -> list[Clique]:
        """List of the pair of column names of each candidate, in order."""
        return list(map(self.expected.cliques.__getitem__, self.which))

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.which)

    def __iter__(self) -> Iterator[Distance]:
        """Yield each candidate as a `Distance`, in order."""
        return map(Distance, self.cliques, self.expected.tables(self.cliques))

    def check_all(self, schema: Schema) -> None:
        """Raise MechanismError unless places ascend, not empty, and the reference is sound in `schema`."""
        if type(self.expected) is not Independence:
            raise MechanismError("choose: pairs are compared with what Independence says.")
        self.expected.check(schema)
        if type(self.which) is not tuple or set(map(type, self.which)) != {int}:
            raise MechanismError("choose: there is no candidate, or one that is no place among the pairs.")
        ascending = all(map(lt, self.which, self.which[1:]))
        if not ascending or self.which[0] < 0 or self.which[-1] >= len(self.expected.cliques):
            raise MechanismError("choose: candidates are places among the pairs, in ascending order.")

    def cells(self, schema: Schema) -> int:
        """Return the int number of cells of all pairs' tables in the reference, for any `schema`."""
        return self.expected.cells

    def wanted(self) -> Wanted:
        """Return a `Wanted`: each candidate's table, marked `once`, as a later choice remembers the distances."""
        return Wanted(cliques=self.cliques, once=True)

    def most_moved(self, schema: Schema, neighbours: Neighbours) -> float:
        """Return the sensitivity, in records of `schema`, of an L1 distance of weight 1 to a step of `neighbours`."""
        return _LIKE.sensitivity(schema, neighbours)

    def candidates(self) -> str:
        """Return one text that identifies all candidates, in order, as `Distance.candidates` writes them."""
        return f"[{', '.join(map(_candidate_text, self.cliques))}]"

    def units(self, exact: Exact, at: Setting, memory: dict[Any, Any]) -> tuple[list[int], int]:
        """Return (distances of `exact` tables at a Setting, ints in 2^-16 records; int sensitivity in it).

        Distances are computed once and kept in `memory`, beside the rows, for any subset of the pairs.
        """
        if not self.remembered(memory):
            away = np.full(len(self.expected.cliques), UNKNOWN)
            away[list(self.which)] = self._away(exact.tables)
            memory[Pairs] = self.expected, away
        reach = _LIKE.reach(at.schema, at.neighbours)
        return memory[Pairs][1][list(self.which)].tolist(), reach * REFERENCE_UNIT

    def _away(self, tables: Sequence[Ints]) -> Ints:
        """Return an integer array: the L1 distance of each of `tables` from its reference, in 2^-16 records."""
        references = list(self.expected.tables(self.cliques))
        starts = np.cumsum([0, *(table.size for table in tables[:-1])])
        counted, expected = (np.concatenate([table.ravel() for table in those]) for those in (tables, references))
        # Exact integers in units of 2^-16 records, one sum for each pair.
        cells = np.abs(counted * REFERENCE_UNIT - np.rint(expected * REFERENCE_UNIT).astype(np.int64))
        found: Ints = np.add.reduceat(cells, starts)
        return found

    def remembered(self, memory: Mapping[Any, Any]) -> bool:
        """True if `memory` has the distances of all candidates, from this very reference object."""
        compared, away = memory.get(Pairs, (None, None))
        return compared is self.expected and bool((away[list(self.which)] > UNKNOWN).all())


@lru_cache(maxsize=256)  # by plain texts alone; strata are asked about the same pairs
def _check_pairs(cliques: tuple[Clique, ...], columns: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Raise MechanismError: `columns` not in `names` or twice, `cliques` not two different ones of them."""
    if not set(columns) <= set(names) or len(set(columns)) < len(columns):
        raise MechanismError("choose: a column of the pairs is not in the schema, or is constant in this stratum.")
    for clique in cliques:
        if len(set(clique)) != 2 or len(clique) != 2 or not set(clique) <= set(columns):
            raise MechanismError(f"choose: {clique!r} is no pair of different columns with distributions.")


@lru_cache(maxsize=2**16)
def _candidate_text(clique: Clique) -> str:
    return repr(("distance", clique, 1.0, "l1"))
