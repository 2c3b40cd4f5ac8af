"""The commands about files of the American Community Survey."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from stratsynth.cli.options import AsJson
from stratsynth.cli.terminal import echo, print_json
from stratsynth.errors import UsageError
from stratsynth.inputs import output_path

census_app = typer.Typer(
    help="Person records of the American Community Survey, 2014 to 2024: schemas, loading, public group shares.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Year = Annotated[int, typer.Option(help="The survey year, 2014 to 2024.")]
State = Annotated[str | None, typer.Option(metavar="XX", help="The state's two letters, if the file is of one state.")]
Columns = Annotated[str | None, typer.Option(metavar="A,B,...", help="The columns, by their names in that year.")]
Task = Annotated[str | None, typer.Option(metavar="NAME", help="A task of folktables, such as ACSEmployment.")]
Dictionary = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The Bureau's PUMS_Data_Dictionary_YYYY.csv, for its levels and labels."),
]
Codes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=FILE",
        help="A public list of a column's codes (code, label, group), each once; repeat for more.",
    ),
]
CodesCitation = Annotated[str, typer.Option(metavar="TEXT", help="Where the lists of --codes were published.")]


@census_app.command("schema")
def census_schema(
    year: Year,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The schema file to write.")],
    task: Task = None,
    columns: Columns = None,
    state: State = None,
    without: Annotated[str | None, typer.Option(metavar="A,B,...", help="Columns of the task to leave out.")] = None,
    dictionary: Dictionary = None,
    codes: Codes = None,
    codes_citation: CodesCitation = "",
    within: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Public shares of a column's codes, from `census shares --by COLUMN`."),
    ] = None,
    citation: Annotated[str, typer.Option(help="Where the shares of --within were published.")] = "",
    weight: Annotated[
        int | None, typer.Option(metavar="MAX", help="Count every record as its PWGTP, up to this public number.")
    ] = None,
    weight_mean: Annotated[
        str | None,
        typer.Option(metavar="MEAN", help="The mean weight: a number, or PEOPLE/RECORDS of published totals."),
    ] = None,
    weight_from: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A public-use file of an earlier year: mean and largest weight follow from it, not from the data. At "
            "most 1 % of its people are beyond the largest.",
        ),
    ] = None,
    households: Annotated[
        bool, typer.Option("--households", help="Households with their persons, as linked tables: both files.")
    ] = False,
    household_columns: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="The columns of households, with --households.")
    ] = None,
    kinds: Annotated[
        bool,
        typer.Option("--kinds", help="Vacant units and group quarters too, with --households: for strata by KIND."),
    ] = False,
) -> None:
    """Write the public schema of person records, or of linked tables: levels, bins, codes, rules. Reads no data."""
    from stratsynth.census.acs.make import make
    from stratsynth.files.atomic import write_text

    output_path(out, "name another with -o")
    if not out.parent.is_dir():
        raise UsageError(f"{out}: there is no folder {out.parent}.")
    if households or kinds or household_columns is not None:
        others = (task, without, dictionary, codes, within, weight, weight_mean, weight_from)
        if not households:
            raise UsageError("--household-columns and --kinds go with --households.")
        if any(other is not None for other in others):
            raise UsageError(
                "--households takes --household-columns, --columns, --kinds, --year, --state, and no other option."
            )
        _linked(out, _listed(columns), _listed(household_columns), year, state, kinds=kinds)
        return
    made = make(
        _listed(columns),
        task=task,
        year=year,
        state=state,
        without=_listed(without) or (),
        dictionary=dictionary,
        codes=_tables(codes),
        codes_citation=codes_citation,
        within=within or (),
        citation=citation,
        weight=weight,
        weight_mean=weight_mean,
        weight_from=weight_from,
    )
    write_text(out, made.to_toml())
    size = f"{len(made.schema.names)} columns and {len(made.schema.rules)} rules written to {out}"
    echo("\n".join([*made.notes, size]), done=f"{out} is complete.")


@census_app.command("load")
def census_load(
    state: Annotated[str, typer.Option(metavar="XX", help="The state's two letters.")],
    year: Year,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A .parquet or .csv file.")],
    source: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="FILE|FOLDER",
            help="The Bureau's file, or a folder that holds it, folktables' too.",
        ),
    ] = Path("data"),
    task: Task = None,
    columns: Columns = None,
    horizon: Annotated[str, typer.Option(help="1-Year or 5-Year.")] = "1-Year",
    download: Annotated[bool, typer.Option("--download", help="Fetch the file if the folder has none.")] = False,
    households: Annotated[
        bool, typer.Option("--households", help="Household records, linked to those of persons by SERIALNO.")
    ] = False,
) -> None:
    """Verify the Bureau's file of a state and write its records. Uses the network with --download alone."""
    from stratsynth.census.acs.load import load

    done = load(
        out,
        state=state,
        year=year,
        columns=_listed(columns),
        task=task,
        source=source,
        horizon=horizon,
        download=download,
        households=households,
    )
    kept = f"{done.kept:,} of its {done.rows:,} records" if done.kept < done.rows else f"{done.rows:,} records"
    echo(f"Read from {done.path}: of {state.upper()}, {year}, as its header, states and serial numbers say.")
    echo(f"{kept}, {len(done.columns)} columns written to {out}", done=f"{out} is complete.")


