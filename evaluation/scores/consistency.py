"""INTERNAL. Rows of a release that break a rule, and levels that only one of the tables has, in every group."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.scores.declared import RowScore
from stratsynth.evaluation.tables import FEW, Array, By, EncodedRows, Pair, joined, share
from stratsynth.models.intervals import wilson
from stratsynth.schema import Rule, Schema

if TYPE_CHECKING:
    import pandas as pd

ANY = "(any)"
"""Value of `rule` in the row for rows that break any rule."""


def inconsistencies(
    real: Any, synthetic: Any, schema: Schema | str | Path, by: By = None, *, few: int = FEW
) -> pd.DataFrame:
    """Share of the release's rows that break each rule of the schema, and `(any)` of them, in each group; a frame.

    Args:
        real: The private table: a frame, an Arrow table or a path.
        synthetic: The release.
        schema: The schema of both, or its path.
        by: Columns whose crossing makes the groups; None for everybody alone.
        few: Groups with fewer rows in either table are `small`.

    Returns:
        For each `rule`, a row for each declared group and one for everybody. `real` is the same share of the real
        rows: a rule that real rows break is itself in doubt. `synthetic_rows` and `real_rows` are the numbers of rows
        that break it. A schema without rules has the row `(any)` alone.

    Raises:
        UsageError: A table or the schema cannot be read, or `by` names no column of it.
    """
    pair = Pair.of(real, synthetic, schema, by, few)
    return inconsistency_frame(pair)


def inconsistency_frame(pair: Pair) -> pd.DataFrame:
    """Frame of `inconsistencies`, for a pair of tables: for each rule, then `(any)`, a row a group, then everybody."""
    texts = [rule_text(rule) for rule in pair.schema.rules]
    broken, weighed = [], []  # tables x rules x scopes
    for side, table in enumerate(pair.tables):
        each = [_breaks(table, rule) for rule in pair.schema.rules]
        each.append(np.logical_or.reduce(each) if each else np.zeros(table.rows, bool))
        broken.append([pair.totals(side, rows) for rows in each])
        weighed.append([pair.totals(side, rows, weigh=True) for rows in each])
    there, made = np.array(broken)
    low, high = wilson(made, pair.counts[1])
    shares = [share(np.array(rows), n) for rows, n in zip(weighed, pair.masses, strict=True)]
    more = {"real": shares[0], "real_rows": there.astype(int), "synthetic_rows": made.astype(int)}
    return pair.frame(shares[1], low, high, items={"rule": [*texts, ANY]}, more=more)


def rule_text(rule: Rule) -> str:
    """Text of a Rule `rule` in one line, such as `AGEP 0 never MAR 1 or ESR 1`."""
    return f"{_conditions(rule.when, ' and ')} never {_conditions(rule.never, ' or ')}"


def _conditions(conditions: Mapping[str, Any], joined: str) -> str:
    """Text of a rule's `conditions`, {column: level or levels}, as `MAR 1, 2`, put together by the text `joined`.

    At most four levels are named.
    """
    texts = []
    for name, condition in conditions.items():
        levels = (condition,) if isinstance(condition, str) else condition
        shown = ", ".join(levels[:4]) + (f", ... ({len(levels)} levels)" if len(levels) > 4 else "")
        texts.append(f"{name} {shown}")
    return joined.join(texts)


def _breaks(table: EncodedRows, rule: Rule) -> Array:
    """Mask of the rows of `table`, EncodedRows: True where a row is in a box of levels that the Rule `rule` forbids."""
    broken = np.zeros(table.rows, bool)
    for box in rule.cells(table.schema):
        inside = np.ones(table.rows, bool)
        for name, codes in box.items():
            wanted = np.zeros(table.schema.size(name), bool)
            wanted[list(codes)] = True
            inside &= wanted[table.codes[name]]
        broken |= inside
    return broken


def levels_lost(
    real: Any, synthetic: Any, schema: Schema | str | Path, by: By = None, *, few: int = FEW
) -> pd.DataFrame:
    """Levels of each column that a group has in only one of the two tables, as a frame.

    Args:
        real: The private table: a frame, an Arrow table or a path.
        synthetic: The release.
        schema: The schema of both, or its path.
        by: Columns whose crossing makes the groups; None for everybody alone.
        few: Groups with fewer rows in either table are `small`.

    Returns:
        For each column and `kind`, a row for each declared group and one for everybody. "lost": levels that only
        real rows have, `value` the share of real rows that hold one. "invented": levels that only synthetic rows
        have, `value` the share of synthetic rows that hold one. `levels` is the number of these levels, `names`
        their names joined by `|`.

    Raises:
        UsageError: A table or the schema cannot be read, or `by` names no column of it.
    """
    pair = Pair.of(real, synthetic, schema, by, few)
    return level_frame(pair)


def level_frame(pair: Pair) -> pd.DataFrame:
    """Frame of `levels_lost`, for a pair: a row for each column, kind (lost, invented), group, then everybody."""
    parts = []
    known = pair.counts.min(axis=0) > 0
    for name in pair.variables(None):
        tables = [pair.tabulated(side, name) for side in (0, 1)]
        gone = [(tables[0] > 0) & (tables[1] == 0), (tables[1] > 0) & (tables[0] == 0)]
        held = np.array([(counts * only).sum(axis=1) for counts, only in zip(tables, gone, strict=True)])
        value = np.where(known, share(held, pair.masses), np.nan)
        low, high = wilson(held, pair.masses)
        levels = np.where(known, [only.sum(axis=1) for only in gone], 0)
        every = np.array(pair.schema.levels(name), object)
        names = np.array(["|".join(every[row]) for only in gone for row in only & known[:, None]], object)
        items = {"column": [name] * 2, "kind": ["lost", "invented"]}
        parts.append(pair.frame(value, low, high, items=items, more={"levels": levels, "names": names}))
    return joined(parts)


SCORE = RowScore(
    name="inconsistencies",
    of=inconsistency_frame,
    title="What cannot be",
    note="Rows that break a rule of the schema.",
    columns=(
        ("rule", "rule", "text"),
        ("synthetic_rows", "synthetic rows", "number"),
        ("real_rows", "real rows", "number"),
    ),
    caption="A rule that real rows break says more about the rule.",
    order="synthetic_rows",
)
