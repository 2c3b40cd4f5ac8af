"""Door to folktables: records of its data source as a private table, and synthetic rows in the coding of its frames.

    from folktables import ACSDataSource, ACSEmployment

    source = ACSDataSource(survey_year="2018", horizon="1-Year", survey="person")
    table = ss.census.from_folktables(ACSEmployment, source, states=["PA"], declared_size=128_000)
    release = ss.fit("aim", table, ss.Budget(epsilon=1, delta=1e-9))
    frame = ss.census.to_folktables(release.sample(128_000), table.schema)  # in place of source.get_data(...)
    features, label, group = ACSEmployment.df_to_pandas(frame)

Nothing here imports folktables: a problem is known by its columns, a source by `get_data`.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from stratsynth.census.acs.catalogue import check_year, in_year, state_of, tasks
from stratsynth.census.acs.load import conditions, meets
from stratsynth.census.acs.make import schema as schema_of
from stratsynth.census.acs.source import StateFile
from stratsynth.checks import is_list, quoted_value
from stratsynth.errors import UsageError
from stratsynth.schema import Categorical, Nested, Numeric, Schema
from stratsynth.schema.text import number

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from stratsynth.data.table import PrivateTable
    from stratsynth.schema import Column

WEIGHT = "PWGTP"
"""Column of weights that a task of folktables filters by; 1 in synthetic rows, which stand for one record each."""


@runtime_checkable
class FolktablesProblem(Protocol):
    """A problem of folktables, such as `folktables.ACSEmployment` or a `folktables.BasicProblem` of one's own."""

    @property
    def features(self) -> Sequence[str]:
        """Names of the columns to predict from."""

    @property
    def target(self) -> str:
        """Name of the column to predict."""

    @property
    def group(self) -> str | None:
        """Name of the column of the groups that are compared; None without groups."""


def from_folktables(
    problem: FolktablesProblem,
    source: Any,
    *,
    states: Sequence[str] | None = None,
    year: int | None = None,
    columns: Sequence[str] = (),
    dictionary: str | PathLike[str] | None = None,
    download: bool = False,
    declared_size: int | None = None,
    ledger: str | PathLike[str] | None = None,
    ledger_epsilon: float | None = None,
    account: str | None = None,
    new_account: str | None = None,
    public: bool = False,
) -> PrivateTable:
    """Return the records of a `FolktablesProblem` as a `PrivateTable` to fit on, with the survey's public schema.

    Of a task of folktables itself, only the records that it keeps are taken, by its conditions on single records. The
    `preprocess` of another problem is not applied, as nothing shows if it looks at one record at a time; its
    `df_to_pandas` applies it to the synthetic rows.

    Args:
        problem: The problem: its features, target and group are the columns.
        source: An `ACSDataSource` of person records, or a frame that its `get_data` gave.
        states: The two letters of each state; needed with a source. Of one state, the schema has its areas.
        year: The survey year of a frame; a source has its own.
        columns: Columns beside the problem's, for a `preprocess` that reads them.
        dictionary: The Bureau's data dictionary of that year, as for `acs.schema`; by default the one that a source's
            `get_definitions` keeps in its folder, if it is there.
        download: True to let folktables fetch files that are missing. Nothing else uses the network.
        declared_size: As for `open_table`, and likewise the arguments that follow.
        ledger: The file that keeps the account of these data.
        ledger_epsilon: The largest total epsilon of all fits on these data.
        account: The name under which several versions of these data share the ledger.
        new_account: The reason to begin an account beside the one that the data have already.
        public: True for research on the Bureau's public files: nothing is charged, and releases say that they are
            not private.

    Raises:
        UsageError: No file, with the place where folktables looks for it; no problem or source of folktables; a column
            that the survey does not have in that year.
    """
    from stratsynth.data.table import open_table

    if not isinstance(problem, FolktablesProblem):
        raise UsageError(
            f"census: a problem of folktables is wanted, such as ACSEmployment, not {quoted_value(problem)}."
        )
    letters = _letters(states)
    frame, when = _records(source, letters, year, download=download)
    schema = schema_of(
        _names(problem, columns, when),
        year=when,
        state=letters[0] if len(letters) == 1 else None,
        dictionary=dictionary if dictionary is not None else _definitions(source, when),
    )
    lacking = [name for name in schema.names if name not in frame.columns]
    if lacking:
        raise UsageError(f"census: the frame has no column {', '.join(lacking)}; is it of person records of {when}?")
    rows = _kept(frame, problem, when)
    return open_table(
        rows[list(schema.names)],
        schema=schema,
        declared_size=declared_size,
        ledger=ledger,
        ledger_epsilon=ledger_epsilon,
        account=account,
        new_account=new_account,
        public=public,
    )


