"""INTERNAL. Errors of the numbers that readers compute first: means, medians, deciles and shares above thresholds.

For each column of numbers, in everybody and in each declared group, with real and synthetic figures side by side:

    mean              value = synthetic - real, in per cent of the real mean
    median            in per cent of the real median
    P10, ..., P90     deciles, in per cent of the real P90 - P10
    deciles           mean size of these nine errors, without a sign
    P99               in per cent of the real P99
    above X           share of the numbers above the threshold X, synthetic - real, in percentage points
    no number         share of the rows that have a missing value or a code in place of a number, in points

Numbers are those of the files, neither binned nor clipped; a row without a number is left out of all but the last.
Thresholds are stated by the caller, or follow from the schema alone (`default_thresholds`). A group with fewer than
`ENOUGH_NUMBERS` numbers in either table is `small`: no claim is made for it. Dates, moments and times have no mean in
per cent; `raw_values` has theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stratsynth.checks import is_number, quoted_value
from stratsynth.errors import UsageError
from stratsynth.evaluation.tables import EVERYBODY, Array, By, as_schema, groups_of, statuses, tidy
from stratsynth.evaluation.tables.numbers import RawNumbers, mean, quantiles, share_above, standard_error
from stratsynth.models.intervals import NORMAL_95
from stratsynth.schema import Numeric, Schema
from stratsynth.schema.temporal import Temporal

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.strata import Stratum

ENOUGH_NUMBERS = 1_000
"""Smallest count of numbers in both tables for which a claim is made."""
MEAN, MEDIAN, DECILES, P99, LACKING = "mean", "median", "deciles", "P99", "no number"
TENTHS = tuple(f"P{hundredth}" for hundredth in range(10, 100, 10))
"""Names of the nine deciles."""
UNITS = {MEAN: "% of the mean", MEDIAN: "% of the median", P99: "% of P99", LACKING: "points"}
"""Units of `value`; those of deciles are "% of P90 - P10", those of shares "points"."""
EDGES = 3
"""Number of thresholds that a schema implies."""
FACTS = ("variable", "statistic", "unit", "real", "synthetic", "value", "n", "n_synthetic", "status")
"""Columns of the frame that `headline_facts` repeats."""
FIGURES = ("real", "synthetic", "value", "low", "high", "n", "n_synthetic")
Thresholds: TypeAlias = "Mapping[str, float | Sequence[float]]"
"""Column -> its threshold or thresholds."""


def number_errors(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    by: By = None,
    *,
    thresholds: Thresholds | None = None,
    columns: Sequence[str] | None = None,
    few: int = ENOUGH_NUMBERS,
) -> pd.DataFrame:
    """Errors of means, medians, deciles and shares above thresholds, everybody's and each group's, in a frame.

    Args:
        real: The private rows: a frame, an Arrow table or a path. If the schema names a column of weights, every row
            counts as its weight.
        synthetic: The release's rows.
        schema: The schema of both, or its path.
        by: Columns whose crossing makes the groups; None for everybody alone.
        thresholds: Numbers by column, as `{"PINCP": [100_000, 200_000]}`; columns without any, and None, have those
            that the schema implies: the last three starts of a bin.
        columns: Columns of numbers; None for all but those of `by`.
        few: Groups with fewer numbers in either table are `small`.

    Returns:
        For each `variable` and `statistic`, a row for each declared group and one for everybody: `unit`, `n`,
        `n_synthetic` (counts of numbers), `real`, `synthetic`, `value` and `status`; INTERNAL. `value` is signed, and
        null where it is per cent of 0; of means and shares above thresholds, `low` and `high` are its 95 % interval
        for chance in the rows of both tables.

    Raises:
        UsageError: A threshold is no finite number, or its column has no numbers.
    """
    schema = as_schema(schema)
    names, groups = groups_of(schema, by)
    wanted = number_columns(schema if columns is None else schema.restrict(columns), names)
    levels = thresholds_by_column(schema, thresholds)
    true = RawNumbers.read(real, schema, wanted, names, weigh=True)
    made = RawNumbers.read(synthetic, schema, wanted, names)
    return headline_frame(true, made, {name: levels[name] for name in wanted}, names, groups, few)


def number_columns(schema: Schema, by: Sequence[str] = ()) -> tuple[str, ...]:
    """Tuple of a schema's columns of numbers, without those of `by` and of dates, moments, times and durations."""
    return tuple(
        name
        for name, column in schema.columns.items()
        if isinstance(column, Numeric) and not isinstance(column, Temporal) and name not in by
    )


