"""The commands and their arguments."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer

from stratsynth.cli.census import census_app
from stratsynth.cli.ledgers import ledger_app
from stratsynth.cli.options import AsJson, ReleaseFolder, RowSeed, Select, TableName
from stratsynth.cli.queries import query
from stratsynth.cli.releases import benchmark, certificate, cite, verify
from stratsynth.cli.schemas import schema_app
from stratsynth.cli.terminal import echo, print_json
from stratsynth.cli.weights import weights_app

app = typer.Typer(
    name="stratsynth",
    help="Differentially private synthetic tables whose small groups do not pay for everyone's privacy.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(schema_app, name="schema")
app.add_typer(ledger_app, name="ledger")
app.add_typer(weights_app, name="weights")
app.add_typer(census_app, name="census")
app.command()(query)
app.command()(certificate)
app.command()(cite)
app.command()(verify)
app.command()(benchmark)


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
    debug: Annotated[  # noqa: ARG001 - taken out of the arguments before they get here
        bool, typer.Option("--debug", help="Show tracebacks; they may hold private values.")
    ] = False,
) -> None:
    if version:
        from stratsynth.version import VERSION

        echo(VERSION)
        raise typer.Exit
    if context.invoked_subcommand is None:
        echo(context.get_help())
        raise typer.Exit(2)


@app.command()
def fit(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe file (TOML).")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="The release folder, instead of the recipe's."),
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Fit the strata's models in N processes, which never see a row; or by `processes` (one a core), "
            "`dask` or `ray`, perhaps with an address (dask:tcp://10.0.0.1:8786). Worthwhile for large models (many "
            "structural rules) and for engine mbi; the result is the same. By default the recipe's number, or 1.",
        ),
    ] = None,
    new_account: Annotated[
        str | None,
        typer.Option(
            metavar="REASON", help="Begin another ledger for a data file that has one; certificates quote the reason."
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Make, and charge in full, a fit that the ledger has done already.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Go on where the first question found far fewer usable records than declared. Its answer is not asked "
            "again, and not charged again.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Spend a recipe's budget and write a release folder.

    Exit code 4: the fit stopped after its first question, or the release is nearly empty.
    """
    from stratsynth.cli.work import fit_recipe

    number = workers is not None and workers.lstrip("+-").isdecimal()
    folder, certificate = fit_recipe(
        recipe,
        out,
        workers=int(workers or 0) if number else workers,
        new_account=new_account,
        again=again,
        proceed=yes or None,
    )
    from stratsynth.release.first import is_nearly_empty

    kinds = {notice["kind"] for notice in certificate.get("notices", ())}
    code = 4 if is_nearly_empty(certificate.statement) else 0
    if as_json:
        print_json({"release": str(folder), "certificate": certificate}, done=_complete(folder))
        raise typer.Exit(code)
    from stratsynth.cli.work import describe_rules
    from stratsynth.release.page.summary import summary

    echo(
        f"{'A release with NOTHING IN IT was' if 'empty' in kinds else 'Release'} written to {folder}\n\n"
        f"{summary(certificate, brief=True, more=describe_rules(folder))}\n\n"
        f"What is not protected, in full: stratsynth certificate {folder}",
        done=_complete(folder),
    )
    raise typer.Exit(code)


