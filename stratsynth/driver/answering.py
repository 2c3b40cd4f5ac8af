"""Exact answers plus noise. Questions of one batch are read together; each adds its own noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.accounting.budget import Neighbours
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.rows import StoredRows
from stratsynth.noise import Entropy
from stratsynth.questions import Answer
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Clique, Exact, Rows, Wanted
from stratsynth.strata import StratumPath

MAX_KEPT = 2**27
"""Largest number of cells of exact tables kept between batches; beyond it tables are counted again."""


_Tables = dict[Clique, NDArray[np.int64]]


class Answerer:
    """Rows, and the source of the noise that is added to all that is read from them."""

    def __init__(self, rows: Rows, neighbours: Neighbours, entropy: Entropy) -> None:
        """Hold the rows, the notion of neighbours and the source of noise, `entropy`; nothing is read."""
        self._reader = Reader(rows, entropy)
        self._neighbours = neighbours
        self._entropy = entropy
        self._memory: dict[StratumPath, dict[Any, Any]] = {}
        """Exact results that questions remember, by path: as private as the rows."""

    def answer(self, asked: Sequence[Asked]) -> list[Answer]:
        """Return a list of noisy `Answer`s, one for each `Asked` in the sequence `asked`, from rows at its path."""
        wanted = []
        for a in asked:
            memory = self._memory.setdefault(a.path, {})  # nothing is read where what is remembered is enough
            wanted.append((a.path, Wanted() if memory and a.question.remembers(memory) else a.question.wanted()))
        return [
            a.question.answer(Setting(a.schema, self._neighbours), exact, self._entropy, self._memory[a.path])
            for a, exact in zip(asked, self._reader.each(wanted), strict=True)
        ]


class Reader:
    """Reads from rows: of all paths of a batch together, and only once of tables that later batches need again."""

    def __init__(self, rows: Rows, entropy: Entropy) -> None:
        """Hold `rows`, a backend's Rows; `entropy` draws the coins of Poisson samples."""
        self._rows = rows
        self._here = isinstance(rows, StoredRows)
        self._entropy = entropy
        self._kept: dict[StratumPath, _Tables] = {}
        self._kept_cells = 0

    def each(self, wanted: Sequence[tuple[StratumPath, Wanted]]) -> Iterator[Exact]:
        """Yield an `Exact` for each pair (path, `Wanted`) of the sequence `wanted`, in its order."""
        asked = [(path, query, rate) for path, want in wanted for query, rate in want.sums]
        sums = iter(self._rows.sums(asked, self._entropy) if asked else [])
        by_path: dict[StratumPath, list[Wanted]] = {}
        last: dict[StratumPath, int] = {}
        for i, (path, want) in enumerate(wanted):
            if want.cliques:
                by_path.setdefault(path, []).append(want)
                last[path] = i
        counted, tables = self._tables(by_path), dict[StratumPath, _Tables]()
        for i, (path, want) in enumerate(wanted):
            if want.cliques and path not in tables:  # in the order in which paths come first
                tables[path] = next(counted)
            yield Exact(
                list(map(tables.get(path, {}).__getitem__, want.cliques)),
                [next(sums) for _ in want.sums],
                self._rows.columns(path, want.columns) if want.columns else None,
                self._rows.frame(path) if want.frame else None,
            )
            if last.get(path) == i:
                del tables[path]

    def _tables(self, by_path: Mapping[StratumPath, Sequence[Wanted]]) -> Iterator[_Tables]:
        """Yield a dict, clique -> exact table, for each path of `by_path`, a mapping to sequences of `Wanted`."""
        plans = ((path, *self._kept_of(path, wants)) for path, wants in by_path.items())
        for batch in ([plan] for plan in plans) if self._here else [list(plans)]:
            counted = self._rows.counts([(path, lacking) for path, _, _, lacking in batch])
            for (path, again, found, lacking), exact in zip(batch, counted, strict=True):
                yield self._with(path, again, found, dict(zip(lacking, exact, strict=True)))

    def _kept_of(self, path: StratumPath, wants: Sequence[Wanted]) -> tuple[set[Clique], _Tables, list[Clique]]:
        """Return (set of cliques to keep, {clique: kept table}, list of cliques to count), of a path's `Wanted`.

        A table that is compared once may be measured later. With rows in this process it is counted again, otherwise
        kept, since it would take another pass.
        """
        cliques = dict.fromkeys(clique for want in wants for clique in want.cliques)
        again = {clique for want in wants if want.again or (want.once and not self._here) for clique in want.cliques}
        kept = self._kept.get(path, {})
        found = {clique: kept[clique] for clique in cliques if clique in kept}
        if again and len(kept) > 2 * len(cliques):  # most candidates have left the choice
            self._kept[path] = {clique: table.copy() for clique, table in found.items()}  # a view would keep them all
            self._kept_cells -= sum(table.size for clique, table in kept.items() if clique not in cliques)
        return again, found, [clique for clique in cliques if clique not in found]

    def _with(self, path: StratumPath, again: set[Clique], found: _Tables, counted: _Tables) -> _Tables:
        """Return `found` and `counted`, {clique: table}, as one; keep a path's of the set `again`, up to MAX_KEPT."""
        for clique, table in counted.items():
            if clique in again and self._kept_cells + table.size <= MAX_KEPT:
                self._kept.setdefault(path, {})[clique] = table
                self._kept_cells += table.size
        return {**found, **counted}
