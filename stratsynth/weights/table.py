"""Tables of shares or counts, in files and frames, matched to strata; and shares from published ones.

A line names a level of each of the strata's columns, or a merge by its name, and gives its `share` or its
`count`; `low` and `high`, beside it or instead of it, are bounds of the figure, and `standard_error`, beside it, is the
figure's own sampling error. `share_1` to `share_80`, or `count_1` to `count_80`, are the figure by each replicate
weight of the survey that it was counted in.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from stratsynth.checks import check_integer
from stratsynth.digest import digest
from stratsynth.errors import WeightsError, nearest
from stratsynth.files.outside import level, records
from stratsynth.inputs import check_citation
from stratsynth.schema import Schema
from stratsynth.schema.typed import figure
from stratsynth.strata import Cell, Stratum
from stratsynth.weights.design import BY_ERRORS, BY_REPLICATES, REPLICATES, standard_errors
from stratsynth.weights.source import CITATION, PATH, Basis, Key, Range, Resolved, ShareSource, is_text

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.weights.sources import Place, Weights


TOLERANCE = 1e-3
"""Largest distance of the shares' sum from 1, as in rounded tables; they are then scaled to 1, and pages state it."""

Tabular: TypeAlias = "pd.DataFrame | str | PathLike[str]"
ERROR = "standard_error"
"""Column of the sampling error of a share or count, as `census shares` writes it where a file has replicate weights."""
FIGURES = ("share", "count", "low", "high", ERROR)
RENAME = (
    "A column of the strata that has one of these names, or low or high, is taken for a figure: rename it in the data "
    "and the schema."
)
REPLICATE = {name: tuple(f"{name}_{i}" for i in range(1, REPLICATES + 1)) for name in ("share", "count")}
"""Columns of the figures by each replicate weight, as `census shares` and `weights shares` write them."""
REPLICATED = frozenset(itertools.chain(*REPLICATE.values()))
LARGEST = 1e15
"""Largest count of a table: sums of larger figures would not be exact."""


@dataclass(frozen=True)
class Row:
    """One line of a table: levels and figures."""

    items: tuple[tuple[str, str], ...]
    """Pairs of column and level, or name of a merge."""
    value: float | None
    """Share or count; None if only bounds are given."""
    low: float | None = None
    high: float | None = None
    error: float | None = field(default=None, metadata={"digest": False})
    """Standard error of the figure; None if it is not given."""
    replicates: tuple[float, ...] = field(default=(), repr=False, metadata={"digest": False})
    """The figure by each replicate weight; empty if these are not given."""


@dataclass(frozen=True)
class ShareTable(Basis):
    """A table of shares or counts, as given."""

    rows: tuple[Row, ...]
    counted: bool = False
    """True if the figures are counts, which need not add up to 1."""
    origins: tuple[Any, ...] = field(default=(), compare=False, repr=False, metadata={"digest": False})
    """The file or frame that it was read from, compared with the private table; no part of the figures."""
    records: int | None = field(default=None, metadata={"digest": False})
    """Number of records in which the figures were counted, if stated; no part of the figures either."""

    @property
    def design(self) -> str:
        """Method by which the table states its own survey's error, for certificates; empty if it does not."""
        first = self.rows[0]
        return BY_REPLICATES if first.replicates else "" if first.error is None else BY_ERRORS

    @classmethod
    def read(cls, table: Tabular, counted_in: int | None = None) -> ShareTable:
        """Return the `ShareTable` of a CSV file or frame `table`: columns of groups, with shares, counts or bounds.

        `counted_in` is the number of records they were counted in, None if unknown. WeightsError for other figures.
        """
        lines = records("weights", table, WeightsError)
        figures = _figures(lines[0])
        rows = tuple(_row(line, i, figures) for i, line in enumerate(lines, start=2))
        return cls(rows, counted="count" in lines[0], origins=(table,), records=counted_in)

    def columns(self, by: Sequence[str]) -> tuple[str, ...]:
        """Return a tuple of those names in `by` that are columns of this table's first line.

        `resolve` checks the others.
        """
        have = [column for column, _ in self.rows[0].items]
        return tuple(column for column in by if column in have)

    def resolve(self, strata: Sequence[Stratum], schema: Schema | None) -> Resolved:
        """Return the `Resolved` shares of `strata`, a full crossing, sum 1; the schema is not needed.

        WeightsError if the table misses one, names an unknown one, or its shares do not sum to 1.
        """
        found = match(((row.items, row) for row in self.rows), strata, "weights", "share")
        sums = {s: math.fsum(row.value or 0.0 for row in rows) for s, rows in found.items()}
        bounded = self.rows[0].low is not None
        lows = {s: math.fsum(row.low or 0.0 for row in rows) for s, rows in found.items()}
        highs = {s: math.fsum(row.high or 0.0 for row in rows) for s, rows in found.items()}
        if self.rows[0].value is None:
            return Resolved(_between(lows, highs), ranges=_ranges(lows, highs, 1.0), counted_in=self.records)
        total = math.fsum(sums.values())
        if self.counted:
            if not total > 0:
                raise WeightsError("weights: the counts are all 0.")
        elif round(abs(total - 1), 9) > TOLERANCE:  # 1.001 as a float is off by more than that
            raise WeightsError(f"weights: the shares add up to {total:.6g}, not 1 (at most {TOLERANCE:g} off).")
        shares = {s: value / total for s, value in sums.items()}
        errors = {s: math.hypot(*(row.error or 0.0 for row in rows)) / total for s, rows in found.items()}
        replicates = _replicates(found.values()) if self.rows[0].replicates else None
        if replicates is not None and self.rows[0].error is None:
            errors = dict(zip(shares, standard_errors(replicates, [*shares.values()]).tolist(), strict=True))
        return Resolved(
            shares,
            1.0 if self.counted else total,
            _ranges(lows, highs, total) if bounded else None,
            errors=errors if self.design else None,
            replicates=replicates,
            counted_in=self.records,
        )


