"""The strata of some columns: the full crossing of their levels, some of them merged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from stratsynth.errors import Unsupported, UsageError
from stratsynth.schema import Schema
from stratsynth.strata.strata import Stratum

MOST_STRATA = 100_000
"""Largest number of strata: each is a program and a model of its own."""


def crossing(
    schema: Schema, by: Sequence[str], groups: Mapping[str, Mapping[str, Sequence[str]]] | None = None
) -> tuple[Stratum, ...]:
    """Return a tuple of all strata of the columns `by`: their declared levels crossed, in the schema's order of levels.

    `groups` are merges, {column: {name: levels}}, at their first level's place. UsageError for too many strata.
    """
    check_by(by)
    levels = [schema.levels(column) for column in by]
    if math.prod(map(len, levels)) > MOST_STRATA:
        raise Unsupported(f"strata: {' x '.join(by)} has more than {MOST_STRATA:,} groups; use fewer columns or bins.")
    barred = [level for column in levels for level in column if "|" in level]
    if barred:
        raise UsageError(f"strata: the level {barred[0]!r} holds a |, which joins levels in released files.")
    parts = [_parts(schema.levels(column), (groups or {}).get(column, {})) for column in by]
    return tuple(
        Stratum(tuple(zip(by, (levels for _, levels in one), strict=True)), tuple(name for name, _ in one))
        for one in itertools.product(*parts)
    )


def check_by(by: Sequence[str]) -> None:
    """Raise UsageError for an empty list `by` of column names, one named twice, and items that are no text."""
    if not by:
        raise UsageError("strata: name at least one column to stratify by.")
    if not all(isinstance(column, str) for column in by):
        raise UsageError("strata: `by` is a list of column names.")
    if len(set(by)) < len(by):
        raise UsageError("strata: a column is named twice in `by`.")


def _parts(levels: Sequence[str], groups: Mapping[str, Sequence[str]]) -> list[tuple[str, tuple[str, ...]]]:
    """Return a list of (name, tuple of levels) in order: merges of `groups`, {name: levels}; each other of `levels`."""
    merges = {name: tuple(level for level in levels if level in merged) for name, merged in groups.items()}
    home = {level: (name, merged) for name, merged in merges.items() for level in merged}
    return list(dict.fromkeys(home.get(level, (level, (level,))) for level in levels))