@census_app.command("shares")
def census_shares(
    source: Annotated[Path, typer.Option("--from", metavar="FILE", help="A public-use file of an earlier year.")],
    by: Annotated[str, typer.Option(metavar="A,B,...", help="The groups' columns; or one code list, for --within.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The .csv file to write.")],
    weight: Annotated[str, typer.Option(metavar="COLUMN", help="The records' weights; none counts records.")] = "PWGTP",
    smooth: Annotated[float, typer.Option(help="Records of average weight that are added to every group.")] = 0.5,
    origin: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="A name of the file for its citation, if it is not the Bureau's own."),
    ] = None,
    year: Annotated[
        int | None,
        typer.Option(help="The survey year; needed where neither serial numbers nor the file's name say it."),
    ] = None,
    state: State = None,
    dictionary: Dictionary = None,
    codes: Codes = None,
    codes_citation: CodesCitation = "",
) -> None:
    """Work out public shares of groups from a public-use file of an earlier year, with their citation.

    Year, state and origin of the citation are those of the file: its serial numbers, columns and name. With replicate
    weights (PWGTP1 to PWGTP80) shares have their standard errors beside them and, of 2,000 groups at most, the shares
    by each replicate weight, for design-based intervals of means that are weighted by them.
    """
    from stratsynth.census.acs.shares import shares
    from stratsynth.files.atomic import write_text

    if out.suffix != ".csv" or not out.parent.is_dir():
        raise UsageError(f"{out}: shares are written to a .csv file in a folder that exists.")
    found = shares(
        source,
        _listed(by) or (),
        year=year,
        weight=None if weight == "none" else weight,
        smooth=smooth,
        origin=origin,
        state=state,
        dictionary=dictionary,
        codes=_tables(codes),
        codes_citation=codes_citation,
    )
    write_text(out, found.frame.to_csv(index=False))
    lines = [
        f"{len(found.frame):,} groups written to {out}; {found.empty:,} of them without a record in the file.",
        f"The error of the survey's design: {found.design}.",
        f"They are of {found.year}: of records of that year they would be a disclosure.",
        "In a recipe:",
        "",
        "[weights]",
        'source = "public"',
        f"path = {json.dumps(str(out))}",
        f"citation = {json.dumps(found.citation, ensure_ascii=False)}",
        f"records = {found.effective}  # of equal weight, for the sampling error of the shares",
    ]
    echo("\n".join(lines), done=f"{out} is complete.")


@census_app.command("check")
def census_check(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A .csv, .csv.gz or .parquet file.")],
    schema: Annotated[Path, typer.Option(metavar="SCHEMA", help="A schema file.")],
    year: Year,
    as_json: AsJson = False,
) -> None:
    """INTERNAL: name the columns that are missing or of another year, and count what a fit would lose.

    Unknown values are named with their numbers, and so are broken rules. Exit code 1: more than 1 % of the records
    would be lost, have in one column a value that the schema does not know, or break a rule. Exit code 2: a column is
    missing or of another year.
    """
    from stratsynth.census.acs.check import check
    from stratsynth.schema import Schema

    found = check(data, Schema.load(schema), year)
    if as_json:
        rules = [{"rule": rule, "records": count} for rule, count in found.rules]
        record = {
            "missing": found.verdict.missing,
            "other_year": found.verdict.other,
            "unknown": found.verdict.unknown,
            "rows": found.rows,
            "left_out": found.left_out,
            "rules": rules,
            "lists": list(found.lists),
            "schema": None if found.found is None else found.found.to_dict(),
            "ok": found.fits,
        }
        print_json(record)
    else:
        echo(found.text())
    if not found.fits:
        raise typer.Exit(2 if found.verdict else 1)


@census_app.command("tasks")
def census_tasks() -> None:
    """List the tasks of folktables."""
    from stratsynth.census.acs.catalogue import tasks

    for name, task in tasks().items():
        keep = " and ".join(task.keep) or "all records"
        echo(f"{name:18} {task.about}: {task.target} {task.positive}, of {keep}")


def _linked(
    out: Path, columns: list[str] | None, households: list[str] | None, year: int, state: str | None, *, kinds: bool
) -> None:
    """Write the schema of households and persons to the file `out`, with the usual columns where none are named.

    `columns` and `households` name those of the two tables; `year`, `state` and `kinds` are as for `linked_schema`.
    """
    from stratsynth.census.acs.linked import HOUSEHOLD, PERSON, make_linked
    from stratsynth.files.atomic import write_text

    made = make_linked(columns or PERSON, households or HOUSEHOLD, year=year, state=state, kinds=kinds)
    write_text(out, made.to_toml())
    above, below = made.schema.parent.names, made.schema.child.names
    size = f"{len(above)} columns of households and {len(below)} of persons written to {out}"
    echo("\n".join([*made.notes, size]), done=f"{out} is complete.")


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _tables(given: list[str] | None) -> dict[str, str]:
    """Return a mapping, column -> file, from texts COLUMN=FILE, `given`; {} for None, UsageError for another form."""
    found = {}
    for text in given or ():
        name, sign, path = text.partition("=")
        if not sign or not name or not path:
            raise UsageError(f"--codes: {text!r} is not of the form COLUMN=FILE.")
        found[name] = path
    return found
