"""The rows that a command is given: a file, a table or a query of a database, or what [data] of a recipe says."""

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
"""How the name of a recipe ends."""


@dataclass(frozen=True)
class Given:
    """Rows, and what a recipe says beside where they are."""

    source: Source
    """Where they are; its representation shows no row."""
    engine: str = "auto"
    """What holds them, as for `open_table`."""
    schema: Path | None = None
    """The schema of the recipe; None where no recipe was given."""


def rows_of(place: Path, table: str | None = None, query: str | None = None) -> Given:
    """The rows at a path; they are there, and none is read.

    Args:
        place: A file, a folder of Parquet files, a DuckDB database, or a recipe, whose [data] names any of these, or a
            table of Spark.
        table: Of a database, the table whose rows are meant.
        query: Instead: one SELECT from one table.

    Raises:
        UsageError: Rows that are not there, or that are named twice.
    """
    if place.suffix.lower() != RECIPE:
        return Given(open_source(place, table, query))
    if table is not None or query is not None:
        raise UsageError(f"{place.name} is a recipe: name the table or the query in its section [data].")
    data = Recipe.read(place).data
    return Given(open_source(data.rows), data.engine, data.schema)