def match(
    lines: Iterable[tuple[Sequence[tuple[str, str]], Any]],
    strata: Sequence[Stratum],
    what: str,
    figure: str,
    *,
    whole: bool = True,
) -> dict[Stratum, list[Any]]:
    """Return a mapping from each of `strata` to the list of figures in its lines.

    `lines` are pairs (group, a sequence of (column, level) pairs; its figure, called `figure` in messages, which open
    with `what`). WeightsError for unknown groups, a cell in two lines, and if `whole` a stratum without a line.
    """
    columns = strata[0].columns
    taken = [column for column in columns if (is_figure(column) if figure == "share" else column == figure)]
    if taken:
        raise WeightsError(
            f"{what}: the column {taken[0]} of the strata has the name of a figure of the table; rename it in the data "
            "and the schema."
        )
    order = sorted(columns)
    home = {cell: s for s in strata for cell in s.cells()}
    known: dict[str, dict[str, tuple[str, ...]]] = {column: {} for column in columns}
    for stratum in strata:
        for (column, levels), name in zip(stratum.items, stratum.names, strict=True):
            known[column].update({level: (level,) for level in levels})
            known[column].setdefault(name, levels)
    found: dict[Stratum, list[Any]] = {s: [] for s in strata}
    seen: set[Cell] = set()
    for items, line in lines:
        if sorted(column for column, _ in items) != order:
            have = ",".join(column for column, _ in items)
            raise WeightsError(f"{what}: the {figure}s are by {have}, the strata by {','.join(columns)}.")
        # A line may name levels or merges: it stands for the product of their levels.
        said = dict(items)
        several = [known[column].get(said[column], ()) for column in order]
        cells = list(itertools.product(*several))
        if not cells:
            raise WeightsError(f"{what}: {called(items)} is not a stratum of the schema.")
        if not seen.isdisjoint(cells):
            raise WeightsError(f"{what}: {called(items)} has two {figure}s.")
        seen.update(cells)
        found[home[cells[0]]].append(line)
    missing = [cell for cell in home if cell not in seen]
    if missing and whole:
        first = dict(zip(order, missing[0], strict=True))
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise WeightsError(
            f"{what}: no {figure} for {called([(c, first[c]) for c in columns])}{more}; "
            "give 0 for a group that cannot occur."
        )
    return found


def called(items: Sequence[tuple[str, str]]) -> str:
    """Return text: a group's name for messages, such as `SEX=1 RAC1P=2`, from `items`, (column, level) pairs."""
    return " ".join(f"{column}={level}" for column, level in items).translate({10: " ", 13: " "})


def is_figure(column: str) -> bool:
    """True if `column`, the name of a table's column, is one of figures, and not of levels of groups."""
    return column in FIGURES or column in REPLICATED


def is_replicate(column: str) -> bool:
    """True if `column`, the name of a table's column, is one of figures by one replicate weight."""
    return column in REPLICATED


def figure_of(value: Any, line: int, what: str) -> float:
    """Return the `value` of a table's line as a number.

    WeightsError, with `what` and `line`, unless it is from 0 to LARGEST.
    """
    number = figure(value)
    if not 0 <= number <= LARGEST:
        raise WeightsError(f"{what} in line {line} is not a number from 0 to {LARGEST:g}.")
    return number


def _between(lows: Mapping[Stratum, float], highs: Mapping[Stratum, float]) -> dict[Stratum, float]:
    """Return {stratum: share}, sum 1, all at one fraction of the way from `lows` to `highs`, shares by stratum.

    WeightsError if these do not allow a sum of 1.
    """
    low, high = math.fsum(lows.values()), math.fsum(highs.values())
    if not low <= 1 + TOLERANCE or not high >= 1 - TOLERANCE:
        raise WeightsError(f"weights: shares between `low` and `high` add up to {low:.6g} to {high:.6g}, never to 1.")
    part = min(1.0, max(0.0, (1 - low) / (high - low))) if high > low else 0.0
    shares = {s: lows[s] + part * (highs[s] - lows[s]) for s in lows}
    total = math.fsum(shares.values())
    return {s: share / total for s, share in shares.items()}


