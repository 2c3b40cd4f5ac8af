"""The commands about weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stratsynth.cli.options import AsJson, ReleaseFolder, Select, TableName
from stratsynth.cli.terminal import echo, print_json

weights_app = typer.Typer(
    help="The groups' shares that a release is put together by.", no_args_is_help=True, rich_markup_mode=None
)


@weights_app.command("shares")
def weights_shares(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="PUBLIC_DATA",
            help="A public file, folder of .parquet files or DuckDB database, such as last year's: its totals are "
            "written.",
        ),
    ],
    schema: Annotated[Path, typer.Option(metavar="SCHEMA", help="The schema whose levels the groups have.")],
    by: Annotated[str, typer.Option(metavar="COLUMNS", help="The strata's columns, such as SEX,RAC1P.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The CSV file to write.")],
    weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="What a row counts, such as PWGTP; the schema's column when not given."),
    ] = None,
    table: TableName = None,
    query: Select = None,
) -> None:
    """Write each declared group's total in a PUBLIC file, for `source = "public"`. Exact: never of confidential rows.

    A row counts as its weight, not cut, or 1 where neither --weight nor the schema names a column. Files that have an
    account, as those do that were fitted to, are refused.
    """
    from stratsynth.weights.totals import write_totals

    total, groups = write_totals(data, schema, tuple(by.split(",")), weight, out, table, query)
    echo(f"{out}: {groups} groups that count {total:,.0f} together; cite where {data.name} was published.")


@weights_app.command("sensitivity")
def weights_sensitivity(
    release: ReleaseFolder,
    threshold: Annotated[
        float, typer.Option(metavar="PART", help="How far a result must go to have moved: 0.02 is 2 %, or 2 points.")
    ] = 0.02,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Only this column, and all its levels; repeat for more columns."),
    ] = None,
    off: Annotated[
        float | None, typer.Option(metavar="PART", help="Show bands: every share may be off by this part of itself.")
    ] = None,
    intervals: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show bands: a CSV file with the groups' levels, low and high.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """How wrong a group's share must be to move an overall result. Reads no data, spends nothing."""
    from stratsynth.release import Release
    from stratsynth.release.sensitivity import weight_sensitivity
    from stratsynth.release.sensitivity_page import sensitivity_page
    from stratsynth.report.text import render

    found = weight_sensitivity(
        Release.load(release), threshold=threshold, columns=column or None, off=off, intervals=intervals
    )
    if as_json:
        print_json(found.to_dict())
    else:
        echo(render(sensitivity_page(found, every=bool(column))))
