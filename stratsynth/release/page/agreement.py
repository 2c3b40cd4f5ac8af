"""Declared, measured and synthetic numbers of records of every group, as a table of pages and certificates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stratsynth.release.declared import DECLARED_SIZE, MEASURED, SHARE
from stratsynth.report.numbers import several, short
from stratsynth.report.page import Cell, Column, Figure, Row, Table

if TYPE_CHECKING:
    from stratsynth.certificate import AgreementStated, Certificate, ComparisonStated

MOST = 400
"""Largest number of groups in the table, those of the largest differences; certificate.json has all."""


def agreement_figure(certificate: Certificate, named: Callable[[str], str] = str) -> Figure | None:
    """Return the Figure of declared beside measured numbers of groups; None for a certificate that has none.

    Args:
        certificate: The certificate.
        named: The words for a group of this label.
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
    interval = "" if c.low is None or c.high is None else f" ({_tenths(c.low)} to {_tenths(c.high)})"
    return f"{_tenths(c.difference)}{interval}"


def _tenths(part: float) -> str:
    """Return `part`, 1 being all, as text in per cent with + or − and one decimal, without the word: "+12.3"."""
    return f"{100 * part:+,.1f}".replace("-", "−")


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
