"""Questions of one stratum, and the noise expected in their answers.

Expected errors are those of the noise alone: the mean size of the noise in a cell, sigma sqrt(2 / pi), relative to the
cell's mean count, which is the public size over the number of cells; over several tables of a kind, the median. Where a
stratum is asked for no table of k columns but for larger ones, its k-way counts are sums over their cells, each from
the best table for it. A stratum that starts from a model of everybody has that model's error where it measures nothing
of a kind.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from stratsynth.accounting.charges import Spending
from stratsynth.accounting.prices import prices
from stratsynth.planning.rehearsal import size_of
from stratsynth.strata import StratumPath, label

if TYPE_CHECKING:
    from stratsynth.mechanisms import Prepared
    from stratsynth.planning.rehearsal import Rehearsal
    from stratsynth.questions.base import Seen
    from stratsynth.schema import Schema

NOISE_SIZE = math.sqrt(2 / math.pi)
"""Mean absolute value of Gaussian noise, in units of sigma."""
_Table = tuple[tuple[str, ...], int, float]
"""Columns, number of cells, and sigma."""


@dataclass(frozen=True)
class StratumPlan:
    """Plan of one stratum: questions, cost, and expected noise."""

    stratum: str
    """Levels of the stratum, joined by `|`; empty for everybody."""
    size: int
    """Public size in records: declared size times public share."""
    size_low: int | None
    size_high: int | None
    """Bounds of the size in records, from those of the share; None where the weights' source has none."""
    one_way: bool
    """True if the stratum gets one-way tables only, as a small group may."""
    epsilon: float | None
    """Epsilon of the stratum's questions at the budget's delta, those asked of everybody included."""
    questions: int
    rounds: int
    """Number of choices of the next table to measure; an estimate where answers decide."""
    tables: int
    """Number of noisy tables that the stratum will release."""
    sigma: float | None
    """Median noise scale of a cell, in records; None without tables."""
    oneway_error: float | None
    """Expected relative error of a one-way count; None if no question gives one."""
    twoway_error: float | None
    """Expected relative error of a two-way count; None if no question gives one."""
    megabytes: float
    """Memory for exact and noisy answers, in MB."""
    verdict: str
    small: str
    """Reason why the policy for small groups counts the stratum as small; empty where it does not."""
    oneway_borrowed: bool = False
    """True if `oneway_error` is that of everybody's model, as the stratum measures no one-way table."""
    twoway_borrowed: bool = False
    """True if `twoway_error` is that of everybody's model, as the stratum measures no table of two columns."""


class _Placed(Protocol):
    """Question or charge, with the path to its stratum."""

    @property
    def path(self) -> StratumPath:
        """Path, a tuple of strata, from everybody down; empty for everybody."""


T = TypeVar("T", bound=_Placed)


class _Along(Generic[T]):
    """Index of questions or charges by the first stratum of their paths."""

    def __init__(self, items: Iterable[T]) -> None:
        """Index `items`, questions or charges, by the first stratum of their paths, in their order."""
        self._by: dict[StratumPath, list[tuple[int, T]]] = {}
        for number, item in enumerate(items):
            self._by.setdefault(item.path[:1], []).append((number, item))

    def of(self, path: StratumPath) -> list[T]:
        """Return a list of these items, in order, that belong to everybody or to `path`, a tuple of one stratum.

        All items for the empty path.
        """
        among = [self._by.get((), []), self._by.get(path, [])] if path else self._by.values()
        return [item for _, item in sorted(itertools.chain(*among), key=operator.itemgetter(0))]

    @property
    def everybody(self) -> list[T]:
        """List of the questions or charges of the empty path, which are about everybody, in order."""
        return [item for _, item in self._by.get((), [])]


