"""The sections of a recipe, a dataclass each: its fields are the keys, their types the accepted values."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from stratsynth.checks import check_account, check_line, check_seed, number
from stratsynth.errors import RecipeError
from stratsynth.inputs import check_keys
from stratsynth.release.equivalence import MARGIN
from stratsynth.strata.groups import Groups

if TYPE_CHECKING:
    from stratsynth.data.sources import Source

S = TypeVar("S")
LINKED = ("auto", "memory")
"""Engines of two linked tables."""


@dataclass(frozen=True, kw_only=True)
class DataSection:
    """[data]: the private table."""

    path: Path | None = None
    """File or folder of the rows."""
    schema: Path
    """Public schema of the rows."""
    declared_size: int | None = None
    """Number of rows, if it is public."""
    public: bool = False
    """True if the rows are public: then nothing is charged, and the release states that it is not private."""
    engine: str = "auto"
    """Engine that holds the rows: "memory", "stream", "duckdb", "spark", or "auto": by the file's kind and declared
    size."""
    table: str | None = None
    """Table of a database whose rows are the records; with `engine = "spark"` and instead of `path`, Spark's name of a
    table or view."""
    parent: Path | None = None
    """File of the parent table, such as of households, of two linked ones; instead of `path`."""
    child: Path | None = None
    """File of the child table, such as of persons; the schema is then of format stratsynth-schema/2."""
    query: str | None = None
    """Instead of `table`: one SELECT of columns, expressions of one row's values and a condition, from one table."""

    def __post_init__(self) -> None:
        """Refuse a missing path, unknown engines, and table or query that do not go with path and engine."""
        if self.linked:
            if self.parent is None or self.child is None or self.path is not None or self.engine not in LINKED:
                raise RecipeError("[data] two linked tables are parent and child, files, without path and engine.")
            if self.table is not None or self.query is not None:
                raise RecipeError("[data] two linked tables are files: leave table and query out.")
            return
        if self.engine == "spark" and self.query is not None:
            raise RecipeError("[data] query is of a database; of Spark, name a table or view.")
        if self.path is None and (self.table is None or self.engine != "spark"):
            raise RecipeError('[data] path is missing; only a table of Spark, with engine = "spark", goes without.')
        if self.path is not None and self.table is not None and self.engine == "spark":
            raise RecipeError('[data] table goes without path where engine = "spark".')
        if self.path is not None and self.holds == "duckdb":
            from stratsynth.data.duckdb_source import check_names

            check_names(self.path, self.table, self.query)
        if self.engine != "auto":
            from stratsynth.data.backends import check_engine

            check_engine(self.engine)

    @property
    def linked(self) -> bool:
        """True if the rows are in two linked tables."""
        return self.parent is not None or self.child is not None

    @property
    def name(self) -> str:
        """Name of the file or Spark table with the rows, for messages; of linked tables the child's."""
        return str(self.table) if self.file is None else self.file.name

    @property
    def file(self) -> Path | None:
        """File or folder that the account is beside: the rows', of linked tables the child's; None of Spark's table."""
        return self.path if self.child is None else self.child

    @property
    def rows(self) -> Path | Source:
        """Argument of `open_table`: path; database table or query; or Spark's table, for which Spark is started.

        Raises:
            UsageError: A database or a table that does not exist.
        """
        from stratsynth.data.sources import is_database, open_source

        if self.linked:
            raise RecipeError("[data] has two linked tables: this takes one table.")
        if self.path is not None:
            database = is_database(self.path, self.table, self.query)
            return open_source(self.path, self.table, self.query) if database else self.path
        from stratsynth.data.spark_source import SparkSource

        assert self.table is not None  # noqa: S101 - checked when this was made
        return SparkSource.table(self.table)

    @property
    def holds(self) -> str:
        """Engine of the rows; for "auto" it is "duckdb" if they lie in a database."""
        from stratsynth.data.sources import is_database

        if self.path is None or self.engine != "auto":
            return self.engine
        return "duckdb" if is_database(self.path, self.table, self.query) else self.engine


@dataclass(frozen=True)
class StrataSection:
    """[strata]: the division of the rows into groups."""

    by: Sequence[str]
    """Columns whose levels, fully crossed, are the strata."""
    groups: Groups = field(default_factory=Groups)
    """Merges, and the policy for small groups: keys of the same section."""


@dataclass(frozen=True)
class MechanismSection:
    """[mechanism]: its name, and every other key of the section as its settings."""

    name: str
    """Name that the mechanism is installed under."""
    settings: Mapping[str, Any]
    """Settings, checked when the mechanism is made."""


