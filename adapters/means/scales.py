"""Public facts of a column whose mean is estimated: bounds, a guess of the mean, a radius, a unit.

All are on the scale that the schema declares for the column, and come from the schema or from settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratsynth.checks import number
from stratsynth.errors import Unsupported, UsageError, nearest
from stratsynth.schema import Numeric, Schema
from stratsynth.schema.transforms import bounds

if TYPE_CHECKING:
    from stratsynth.mechanisms import Public

FRACTION = 6.0
"""Ratio of a column's range to its guessed standard deviation, where no scale is given."""


@dataclass(frozen=True)
class ColumnScale:
    """Public facts of one numeric column, in its unit: bounds, and guesses of mean and standard deviation."""

    name: str
    low: float
    high: float
    centre: float
    """Public guess of the mean."""
    radius: float
    """Largest distance of the mean from the centre."""
    unit: float
    """Public guess of the standard deviation."""
    complete: bool
    """True if every record has a value, by the schema."""

    @property
    def range(self) -> float:
        """Distance between the column's bounds, in its unit."""
        return self.high - self.low

    def reach(self, centre: float) -> float:
        """Return the largest distance of a value, within the column's bounds, from `centre`, a number in its unit."""
        return max(abs(self.high - centre), abs(centre - self.low))

    @property
    def means(self) -> tuple[float, float]:
        """Pair of the lower and upper end of the mean by public facts: within the radius, and within the bounds."""
        return max(self.low, self.centre - self.radius), min(self.high, self.centre + self.radius)

    def within(self, mean: float) -> float:
        """Return the number nearest to `mean` between the public ends of the column's mean."""
        low, high = self.means
        return min(max(mean, low), high)


def scales(
    who: str,
    public: Public,
    columns: Sequence[str],
    centre: Mapping[str, float],
    radius: Mapping[str, float],
    unit: Mapping[str, float],
) -> tuple[ColumnScale, ...]:
    """Return a tuple of `ColumnScale`s of `columns`, in order: centre, radius, unit, as set by column or by bounds.

    No `columns`: all numeric ones that vary. UsageError, opening with `who`, for columns unknown in the public schema
    or not numeric; Unsupported for bounds too near or far, and if no column is left.
    """
    schema = public.schema
    for key, given in (("centre", centre), ("radius", radius), ("scale", unit)):
        for name in given:
            if name not in (columns or schema.names):
                raise UsageError(
                    f"{who}: {key} names {name!r}, which is not among the columns{nearest(name, columns)}."
                )
    numeric = (n for n, column in schema.columns.items() if isinstance(column, Numeric))
    # a column that some strata are bands of varies there and is constant elsewhere: all groups estimate equal columns
    names = tuple(columns) or tuple(n for n in numeric if n not in public.constant)
    if not names:
        raise Unsupported(f"{who}: there is no numeric column to take the mean of.")
    return tuple(_scale(who, schema, name, centre, radius, unit) for name in names)


def _scale(
    who: str,
    schema: Schema,
    name: str,
    centres: Mapping[str, float],
    radii: Mapping[str, float],
    units: Mapping[str, float],
) -> ColumnScale:
    """Return the `ColumnScale` of the schema's numeric column `name`, of a mechanism called `who`.

    `centres`, `radii` and `units` are the settings' own numbers by column. UsageError for no such column, a categorical
    one, and numbers outside the bounds; Unsupported for unfit bounds.
    """
    column = schema.columns.get(name)
    if column is None:
        raise UsageError(f"{who}: column {name!r} is not in the schema, or is constant in this stratum.")
    if not isinstance(column, Numeric):
        raise UsageError(f"{who}: {name} is categorical; a mean needs a numeric column.")
    low, high = bounds(column)
    if not 1e-90 < high - low < 1e90:
        raise Unsupported(f"{who}: the bounds of {name} are too near or too far for a mean; correct the schema.")
    centre = float(centres.get(name, low + (high - low) / 2))
    if not low <= centre <= high:
        raise UsageError(f"{who}: the centre of {name} lies outside its bounds {low:g} to {high:g} (on its scale).")
    reach = max(high - centre, centre - low)
    radius, unit = float(radii.get(name, reach)), float(units.get(name, (high - low) / FRACTION))
    for key, value in (("radius", radius), ("scale", unit)):
        number(f"{who}: the {key} of {name}", value, above=0)
    if unit < (high - low) * 1e-9:
        raise UsageError(f"{who}: the scale of {name} is out of proportion to its bounds.")
    complete = not column.missing and column.not_applicable is None
    return ColumnScale(name, low, high, centre, min(radius, reach), unit, complete)


def check_numbers(who: str, key: str, given: object) -> dict[str, float]:
    """Return a dict, a copy of `given` with floats: the setting `key`, which maps columns to numbers.

    UsageError, opening with `who`, for anything else.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"{who}: {key} is a table from column to number.")
    for name, value in given.items():
        if not isinstance(name, str):
            raise UsageError(f"{who}: {key} is a table from column to number.")
        number(f"{who}: the {key} of {name}", value, hint=f" ({key} is a table from column to number)")
    return {name: float(value) for name, value in given.items()}