def _ranges(lows: Mapping[Stratum, float], highs: Mapping[Stratum, float], total: float) -> dict[Stratum, Range]:
    return {s: (lows[s] / total, min(1.0, highs[s] / total)) for s in lows}


def _replicates(groups: Iterable[Sequence[Row]]) -> NDArray[np.float64]:
    """Return an array (groups, replicates) of shares by each replicate weight, whose columns add up to 1.

    `groups` has the rows of the table, one or more, of each group. WeightsError for sums not above 0.
    """
    import numpy as np

    sums = np.array([np.sum([row.replicates for row in rows], axis=0) for rows in groups])
    total = sums.sum(axis=0)
    if not (total > 0).all():
        raise WeightsError("weights: the figures by some replicate weight do not add up to more than 0.")
    found: NDArray[np.float64] = sums / total
    return found


def _figures(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a tuple of the names of figures in `record`, a table's first line: `share` or `count`, or bounds.

    Bounds, `low` and `high`, may be beside them. WeightsError for other combinations.
    """
    have = tuple(name for name in FIGURES if name in record and name != ERROR)
    if ERROR in record and not {"share", "count"}.intersection(have):
        raise WeightsError(f"weights: {ERROR} goes beside `share` or `count`. {RENAME}")
    for name, columns in REPLICATE.items():
        there = [column for column in columns if column in record]
        if there and (name not in have or len(there) < REPLICATES):
            raise WeightsError(
                f"weights: {there[0]} is a figure by a replicate weight: all of {columns[0]} to {columns[-1]} go "
                f"beside `{name}`. {RENAME}"
            )
    if have in {("share",), ("count",), ("low", "high"), ("share", "low", "high"), ("count", "low", "high")}:
        return have
    if "share" in have and "count" in have:
        raise WeightsError(f"weights: give `share` or `count`, not both. {RENAME}")
    if "low" in have or "high" in have:
        raise WeightsError(f"weights: bounds are two columns, `low` and `high`. {RENAME}")
    hint = nearest("share", [str(k) for k in record])
    raise WeightsError(f"weights: there is no column `share`{hint}.")


def _row(record: Mapping[str, Any], line: int, figures: Sequence[str]) -> Row:
    """Return the `Row` of `record`, a table's line by column; WeightsError, with the number `line`, for bad figures.

    `figures` are the names of its columns of figures.
    """
    number = {name: figure_of(record[name], line, f"weights: the {name}") for name in figures}
    value = number.get("share", number.get("count"))
    low, high = number.get("low"), number.get("high")
    if low is not None and high is not None:
        middle = value if value is not None else low
        if not low <= middle <= high or (high > 1 and "count" not in figures):
            raise WeightsError(f"weights: line {line} is not ordered: low, {figures[0]}, high, with shares up to 1.")
    error = figure_of(record[ERROR], line, f"weights: the {ERROR}") if ERROR in record else None
    replicates = tuple(figure(record[name]) for name in REPLICATE.get(figures[0], ()) if name in record)
    if not all(abs(number) <= LARGEST for number in replicates):
        raise WeightsError(f"weights: line {line} has a figure by a replicate weight that is no number.")
    items = tuple((str(k), level(v)) for k, v in record.items() if not is_figure(str(k)))
    return Row(items, value, low, high, error, replicates)


class PublicShares(ShareSource):
    """Shares from published figures; the certificate has the hash of their table."""

    name: ClassVar[str] = "public"
    words: ClassVar[str] = "from a public source"
    keys: ClassVar[Mapping[str, Key]] = {
        "path": PATH,
        "citation": replace(CITATION, needed=True),
        "records": Key(int, "number of records in which they were counted, for their sampling error"),
    }
    rank: ClassVar[int] = 0
    exact: ClassVar[bool] = True
    known: ClassVar[bool] = True
    raked: ClassVar[bool] = True
    samples: ClassVar[bool] = True

    def of(self, shares: Tabular, *, citation: str, records: int | None = None) -> Weights:
        """Return weights from `shares`, a CSV file or frame, with the citation of its place of publication.

        `records` is the number of records that they were counted in, None if exact or unknown. WeightsError without a
        citation.
        """
        if not is_text(citation):
            raise WeightsError("weights: public shares need a citation that says where they were published.")
        check_integer("weights: records", records, 1, optional=True)
        return self.made(check_citation("weights", citation, error=WeightsError), ShareTable.read(shares, records))

    def read(self, section: Mapping[str, Any], place: Place) -> Weights:
        """Return weights from the table at `path` of `section`, a mapping, with its citation.

        `place` has its folder.
        """
        return self.of(place.folder / section["path"], citation=section["citation"], records=section.get("records"))

    def stated(self, weights: Weights) -> dict[str, Any]:
        """Return a dict for the certificate: the hash of the weights' table, the method for its survey's error if any.

        A public table's hash confirms no guess.
        """
        by = weights.given.design if isinstance(weights.given, ShareTable) else ""
        return {"sha256": digest(weights.given), **({"design": by} if by else {})}
