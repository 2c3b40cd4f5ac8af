"""Loading: verify the Bureau's file and write the wanted columns as a table.

Codes are kept as the file spells them, numbers as integers, and values that do not apply as null, which a schema's
`not_applicable` reads. (folktables turns such values into 0, which is a level of its own in some columns.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.census.acs.catalogue import entries, in_year, task
from stratsynth.census.acs.header import HeaderVerdict, judge
from stratsynth.census.acs.linked import KIND
from stratsynth.census.acs.parquet import is_parquet, parquet_columns, read_parquet
from stratsynth.census.acs.source import Fetch, StateFile
from stratsynth.checks import path as given_path
from stratsynth.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

ALWAYS = ("SERIALNO", "SPORDER", "PWGTP", "WGTP")
"""Columns written unless others are named: household, person in it, and weight in people or housing units."""


@dataclass(frozen=True)
class Loaded:
    """Result of loading: the source and what was written."""

    path: Path
    """The Bureau's file."""
    rows: int
    """Records of the file."""
    kept: int
    """Records written: for a task, those that meet its conditions."""
    columns: tuple[str, ...]
    """Columns written."""


def load(
    out: str | PathLike[str],
    *,
    state: str,
    year: int,
    columns: Sequence[str] | None = None,
    task: str | None = None,
    source: str | PathLike[str] = "data",
    horizon: str = "1-Year",
    download: bool = False,
    fetch: Fetch | None = None,
    households: bool = False,
) -> Loaded:
    """Write a state's person or household records to a file, verified; return a `Loaded`: source, numbers, columns.

    Args:
        out: The .parquet or .csv file to write; whole or not at all.
        state: The state's two letters.
        year: The survey year.
        columns: The columns to write; by default those that schemas know, with SERIALNO, SPORDER and PWGTP, or WGTP.
        task: Instead, the columns and the rows of a task of folktables.
        source: The Bureau's file, as .csv, .csv.gz, .zip or .parquet, or a folder that holds it, also as folktables
            keeps it.
        horizon: "1-Year" or "5-Year".
        download: True to fetch the file into the folder if it is missing. Nothing else uses the network.
        fetch: Function that fetches it, instead of HTTPS.
        households: True for the records of housing units and group quarters, which SERIALNO links to their persons.
            They get a column KIND: 1 occupied, 2 vacant, 3 institutional and 4 other group quarters.

    Raises:
        UsageError: No file, a damaged one, or one of another state or year; with the remedy.
    """
    from stratsynth.data.writing import write_table

    if households and task is not None:
        raise UsageError("census: tasks are of person records; name columns of households, or none.")
    records = "households" if households else "persons"
    wanted, place = StateFile(state, year, horizon, records), given_path("census: the source", source)
    try:
        path = wanted.find(place)
    except UsageError:
        if not download or (place.exists() and not place.is_dir()):
            raise
        path = wanted.download(place, fetch)
    names, header = _names(columns, task, year), _header(wanted, path)
    behind = (in_year("TYPEHUGQ", year), "NP")
    wished = KIND in (names if names is not None else (KIND,) if behind[0] in header else ())
    made = [KIND] if households and wished and KIND not in header else []
    verdict = judge(header, [name for name in names or () if name not in made] + [*behind] * len(made), year)
    _refuse(verdict, path, header)
    chosen = names or (*(name for name in header if name in _known(year) or name in ALWAYS), *made)
    asked = [] if task is None else conditions(task, year)
    read = [name for name in chosen if name not in made] + [*behind] * len(made)
    table = _read(wanted, path, header, (*dict.fromkeys(read), *(name for name, _, _ in asked)))
    rows = table.num_rows
    if made:
        table = table.append_column(KIND, _kinds(table.column(behind[0]), table.column("NP")))
    for name, sign, value in asked:
        table = table.filter(meets(table.column(name), sign, value))
    table = table.select(list(chosen))
    write_table(table, out)
    return Loaded(path, rows, table.num_rows, chosen)


