"""Small worlds to test in: public facts that stay fixed, and tables of rows that differ by one record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from stratsynth.accounting.budget import Neighbours
from stratsynth.schema import Categorical, Numeric, Schema
from stratsynth.strata import crossing
from stratsynth.weights import Weights

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.mechanisms.prior_rows import PriorSource

MOST_ROWS = 300
MANY_ROWS = 4321
"""Number of rows that exceeds thresholds of some hundreds or a thousand rows."""


@dataclass(frozen=True)
class World:
    """Public facts of a test: a schema, groups, their shares, and the declared number of rows."""

    schema: Schema
    by: tuple[str, ...]
    """Columns to stratify by."""
    weights: Weights
    declared_size: int = 100
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    """Notion of neighbour, also of the contract's budgets: one record more or fewer; for `replace`, one exchanged for
    another; for `attribute`, other values of one record in the columns that the schema does not declare public."""
    prior: PriorSource | None = None
    """Public rows that fits start from; None without a prior."""

    def table(self, rng: Generator, kind: str = "any") -> pd.DataFrame:
        """Return a frame of random texts by `rng`: `kind` `empty`, `one`, `constant`, `lopsided`, `many` or `any`."""
        number = {"empty": 0, "one": 1, "many": MANY_ROWS}.get(kind, int(rng.integers(0, MOST_ROWS)))
        columns = {}
        for name in self.schema.names:
            levels = _values(self.schema, name)
            odds = np.full(len(levels), 1.0)
            if kind == "constant":
                odds[1:] = 0
            elif kind == "lopsided":  # most groups nearly or wholly empty
                odds = 0.05 ** np.arange(len(levels))
            columns[name] = rng.choice(np.array(levels, dtype=object), size=number, p=odds / odds.sum())
        if (weight := self.schema.row_weight.column) is not None:
            columns[weight] = rng.choice(np.array(_weights(self.schema), dtype=object), size=number)
        return pd.DataFrame(columns)

    def neighbour(self, table: pd.DataFrame, rng: Generator) -> pd.DataFrame:
        """Return a neighbour of `table` by `rng`: one row more or fewer, the new one as likely to be rare as common.

        For `replace`, one row exchanged; an empty table has no other neighbour than itself. For `attribute`, one row
        with other values in its protected columns.
        """
        if self.neighbours == Neighbours.ATTRIBUTE:
            return self._changed(table, rng, [int(rng.integers(len(table)))] if len(table) else [])
        exchanged = self.neighbours == Neighbours.REPLACE
        if exchanged and not len(table):
            return table
        if exchanged or (len(table) and rng.random() < 0.5):
            fewer = table.drop(index=int(rng.integers(len(table)))).reset_index(drop=True)
            return pd.concat([fewer.astype(object), self._row(rng)], ignore_index=True) if exchanged else fewer
        return pd.concat([table.astype(object), self._row(rng)], ignore_index=True)

    def _row(self, rng: Generator) -> pd.DataFrame:
        """Return a frame of one random row, by `rng`: each value as likely as any other of the world's schema."""
        row = pd.DataFrame({c: [_pick(rng, _values(self.schema, c))] for c in self.schema.names})
        if (weight := self.schema.row_weight.column) is not None:
            row[weight] = [_pick(rng, _weights(self.schema))]
        return row.astype(object)

    def stranger(self, table: pd.DataFrame, rng: Generator, kind: str) -> pd.DataFrame:
        """Return a random frame of a `kind`, by `rng`; for `attribute`, `table` with protected values drawn again."""
        if self.neighbours == Neighbours.ATTRIBUTE:
            return self._changed(table, rng, range(len(table)))
        return self.table(rng, kind)

    def _changed(self, table: pd.DataFrame, rng: Generator, rows: Sequence[int]) -> pd.DataFrame:
        """Return `table` with new values by `rng` in the protected columns of the rows with these numbers."""
        found = table.astype(object)
        for name in (name for name in self.schema.names if not self.schema.column(name).public):
            values, cells = _values(self.schema, name), found[name].to_list()
            for row in rows:
                cells[row] = _pick(rng, values)
            found[name] = pd.Series(cells, found.index, dtype=object)
        return found


def _pick(rng: Generator, values: list[str | None]) -> str | None:
    return values[int(rng.integers(len(values)))]


def _values(schema: Schema, name: str) -> list[str | None]:
    """Return a list of texts that a file may hold in column `name`: levels or numbers, None, ones not in the schema."""
    column = schema.columns[name]
    if isinstance(column, Categorical):
        return [*column.levels, None, "zebra"]
    return [*(str(int(v)) for v in np.linspace(column.lower - 3, column.upper + 3, 9)), None, "NaN", "1e308"]


def _weights(schema: Schema) -> list[str | None]:
    """Return a list of texts, weights that a file may hold: valid, fractional, too large for the schema, no numbers.

    None.
    """
    most = schema.row_weight.most
    return [*(str(w) for w in range(0, most + 1, max(1, most // 4))), str(most), "1.5", str(7 * most), "-3", "x", None]


def worlds() -> Iterator[World]:
    """Yield a few worlds of two to four columns with at most five levels each."""
    sex = Categorical(levels=("1", "2"))
    group = Categorical(levels=("1", "2", "8", "9"), outside="missing")
    work = Categorical(levels=("N", "yes", "no"), not_applicable="N", outside="no")
    age = Numeric(lower=0, upper=40, edges=(0, 10, 20, 41), integer=True, missing=True)
    constant = Categorical(levels=("only",), outside="only")
    yield _world(Schema({"SEX": sex, "GROUP": group, "WORK": work, "AGE": age}), ("GROUP",))
    yield _world(Schema({"AGE": age, "SEX": sex, "CONSTANT": constant, "GROUP": group}), ("SEX", "GROUP"))
    yield _world(Schema({"SEX": sex, "WORK": work}), ("WORK",))


def _world(schema: Schema, by: tuple[str, ...]) -> World:
    """Return a world of a schema with strata by the columns `by`, of made-up, uneven public shares."""
    strata = crossing(schema, by)
    odds = 0.4 ** np.arange(len(strata))
    shares = pd.DataFrame([{**s.to_dict(), "share": w} for s, w in zip(strata, odds / odds.sum(), strict=True)])
    return World(schema, by, Weights.public(shares, citation="made up for testing"))
