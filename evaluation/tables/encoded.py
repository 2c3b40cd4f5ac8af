"""INTERNAL. Rows of one table, encoded: level numbers, and the numbers themselves."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stratsynth.errors import Unsupported, UsageError
from stratsynth.models.intervals import effective
from stratsynth.schema import Categorical, Numeric, Schema
from stratsynth.schema.rows import CodedRows
from stratsynth.schema.text import MISSING, number

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

WEIGHED = (
    "Real rows count as their %s, as in the release, and synthetic rows 1 each: real figures are weighted. Intervals "
    "are those of the effective number of rows. For models, rates, and tests that tell rows apart, real rows were "
    "drawn in proportion to their weights; numbers of real rows and matches count rows."
)
Array: TypeAlias = "NDArray[Any]"
Codes: TypeAlias = Mapping[str, Array]
MOST_BYTES = 8 << 30
"""Largest memory of encoded rows, in bytes."""


@dataclass(frozen=True, eq=False)
class EncodedRows(CodedRows):
    """INTERNAL. Coded rows of a table that is scored, with the numbers of all its numeric columns.

    Weights of rows in scores are scaled to add up to their effective number (Kish), (sum w)^2 / sum w^2: weighted
    figures then have the errors of that number of rows.
    """

    left_out: int = 0
    """Number of rows that the schema's policy leaves out."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.size

    @classmethod
    def read(cls, data: Any, schema: Schema | str | Path, *, weigh: bool = False) -> EncodedRows:
        """Encode a frame, Arrow table or path `data`; an `EncodedRows` of the same schema is returned unchanged.

        With `weigh`, as for real rows, each row counts as its weight if the schema names their column. UsageError for
        rows read with another schema, Unsupported for rows in Spark or of more than `MOST_BYTES`.
        """
        schema = as_schema(schema)
        if isinstance(data, EncodedRows):
            if data.schema != schema:
                raise UsageError("evaluation: the table was read with another schema.")
            return data
        import pyarrow as pa

        from stratsynth.data.sources import open_source
        from stratsynth.schema.encoding import encode, width

        numeric = [name for name, column in schema.columns.items() if isinstance(column, Numeric)]
        column = schema.row_weight.column if weigh else None
        names = schema.names if column is None else (*schema.names, column)
        source = open_source(data)
        if source.engine == "spark":
            raise Unsupported(
                "evaluation: rows in Spark are not scored row by row. Score marginals from counts, by `stratsynth "
                "evaluate --marginals-only` or `streamed_workload_error`; or a sample, frame.sample(0.01).toPandas()."
            )
        empty, parts, seen = pa.schema([(name, pa.string()) for name in names]).empty_table(), [], 0
        for batch in itertools.chain([empty], source.batches(names)):
            parts.append(encode(schema, batch, numbers=numeric, weigh=column is not None))
            seen += batch.num_rows
            if seen * width(schema) > MOST_BYTES:
                raise Unsupported(
                    f"evaluation: rows that take more than {MOST_BYTES >> 30} GB are not scored row by row. Score a "
                    "sample of them; or marginals from counts, by `stratsynth evaluate --marginals-only`."
                )
        codes = {name: np.concatenate([part.codes[name] for part in parts]) for name in schema.names}
        numbers = {name: np.concatenate([part.numbers[name] for part in parts]) for name in numeric}
        counted = [part.weights for part in parts if part.weights is not None]
        weights = effective(np.concatenate(counted)) if counted else None
        rows = sum(part.size for part in parts)
        return cls(schema, codes, numbers, rows, weights, seen - rows)

    @property
    def effective(self) -> float:
        """Effective number of rows, Kish's (sum w)^2 / sum w^2; for rows without weights their number."""
        return float(self.rows) if self.weights is None else float(self.weights.sum())

    def in_proportion(self, rows: int, rng: Generator) -> Array:
        """Array of `rows` row numbers in proportion to weights: one drawn, by `rng`, in each of as many steps.

        Without weights, return the numbers of all rows.
        """
        if self.weights is None or not self.rows:
            return np.arange(self.rows)
        ends = np.cumsum(self.weights)
        places = (rng.random(rows) + np.arange(rows)) / max(rows, 1) * ends[-1]
        return np.asarray(np.minimum(np.searchsorted(ends, places, side="right"), self.rows - 1))

    def unweighted(self, seed: int = 0) -> EncodedRows:
        """Draw as many rows in proportion to their weights, by `seed`, without weights, for uses such as training.

        Rows without weights are returned unchanged.
        """
        if self.weights is None:
            return self
        drawn = self.take(self.in_proportion(self.rows, np.random.default_rng([seed, 2])))
        return replace(drawn, weights=None)

    def values(self, name: str) -> NDArray[np.float64]:
        """Array of the values of column `name` as numbers, one a row, NaN if missing or not applicable.

        For a categorical column, the numbers that its levels spell, as in the codes of a census; if some level spells
        none, its position among the levels, from 1.
        """
        column = self.schema.column(name)
        if isinstance(column, Numeric):
            return self.numbers[name]
        found: NDArray[np.float64] = level_values(column)[self.codes[name]]
        return found


def weighed(table: EncodedRows) -> dict[str, Any]:
    """Mapping of facts and a sentence on the weights of a table of real `EncodedRows`, for a page.

    The keys are `row_weight`, `effective_rows` and `weighted`; the mapping is empty if each row counts 1.
    """
    if table.weights is None:
        return {}
    weight = table.schema.row_weight
    return {"row_weight": weight.column, "effective_rows": round(table.effective), "weighted": WEIGHED % weight.column}


def level_values(column: Categorical) -> NDArray[np.float64]:
    """Array of a categorical column's numbers, one a level, by `EncodedRows.values`; NaN: missing, not applicable."""
    own = (column.not_applicable, MISSING)
    found = [None if level in own else number(level) for level in column.all_levels]
    if any(value is None and level not in own for value, level in zip(found, column.all_levels, strict=True)):
        found = [None if level in own else float(i) for i, level in enumerate(column.all_levels, start=1)]
    return np.array([np.nan if value is None else value for value in found])


def as_schema(schema: Schema | str | Path) -> Schema:
    """Return the schema itself, or read from its file if a path is given."""
    return schema if isinstance(schema, Schema) else Schema.load(schema)


def chosen(schema: Schema, columns: Sequence[str]) -> tuple[str, ...]:
    """Tuple of the names `columns` in the schema's order, each once; SchemaError for unknown ones."""
    return schema.restrict(columns).names