@dataclass(frozen=True)
class BudgetSection:
    """[budget]: the price of the fit, and its ledger."""

    epsilon: float
    """Epsilon of the fit, at most 25; any number or `inf` for data declared public."""
    delta: float
    """Delta of the fit; 0 is pure epsilon, for fits that spend nothing else."""
    neighbours: str = "add-remove"
    """Notion of neighbour: the pairs of tables that the guarantee compares."""
    accounting: str = "zcdp"
    """Rule by which rho becomes epsilon: "zcdp"; or "exact", for less noise in fits of tables and sums alone."""
    ledger: Path | None = None
    """File that keeps the account of these data; without one the account ends with the process."""
    ledger_epsilon: float | None = None
    """Largest total epsilon of all fits on these data; set when the ledger is made."""
    account: str | None = None
    """Account name under which several versions of the data share the ledger."""
    strata: Path | None = None
    """Table of the budgets of single strata."""
    first: float | None = None
    """Share of the fit's amount that its first question costs, at most 0.5; 0 for none. It asks how many records are
    usable, and how many values of each column are outside the schema, before the rest is reserved."""

    def __post_init__(self) -> None:
        """Refuse a cap that is no positive number, and an account's name that is no line of text."""
        check_account(self.ledger_epsilon, self.account)


@dataclass(frozen=True)
class ReleaseSection:
    """[release]: the files that are written, and their folder."""

    rows: int | None = None
    """Number of synthetic rows; the declared size if omitted."""
    directory: Path | None = None
    """Folder of the release; `release` beside the recipe if omitted."""
    seed: int | None = None
    """Seed of post-processing, at least 0. Noise is never seeded."""
    workers: int | str = 1
    """Workers that fit the strata's models: a number of processes; "processes"; "dask" or "ray", optionally with an
    address."""
    csv: bool = False
    """True to write the table as CSV too."""
    title: str | None = None
    """Title of the release in its certificate, report and citation."""
    publisher: str | None = None
    """Publisher of the release, for its citation."""
    groups: str = "declared"
    """Sizes of the groups among the rows: "declared" by the shares of [weights], "measured" by the noisy sizes that
    were paid for anyway."""
    margin: float = MARGIN
    """Relative difference of a declared size or share from the measured one that counts as none."""

    def __post_init__(self) -> None:
        """Refuse a negative seed, unknown workers or groups, a margin outside of 0 to 1, titles of several lines."""
        from stratsynth.fitting.refusals import check_groups

        check_groups("[release] groups", self.groups)
        number("[release] margin", self.margin, above=0, below=1, hint=", such as 0.05 for 5 percent")
        if self.workers != 1:
            from stratsynth.driver.solving import check_workers

            check_workers(self.workers)
        check_seed(self.seed)
        check_line("[release] title", self.title)
        check_line("[release] publisher", self.publisher)


def read_section(cls: type[S], section: Mapping[str, Any], where: str, folder: Path) -> S:
    """Return an object of `cls`, a dataclass, from `section`, a mapping of a recipe's TOML.

    RecipeError for unknown keys and values of other types. Paths are joined to `folder`; `where` names file and section
    in messages.
    """
    keys = _keys(cls)
    check_keys(section, keys, where)
    for key, value in section.items():
        if keys[key] is Path and "\0" in value:  # no system has such names, and each says so in its own way
            raise RecipeError(f"{where} {key} holds a null character, which no path can have.")
    return _made(cls, {k: folder / v if keys[k] is Path else v for k, v in section.items()}, where)


def _made(cls: type[S], values: Mapping[str, Any], where: str) -> S:
    """Return an object of `cls` with `values`, a mapping by key, and objects of its inner dataclasses made of them too.

    RecipeError, which names `where`, for a missing key.
    """
    given, hints = dict[str, Any](), get_type_hints(cls)
    for each in fields(cls):  # type: ignore[arg-type]  # a dataclass
        if is_dataclass(inner := hints[each.name]):
            given[each.name] = _made(inner, values, where)  # type: ignore[arg-type]  # a class
        elif each.name in values:
            given[each.name] = values[each.name]
        elif each.default is MISSING and each.default_factory is MISSING:
            raise RecipeError(f"{where} {each.name} is missing.")
    return cls(**given)


def _keys(cls: type[Any]) -> dict[str, Any]:
    """Return {key: its type} of a section, from the fields of the dataclass `cls`, and of dataclasses among them."""
    found: dict[str, Any] = {}
    for key, hint in get_type_hints(cls).items():
        if is_dataclass(hint):
            found |= _keys(hint)  # type: ignore[arg-type]  # a class
            continue
        optional = isinstance(hint, types.UnionType) and type(None) in get_args(hint)  # as in `int | None`
        kind = get_args(hint)[0] if optional else hint
        found[key] = kind if isinstance(kind, types.UnionType) else get_origin(kind) or kind
    return found
