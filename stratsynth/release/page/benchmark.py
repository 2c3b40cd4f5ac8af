"""Published, measured and synthetic numbers of each control cell, as tables of pages and certificates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stratsynth.report.numbers import several
from stratsynth.report.page import Cell, Column, Figure, Row, Table

if TYPE_CHECKING:
    from stratsynth.certificate import BenchmarkStated, Certificate, ControlCell, ControlTableStated

MOST = 400
"""Largest number of cells of a table; certificate.json has all."""


def benchmark_figures(certificate: Certificate) -> list[Figure]:
    """Return a list of `Figure`, one for each control table of a certificate: its totals beside noisy and drawn ones.

    [] without a benchmark.
    """
    stated = certificate.benchmark
    return [] if stated is None else [_figure(stated, table) for table in stated.tables]


def _figure(stated: BenchmarkStated, table: ControlTableStated) -> Figure:
    """Return a Figure for a `ControlTableStated` of the benchmark `stated`: a row for each cell, at most MOST."""
    total = math.fsum(cell.published for cell in table.cells)
    factor = None if stated.people is None else max(stated.people, 0.0) / total
    drawn = stated.rows is not None
    columns = [
        Column(" x ".join(table.columns), "text"),
        Column("published"),
        *([] if factor is None else [Column("of the measured total"), Column("measured", "text")]),
        *([Column("synthetic")] if drawn else []),
    ]
    rows = [_row(cell, factor, total, stated.rows) for cell in table.cells[:MOST]]
    hidden = len(table.cells) - len(rows)
    unit = (
        "Published: as in the table that is cited"
        + ("" if factor is None else "; of the measured total: the same part of the noisy number of everybody")
        + ". "
    )
    noisy = (
        ""
        if factor is None
        else f"Measured: by least squares over all that was counted, with its interval for the noise, each at "
        f"{100 * stated.level:g} per cent; a dash where nothing counts the cell. "
    )
    synthetic = (
        f"Synthetic: its part of the {several(stated.rows or 0, 'row')}, of everybody's published total. "
        if drawn
        else ""
    )
    exact = "NOT PROTECTED: these are exact totals of the private rows. " if table.exact else ""
    more = f"{hidden:,} more cells are in certificate.json." if hidden > 0 else ""
    caption = f"{exact}{unit}{noisy}{synthetic}{more}".rstrip()
    year = "" if table.year is None else f", {table.year}"
    return Figure(
        f"Published{'' if factor is None else ', measured'}{', synthetic' if drawn else ''}: {table.citation}{year}",
        table=Table(caption, columns, rows, rest="more are in certificate.json"),
    )


def _row(cell: ControlCell, factor: float | None, total: float, drawn: int | None) -> Row:
    """Return a table's row on a control `cell`; `factor`, `total`, `drawn` scale its expected and synthetic numbers."""
    name = ", ".join(f"{column} {level}" for column, level in cell.levels.items())
    measured = (
        Cell("–", None)
        if cell.measured is None or cell.low is None or cell.high is None
        else Cell(f"{cell.measured:,.0f} ({cell.low:,.0f} to {cell.high:,.0f})".replace("-", "−"), cell.measured)
    )
    beside: Row = [] if factor is None else [round(cell.published * factor), measured]
    drawn_of_it: Row = [] if drawn is None else [round(total * (cell.rows or 0) / drawn) if drawn else None]
    return [name, round(cell.published), *beside, *drawn_of_it]
