"""INTERNAL. Two linked tables as the command `evaluate` names them: a recipe, two files, a release, a drawn folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.data.sources import open_source
from stratsynth.errors import UsageError
from stratsynth.recipes.recipe import Recipe
from stratsynth.recipes.rows_argument import RECIPE
from stratsynth.schema.linked import LinkedSchema

if TYPE_CHECKING:
    import pyarrow as pa

Pair = tuple["pa.Table", "pa.Table"]


def private_pair(real: Path, child: Path | None, schema: Path | None) -> tuple[Path, Path, LinkedSchema] | None:
    """Return (parents' file, children's file, LinkedSchema) of linked tables; None if `real` names one table.

    Args:
        real: A recipe of linked tables, or the parents' file.
        child: The children's file, None where a recipe names it.
        schema: The schema file; None for that of the recipe.

    Raises:
        UsageError: One of the three is missing, or the schema is of one table.
    """
    if real.suffix.lower() == RECIPE:
        data = Recipe.read(real).data
        if data.parent is None or data.child is None:
            if child is not None:
                raise UsageError(f"evaluate: {real.name} is a recipe of one table; leave --child out.")
            return None
        if child is not None:
            raise UsageError(f"evaluate: {real.name} names the child's file; leave --child out.")
        return Path(data.parent), Path(data.child), LinkedSchema.load(schema or data.schema)
    if child is None:
        return None
    if schema is None:
        raise UsageError("evaluate: name the schema of both linked tables with --schema.")
    return real, child, LinkedSchema.load(schema)


def released_pair(place: Path, linked: LinkedSchema) -> Pair:
    """Return two Arrow tables of a `LinkedSchema` in the folder `place`, a release's or drawn; UsageError without."""
    found = []
    for name in linked.names:
        files = [place / f"{name}{ending}" for ending in (".parquet", ".csv")]
        file = next((each for each in files if each.is_file()), None)
        if file is None:
            raise UsageError(
                f"evaluate: {place} has no {name}.parquet: name a release of linked tables, or a folder that `sample` "
                "has written."
            )
        found.append(open_source(file).all_columns())
    return found[0], found[1]


def read_pair(parents: Path, children: Path) -> Pair:
    """Return two Arrow tables, of the files `parents` and `children`."""
    return open_source(parents).all_columns(), open_source(children).all_columns()
