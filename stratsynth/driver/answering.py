"""Exact answers plus noise. Everything asked together is read in one pass; the noise is the handlers'."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.accounting.budget import Neighbours
from stratsynth.driver.handlers import handler
from stratsynth.driver.lockstep import Asked
from stratsynth.noise import Entropy
from stratsynth.questions import Answer, Clique
from stratsynth.questions.handler import Exact, Rows, Setting, Wanted
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    import pandas as pd

MAX_KEPT = 2**27
"""The most cells of exact tables kept between moments; beyond it they are counted again."""


class Answerer:
    """Rows, and the noise that covers what is read from them."""

    def __init__(self, rows: Rows, neighbours: Neighbours, entropy: Entropy) -> None:
        """Hold the rows."""
        self._reader = Reader(rows, entropy)
        self._neighbours = neighbours
        self._entropy = entropy
        self._memory: dict[StratumPath, dict[Any, Any]] = {}
        """What handlers remember of exact answers, by path: as private as the rows."""

    def answer(self, asked: Sequence[Asked]) -> list[Answer]:
        """One answer a question, in order."""
        exact = self._reader.read([(a.path, handler(a.question).wanted(a.question)) for a in asked])
        return [
            handler(a.question).answer(
                a.question,
                Setting(a.schema, self._neighbours),
                found,
                self._entropy,
                self._memory.setdefault(a.path, {}),
            )
            for a, found in zip(asked, exact, strict=True)
        ]


class Reader:
    """What questions want, read from rows: all paths together, and tables that will be wanted again only once."""

    def __init__(self, rows: Rows, entropy: Entropy) -> None:
        """`entropy` draws the coins of Poisson samples."""
        self._rows = rows
        self._entropy = entropy
        self._kept: dict[StratumPath, dict[Clique, NDArray[np.int64]]] = {}
        self._kept_cells = 0

    def read(self, wanted: Sequence[tuple[StratumPath, Wanted]]) -> list[Exact]:
        """What was read for each, in order."""
        tables = self._tables(wanted)
        asked = [(path, query, rate) for path, want in wanted for query, rate in want.sums]
        sums = iter(self._rows.sums(asked, self._entropy) if asked else [])
        return [
            Exact(
                list(map(tables.get(path, {}).__getitem__, want.cliques)),
                [next(sums) for _ in want.sums],
                self._rows.columns(path, want.columns) if want.columns else None,
                self._frame(path, want),
            )
            for path, want in wanted
        ]

    def _frame(self, path: StratumPath, want: Wanted) -> pd.DataFrame | None:
        return self._rows.frame(path) if want.frame else None

    def _tables(
        self, wanted: Sequence[tuple[StratumPath, Wanted]]
    ) -> dict[StratumPath, dict[Clique, NDArray[np.int64]]]:
        """The exact tables of each path, each counted once."""
        by_path: dict[StratumPath, dict[Clique, bool]] = {}
        for path, want in wanted:
            if want.cliques:
                here = by_path.setdefault(path, {})
                for clique in want.cliques:
                    here[clique] = want.again or here.get(clique, False)
        found = dict[StratumPath, dict[Clique, NDArray[np.int64]]]()
        for path, cliques in by_path.items():
            kept = self._kept.get(path, {})
            found[path] = {clique: kept[clique] for clique in cliques if clique in kept}
            if any(cliques.values()) and len(kept) > 2 * len(cliques):  # most are out of the choice
                self._kept[path] = found[path].copy()
                self._kept_cells -= sum(table.size for clique, table in kept.items() if clique not in cliques)
        missing = [(path, [c for c in cliques if c not in found[path]]) for path, cliques in by_path.items()]
        for (path, lacking), exact in zip(missing, self._rows.counts(missing), strict=True):
            tables, again, kept = found[path], by_path[path], self._kept.setdefault(path, {})
            for clique, table in zip(lacking, exact, strict=True):
                tables[clique] = table
                if again[clique] and self._kept_cells + table.size <= MAX_KEPT:
                    kept[clique] = table
                    self._kept_cells += table.size
        return found


def tv_error(asked: Sequence[Asked], neighbours: Neighbours) -> float:
    """Total variation between the noise as sampled, tails cut off, and as priced, over all that is asked."""
    return math.fsum(handler(a.question).tv_error(a.question, Setting(a.schema, neighbours)) for a in asked)
