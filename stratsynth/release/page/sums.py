"""Clipped sums, and tables by the strata's columns, in words for readers of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.report.numbers import several, short

if TYPE_CHECKING:
    from stratsynth.certificate import ByTablesStated, SumsStated


def sums_line(sums: SumsStated) -> str:
    """Return a paragraph on a release's `SumsStated`, its clipped sums: of what, of whom, what noise; or why none."""
    if not sums.asked:
        return f"None: {sums.why}."
    of = f"everybody and of {several(len(sums.strata), 'group')}" if sums.strata else "everybody"
    columns = "; ".join(
        f"of {one.column}, numbers above {one.clip:,.10g} counting as that, with noise of {short(one.noise_sd)}"
        for one in sums.columns
    )
    return (
        f"For {100 * (sums.share or 0):g} % of the budget, of {of}: {columns} (a standard deviation, for everybody). "
        "They are in measurements.parquet, and means of these columns rest on them where a table counts their numbers."
    )


def tables_line(tables: ByTablesStated) -> str:
    """Return a paragraph on a certificate's entry `tables`, a `ByTablesStated`: their number, part and noise.

    These are tables of everybody by the strata's columns.
    """
    return (
        f"For {100 * tables.share:g} % of the budget, {several(tables.tables, 'table')} of everybody: of each of these "
        f"columns and each other one, with noise of {short(tables.noise_sd)} records in a cell (a standard deviation). "
        "Answers rest on them; rows do not."
    )