def _kinds(record: pa.ChunkedArray, persons: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column KIND of household records, by the kind of `record` and the number of `persons` of each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    quarters = pc.if_else(
        pc.equal(record, "2"), "3", pc.if_else(pc.equal(record, "3"), "4", pa.scalar(None, pa.string()))
    )
    unit = pc.if_else(pc.equal(persons, 0), "2", "1")
    return pc.if_else(pc.equal(record, "1"), unit, quarters)


def _names(columns: Sequence[str] | None, name: str | None, year: int) -> tuple[str, ...] | None:
    """Return a tuple of the columns as named in that year, those of the task `name` with the weight; None for all.

    Or UsageError.
    """
    if columns is not None and name is not None:
        raise UsageError("census: give columns, or a task, or neither.")
    if name is not None:
        found = task(name)
        return tuple(dict.fromkeys(in_year(each, year) for each in (*found.features, found.target, "PWGTP")))
    if columns is None:
        return None
    if isinstance(columns, str) or not columns or len(set(columns)) < len(columns):
        raise UsageError("census: columns is a list of different names, at least one.")
    return tuple(columns)


def _known(year: int) -> set[str]:
    """Return the set of the names of the catalogue's columns of that year, without those that cannot be released."""
    return {each.name for each in entries() if not each.refused and each.valid(year)}


def _header(wanted: StateFile, path: Path) -> tuple[str, ...]:
    """Return a tuple of the column names of the file `path`, in order.

    UsageError unless it has the records of the `wanted` `StateFile`.
    """
    from stratsynth.data.csvlines import header

    if is_parquet(path):
        names = parquet_columns(path, wanted.url)
    else:
        with wanted.open(path) as file:
            names = tuple(name.strip().strip('"') for name in header(file))
    if len(set(names)) < len(names):
        raise UsageError(f"census: {path} has two columns of one name. The Bureau's file is {wanted.url}")
    if wanted.records == "households":
        if "NP" not in names or "AGEP" in names:
            raise UsageError(
                f"census: {path} is no file of household records, which have NP and no AGEP. The Bureau's is "
                f"{wanted.url}"
            )
    elif "AGEP" not in names:
        raise UsageError(
            f"census: {path} is no file of person records: {_lacking(names)}. The Bureau's is {wanted.url}"
        )
    return names


def _lacking(names: Sequence[str]) -> str:
    """Return the reason that a file with the columns `names`, without AGEP, has none; none of the names is quoted."""
    from stratsynth.data.lost import separator

    if len(names) == 1 and (mark := separator(names[0])):
        return f"its fields are separated by {mark}, not by commas"
    if {"NP", "HINCP"} & {*names}:
        return "it has no column AGEP, and those of housing units, which are files of their own (psam_h)"
    if any(name.strip().upper() == "AGEP" for name in names):
        return "AGEP is there in other letters or with spaces; its columns are in capitals"
    return "it has no column AGEP"


def _refuse(verdict: HeaderVerdict, path: Path, header: Sequence[str]) -> None:
    if verdict:
        raise UsageError(f"census: {path}: {verdict.text()}")
    if not {"ST", "STATE"} & {*header}:
        raise UsageError(f"census: {path} has neither ST nor STATE, so nobody can tell which state it is of.")


def _read(wanted: StateFile, path: Path, header: Sequence[str], names: Sequence[str]) -> pa.Table:
    """Return an Arrow table of the columns `names` of the file `path`, a `StateFile`: numbers or text.

    `wanted` says of which state and year. `header` are all its columns.
    UsageError for a damaged or empty file, and for a row of another state or year.
    """
    import pyarrow as pa
    import pyarrow.csv as reader

    numeric = {each.name for each in entries() if each.number is not None} | {"PWGTP", "SPORDER", "WGTP"}
    place = "STATE" if "STATE" in header else "ST"
    proofs = [place, *(["SERIALNO"] if "SERIALNO" in header else [])]
    wide = list(dict.fromkeys((*names, *proofs)))
    kinds = {name: pa.int64() if name in numeric else pa.string() for name in wide}
    blanks = ["", " ", "b", "bb", "bbb", "bbbb"]
    try:
        if is_parquet(path):
            table = read_parquet(path, kinds)
        else:
            with wanted.open(path) as file:
                table = reader.read_csv(
                    file,
                    read_options=reader.ReadOptions(column_names=list(header), skip_rows=1),
                    convert_options=reader.ConvertOptions(
                        include_columns=wide, column_types=kinds, null_values=blanks, strings_can_be_null=True
                    ),
                )
    except pa.ArrowException:
        raise UsageError(
            f"census: {path} is damaged, or not as the Bureau writes it; get {wanted.url} again."
        ) from None
    if not table.num_rows:
        raise UsageError(f"census: {path} holds no record; get {wanted.url} again.")
    _same_state(wanted, path, table.column(place))
    if "SERIALNO" in proofs:
        _same_year(wanted, path, table.column("SERIALNO"))
    return table


def _same_state(wanted: StateFile, path: Path, found: Any) -> None:
    other = {str(code).zfill(2) for code in found.unique().to_pylist()} - {wanted.code}
    if other:
        raise UsageError(
            f"census: {path} is of state {', '.join(sorted(other)[:3])}, not {wanted.code} ({wanted.state.upper()}): "
            f"{wanted.url} is the file of that."
        )


def _same_year(wanted: StateFile, path: Path, found: Any) -> None:
    """Raise UsageError unless Arrow column `found`, serial numbers of `path`, is of the years of StateFile `wanted`."""
    import pyarrow.compute as pc

    first = wanted.year if wanted.horizon == "1-Year" else wanted.year - 4
    long = found.filter(pc.equal(pc.utf8_length(found), 13))
    years = {str(year) for year in pc.utf8_slice_codeunits(long, 0, 4).unique().to_pylist()}
    other = {year for year in years if not (year.isdigit() and first <= int(year) <= wanted.year)}
    if other:
        raise UsageError(f"census: {path} holds records of {min(other)}, not of {wanted.year}; get {wanted.url}")


def conditions(name: str, year: int) -> list[tuple[str, str, float]]:
    """Return a list of conditions of folktables' task `name`: (column as of that year, sign such as ">", number)."""
    parts = (text.split() for text in task(name).keep)
    return [(in_year(column, year), sign, float(value)) for column, sign, value in parts]


def meets(column: Any, sign: str, value: float) -> Any:
    """Return a mask of the entries of an Arrow column that meet `sign` and `value`, such as `> 16`; False for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    compare = {">": pc.greater, "<": pc.less, "<=": pc.less_equal, ">=": pc.greater_equal, "==": pc.equal}[sign]
    return pc.fill_null(compare(column.cast(pa.float64()), value), fill_value=False)
