"""Query of an analyst to a release: columns, a condition, groups, and a statistic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stratsynth.checks import is_list, number, one_of, quoted_value
from stratsynth.errors import Unsupported, UsageError
from stratsynth.schema import Numeric
from stratsynth.schema.where import levels_of

if TYPE_CHECKING:
    from stratsynth.schema import Schema
    from stratsynth.schema.where import Conditions, Value

STATISTICS = ("count", "share", "mean", "quantile", "rate")
MOST_CELLS = 2**17
"""Largest number of results of one query."""


@dataclass(frozen=True)
class Query:
    """One query to a release."""

    columns: Sequence[str] = ()
    """Columns whose cells are counted; all rows are one cell if empty. For a mean or quantile, one numeric column."""
    where: Conditions = field(default_factory=dict)
    """Condition on rows: column -> a level, a label, a number or a range, or several (`stratsynth.schema.where`)."""
    by: Sequence[str] = ()
    """Columns whose levels form groups; each group gets results of its own."""
    statistic: str = "count"
    """One of `count` of rows; `share` of all rows that meet `where`; `rate`, the share among rows of the same group;
    `mean` and `quantile` of a numeric column, known by its bins, or a mean by measured sums."""
    level: float = 0.95
    """Probability with which each interval holds, in (0, 1)."""
    quantile: float | None = None
    """Order of a quantile, in (0, 1); the median, 0.5, if None. Other statistics have none."""
    versus: Mapping[str, Value] = field(default_factory=dict)
    """Column of `by` or `columns` -> reference level: results are differences from the cell with these levels."""

    def __post_init__(self) -> None:
        """Raise UsageError for unknown statistics, level or quantile not in (0, 1), malformed columns or conditions.

        Refused are also a column in both `columns` and `by`, the order of a quantile where none is asked for, and
        differences of quantiles. Lists become tuples.
        """
        for key in ("columns", "by"):
            object.__setattr__(self, key, _names(key, getattr(self, key)))
        for key in ("where", "versus"):
            given = getattr(self, key)
            if given is not None and not isinstance(given, Mapping):
                raise UsageError(f"query: {key} is a table from columns to levels, not {quoted_value(given)}.")
            object.__setattr__(self, key, {} if given is None else dict(given))
        one_of("query: the statistic", self.statistic, STATISTICS)
        number("query: the level", self.level, above=0, below=1, hint="; 0.95 is usual")
        number("query: the quantile", self.quantile, above=0, below=1, optional=True, hint="; 0.5 is the median")
        if self.quantile is not None and self.statistic != "quantile":
            raise UsageError(
                f"query: {self.quantile:g} is the order of a quantile, and a {self.statistic} is asked for; "
                'take the statistic "quantile", or leave it out.'
            )
        twice = [name for name in self.columns if name in self.by]
        if twice:
            raise UsageError(f"query: {twice[0]} is among both columns and by; name it once.")
        if self.statistic == "quantile" and self.versus:
            raise Unsupported("query: differences of quantiles have no interval yet; ask for both quantiles.")

    @property
    def order(self) -> float:
        """Order of the quantile, a number in (0, 1)."""
        return 0.5 if self.quantile is None else self.quantile

    @property
    def cells(self) -> tuple[str, ...]:
        """Tuple of columns that identify a result: those of `by`, then, unless a number is asked for, `columns`."""
        return (*self.by, *(() if self.numeric else self.columns))

    @property
    def numeric(self) -> bool:
        """True if the statistic is a mean or a quantile."""
        return self.statistic in {"mean", "quantile"}

    def check(self, schema: Schema) -> None:
        """Refuse this query (UsageError) for columns and levels that the schema lacks, or if it makes no sense.

        Such are more than `MOST_CELLS` results; `versus` of several levels, or of columns that are no result's; and a
        mean or quantile of more than one column, or of one without numbers.
        """
        for name in (*self.columns, *self.by, *self.where, *self.versus):
            schema.column(name)
        for name, levels in self.where.items():
            codes(schema, name, levels)
        for name, level in self.versus.items():
            if is_list(level) or len(codes(schema, name, level)) != 1:
                raise UsageError(f"query: versus has one level of {name} to compare with, not several.")
        lacking = [name for name in self.versus if name not in self.cells]
        if lacking:
            raise UsageError(f"query: versus names {lacking[0]}, which is not among the columns that results are of.")
        if self.numeric:
            if len(self.columns) != 1:
                raise UsageError(f"query: a {self.statistic} is of one column; name one, and others in `by`.")
            if not isinstance(schema.column(self.columns[0]), Numeric):
                raise UsageError(f"query: {self.columns[0]} is not numeric, and has no {self.statistic}.")
        if schema.cells(self.cells) > MOST_CELLS:
            raise Unsupported(f"query: {schema.cells(self.cells):,} results are more than {MOST_CELLS:,}.")

    @property
    def kind(self) -> tuple[object, ...]:
        """Tuple, a key of queries that differ only in the levels of their conditions; these are answered together."""
        settings = (self.statistic, self.level, self.order if self.statistic == "quantile" else None)
        return (*settings, self.columns, self.by, tuple(sorted(self.where)), tuple(sorted(self.versus.items())))


def _names(key: str, given: object) -> tuple[str, ...]:
    """Return a tuple of distinct column names from `given`: one text, several, or None for ().

    UsageError, by `key`, else.
    """
    names: Any = (given,) if isinstance(given, str) else () if given is None else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"query: {key} is a list of columns, such as ['SEX', 'MAR'], not {quoted_value(given)}.")
    for name in names:
        if list(names).count(name) > 1:
            raise UsageError(f"query: {key} names {name} twice.")
    return tuple(names)


def codes(schema: Schema, name: str, condition: object) -> list[int]:
    """Return a list of codes: the levels of the schema's column `name` that a `condition` names.

    SchemaError or UsageError as by `levels_of`.
    """
    try:
        return [schema.index(name, level) for level in levels_of(schema, name, condition)]
    except UsageError as error:
        raise type(error)(f"query: {error}") from None