def to_folktables(rows: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return synthetic rows as a frame of the kind that folktables' `get_data` gives: numbers, NaN where none applies.

    A weight of 1 is added as PWGTP, which tasks of folktables filter by. Codes that are no numbers stay texts.

    Args:
        rows: Rows of a release of a table by `from_folktables`, as `release.sample` gives them.
        schema: Its schema: `table.schema`, or `release.model.schema`.

    Raises:
        UsageError: Rows without a column of the schema.
    """
    lacking = [name for name in schema.names if name not in rows.columns]
    if lacking:
        raise UsageError(f"census: the rows have no column {', '.join(lacking)}: they are of another schema.")
    found = rows[list(schema.names)].copy()
    for name, column in schema.columns.items():
        if isinstance(column, Numeric) or _numbered(column):
            found[name] = _numbers(found[name])
    return found if WEIGHT in found.columns else found.assign(**{WEIGHT: 1})


def _letters(states: Sequence[str] | None) -> tuple[str, ...]:
    """Return a tuple of the states' two letters, in capitals; () for None, UsageError for anything else."""
    if states is None:
        return ()
    if not is_list(states) or not states:
        raise UsageError('census: states is a list of two letters each, such as states=["PA"].')
    for each in states:
        state_of(each)
    return tuple(each.upper() for each in states)


def _records(source: Any, letters: Sequence[str], year: int | None, *, download: bool) -> tuple[pd.DataFrame, int]:
    """Return (frame of person records, survey year) of a source of folktables, or of `source`, a frame.

    `letters` are the states and `download` lets files be fetched, for a source; UsageError if they are missing.
    """
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        if year is None:
            raise UsageError("census: of which survey year is the frame? Give year=2018 or another.")
        check_year(year)
        return source, year
    if not callable(getattr(source, "get_data", None)):
        raise UsageError(
            "census: a source of folktables is wanted, such as ACSDataSource(survey_year='2018', horizon='1-Year', "
            f"survey='person'), or a frame that its get_data gave; not {quoted_value(source)}."
        )
    when = _year_of(source, year)
    if getattr(source, "_survey", "person") != "person":
        raise UsageError("census: this source is of housing units; a table to fit on is of persons: survey='person'.")
    if not letters:
        raise UsageError('census: which states? Give states=["PA"], for example: files of all of them are 3 GB.')
    try:
        return source.get_data(states=list(letters), download=download), when
    except FileNotFoundError:
        wanted = [StateFile(each, when, getattr(source, "_horizon", "1-Year")) for each in letters]
        folder = _folder(source, when)
        raise UsageError(
            f"census: folktables finds no {' or '.join(each.name for each in wanted)} in {folder}. Get "
            f"{' and '.join(each.url for each in wanted)}, unpack it there by hand, or give download=True."
        ) from None


def _folder(source: Any, year: int) -> Path:
    """Return the folder in which a source of folktables keeps its files of a year."""
    return Path(getattr(source, "_root_dir", "data")) / str(year) / getattr(source, "_horizon", "1-Year")


def _definitions(source: Any, year: int) -> Path | None:
    """Return the path of the data dictionary of a year in a source's folder; None if there is none, and for a frame."""
    path = _folder(source, year) / "definition.csv"
    return path if hasattr(source, "_root_dir") and path.is_file() else None


def _year_of(source: Any, year: int | None) -> int:
    """Return the survey year of a source of folktables; UsageError if `year` is another, or the source has none."""
    own = str(getattr(source, "_survey_year", "" if year is None else year))
    if not own.isdigit():
        raise UsageError("census: this source has no survey year; give year=2018 or another.")
    if year is not None and int(own) != year:
        raise UsageError(f"census: this source is of {own}, and year={year}.")
    check_year(int(own))
    return int(own)


def _names(problem: FolktablesProblem, columns: Sequence[str], year: int) -> list[str]:
    """Return the list of column names of a `FolktablesProblem`, with those of the list `columns`, without the weight.

    UsageError for one that has another name in that year, and for `columns` that are no list.
    """
    if isinstance(columns, str) or not is_list(columns):
        raise UsageError("census: columns is a list of names.")
    named = dict.fromkeys((*problem.features, problem.target, *([problem.group] if problem.group else ()), *columns))
    for name in named:
        now = in_year(name, year)
        if now != name:
            raise UsageError(
                f"census: the survey of {year} has {now} in place of {name}, which this problem would look for: make a "
                f"BasicProblem with {now}."
            )
    return [name for name in named if name != WEIGHT]


def _kept(frame: pd.DataFrame, problem: FolktablesProblem, year: int) -> pd.DataFrame:
    """Return the rows of `frame` that a `FolktablesProblem`'s task keeps in a `year`, by conditions on one record.

    All of them if the problem is no task of folktables itself.
    """
    home = getattr(getattr(problem, "_preprocess", None), "__module__", "")
    for task in tasks().values() if home.partition(".")[0] == "folktables" else ():
        if (set(task.features), task.target) == (set(problem.features), problem.target):
            for name, sign, value in conditions(task.name, year):
                frame = frame[meets(_each_alone(frame[name]), sign, value).to_numpy(zero_copy_only=False)]
            return frame
    return frame


def _each_alone(values: pd.Series[Any]) -> pa.Array:
    """Return an Arrow array of floats: the number that each entry of the Series `values` spells, as a fit reads it.

    Null stands for an entry that spells none. Each is read by itself.
    """
    import numpy as np
    import pyarrow as pa

    from stratsynth.data.frames import to_arrow
    from stratsynth.schema.values import floats

    read = to_arrow(values)
    whole = read if isinstance(read, pa.ChunkedArray) else pa.chunked_array([read])
    numbers, _ = floats(Numeric(lower=0, upper=1, bins=1), whole)  # whose bounds are not used
    return pa.array(np.asarray(numbers), from_pandas=True)


def _numbered(column: Column) -> bool:
    """True if all codes of a schema's column, but the one for not applicable, spell numbers."""
    listed = column.single if isinstance(column, Nested) else column
    codes = listed.levels if isinstance(listed, Categorical) else ()
    return all(number(code) is not None for code in codes if code != column.not_applicable)


def _numbers(values: pd.Series[Any]) -> pd.Series[Any]:
    """Return a Series of values as 64-bit integers, or as floats with NaN if some are null or no number."""
    import pandas as pd

    found = pd.to_numeric(values.astype(object), errors="coerce")
    return found.astype("float64") if found.isna().any() else found.astype("int64")