class Foreseen:
    """Rehearsal by strata; strata that are asked alike share one computation."""

    def __init__(self, prepared: Prepared, found: Rehearsal) -> None:
        """Index the questions and charges of the rehearsal `found` by stratum, for one prepared fit."""
        self._prepared = prepared
        self._account = found.account
        self._model = found.model
        self._seen = _Along(found.answers.seen)
        self._charges = _Along(found.account.spending.charges)
        self._first = found.answers.first
        self._known: dict[StratumPath, _Asked] = {}

    def stratum(self, path: StratumPath) -> StratumPlan:
        """Return the `StratumPlan` of the stratum at `path`, a tuple of strata; of everybody for the empty path."""
        first = self._first(path)
        if first not in self._known:
            self._known[first] = self._asked(first)
        asked, prepared = self._known[first], self._prepared
        layout, declared_size, size = prepared.strata, prepared.public.size or 0, size_of(path, prepared)
        one, two = (_relative(noise, size) for noise in asked.noise)
        pooled = bool(path) and self.pooled(path)
        borrowed = pooled and one is None, pooled and two is None
        if pooled:  # what it does not measure stays as in everybody's model
            whole = [_relative(noise, float(declared_size)) for noise in asked.whole]
            one, two = (mine if mine is not None else theirs for mine, theirs in zip((one, two), whole, strict=True))
        alone = not pooled and prepared.worst is not None and one is not None and not asked.chooses
        own_words = _shared_start_verdict(one, asked.columns, self._free(path)) if pooled else ""
        left = self._free(path) - asked.columns if asked.tables else 0
        lacking = f"; {left} of {self._free(path)} columns in no table" if left > 0 else ""
        said = "" if self._model is None else self._model.foretell(path)
        ends = layout.resolved.ranges[path[0]] if layout and path and layout.resolved.ranges else None
        return StratumPlan(
            label(path),
            round(size),
            None if ends is None else math.floor(declared_size * ends[0]),
            None if ends is None else math.ceil(declared_size * ends[1]),
            bool(layout and path and layout.plainly(path[0])),
            asked.epsilon,
            asked.questions,
            asked.rounds,
            asked.tables,
            asked.sigma,
            one,
            two,
            asked.megabytes,
            said or own_words or f"{verdict(one)}{'; columns alone, nothing of how they go together' * alone}{lacking}",
            layout.small.get(path[0], "") if layout and path else "",
            *borrowed,
        )

    def pooled(self, path: StratumPath) -> bool:
        """True if the stratum at `path` starts from everybody's model: more than sizes is asked of all records."""
        return bool(path) and bool(self._everybody(path))

    def _asked(self, path: StratumPath) -> _Asked:
        """Return `_Asked`, sums over the foreseen questions and charges of everybody and of the stratum at `path`.

        Tables are those of the path and of the strata below it; cost, noise and memory are among the sums.
        """
        account, schema = self._account, self._prepared.public.schema
        mine = self._seen.of(path)
        below = [s for s in mine if s.path[: len(path)] == path]
        own = Spending(account.budget.neighbours, self._charges.of(path))
        spent = replace(account.allot, amount=float(own.spent()))
        tables, whole = [table for s in below for table in s.cliques], self._everybody(path) if path else ()
        return _Asked(
            prices(own, account.budget, spent)[str(account.budget.neighbours)],
            len(mine),
            sum(s.kind == "choose" for s in below),
            len(tables),
            median(sigma for _, _, sigma in tables) if tables else None,
            (_noise(tables, 1, schema), _noise(tables, 2, schema)),
            (_noise(whole, 1, schema), _noise(whole, 2, schema)),
            _megabytes(mine),
            any(s.kind == "choose" for s in mine),
            len({column for clique, _, _ in tables for column in clique}),
        )

    def _everybody(self, path: StratumPath) -> tuple[_Table, ...]:
        """Return a tuple of everybody's tables, (columns, cells, sigma), with a column that does not define a stratum.

        `path` is a tuple of this one stratum.
        """
        by = set(path[0].columns)
        return tuple(table for s in self._seen.everybody for table in s.cliques if not set(table[0]) <= by)

    def _free(self, path: StratumPath) -> int:
        """Return the number of the schema's columns that do not define the path's stratum; all for the empty path."""
        return len([name for name in self._prepared.public.schema.names if not path or name not in path[0].columns])


@dataclass(frozen=True)
class _Asked:
    """Common part of the plans of strata that are asked alike; first the fields of `StratumPlan`."""

    epsilon: float | None
    questions: int
    rounds: int
    tables: int
    sigma: float | None
    noise: tuple[float | None, float | None]
    """Expected errors of one-way and two-way counts, times the stratum's size."""
    whole: tuple[float | None, float | None]
    """Expected errors of everybody's model, where there is one, times everybody's number."""
    megabytes: float
    chooses: bool
    """True if the stratum, or everybody above it, is asked to choose."""
    columns: int
    """Number of columns that the stratum measures."""


def _shared_start_verdict(error: float | None, measured: int, columns: int) -> str:
    """Return words on the use of a stratum's counts, by their relative error (None: unknown).

    `measured` is the number of columns that are measured there, `columns` that of all.
    """
    if not measured:
        return "drawn as everybody: too small for measurements of its own"
    return f"{verdict(error)}; about {measured} of {columns} columns measured here, others as in everybody's model"


def _megabytes(seen: Sequence[Seen]) -> float:
    """Return the memory, in MB, that a stratum's questions need: tables, candidates, and the largest model of a round.

    `seen` is a list of `Seen`, its questions in the rehearsal.
    """
    candidates = {item for s in seen for item in s.candidates}
    cells = 2 * sum(n for s in seen for _, n, _ in s.cliques) + sum(n for _, n in candidates)
    return 8 * (cells + max((s.cells for s in seen if s.candidates), default=0)) / 2**20


def _noise(tables: Sequence[_Table], k: int, schema: Schema) -> float | None:
    """Return the noise of a cell of k columns, times people, relative to a mean count: the median over `tables`.

    Each is (columns, number of cells, sigma). Without tables of k columns, those within larger ones count, where a
    count is a sum of cells of the schema; None if there are none.
    """
    own = [NOISE_SIZE * sigma * cells for clique, cells, sigma in tables if len(clique) == k]
    if not own:
        summed: dict[tuple[str, ...], float] = {}
        for clique, cells, sigma in tables:
            for part in combinations(sorted(clique), k):
                inside = min(cells, math.prod(schema.size(name) for name in part))
                noise = NOISE_SIZE * sigma * math.sqrt(cells * inside)
                summed[part] = min(noise, summed.get(part, math.inf))
        own = list(summed.values())
    return median(own) if own else None


def _relative(noise: float | None, size: float) -> float | None:
    """Return `noise`, of a share times people, divided by `size`, people; infinite for 0, None if noise is None."""
    if noise is None:
        return None
    return noise / size if size > 0 else math.inf


def verdict(error: float | None) -> str:
    """Return words on the use of one-way counts with the relative `error`, from "good" to "noise".

    None: none are known.
    """
    if error is None:
        return "no one-way tables: see the mechanism"
    for most, words in (
        (0.03, "good"),
        (0.1, "fair: margins hold, details blur"),
        (0.5, "poor: only large levels show"),
    ):
        if error <= most:
            return words
    return "noise: too small on its own; merge it, or spend more"
