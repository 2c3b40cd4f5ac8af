"""Rows given to a command: a file, a table or a query of a database, or a recipe's [data]."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.data.sources import open_source
from stratsynth.errors import UsageError
from stratsynth.recipes.recipe import Recipe

if TYPE_CHECKING:
    from stratsynth.data.sources import Source

RECIPE = ".toml"
"""Ending of a recipe's file name."""


@dataclass(frozen=True)
class RowsArgument:
    """Rows, with the engine and the schema of their recipe."""

    source: Source
    """Source of the rows; its representation shows none."""
    engine: str = "auto"
    """Engine that holds them, as for `open_table`."""
    schema: Path | None = None
    """Schema of the recipe; None without a recipe."""


def rows_of(place: Path, table: str | None = None, query: str | None = None) -> RowsArgument:
    """Return a `RowsArgument`: source of the rows at a path, engine and schema of a recipe there; no row is read.

    Args:
        place: A file, a folder of Parquet files, a DuckDB database, or a recipe, whose [data] names any of these, or a
            table of Spark.
        table: The table of a database whose rows are meant.
        query: Instead of `table`: one SELECT from one table.

    Raises:
        UsageError: Rows that do not exist, or that are named twice.
    """
    if place.suffix.lower() != RECIPE:
        return RowsArgument(open_source(place, table, query))
    if table is not None or query is not None:
        raise UsageError(f"{place.name} is a recipe: name the table or the query in its section [data].")
    data = Recipe.read(place).data
    return RowsArgument(open_source(data.rows), data.engine, data.schema)
