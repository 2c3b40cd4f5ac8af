"""Warnings about bins whose numbers are drawn by a shape alone, so that means depend on it: by public facts only.

No row is read here. `stratsynth.data.money` looks at rows too, INTERNAL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.schema.bins import EVEN
from stratsynth.schema.columns import Numeric
from stratsynth.schema.drawn import PARETO
from stratsynth.schema.temporal import Temporal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stratsynth.schema.schema import Schema

MOST_TIMES = 5
"""Largest quotient of the ends of an outer bin that is not warned of."""
MOST_PART = 0.25
"""Largest part of the span from the lower to the upper bound that such a bin has without a warning."""
LARGE = 10_000
"""Width from which bins of equal width are warned of: amounts of money are mostly far smaller than the largest."""


def wide_bins(schema: Schema) -> list[str]:
    """Return a list of sentences on columns of amounts in a schema whose bins are too wide for means; [] if none."""
    found = list[str]()
    for name, column in schema.columns.items():
        if isinstance(column, Numeric) and not isinstance(column, Temporal) and column.shape != PARETO:
            found += _of(name, column)
    return found


def _of(name: str, column: Numeric) -> Iterator[str]:
    """Yield sentences on outer or equal bins of a numeric `column`, called `name`, that are too wide; or none."""
    bins = [i for i, (low, top) in enumerate(column.extents) if low < top]
    if not bins:
        return
    remedy = 'declare shape = "pareto" for amounts with a long tail, or more edges'
    for i, (near, far) in ((bins[-1], column.extents[bins[-1]]), (bins[0], column.extents[bins[0]][::-1])):
        part = abs(far - near) / (column.upper - column.lower)
        if near * far > 0 and abs(far) > MOST_TIMES * abs(near) and part > MOST_PART and len(bins) > 1:
            yield (
                f"column {name}: numbers of its bin {column.bin_name(i)} are drawn by the shape {column.shape!r}, with "
                f"mean {column.middles[i]:,.6g}, whatever the data are; if it holds more than a few records, {remedy}"
            )
    width = column.extents[bins[0]][1] - column.extents[bins[0]][0]
    if column.edges is None and column.spacing == EVEN and len(bins) > 1 and width >= LARGE:
        yield (
            f"column {name}: its bins are of equal width, about {width:,.6g} each; if most numbers are far below "
            f'{max(abs(column.lower), abs(column.upper)):,.6g}, declare spacing = "log" and a transform_unit'
        )
