"""Prediction tasks: a column, or one of folktables' two tasks if their columns exist.

The two tasks are after Ding et al. 2021 (folktables): ACSEmployment, "is employed at work", and ACSIncome, "earns more
than 50,000 dollars". Columns that a table has under another name or in coarser form are used as they are, and columns
that it lacks are left out, so figures of different tables are not comparable with each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stratsynth.checks import is_list, number, quoted_value
from stratsynth.errors import UsageError, nearest
from stratsynth.evaluation.tables import Array, EncodedRows, chosen
from stratsynth.schema import Categorical, Numeric, Schema

_SHARED = (("AGEP",), ("SCHL", "EDU"), ("MAR", "MSP"), ("RELP", "RELSHIPP"), ("SEX",), ("RAC1P",))
_FEATURES = {
    "employment": (
        *_SHARED,
        ("DIS",),
        ("ESP",),
        ("CIT",),
        ("MIG",),
        ("MIL",),
        ("ANC",),
        ("NATIVITY",),
        ("DEAR",),
        ("DEYE",),
        ("DREM",),
    ),
    "income": (*_SHARED, ("COW",), ("OCCP", "OCC", "INDP_CAT"), ("POBP",), ("WKHP",)),
}
BUILT_IN = tuple(_FEATURES)


@dataclass(frozen=True)
class Task:
    """Column to predict from others, in a population."""

    target: str
    """Column to predict."""
    features: tuple[str, ...]
    """Columns to predict it from."""
    positive: tuple[str, ...] | None = None
    """Levels that count as 1; None for a number."""
    above: float | None = None
    """Number above which the target counts as 1; with neither, the number itself is predicted."""
    where: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Population: rows in which these columns are above these numbers."""

    @property
    def regression(self) -> bool:
        """True if a number is predicted, False for one of two classes."""
        return self.positive is None and self.above is None

    @property
    def meaning(self) -> str:
        """Description for readers, as `ESR is 1, of rows with AGEP above 16`."""
        what = self.target
        if self.positive is not None:
            what += f" is {' or '.join(self.positive)}"
        elif self.above is not None:
            what += f" above {self.above:g}"
        kept = " and ".join(f"{name} above {least:g}" for name, least in self.where.items())
        return f"{what}, of rows with {kept}" if kept else what

    @property
    def reads(self) -> tuple[str, ...]:
        """Tuple of the columns that define the target and the task's population, each once."""
        return tuple(dict.fromkeys((self.target, *self.where)))

    def kept(self, table: EncodedRows) -> Array:
        """Mask of a `table`'s encoded rows in this task's population; of a numeric target, with a number."""
        kept = np.ones(table.rows, bool)
        for name, least in self.where.items():
            kept &= table.values(name) > least
        if self.positive is None:
            kept &= ~np.isnan(table.values(self.target))
        return kept

    def rows(self, table: EncodedRows) -> EncodedRows:
        """Return those of `table`, EncodedRows, in this task's population that, for a numeric target, have a number."""
        return table.take(self.kept(table))

    def truth(self, table: EncodedRows) -> Array:
        """Array of this task's target, a value for each of a `table`'s encoded rows: truth values or numbers."""
        if self.positive is not None:
            codes = [table.schema.index(self.target, level) for level in self.positive]
            return np.isin(table.codes[self.target], codes)
        values = table.values(self.target)
        return values if self.above is None else values > self.above


def task(
    schema: Schema,
    target: str | Task,
    *,
    positive: str | Sequence[str] | None = None,
    above: float | None = None,
    features: Sequence[str] | None = None,
) -> Task:
    """Task, by `schema`, of predicting column `target` by `features`, or "employment", "income"; a `Task` is checked.

    A categorical column needs the levels that count as `positive`; of two levels the last counts when none is named. A
    numeric column is predicted as a number, or with `above` as whether it is above one.
    """
    if isinstance(target, Task):
        schema.column(target.target)
        chosen(schema, (*target.features, *target.where))
        return target
    if not isinstance(target, str):
        raise UsageError(f"evaluation: target must be the name of a column or task, not {quoted_value(target)}.")
    if positive is not None and not isinstance(positive, str) and not is_list(positive):
        raise UsageError(f"evaluation: positive must be a level or a list of levels, not {quoted_value(positive)}.")
    number("evaluation: above", above, optional=True)
    if target not in schema.columns and target in BUILT_IN:
        return _built_in(schema, target, features)
    if target not in schema.columns:
        known = (*schema.names, *BUILT_IN)
        raise UsageError(f"evaluation: there is no column or task {target!r} to predict{nearest(target, known)}.")
    inputs = tuple(n for n in schema.names if n != target) if features is None else chosen(schema, features)
    if target in inputs or not inputs:
        raise UsageError("evaluation: predict a column from others: name them with features.")
    column = schema.column(target)
    if isinstance(column, Numeric):
        if positive is not None:
            raise UsageError(f"evaluation: {target} is a number; say with `above` what counts as positive.")
        return Task(target, inputs, above=above)
    if above is not None:
        raise UsageError(f"evaluation: {target} has levels; say with `positive` which count as positive.")
    levels = (positive,) if isinstance(positive, str) else tuple(positive or _last_of_two(target, column))
    for level in levels:
        schema.index(target, level)
    return Task(target, inputs, positive=levels)


def _last_of_two(name: str, column: Categorical) -> tuple[str, ...]:
    """Tuple of the last level of a categorical column of two, called `name`; UsageError for another number of them."""
    if column.size != 2:
        raise UsageError(f"evaluation: {name} has {column.size} levels; say with `positive` which count as positive.")
    return column.all_levels[-1:]


def _built_in(schema: Schema, name: str, features: Sequence[str] | None) -> Task:
    """Built-in Task "employment" or "income", `name`, from the columns of it that the schema has, or `features`.

    UsageError if the schema lacks its target.
    """
    there: list[str] = [c for names in _FEATURES[name] for c in names if c in schema.columns]
    settings: dict[str, Any] = {}
    if name == "employment" and "ESR" in schema.columns:
        settings = {"target": "ESR", "positive": ("1",)}
    elif name == "income" and isinstance(schema.columns.get("PINCP"), Numeric):
        settings = {"target": "PINCP", "above": 50_000.0}
    elif name == "income" and "PINCP_DECILE" in schema.columns:
        # NIST's excerpt has the decile of an income within its area: the upper half of people with income
        settings = {"target": "PINCP_DECILE", "positive": ("5", "6", "7", "8", "9")}
    if not settings:
        column = "ESR" if name == "employment" else "PINCP or PINCP_DECILE"
        raise UsageError(f"evaluation: the task {name!r} predicts {column}, which is not in the schema.")
    least = {"AGEP": 16.0, "PINCP": 100.0, "WKHP": 0.0} if name == "income" else {}
    where = {column: value for column, value in least.items() if column in schema.columns}
    inputs = tuple(there) if features is None else chosen(schema, features)
    if settings["target"] in inputs or not inputs:
        raise UsageError("evaluation: predict a column from others: name them with features.")
    return Task(features=inputs, where=where, **settings)
