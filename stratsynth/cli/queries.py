"""The command that answers questions about a release: `query`."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratsynth.checks import is_list
from stratsynth.cli.options import AsJson, ReleaseFolder
from stratsynth.cli.terminal import echo, print_json
from stratsynth.errors import UsageError, nearest
from stratsynth.inputs import output_path
from stratsynth.report.page import Column, Figure, Page, Section, Table
from stratsynth.report.text import render

if TYPE_CHECKING:
    from stratsynth.answers import Query

CONDITION = re.compile(r"([^=<>]*)(>=|<=|=|>|<)(.*)", re.DOTALL)
"""Form of one condition: column, sign, level or number."""
WHOLE = 10_000
"""Least number that is printed without a fraction."""
LAST = ("above", "model", "note", "design_low", "design_high")
"""Columns of results that most releases leave empty."""
KEYS = ("columns", "where", "by", "statistic", "level", "quantile", "versus")


def query(
    release: ReleaseFolder,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN,...", help="The columns whose cells are counted; for a mean or a quantile, one column."
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=LEVEL",
            help="Only rows with this level, number or range (AGE=20..39), or COLUMN>=NUMBER, COLUMN<=NUMBER; repeat "
            "for more levels or columns.",
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN,...", help="Columns; each of their groups gets a result.")
    ] = None,
    statistic: Annotated[
        str,
        typer.Option(help="count; share, a part of the rows; rate, of the rows of a group; mean; or quantile."),
    ] = "count",
    level: Annotated[float, typer.Option(help="The probability with which each interval holds.")] = 0.95,
    quantile: Annotated[
        float | None, typer.Option(help="With --statistic quantile: which one; 0.5, the median, if omitted.")
    ] = None,
    versus: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=LEVEL", help="Differences from the cell with this level; repeat for more."),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"Many at once: a JSON list of tables with the keys {', '.join(KEYS)}."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a new .csv file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Estimates with intervals from a release's noisy tables: counts, shares, rates, means, quantiles, differences.

    Two intervals, binning included: noise_low to noise_high for the private rows themselves, low to high for a
    population of which they would be a simple random sample. The design of the survey that drew the private rows is in
    neither: their replicate weights are not asked. A third, design_low to design_high, is design-based: of a mean that
    a release weighs by public shares, by the replicate weights of the survey that these are of.

    \b
    status
    ok             measured: intervals hold as often as --level says; those of
                   whole numbers with a bin each, at least as often
    small          the same, of a count or share whose noise interval holds 0
    bounded        at least as often: numbers may lie anywhere in their bins; or
                   strata that lack a table may have from none to all of their
                   measured records in the cell
    assumed        the same, where the size of such a stratum was declared and
                   never measured: it has at most twice as many
    not_estimable  no interval: no measured table covers the question, noise
                   hides the rows, or bins leave a mean too much room. `model`
                   is the value of the model, or of numbers as drawn in bins

    A column with a `clip` in the schema has means of min(x, clip), from measured sums; `above` is the most that numbers
    above it may add: the mean itself is from noise_low to noise_high + above. Reads no data, spends nothing.
    """  # noqa: D301 - the command keeps the lines of a paragraph that starts with a backspace
    from stratsynth.answers import Query
    from stratsynth.release.opening import open_answers

    if out is not None:
        output_path(out)
    if queries is not None and (columns or where or by or versus):
        raise UsageError("query: give --queries, or columns and conditions, not both.")
    wanted = None if queries is None else read_queries(queries)
    asked = Query(
        _names(columns),
        levels(where or [], "--where"),
        _names(by),
        statistic,
        level,
        quantile,
        {name: some[0] for name, some in levels(versus or [], "--versus", several=False).items()},
    )
    answers = open_answers(release)
    found = answers.one(asked) if wanted is None else answers.many(wanted)
    if out is not None:
        out.write_text(_csv(found), encoding="utf-8", newline="")
        echo(f"{len(found['status']):,} results written to {out}", done=f"{out} is complete.")
    elif as_json:
        print_json(_rows(found))
    else:
        echo(render(_page(found, answers.conditions)))


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def levels(items: Sequence[str], option: str, *, several: bool = True) -> dict[str, list[str]]:
    """Return {column: levels} from texts COLUMN=LEVEL, `items`; UsageError, naming the `option`, for another form.

    COLUMN>=NUMBER and COLUMN<=NUMBER are the ranges "NUMBER.." and "..NUMBER". Without `several`, UsageError also for a
    column named twice, and for a range.
    """
    found: dict[str, list[str]] = {}
    for item in items:
        parts = CONDITION.fullmatch(item)
        column, sign, level = parts.groups() if parts else ("", "", "")
        if sign in (">", "<") and "=" in level:  # such a sign may be a part of the column's name
            column, sign, level = item.partition("=")
        if not column or not sign:
            raise UsageError(f"{option} {item!r} is not COLUMN=LEVEL.")
        if sign in (">", "<") or (sign != "=" and not several):
            forms = "COLUMN=LEVEL" + ", COLUMN>=NUMBER or COLUMN<=NUMBER" * several
            raise UsageError(f"{option} {item!r} is not {forms}; ranges include their ends.")
        if column in found and not several:
            raise UsageError(f"{option} names {column} twice.")
        text = {">=": f"{level.strip()}..", "<=": f"..{level.strip()}"}.get(sign, level)
        found.setdefault(column.strip() if sign != "=" else column, []).append(text)
    return found


def read_queries(file: Path) -> list[Query]:
    """Return a list of `Query` of a JSON file; UsageError if unreadable, no list of mappings, or with unknown keys."""
    from stratsynth.answers import Query

    try:
        listed = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{file} is not JSON.") from None
    if not is_list(listed) or not listed or not all(isinstance(item, Mapping) for item in listed):
        raise UsageError(f"{file} must be a JSON list of queries, such as [{{'columns': ['SEX']}}].")
    for item in listed:
        for key in item:
            if key not in KEYS:
                raise UsageError(f"{file}: a query has no key {key!r}{nearest(key, KEYS)}. It has: {', '.join(KEYS)}.")
    return [Query(**item) for item in listed]


def _rows(found: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Return a list of one dict a result, from `found`, lists by column; unknown numbers become None."""
    plain = {name: [None if _unknown(value) else value for value in values] for name, values in found.items()}
    return [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]


def _unknown(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _shown(value: float) -> str:
    """Return the text of a number `value`: to six digits, and large ones whole, with commas."""
    return f"{value:,.0f}" if abs(value) >= WHOLE else f"{value:.6g}"


def _csv(found: Mapping[str, list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(found)
    writer.writerows(["" if _unknown(value) else value for value in row] for row in zip(*found.values(), strict=True))
    return text.getvalue()


def _page(found: Mapping[str, list[Any]], conditions: Sequence[str]) -> Page:
    """Return the Page of the results `found`, lists by column, without those of `LAST` where empty.

    `conditions` follow.
    """
    shown = {
        name: values
        for name, values in found.items()
        if name not in LAST or any(value and not _unknown(value) for value in values)
    }
    columns = [
        Column(name, "number" if any(isinstance(value, float) for value in values) else "text")
        for name, values in shown.items()
    ]
    rows = [
        ["" if _unknown(v) else _shown(v) if isinstance(v, float) else str(v) for v in row]
        for row in zip(*shown.values(), strict=True)
    ]
    table = Table("", columns, rows, most=len(rows))
    return Page("", sections=[Section("answers", "", figures=[Figure("", table=table)], notes=conditions)])
