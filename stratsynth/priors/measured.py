"""Noisy tables of an earlier release as a prior: published tables, each with its own noise as standard error.

Only tables of all records are used, as far as the schema has their columns and levels; tables of strata are not. The
guarantee of the release covers them, as it covers its rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.mechanisms.known import Known
from stratsynth.release.measurements import FILE, read_measurements
from stratsynth.schema import Schema

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from stratsynth.certificate import Certificate
    from stratsynth.priors.mapping import Rules

SCHEMA = "model/schema.toml"
FILES = (FILE, SCHEMA)
"""Files of a release folder that are read beside its rows."""
MOST_TABLES = 1_000
"""Largest number of tables used, in the order in which they were measured."""


def measured_tables(folder: Path, certificate: Certificate, rules: Rules, schema: Schema) -> tuple[Known, ...]:
    """Return a tuple of `Known`, noisy tables in a release `folder` as shares in the levels of a schema.

    `rules` rename and recode; tables that do not fit are left out. The caller has checked that `FILES` match the hashes
    in the certificate.
    """
    if certificate.code_lists:  # they were counted in groups of codes, which the stored schema does not name
        return ()
    old = Schema.load(folder / SCHEMA)
    tables = list(_tables(folder, old))[:MOST_TABLES]
    if not tables:
        return ()
    # total by inverse variance: a table's sum of m cells has variance m sigma^2
    precision = np.array([1 / (values.size * sigma**2) for _, values, sigma in tables])
    total = float(precision @ np.array([values.sum() for _, values, _ in tables]) / precision.sum())
    if not total > 1:  # an empty release, given its noise
        return ()
    places = {name: _places(name, old, rules, schema) for name in schema.names if name not in rules.without}
    found = (_known(clique, values / total, sigma / total, places, rules, schema) for clique, values, sigma in tables)
    return tuple(known for known in found if known is not None)


def _tables(folder: Path, old: Schema) -> list[tuple[tuple[str, ...], NDArray[np.float64], float]]:
    """Return a list of (columns, noisy counts, noise's deviation), one a table of all records in a release `folder`.

    `old` is its schema; counts have an axis a column.
    """
    frame = read_measurements(folder).to_pandas()
    frame = frame[frame["stratum"].astype(str) == ""]
    if "sum" in frame:
        frame = frame[frame["sum"].astype(str) == ""]
    found = []
    for (_, named), lines in frame.groupby(["question", "clique"], sort=True, observed=True):
        clique = tuple(str(named).split(","))
        if not set(clique) <= set(old.names):
            continue
        cells, sigma = lines["cell"].to_numpy(), float(lines["sigma"].iloc[0])
        whole = np.array_equal(np.sort(cells), np.arange(old.cells(clique)))
        if whole and 0 < sigma < math.inf:
            values = lines["value"].to_numpy(np.float64)[np.argsort(cells)]
            found.append((clique, values.reshape(old.shape(clique)), sigma))
    return found


def _places(name: str, old: Schema, rules: Rules, schema: Schema) -> NDArray[np.intp] | None:
    """Return an array: for each level of column `name` in schema `old`, its number in `schema`, by `rules`.

    None unless the column is there and all levels are covered.
    """
    theirs = rules.rename.get(name, name)
    if theirs not in old.names:
        return None
    levels, recode = schema.levels(name), rules.recode.get(name, {})
    named = [recode.get(level, level) for level in old.levels(theirs)]
    if set(named) != set(levels):
        return None
    number = {level: i for i, level in enumerate(levels)}
    return np.array([number[level] for level in named], dtype=np.intp)


def _known(
    clique: Sequence[str],
    shares: NDArray[np.float64],
    error: float,
    places: Mapping[str, NDArray[np.intp] | None],
    rules: Rules,
    schema: Schema,
) -> Known | None:
    """Return a `Known`: `shares` over the columns `clique` in the levels of a schema; columns it lacks summed out.

    `error` is a share's standard error, `places` the new number of each old level by column of the schema, `rules`
    rename. None if no column of the clique is left in the schema.
    """
    ours = {rules.rename.get(name, name): name for name, place in places.items() if place is not None}
    left = [name for name in clique if name in ours]
    if not left:
        return None
    cells = shares.size
    shares = shares.sum(axis=tuple(axis for axis, name in enumerate(clique) if name not in ours))
    for axis, name in enumerate(left):
        place = places[ours[name]]
        assert place is not None  # noqa: S101 - `ours` has no others
        moved = np.zeros((schema.size(ours[name]), *np.delete(shares.shape, axis)))
        np.add.at(moved, place, np.moveaxis(shares, axis, 0))
        shares = np.moveaxis(moved, 0, axis)
    names = [ours[name] for name in left]
    order = sorted(names, key=schema.names.index)
    shares = np.transpose(shares, [names.index(name) for name in order])
    # a cell that sums r cells has the standard error sqrt(r) times that of one
    return Known(tuple(order), shares, error=error * math.sqrt(cells / shares.size), of_rows=True)
