"""Work of the commands, between arguments and printing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from stratsynth.errors import UsageError
from stratsynth.inputs import output_path
from stratsynth.release.hashes import CERTIFICATE

if TYPE_CHECKING:
    import pyarrow as pa

    from stratsynth.planning import Plan
    from stratsynth.release import Release
    from stratsynth.release.linked_draw import LinkedDrawing
    from stratsynth.release.shown import CertificateRecord
    from stratsynth.schema import Schema


def fit_recipe(path: Path, out: Path | None, **options: Any) -> tuple[Path, CertificateRecord]:
    """Refuse all that can be refused, then fit and write the release; return (its folder, `CertificateRecord`).

    Args:
        path: The recipe.
        out: The release folder, instead of the recipe's.
        options: Those of `RecipeOptions`; None where the recipe's holds.
    """
    from stratsynth.cli.progress import fit_with_progress
    from stratsynth.recipes.recipe import Recipe
    from stratsynth.release.folder import check_new

    recipe = Recipe.read(path)
    folder = check_new(out if out is not None else recipe.directory, "Name another with -o", probe=True)
    return folder, fit_with_progress(recipe, folder, recipe.options.over(**options)).certificate


def plan_recipe(path: Path, picture: Path | None) -> Plan:
    """Return the `Plan` of the recipe file `path`; draw it into the file `picture` if that is not None."""
    from stratsynth.recipes.outlook import planned
    from stratsynth.recipes.recipe import Recipe

    recipe = Recipe.read(path)
    found = planned(recipe)
    if picture is not None:
        from stratsynth.planning.plot import plot

        size = recipe.data.declared_size or 0
        plot(recipe.how(), recipe.schema(), recipe.budget(), picture, declared_size=size)
    return found


def regroup(folder: Path, out: Path, rows: int | None, seed: int | None) -> int:
    """Write a copy of a release's folder, rows by measured sizes, into `out`.

    Return the number of rows drawn by `seed`: `rows`, or without it the number in the release's table.
    """
    from stratsynth.release import Release

    return _made_anew(Release.load(folder).by_measured_sizes(), folder, out, rows, seed)


def rake_release(folder: Path, tables: Path, out: Path, rows: int | None, seed: int | None) -> tuple[int, str]:
    """Write a copy of the release `folder` to `out`, its rows raked to the totals that the TOML file `tables` names.

    Return (the number of rows, a summary); `rows` and `seed` are for drawing them, None for the default.
    """
    from stratsynth.recipes.recipe import benchmark_in
    from stratsynth.release import Release
    from stratsynth.release.folder import check_new
    from stratsynth.release.page.words import benchmark_words, warnings

    check_new(out, "Name another with -o", probe=True)
    release = Release.load(folder).benchmarked(benchmark_in(tables))
    stated = release.statement
    assert stated.benchmark is not None  # noqa: S101 - it was raked
    said = [*warnings(stated), benchmark_words(stated.benchmark)]
    return _made_anew(release, folder, out, rows, seed), "\n\n".join(said)


def _made_anew(release: Release, folder: Path, out: Path, rows: int | None, seed: int | None) -> int:
    """Save `release`, made of the one in `folder`, to `out`, with rows drawn by `seed`; return their number.

    There are `rows`, or as many as in `folder` if that is None; UsageError if neither is known.
    """
    import pyarrow.parquet as pq

    table = folder / "synthetic.parquet"
    number = rows if rows is not None or not table.is_file() else int(pq.read_metadata(table).num_rows)
    if number is None:
        raise UsageError("the number of rows is missing: give -n.")
    release.save(out, rows=number, seed=seed, csv=(folder / "synthetic.csv").is_file())
    return number


def refuse_release(out: Path) -> None:
    """Raise UsageError for a path `out` within a release folder, where `verify` would find it."""
    place = out.resolve()
    inside = next((above for above in (place, *place.parents) if (above / CERTIFICATE).is_file()), None)
    if inside is not None:
        raise UsageError(
            f"{out} lies in the release {inside}, which holds what its certificate lists and nothing else: `stratsynth "
            "verify` would find it. Name a file beside the folder."
        )


def sample_release(
    folder: Path,
    rows: int | None,
    out: Path,
    where: Sequence[str],
    seed: int | None,
    balance: str | None = None,
    by_group: Path | None = None,
    like: Path | None = None,
    groups: str = "declared",
    *,
    csv: bool = False,
) -> tuple[int, str]:
    """Draw rows of the release `folder` to the file or folder `out`; return (number, line on rules or "").

    Others are options of the command `sample`: `rows` in all or `by_group` (else UsageError), conditions `where`,
    `seed`, columns to `balance`, a file whose spelling is `like` it, `groups` by declared or measured sizes; of linked
    tables `csv` for files of that kind.
    """
    from stratsynth.cli.queries import levels
    from stratsynth.data.writing import write_table
    from stratsynth.fitting.refusals import check_groups
    from stratsynth.models.base import Returns
    from stratsynth.models.rules import Moved
    from stratsynth.release import Release
    from stratsynth.release.linked_draw import LinkedDrawing
    from stratsynth.release.page.words import rules_line
    from stratsynth.release.sampling import PIECE, SampleRequest
    from stratsynth.release.streaming import is_folder, write_file, write_folder

    check_groups("--groups", groups)
    refuse_release(out)
    if not is_folder(out):
        output_path(out)
    elif like is not None:
        raise UsageError("--as writes one file, in the spelling of another; name a .csv or .parquet file with -o.")
    condition = levels(where, "--where")
    columns = None if balance is None else balance.split(",")
    release, moved, table = Release.load(folder), Moved(), None
    if rows is None and by_group is None and release.model.returns != Returns.TABLES:
        raise UsageError("the number of rows is missing: give -n, or --by-group with each group's number.")
    if release.model.returns == Returns.TABLES:
        if columns or by_group is not None or like is not None or groups != "declared":
            raise UsageError(
                "this release draws two linked tables: of the options give -n, their number of parents, --where, "
                "--seed and --csv alone."
            )
        if out.suffix.lower() in {".csv", ".parquet"}:
            raise UsageError(f"two linked tables are written to a folder, and {out} is the name of a file.")
        return _sample_linked(LinkedDrawing.of(release, rows, seed, condition), out, csv=csv)
    if csv:
        raise UsageError("--csv is for two linked tables; name a .csv file with -o.")
    release = release.by_measured_sizes() if groups == "measured" else release
    large = rows is not None and rows > PIECE and out.suffix.lower() == ".parquet" and like is None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if is_folder(out):
            number = write_folder(release, SampleRequest(rows, condition, by_group, None, columns), seed, out)
        elif large:
            number = write_file(release, SampleRequest(rows, condition, by_group, None, columns), seed, out, moved)
        else:
            table = release.sample_arrow(
                rows, seed=seed, where=condition, n_by_group=by_group, balance=columns, moved=moved
            )
            number = int(table.num_rows)
    for warning in said:
        typer.echo(f"stratsynth: note: {warning.message}", err=True)
    if table is not None:
        write_table(table if like is None else _in_the_coding(table, release.model.schema, like), out)
    counted = release.model.schema.rules and not is_folder(out)  # a folder may have been begun by another run
    return number, f"\nRules: {rules_line(moved.to_dict())}" if counted else ""


def _sample_linked(drawing: LinkedDrawing, out: Path, *, csv: bool) -> tuple[int, str]:
    """Write a `LinkedDrawing` of two tables to the new folder `out`, a file each, CSV or Parquet.

    Returns the number of all rows, and lines with that of each table and what drawing gave up.
    """
    from stratsynth.release.linked_files import write_linked
    from stratsynth.release.page.words import given_up

    rows, counted = write_linked(drawing, out, csv=csv)
    each = ", ".join(f"{name} {number:,}" for name, number in rows.items())
    parent, child = drawing.where.linked.names
    some = "" if drawing.where.free else f"\n{counted['parents']:,} {parent}s were drawn for these."
    return sum(rows.values()), f"\nRows of each table: {each}{some}\n{given_up(counted, parent, child)}"


def _in_the_coding(table: pa.Table, schema: Schema, like: Path) -> pa.Table:
    """Return the Arrow table `table`, rows of `schema`, in the spelling of the file `like`, which has to be public.

    Notes to stderr name columns that only one of them has, and those written as text where the file's type cannot
    hold them.
    """
    from stratsynth.data.overlap import check_public_inputs
    from stratsynth.release.coding import recoded

    check_public_inputs(declared=[like])  # how a file spells its values is read from every row, and shows in the output
    found = recoded(table, schema, like)
    notes = (
        (f"lacks the {_columns(found.lacking)}", found.lacking),
        (f"has {_columns(found.dropped)} that that file lacks:", found.dropped),
        ("has values that this column's type in that file cannot hold, so that it is written as text:", found.texts),
    )
    for what, names in notes:
        if names:
            typer.echo(f"stratsynth: note: the release {what} {', '.join(names)}", err=True)
    return found.table


def _columns(names: Sequence[str]) -> str:
    return "column" if len(names) == 1 else "columns"


def predict_rows(
    folder: Path,
    data: Path,
    out: Path,
    seed: int | None = None,
    keep: Sequence[str] = (),
    table: str | None = None,
    query: str | None = None,
) -> int:
    """Write predictions of the release `folder` for the rows of `data`, with their columns `keep`, to `out`.

    Return the number of predictions; `seed` is for chance, `table` or `query` name rows in a database. UsageError for
    an `out` in a release, and for lists in CSV.
    """
    import pyarrow as pa

    from stratsynth.data.sources import open_source
    from stratsynth.data.writing import write_table
    from stratsynth.release import Release

    refuse_release(out)
    predictions = Release.load(folder).predictions(open_source(data, table, query), seed=seed, keep=keep)
    if out.suffix == ".csv":
        for column in predictions.schema:
            if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
                raise UsageError(f"predict: {column.name} holds {column.type}, which CSV cannot; name a .parquet file.")
    write_table(predictions, out)
    return int(predictions.num_rows)


def describe_rules(folder: Path) -> list[tuple[str, str]]:
    """Return [("Rules", sentence)] on how many rows of release `folder` rules changed, or []; or ReleaseError."""
    from stratsynth.errors import ReleaseError
    from stratsynth.files.atomic import read_json
    from stratsynth.release.folder import RULES
    from stratsynth.release.page.words import rules_line

    try:
        return [("Rules", rules_line(read_json(folder / RULES)))]
    except FileNotFoundError:
        return []  # no rules
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{folder}: {RULES} is damaged ({type(error).__name__}).") from None


def list_mechanisms() -> list[dict[str, Any]]:
    """Return a list of dicts, one a mechanism: name, summary (a first sentence), paper, package, settings."""
    from stratsynth.errors import StratsynthError
    from stratsynth.mechanisms import installed, load
    from stratsynth.mechanisms.documented import listed

    found = []
    for name, point in installed().items():
        settings: list[dict[str, Any]] = []
        try:
            kind = load(name)
            paper, settings, first = str(kind.paper), listed(kind), _first_sentence(kind.__module__)
        except StratsynthError as error:
            paper, first = "", str(error)
        package = point.dist.name if point.dist is not None else ""
        found.append({"name": name, "summary": first, "paper": paper, "package": package, "settings": settings})
    return found


def _first_sentence(module: str) -> str:
    import sys

    text = " ".join((sys.modules[module].__doc__ or "").split())
    return text.split(". ")[0].rstrip(".")
