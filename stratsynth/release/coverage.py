"""Columns and pairs of columns that noisy tables cover: about the others a release says nothing of its people.

A set of columns is covered in a stratum if one table of that stratum has all of its columns but those that the stratum
holds constant, or if a table of everybody has all of them. It is covered if it is covered in every stratum. Everything
follows from the names of the tables that were measured, which are published.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from stratsynth.certificate import MeasuredStated
from stratsynth.models.base import Returns
from stratsynth.report.numbers import listed, several
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from stratsynth.mechanisms import Prepared

Columns = frozenset[str]
Table = tuple[StratumPath, Sequence[str]]
"""The stratum whose records a noisy table counts, and its columns."""
NAMED = 12
"""Largest number of columns that a sentence names."""


@dataclass(frozen=True)
class Coverage:
    """Columns and pairs of columns that a release measured."""

    names: tuple[str, ...]
    """All columns of the schema, in its order."""
    unmeasured: tuple[str, ...] = ()
    """Columns that no table has and that define no groups."""
    partly: tuple[str, ...] = ()
    """Columns that some strata measured and others did not."""
    pairs: int = 0
    """Number of pairs of columns that are covered in every stratum."""
    pairs_in_some: int = 0
    """Number of further pairs, which are covered in some strata only."""

    def stated(self) -> MeasuredStated:
        """Return this coverage as `MeasuredStated`, the certificate's section: numbers, and names of the uncovered."""
        return MeasuredStated(
            columns=len(self.names),
            unmeasured=self.unmeasured,
            partly=self.partly,
            pairs=self.pairs,
            pairs_in_some=self.pairs_in_some,
        )


def coverage(
    tables: Iterable[Table], names: Sequence[str], groups: Sequence[str] = (), strata: Iterable[StratumPath] = ()
) -> Coverage | None:
    """Return the `Coverage` by noisy tables; None without tables, where a mechanism asks for sums.

    Args:
        tables: The noisy tables: (path of its stratum, columns) of each.
        names: The columns of the schema.
        groups: The columns of the declared groups: their joint shares are declared or measured by themselves.
        strata: The paths of all strata, of which some may have no table.
    """
    by_path: dict[StratumPath, set[Columns]] = {path: set() for path in strata}
    for path, columns in tables:
        by_path.setdefault(path, set()).add(frozenset(columns))
    if not any(map(any, by_path.values())):
        return None
    wider = {path[:depth] for path in by_path for depth in range(len(path))}
    families: dict[Columns, list[frozenset[Columns]]] = {}
    for path in by_path:
        if path not in wider:
            family = frozenset(path[0].columns) if path else frozenset[str]()
            families.setdefault(family, []).append(_covered(path, by_path, frozenset(groups)))
    # strata of one family hold everybody: what all strata of any family cover is covered
    everywhere = frozenset[Columns]().union(*(reduce(frozenset.intersection, found) for found in families.values()))
    somewhere = frozenset[Columns]().union(*itertools.chain(*families.values()))
    alone = {column for columns in everywhere if len(columns) == 1 for column in columns}
    here = {column for columns in somewhere if len(columns) == 1 for column in columns}
    return Coverage(
        tuple(names),
        tuple(name for name in names if name not in here),
        tuple(name for name in names if name in here - alone),
        sum(len(columns) == 2 for columns in everywhere),
        sum(len(columns) == 2 for columns in somewhere - everywhere),
    )


def _covered(path: StratumPath, by_path: dict[StratumPath, set[Columns]], groups: Columns) -> frozenset[Columns]:
    """Return the set of single columns and pairs, each a frozenset, that are measured in the stratum of a path.

    `by_path` maps paths of strata to the sets of columns of their noisy tables; tables of strata above count too.
    `groups`, columns, are measured anyway.
    """
    constant = [{column for column, levels in stratum.items if len(levels) == 1} for stratum in path]
    tables = {
        columns.union(*constant[:depth]) for depth in range(len(path) + 1) for columns in by_path.get(path[:depth], ())
    }
    tables |= {groups} if groups else set()
    return frozenset(
        frozenset(part)
        for columns in tables
        for size in (1, 2)
        for part in itertools.combinations(sorted(columns), size)
    )


def covered(
    prepared: Prepared, tables: Iterable[Table], strata: Iterable[StratumPath] | None = None
) -> Coverage | None:
    """Return the `Coverage` by a fit's noisy tables; None for a mechanism that makes no rows, or without tables.

    Args:
        prepared: The fit.
        tables: The noisy tables: (path of its stratum, columns) of each.
        strata: The paths of strata; None for all of the fit.
    """
    if prepared.mechanism.returns is not Returns.ROWS:
        return None
    groups = () if prepared.drawn is None else prepared.drawn.by
    if strata is None:
        strata = () if prepared.strata is None else ((stratum,) for stratum in prepared.strata.strata)
    return coverage(tables, prepared.public.schema.names, groups, strata)


def source_of_unmeasured(prepared: Prepared) -> str:
    """Return words on the source of unmeasured columns' values: schema's levels, or the prepared fit's prior."""
    if prepared.prior is not None:
        return "the prior, or where it lacks them from the schema's levels alone,"
    return "the schema's levels alone"


def unmeasured_line(columns: Sequence[str], source: str) -> str:
    """Return the sentence on columns that no table has, whose values come from `source`; empty without columns."""
    if not columns:
        return ""
    one = len(columns) == 1
    return (
        f"NOT MEASURED: no noisy table has the column{'' if one else 's'} {_shown(columns)}. "
        f"{'Its' if one else 'Their'} values come from {source} and are no information about these people."
    )


def coverage_line(found: MeasuredStated | None, verb: str = "were") -> str:
    """Return the sentence on how many pairs of columns were measured together; empty where no table was measured.

    Args:
        found: `MeasuredStated`, the certificate's section or a plan's; None without tables.
        verb: "were", or of a plan "will be".
    """
    if found is None:  # a release of 0.3.0 or earlier, or one without noisy tables
        return ""
    every = found.columns * (found.columns - 1) // 2
    some = f", and {several(found.pairs_in_some, 'further pair')} in some groups only" if found.pairs_in_some else ""
    alone = f" No noisy table has {_shown(found.unmeasured)}." if found.unmeasured else ""
    partly = f" Measured in some groups only: {_shown(found.partly)}." if found.partly else ""
    together = (
        f"Of {several(every, 'pair')} of columns {found.pairs:,} {verb} measured together{some}." if every else ""
    )
    return f"{together}{alone}{partly}".strip()


def _shown(columns: Sequence[str]) -> str:
    """Return text: the first NAMED of `columns` as a list in words, then "N more columns" if there are more."""
    more = [several(len(columns) - NAMED, "more column")] if len(columns) > NAMED else []
    return listed([*columns[:NAMED], *more])