def thresholds_by_column(schema: Schema, stated: Thresholds | None = None) -> dict[str, tuple[float, ...]]:
    """Mapping from each column of numbers in a schema to its thresholds: those `stated` by column, or the schema's.

    UsageError for other columns, and for thresholds that are no finite numbers.
    """
    known = number_columns(schema)
    if stated is not None and not isinstance(stated, Mapping):
        raise UsageError(
            f'evaluation: thresholds are numbers by column, as {{"PINCP": [200000]}}, not {quoted_value(stated)}.'
        )
    found = {name: default_thresholds(schema.column(name)) for name in known}
    for name, given in (stated or {}).items():
        if name not in known:
            raise UsageError(
                f"evaluation: {quoted_value(name)} has a threshold, and is no column of numbers of the schema; these "
                f"are: {', '.join(known) or 'none'}."
            )
        numbers = [given] if is_number(given) else given
        if not isinstance(numbers, list | tuple) or not numbers or not all(map(is_number, numbers)):
            raise UsageError(f"evaluation: thresholds of {name} are finite numbers, not {quoted_value(given)}.")
        found[name] = tuple(sorted({float(number) for number in numbers}))
    return found


def default_thresholds(column: Any) -> tuple[float, ...]:
    """Tuple of the last `EDGES` thresholds that a numeric column's declared bins imply, ascending; no row is read.

    A threshold is where a bin but the first starts. Of whole numbers it is one less, as the bin holds what is above
    that: of a last bin from 300,001 on, 300,000. Both ends of a spike's bin of other numbers are the spike.
    """
    starts = column.breaks[1:-1]
    if column.integer:
        found = {float(start) - 1 for start in starts}
    else:
        after = {end: start for start, end in zip(column.breaks, column.breaks[1:], strict=False)}
        found = {float(after[start] if after[start] in column.spikes else start) for start in starts}
    return tuple(sorted(found)[-EDGES:])


def headline_frame(
    real: RawNumbers,
    synthetic: RawNumbers,
    thresholds: Mapping[str, Sequence[float]],
    by: Sequence[str],
    groups: Sequence[Stratum],
    few: int = ENOUGH_NUMBERS,
) -> pd.DataFrame:
    """Frame of `number_errors` for numbers read before, the RawNumbers `real` and `synthetic`.

    `thresholds` maps the columns of numbers to their thresholds, and says by its keys which columns are compared.
    `groups`, strata in order, cross the columns `by`; of fewer than `few` numbers a group is small.
    """
    count = len(groups) if by else 0
    parts = [_of_column(real, synthetic, name, levels, count) for name, levels in thresholds.items()]
    names = [(name, *item) for (name, levels) in thresholds.items() for item in _items(levels)]
    nothing = np.empty((0, count + 1))
    found = {key: np.concatenate([nothing, *(part[key] for part in parts)]) for key in FIGURES}
    counts = {key: found[key].astype(np.int64) for key in ("n", "n_synthetic")}
    return tidy(
        by,
        groups,
        found["value"],
        found["low"],
        found["high"],
        counts=counts,
        status=statuses(found["value"], np.minimum(*counts.values()), few),
        items={key: [item[i] for item in names] for i, key in enumerate(("variable", "statistic", "unit"))},
        more={key: found[key] for key in ("real", "synthetic")},
    )


def worst(frame: pd.DataFrame, statistic: str) -> Mapping[Any, Any] | None:
    """Row of a frame of `number_errors`, a mapping, in which everybody's `statistic` is farthest off in per cent.

    None if it is known of no column.
    """
    here = frame[(frame["scope"] == EVERYBODY) & (frame["statistic"] == statistic) & frame["value"].notna()]
    return max(here.to_dict("records"), key=lambda row: abs(row["value"]), default=None)


def headline_facts(frame: pd.DataFrame | None) -> dict[str, Any]:
    """Mapping for JSON with keys "mean" and "median", from a frame of `number_errors`, or None.

    Each value is a mapping of the worst column's figures, of names `FACTS`; None if it is unknown or there is no frame.
    """
    found = {}
    for statistic in (MEAN, MEDIAN):
        row = None if frame is None else worst(frame, statistic)
        found[statistic] = None if row is None else {key: row[key] for key in FACTS}
    return found


