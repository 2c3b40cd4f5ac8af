"""The commands about weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stratsynth.cli.options import AsJson, NewFolder, NewRows, ReleaseFolder, RowSeed, Select, TableName
from stratsynth.cli.terminal import echo, print_json

weights_app = typer.Typer(
    help="The shares of the groups that a release is made of.", no_args_is_help=True, rich_markup_mode=None
)


@weights_app.command("shares")
def weights_shares(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="PUBLIC_DATA",
            help="A public file, folder of .parquet files or DuckDB database, such as last year's; the command "
            "publishes its totals.",
        ),
    ],
    schema: Annotated[Path, typer.Option(metavar="SCHEMA", help="The schema with the levels of the groups.")],
    by: Annotated[str, typer.Option(metavar="COLUMNS", help="The strata's columns, such as SEX,RAC1P.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The CSV file to write.")],
    weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of the rows' weights, such as PWGTP; by default the schema's."),
    ] = None,
    table: TableName = None,
    query: Select = None,
) -> None:
    """Write each declared group's total in a PUBLIC file, for `source = "public"`. Exact: never of confidential rows.

    Every row counts as its whole weight, or as 1 if neither --weight nor the schema names a column. A file with an
    account, as every file has that was fitted, is refused, and so are rows of another file in the folder that has one.
    With the replicate weights PWGTP1 to PWGTP80 totals are written by each of them too: they are the error of the
    survey's design.
    """
    from stratsynth.weights.totals import write_totals

    total, groups = write_totals(data, schema, tuple(by.split(",")), weight, out, table, query)
    echo(f"{out}: {groups} groups that count {total:,.0f} together; cite where {data.name} was published.")


@weights_app.command("cap")
def weights_cap(
    data: Annotated[
        Path,
        typer.Argument(metavar="PUBLIC_DATA", help="A public file of an earlier year, with a weight for each record."),
    ],
    column: Annotated[str, typer.Option("--weight", metavar="COLUMN", help="The column of weights, such as PWGTP.")],
) -> None:
    """Choose the largest weight of a schema from a PUBLIC file: the least beyond which are at most 1 % of its people.

    Prints the schema's line. Never of the records that are to be released: a file with an account is refused.
    """
    from stratsynth.weights.cap import weight_cap

    found = weight_cap(data, column)
    echo(f"{found.words(data.name)}\n{found.line(column)}")


@weights_app.command("measured")
def weights_measured(
    release: ReleaseFolder,
    out: NewFolder,
    rows: NewRows = None,
    seed: RowSeed = None,
) -> None:
    """Make of a release one whose rows follow the measured sizes of the groups. Reads no data, spends nothing."""
    from stratsynth.cli.work import regroup

    number = regroup(release, out, rows, seed)
    echo(
        f"{number:,} rows by the measured sizes of the groups, in {out}; nothing was charged. Publish it in place of "
        f"{release}, not beside it: both are made of the same noisy answers.",
        done=f"The release in {out} is complete.",
    )


@weights_app.command("sensitivity")
def weights_sensitivity(
    release: ReleaseFolder,
    threshold: Annotated[
        float,
        typer.Option(metavar="PART", help="The change of a result that counts as a move: 0.02 is 2 %, or 2 points."),
    ] = 0.02,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Only this column, and all its levels; repeat for more columns."),
    ] = None,
    off: Annotated[
        float | None,
        typer.Option(
            metavar="PART", help="Show bands of the results if every share may be off by this part of itself."
        ),
    ] = None,
    intervals: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Show bands for shares between low and high: a CSV file with these and the groups' levels.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the error of a group's share that would move an overall result. Reads no data, spends nothing."""
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
