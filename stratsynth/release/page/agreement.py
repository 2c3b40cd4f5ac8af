"""Tables of pages and certificates: numbers of groups, declared and measured; control cells and their totals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from stratsynth.release.declared import DECLARED_SIZE, MEASURED, SHARE
from stratsynth.report.numbers import several, short
from stratsynth.report.page import Cell, Column, Figure, Row, Table

if TYPE_CHECKING:
    from stratsynth.certificate import (
        AgreementStated,
        BenchmarkStated,
        Certificate,
        ComparisonStated,
        ControlCell,
        ControlTableStated,
    )


MOST = 400
"""Largest number of lines of a table, of groups those of the largest differences; certificate.json has all."""


def agreement_figure(certificate: Certificate, named: Callable[[str], str] = str) -> Figure | None:
    """Return the Figure of declared beside measured numbers of groups; None for a certificate that has none.

    Args:
        certificate: The certificate.
        named: Function from a group's label to the words for it.
    """
    test, found = certificate.agreement, certificate.declared_and_measured
    groups = [c for c in found if c.what == SHARE]
    if test is None or not groups:
        return None
    total = next(c.measured for c in found if c.what == DECLARED_SIZE)
    ordered = sorted(groups, key=lambda c: -abs(c.measured - (c.declared or 0)))
    rows = [_row(named(c.stratum), c, total) for c in ordered[:MOST]]
    hidden = len(ordered) - len(rows)
    drawn = any(c.rows is not None for c in groups)
    columns = [
        Column("Group", "text"),
        Column("declared"),
        Column("measured"),
        *([Column("synthetic")] if drawn else []),
        Column("difference, %", "text"),
        Column("deviations"),
        Column("verdict", "text"),
    ]
    kept = rows if drawn else [[*row[:3], *row[4:]] for row in rows]
    caption = _caption(certificate, test, drawn=drawn) + f" {hidden:,} more are in certificate.json." * (hidden > 0)
    table = Table(caption, columns, kept, rest="more are in certificate.json")
    return Figure("Declared, measured, synthetic" if drawn else "Declared and measured", table=table)


def _row(name: str, c: ComparisonStated, total: float) -> Row:
    """Return a table's row on a `ComparisonStated` of a group called `name`; `total` is everybody's measured number."""
    return [
        name,
        round(c.declared or 0.0),
        Cell(f"{c.measured:,.0f} ± {short(c.noise_sd)}".replace("-", "−"), c.measured),
        None if c.rows is None else round(c.rows * max(total, 0.0)),
        Cell(_difference(c), c.difference),
        c.z,
        c.verdict,
    ]


def _difference(c: ComparisonStated) -> str:
    """Return text in per cent: difference of measured from declared in a `ComparisonStated`, interval; "–" for none."""
    if c.difference is None:
        return "–"
    interval = "" if c.low is None or c.high is None else f" ({100 * c.low:+,.1f} to {100 * c.high:+,.1f})"
    return f"{100 * c.difference:+,.1f}{interval}".replace("-", "−")


def _caption(certificate: Certificate, test: AgreementStated, *, drawn: bool) -> str:
    """Return words under a certificate's table of declared and measured numbers: units, test, its errors.

    The test is an `AgreementStated`. `drawn`: the table has numbers of synthetic rows too.
    """
    rows = (
        "Synthetic: the rows of the group, in the same unit; they follow the measured sizes. "
        if certificate.weights.groups == MEASURED
        else "Synthetic: the rows of the group, in the same unit; they follow the declared shares. "
    )
    source = (
        "the error of the declared shares is unknown, and taken as zero"
        if test.records is None
        else f"with the sampling error of declared shares that were counted in {test.records:,.0f} records"
    )
    left = (certificate.strata.groups or certificate.strata.cells) - test.statements
    left += any(c.what == DECLARED_SIZE and c.declared is not None for c in certificate.declared_and_measured)
    counted = "records" if certificate.row_weight is None else "people"
    unchanged = "" if certificate.benchmark is not None else "; shares unchanged"
    uncounted = f"{several(left, 'more group')}: not counted, or impossible{unchanged}. " if left > 0 else ""
    return (
        f"In {counted}. Declared: the declared share of the measured total. Measured: by least squares over all that "
        f"was counted, ± the standard deviation of its noise. {rows if drawn else ''}"
        f"{uncounted}Difference of measured from declared, with its interval, and in standard deviations; {source}. "
        "Agrees: the "
        f"interval lies within {100 * test.margin:g} %; differs: it lies beyond; else it is not to be told. All "
        f"{test.statements} intervals and verdicts of this release hold at once in {100 * test.level:g} of 100 cases "
        f"({test.correction}), for the records of this table."
    )


def benchmark_figures(certificate: Certificate) -> list[Figure]:
    """Return a list of `Figure`, one for each control table of a certificate: its totals beside noisy and drawn ones.

    [] without a benchmark.
    """
    stated = certificate.benchmark
    return [] if stated is None else [_control_figure(stated, table) for table in stated.tables]


def _control_figure(stated: BenchmarkStated, table: ControlTableStated) -> Figure:
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
    rows = [_control_row(cell, factor, total, stated.rows) for cell in table.cells[:MOST]]
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


def _control_row(cell: ControlCell, factor: float | None, total: float, drawn: int | None) -> Row:
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