def _items(levels: Sequence[float]) -> Iterator[tuple[str, str]]:
    """Yield (name, unit) of each statistic of a column with the thresholds `levels`, in the order of rows."""
    yield from ((name, UNITS[name]) for name in (MEAN, MEDIAN))
    yield from ((name, "% of P90 - P10") for name in (*TENTHS, DECILES))
    yield P99, UNITS[P99]
    yield from ((above_name(level), UNITS[LACKING]) for level in levels)
    yield LACKING, UNITS[LACKING]


def above_name(level: float) -> str:
    """Name of the share above the threshold `level`, as `above 200000`."""
    return f"above {repr(float(level)).removesuffix('.0')}"


def _of_column(
    real: RawNumbers, synthetic: RawNumbers, name: str, levels: Sequence[float], groups: int
) -> dict[str, Array]:
    """Return {column of the frame: array (statistics, groups, then everybody)} on the numbers called `name`.

    They are of `real` and `synthetic` RawNumbers. Statistics are in the order of `_items` for thresholds `levels`;
    `groups` is the number of groups.
    """
    sides = [_side(table, name, levels, groups) for table in (real, synthetic)]
    (there, error, n), (made, other, n_synthetic) = sides
    value, base = _errors(there, made)
    half = NORMAL_95 * 100 * np.sqrt(error**2 + other**2) / base
    counts = {"n": n, "n_synthetic": n_synthetic}
    return {
        "real": there,
        "synthetic": made,
        "value": value,
        "low": value - half,
        "high": value + half,
        **{side: np.tile(count, (len(value), 1)) for side, count in counts.items()},
    }


def _side(table: RawNumbers, name: str, levels: Sequence[float], groups: int) -> tuple[Array, Array, Array]:
    """Return three arrays on a table's numbers called `name`: figures, their standard errors, and counts.

    The first two are (statistics, groups, then everybody), counts are by group, then everybody. The table is
    RawNumbers. Statistics are in the order of `_items` for thresholds `levels`; `groups` is the number of groups.
    """
    scopes = [*(table.by_group(name, groups) if groups else []), table.of_group(name)]
    inside, whole = table.mass(groups)
    mass, have = np.append(inside, whole), np.array([weights.sum() for _, weights in scopes])
    with np.errstate(invalid="ignore", divide="ignore"):
        lacking = np.where(mass > 0, (mass - have) / mass, np.nan)
    figures = np.vstack([np.array([_figures(*one, levels) for one in scopes]).T, lacking])
    errors = np.full(figures.shape, np.nan)
    errors[0] = [standard_error(*one) for one in scopes]
    for place, level in enumerate(levels, start=len(figures) - 1 - len(levels)):
        errors[place] = [standard_error((numbers > level) * 1.0, weights) for numbers, weights in scopes]
    return figures, errors, np.array([len(numbers) for numbers, _ in scopes])


def _figures(numbers: Array, weights: Array, levels: Sequence[float]) -> list[float]:
    """List of one group's statistics: mean, median, nine deciles, NaN for their mean error, P99, shares above `levels`.

    `numbers` and their `weights` are arrays, `levels` a list of thresholds.
    """
    *tenths, last = quantiles(numbers, weights, [*range(10, 100, 10), 99])
    shares = (share_above(numbers, weights, level) for level in levels)
    return [mean(numbers, weights), tenths[4], *tenths, np.nan, last, *shares]


def _errors(real: Array, synthetic: Array) -> tuple[Array, Array]:
    """Return two arrays (statistics as in `_items`, scopes): errors in per cent, and the sizes they are per cent of.

    `real` and `synthetic` are such arrays of figures; sizes are NaN in place of 0.
    """
    first, deciles, last = 2, 2 + len(TENTHS), 3 + len(TENTHS)
    base = np.full(real.shape, 1.0)  # of shares: points
    base[[0, 1, last]] = np.abs(real[[0, 1, last]])
    base[first:deciles] = real[deciles - 1] - real[first]
    base = np.where(base > 0, base, np.nan)
    apart = synthetic - real
    value = np.where(apart == 0, 0.0, 100 * apart / base)
    value[deciles] = np.abs(value[first:deciles]).mean(axis=0)
    return value, base
