"""Bands in which a fit counts numbers that are smooth, such as ages: decided before anything is asked, by public facts.

Of a column of single whole numbers with `shape = "smooth"`, tables are mostly noise where each number has few records:
noise is as large in a cell of one year of age as in one of five. So it is counted in the narrowest bands that have on
average enough records for the noise of a one-way table of the fit. Numbers are drawn within
a band along a curve through the counts of all bands, so that nothing is paid for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from stratsynth.mechanisms.nesting import known_before
from stratsynth.models.base import Returns
from stratsynth.schema import Numeric, Schema
from stratsynth.schema.bins import EVEN, SMOOTH
from stratsynth.schema.rules import Rule

if TYPE_CHECKING:
    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.mechanisms.contract import Mechanism, Public

FEW = 20
"""Number of values up to which a column is always counted by single values."""
LEAST = {1: 30.0, 2: 30.0, 5: 10.0, 10: 0.0}
"""Width of bands, in whole numbers -> least mean count of a band, in standard deviations of its noise.

Bands begin at multiples of their width. Measured on ages by `scripts/bench ordered`: with fewer records wider bands
have a better score, and mostly better pairs with single years too."""


@dataclass(frozen=True)
class CountedBands:
    """Bands in which one column of whole numbers is counted, with the reason."""

    column: str
    """Name of the column."""
    values: int
    """Number of values from its lower to its upper bound."""
    bands: int
    """Number of bands; the number of values if each is counted."""
    width: int
    """Number of values in a band, but for those cut by a rule or a bound."""
    records: float | None
    """Public mean number of records of a band; None without a declared size."""
    noise: float | None
    """Standard deviation of a count's noise that it was compared with; None if unknown."""
    why: str
    """Reason for the width."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of all fields by name, as certificate and plan state it."""
        return asdict(self)


def banded(
    mechanism: Mechanism[Any], public: Public, budget: Budget, allot: Allotment
) -> tuple[Schema, tuple[CountedBands, ...]]:
    """Return (the `Schema` by which the fit counts, a tuple of a `CountedBands` per column that may be in bands).

    Columns that define strata, or whose shares rows are drawn by, are counted as declared, and so is everything where
    the mechanism draws no rows.

    Args:
        mechanism: The mechanism to be fitted.
        public: The facts about all records, by the schema as declared.
        budget: The budget, with the schema's privacy unit.
        allot: The mechanism's allotment under the schema as declared.
    """
    schema = public.schema
    named = [name for name, column in schema.columns.items() if _is_ordered(column)]
    if mechanism.returns != Returns.ROWS or not named:
        return schema, ()
    size, noise, defining, unknown = known_before(mechanism, public, budget, allot)
    found, columns = [], dict(schema.columns)
    for name in named:
        column = schema.column(name)
        assert isinstance(column, Numeric)  # noqa: S101 - as `_is_ordered` says
        why = _declared(name, column, public, defining) or unknown
        width, why = (1, why) if why or size is None or noise is None else _width(column, size, noise)
        edges = _edges(schema, name, column, width)
        if width > 1:
            columns[name] = replace(column, edges=edges, bins=None)
        bands = len(edges) - 1
        records = None if size is None else round(size / bands, 1)
        found.append(
            CountedBands(
                name, len(column.extents), bands, width, records, None if noise is None else round(noise, 1), why
            )
        )
    single = all(each.width == 1 for each in found)
    return schema if single else replace(schema, columns=columns), tuple(found)


def _is_ordered(column: object) -> bool:
    """Return True if `column` has whole numbers, a bin each and no spikes, more than `FEW`, and is declared smooth."""
    return (
        type(column) is Numeric
        and column.shape == SMOOTH
        and column.spacing == EVEN
        and column.integer
        and not column.spikes
        and len(column.extents) > FEW
        and all(low == top for low, top in column.extents)
    )


def _declared(name: str, column: Numeric, public: Public, defining: frozenset[str]) -> str:
    """Return why single values of column `name` must stay, by `defining` columns, public tables, rules; "" if none."""
    if name in defining:
        return "strata or shares are defined by it"
    if any(name in known.clique for known in public.known):
        return "a public table has its single values"
    if any(label not in column.words for label in column.labels):
        return "its labels name single values"
    said = [conditions[name] for rule in public.schema.rules for conditions in _of(rule) if name in conditions]
    levels = [level for each in said for level in ((each,) if isinstance(each, str) else each)]
    return "a rule names single values" if any(level in column.codes for level in levels) else ""


def _of(rule: Rule) -> tuple[Mapping[str, Any], ...]:
    return rule.when, rule.never


def _width(column: Numeric, size: float, noise: float) -> tuple[int, str]:
    """Return (width of a numeric column's bands, by `size` in records and the `noise` of a count; reason, a text)."""
    width = next(width for width, least in LEAST.items() if size * width / len(column.extents) >= least * noise)
    if not LEAST[width]:
        return width, "the widest; narrower ones have too few records on average for the noise"
    return width, f"the narrowest with {LEAST[width] * noise:,.0f} records on average, {LEAST[width]:g} times the noise"


def _edges(schema: Schema, name: str, column: Numeric, width: int) -> tuple[float, ...]:
    """Return a tuple, ends of bands of numeric column `name`: multiples of `width`, and ends of the schema's rules."""
    numbers = len(column.extents)
    starts = {0, *(code for code in range(numbers) if column.breaks[code] % width == 0)}
    for box in (box for rule in schema.rules if name in rule.names for box in rule.cells(schema) if name in box):
        starts |= {code for code in range(1, numbers) if (code in box[name]) != (code - 1 in box[name])}
    return (*(column.breaks[code] for code in sorted(starts)), column.breaks[-1])


def in_words(item: Mapping[str, Any]) -> str:
    """Return a sentence on one column, from its dict `item` (`CountedBands.to_dict`), for plans and reports."""
    if item["width"] == 1:
        return f"{item['column']}: each of its {item['values']:,} values is counted ({item['why']})"
    return (
        f"{item['column']}: its {item['values']:,} values are counted in {item['bands']:,} bands of {item['width']} "
        f"({item['why']}); within a band numbers are drawn along a curve through the counts of all bands, and were not "
        "measured"
    )
