"""The released tables as a reader wants them: each column's counts by group, and about how large each group is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.answers.tables import of_tables
from stratsynth.errors import StratsynthError
from stratsynth.strata import Stratum, StratumPath, label, within

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

EVERYBODY = ""
"""The label of the path to everybody."""


@dataclass(frozen=True, eq=False, slots=True)
class Measured:
    """A table of one group; several measurements of it are one, weighted by how little noise each has."""

    group: str
    clique: str
    """Its columns, joined by a comma."""
    values: NDArray[np.float64]
    """Its counts; none of a table of several columns: a page does not show them, and thousands of strata have many."""
    cells: int
    """How many counts it has."""
    sigma: float
    """Of the noise of a cell."""
    times: int


def measured(table: pa.Table) -> list[Measured]:
    """Every table of every group, in the order in which they were first measured."""
    import pyarrow as pa

    table = of_tables(table)
    cells = table.column("cell").to_numpy()
    starts = np.flatnonzero(cells == 0)
    first = table.take(pa.array(starts))
    sigmas = first.column("sigma").to_numpy()
    keys = list(zip(first.column("stratum").to_pylist(), first.column("clique").to_pylist(), strict=True))
    values = table.column("value").to_numpy()
    sums: dict[tuple[str, str], NDArray[np.float64]] = {}
    worth: dict[tuple[str, str], list[float]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for key, sigma, start, end in zip(keys, sigmas, starts, [*starts[1:], len(values)], strict=False):
        weight = 1 / max(float(sigma), 1e-12) ** 2
        worth.setdefault(key, []).append(weight)
        sizes[key] = int(end - start)
        if "," not in key[1]:
            sums[key] = sums.get(key, 0.0) + weight * values[start:end]
    none = np.zeros(0)
    return [
        Measured(*key, sums[key] / sum(of) if key in sums else none, sizes[key], 1 / math.sqrt(sum(of)), len(of))
        for key, of in worth.items()
    ]


def number_of_sums(measurements: pa.Table) -> int:
    """How many noisy sums were published."""
    import pyarrow.compute as pc

    if "sum" not in measurements.column_names:
        return 0
    sums = pc.not_equal(measurements.column("sum").cast("string"), "")
    return int(pc.sum(pc.and_(sums, pc.equal(measurements.column("cell"), 0))).as_py() or 0)


@dataclass(frozen=True)
class Size:
    """About how many records a group has, by all of its tables together."""

    group: str
    value: float
    sigma: float
    """Of this number."""
    cell: float
    """Of one count of a column's table."""


def sizes(tables: Sequence[Measured]) -> list[Size]:
    """Each group's size, by the sums of its columns' tables: independent noise, so the weighted mean is the best."""
    found, groups = [], dict[str, list[Measured]]()
    for table in tables:
        groups.setdefault(table.group, []).append(table)
    for group, own in groups.items():
        here = [t for t in own if "," not in t.clique and t.clique]
        if here:
            weights = np.array([1 / (t.cells * t.sigma**2) for t in here]).clip(max=1e24)
            sums = np.array([t.values.sum() for t in here])
            value = float(weights @ sums / weights.sum())
            found.append(Size(group, value, float(weights.sum() ** -0.5), float(np.median([t.sigma for t in here]))))
    return found


class Names:
    """What groups and cells are called: from the schema and the certificate, which are public."""

    def __init__(self, schema: Schema, certificate: Mapping[str, Any]) -> None:
        """The groups are those of the charges' paths."""
        self._schema = schema
        paths = {json_path(charge["path"]): None for charge in certificate["charges"]}
        self._paths: dict[str, StratumPath] = {}
        for steps in paths:
            path = named_path(tuple(Stratum.from_dict(dict(step)) for step in steps), certificate)
            self._paths[label(path)] = path
        self.order = [EVERYBODY, *(name for name in self._paths if name != EVERYBODY)]

    def group(self, name: str) -> str:
        """A group with its columns and what its levels mean."""
        if name == EVERYBODY:
            return "everybody"
        path = self._paths.get(name)
        return name if path is None else ", ".join(self._step(stratum) for stratum in path)

    def _step(self, stratum: Stratum) -> str:
        parts = []
        for (column, levels), called in zip(stratum.items, stratum.names, strict=True):
            meaning = self._meaning(column, levels[0]) if len(levels) == 1 else ""
            parts.append(f"{column} {called}{f' ({meaning})' if meaning else ''}")
        return ", ".join(parts)

    def cells(self, table: Measured) -> list[str]:
        """The names of the cells of a table of one column."""
        try:
            levels = within(self._schema, self._paths.get(table.group, ())).levels(table.clique)
        except StratsynthError:
            levels = ()
        if len(levels) != table.cells:
            return [f"cell {i}" for i in range(table.cells)]
        return [level + (f" {meaning}" if (meaning := self._meaning(table.clique, level)) else "") for level in levels]

    def _meaning(self, column: str, level: str) -> str:
        known = self._schema.columns.get(column)
        return "" if known is None else known.labels.get(level, "")


def json_path(steps: Sequence[Mapping[str, str]]) -> tuple[tuple[tuple[str, str], ...], ...]:
    """A charge's path as something to look up by."""
    return tuple(tuple(step.items()) for step in steps)


def _levels(levels: Mapping[str, Sequence[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((column, tuple(several)) for column, several in levels.items())


def named_path(path: StratumPath, certificate: Mapping[str, Any]) -> StratumPath:
    """A charge's path with its merges under their public names."""
    merged = {_levels(record["levels"]): record["stratum"] for record in certificate["strata"]["merged"]}
    return tuple(_named(stratum, merged) for stratum in path) if merged else path


def _named(stratum: Stratum, merged: Mapping[Any, str]) -> Stratum:
    """A merge under its public name."""
    name = merged.get(stratum.items)
    parts = () if name is None else tuple(name.split("|"))
    return replace(stratum, names=parts) if len(parts) == len(stratum.items) else stratum


def drawable(tables: Sequence[Measured], order: Sequence[str], cells: int) -> tuple[list[Measured], int]:
    """Tables of one column, group by group, of at most `cells` cells in all; and the number of tables left out."""
    oneways = [t for t in tables if t.clique and "," not in t.clique]
    place = {name: i for i, name in enumerate(order)}
    ordered = sorted(oneways, key=lambda t: place.get(t.group, len(place)))
    kept = list(_first(ordered, cells))
    return kept, len(ordered) - len(kept)


def _first(tables: Sequence[Measured], cells: int) -> Iterator[Measured]:
    for table in tables:
        cells -= table.cells
        if cells < 0:
            return
        yield table
