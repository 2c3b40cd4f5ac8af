"""The counts of single columns, as bars with their noise, a group at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from stratsynth.models.intervals import NORMAL_95
from stratsynth.release.page.measured import Measured, Names, drawable
from stratsynth.report.numbers import Numbers, several, short
from stratsynth.report.page import Figure, Section
from stratsynth.report.strip import Scale, bar

if TYPE_CHECKING:
    from stratsynth.schema import Schema

CELLS = 4_000
"""As many counts as are drawn: the file stays below 2 MB. The others are in measurements.parquet."""
LEVELS = 24
"""As many levels of a column as are drawn, the largest ones; the numbers beside the picture have all."""


def columns(tables: list[Measured], names: Names, schema: Schema) -> Section:
    """Each column's counts, group by group."""
    kept, left = drawable(tables, names.order, CELLS)
    if not kept:
        return Section("columns", "What was measured", text=["No count of a single column is part of this release."])
    groups = list(dict.fromkeys(t.group for t in kept))
    figures, rows = [], []
    for group in groups:
        here = [t for t in kept if t.group == group]
        order = {name: i for i, name in enumerate(schema.names)}
        here.sort(key=lambda t: order.get(t.clique, len(order)))
        figures.append(Figure("" if len(groups) == 1 else names.group(group), picture=_bars(here, names),
                              group=names.group(group) if len(groups) > 1 else None))  # fmt: skip
        for t in here:
            cells = zip(names.cells(t), t.values, strict=True)
            rows += [[group or "everybody", t.clique, cell, round(float(value), 1), t.sigma] for cell, value in cells]
    more = f" {several(left, 'more table')} of single columns {'is' if left == 1 else 'are'} in measurements.parquet."
    figures.append(Figure("", numbers=Numbers("counts", ["group", "column", "level", "count", "sigma"], rows)))
    return Section(
        "columns",
        "What was measured",
        text=[
            "Counts of each column, with their noise: bars are the counts as released, the thin line is where the "
            "true count lies in 95 of 100 cases. Counts below zero are noise; they are part of the honest answer. "
            "Counts of several columns together are in measurements.parquet." + (more if left else ""),
        ],
        figures=figures,
        groups=[names.group(group) for group in groups] if len(groups) > 1 else [],
    )


def _bars(tables: list[Measured], names: Names) -> Markup:
    return Markup('<div class="columns">{}</div>').format(Markup("").join(_column(t, names) for t in tables))


def _column(table: Measured, names: Names) -> Markup:
    noise = NORMAL_95 * table.sigma
    cells = list(zip(names.cells(table), table.values.tolist(), strict=True))
    shown = cells
    if len(cells) > LEVELS:
        least = sorted((value for _, value in cells), reverse=True)[LEVELS - 1]
        shown = [cell for cell in cells if cell[1] >= least][:LEVELS]
    scale = Scale.over([max(value, 0.0) + noise for _, value in shown])
    lines = [
        Markup('<div class="level"><span>{}</span>{}<span>{}</span></div>').format(
            name,
            bar(scale, value, value - noise, value + noise, f"{name}: {value:,.0f}, give or take {short(noise)}"),
            f"{value:,.0f}".replace("-", "−"),
        )
        for name, value in shown
    ]
    again = f", measured {table.times} times" if table.times > 1 else ""
    hidden = len(cells) - len(shown)
    note = f"{several(hidden, 'smaller level')} in the numbers only; " if hidden else ""
    return Markup("<div><h4>{}</h4><small>{}every count give or take {}{}</small>{}</div>").format(
        table.clique, note, short(noise), again, Markup("").join(lines)
    )