@app.command()
def plan(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe file (TOML).")],
    as_json: AsJson = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw error against group size into a .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Foresee a fit: noise, expected error and verdict for each stratum. Reads no data, spends nothing."""
    from stratsynth.cli.work import plan_recipe

    found = plan_recipe(recipe, plot)
    if as_json:
        print_json(found.to_dict())
    else:
        echo(str(found))


@app.command()
def check(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe file (TOML).")],
    as_json: AsJson = False,
) -> None:
    """INTERNAL: check all that can be known before budget is spent: recipe, data, shares, prior, account, places.

    Reads the data; charges nothing and writes nothing. Exit code 0: nothing fails; 1: something does, or more than 1 %
    of the records would be lost.
    """
    from stratsynth.recipes.check import check as checked

    found = checked(recipe)
    if as_json:
        print_json(found.to_dict())
    else:
        echo(str(found))
    if not found.ok:
        raise typer.Exit(1)


@app.command()
def sample(
    release: ReleaseFolder,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="A .csv or .parquet file; or a folder, which is filled with .parquet files of a million rows each. "
            "The same command goes on with a folder that was begun. Linked tables take a new folder, a file each.",
        ),
    ],
    rows: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--rows",
            metavar="N",
            help="How many rows; not needed with --by-group. Of linked tables parents, by default as many as were "
            "declared, or measured.",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=LEVEL",
            help="Only rows with this level, or COLUMN>=NUMBER, COLUMN<=NUMBER; repeat for more levels or columns. Of "
            "linked tables parents, and of the child's columns parents with such a child row.",
        ),
    ] = None,
    balance: Annotated[
        str | None,
        typer.Option(metavar="COLUMN,...", help="The same number of rows for every group of these columns."),
    ] = None,
    by_group: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A CSV file with each group's levels, and in a column `rows` its number of rows."
        ),
    ] = None,
    seed: RowSeed = None,
    like: Annotated[
        Path | None,
        typer.Option(
            "--as",
            metavar="FILE",
            help="Write the columns, order and spelling of this file, such as a published excerpt. It must be public, "
            "since its spelling shows in the output.",
        ),
    ] = None,
    groups: Annotated[
        str,
        typer.Option(
            metavar="declared|measured",
            help="Rows of each group by the release's own shares, or by the sizes that were measured.",
        ),
    ] = "declared",
    csv: Annotated[bool, typer.Option("--csv", help="Linked tables as .csv files, in place of .parquet.")] = False,
) -> None:
    """Draw synthetic rows from a release. Costs no privacy."""
    from stratsynth.cli.work import sample_release

    number, rules = sample_release(release, rows, out, where or [], seed, balance, by_group, like, groups, csv=csv)
    echo(f"{number:,} rows written to {out}{rules}", done=f"{out} is complete.")


@app.command()
def predict(
    release: ReleaseFolder,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="Rows to predict: a .csv, .csv.gz, .parquet, .feather or .arrow file, a folder of .parquet files or a "
            "DuckDB database.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A .csv or .parquet file.")],
    seed: Annotated[
        int | None, typer.Option(help="For releases that predict by chance: the same seed gives the same predictions.")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN,...", help="Columns of DATA, such as a person's number, in place of the rows' numbers."
        ),
    ] = None,
    table: TableName = None,
    query: Select = None,
) -> None:
    """Predict rows with a release that predicts. Costs no privacy.

    The file holds predictions alone, in the order of the rows, with the rows' numbers from 0 or the columns of --keep.
    """
    from stratsynth.cli.work import predict_rows

    number = predict_rows(release, data, out, seed, keep.split(",") if keep else (), table, query)
    echo(f"{number:,} predictions written to {out}", done=f"{out} is complete.")


@app.command()
def mechanisms(as_json: AsJson = False) -> None:
    """List the installed mechanisms, each with the paper it follows."""
    from stratsynth.cli.work import list_mechanisms

    found = list_mechanisms()
    if as_json:
        print_json(found)
        return
    width = max((len(m["name"]) for m in found), default=0)
    for m in found:
        echo(f"{m['name']:{width}}  {m['summary']}" + (f"\n{'':{width}}  {m['paper']}" if m["paper"] else ""))


def _complete(folder: Path) -> str:
    return f"The release in {folder} is complete."


def _add_commands() -> None:
    """Add the commands of other packages to the app: each entry point, `module:register`, is called with it.

    One that cannot be imported is reported, and must not keep anybody from the others.
    """
    for point in sorted(entry_points(group="stratsynth.commands"), key=lambda p: p.name):
        try:
            register = point.load()
        except (ImportError, AttributeError) as error:
            typer.echo(f"stratsynth: the commands of {point.value} are missing ({type(error).__name__}).", err=True)
        else:
            register(app)


_add_commands()
