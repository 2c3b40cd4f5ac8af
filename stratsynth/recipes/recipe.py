"""Recipes: a fit written down, to be reviewed before it is run.

`Recipe.read` checks everything that can be checked without data; nothing is spent by a recipe that is refused.
Paths are relative to the recipe's folder.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stratsynth.accounting.budget import Budget, Neighbours
from stratsynth.accounting.public_budget import budget_of
from stratsynth.checks import path as given_path
from stratsynth.data.overlap import check_public_inputs
from stratsynth.data.table import PrivateTable, open_table
from stratsynth.errors import RecipeError, nearest
from stratsynth.files.reading import read_bytes
from stratsynth.fitting import SILENT, FitOptions, Observer, fitted, request_of
from stratsynth.fitting.repeats import refuse_repeat
from stratsynth.fitting.stages import warn_of_notices
from stratsynth.layout.budgets import StratumBudgets
from stratsynth.mechanisms import Mechanism, Prepared, make, prepare
from stratsynth.models.base import Returns
from stratsynth.priors import Prior
from stratsynth.priors.prior import read_prior
from stratsynth.recipes.sections import (
    BudgetSection,
    DataSection,
    MechanismSection,
    ReleaseSection,
    StrataSection,
    read_section,
)
from stratsynth.release.controls import read_benchmark
from stratsynth.schema import Schema
from stratsynth.schema.counted_tables import CountedTables
from stratsynth.strata.groups import Groups
from stratsynth.stratified import Weighted, makes_strata, stratify
from stratsynth.weights.sources import read_weights

if TYPE_CHECKING:
    from stratsynth.release import Release
    from stratsynth.release.controls import Benchmark

MAX_BYTES = 1_000_000
"""Largest size of a recipe, in bytes."""

_KINDS: Mapping[str, type[Any]] = {
    "data": DataSection,
    "strata": StrataSection,
    "budget": BudgetSection,
    "release": ReleaseSection,
}
"""Sections whose keys are the fields of a class; other modules read the others."""
_SECTIONS = ("data", "prior", "strata", "weights", "mechanism", "budget", "release", "benchmark", "compare")


@dataclass(frozen=True, kw_only=True)
class RecipeOptions(FitOptions):
    """Options of a fit by a recipe."""

    new_account: str | None = None
    """Reason to fit beside the account that the data file has, as for `open_table`; certificates quote it."""
    again: bool = False
    """True to make and charge a fit that the ledger has done already; False refuses it."""


@dataclass(frozen=True)
class Recipe:
    """A parsed and checked recipe. The data's header is checked when `table` is called."""

    folder: Path
    """Folder of the recipe, which its paths are relative to."""
    data: DataSection
    """Section [data]."""
    strata: StrataSection | None
    """Section [strata]; None without strata."""
    weights: Mapping[str, Any] | None
    """Section [weights], as written: its tables are read when a mechanism is made. Without [strata], known shares of
    groups."""
    mechanism: MechanismSection
    """Section [mechanism]."""
    spend: BudgetSection
    """Section [budget]; `budget` is the Budget that it describes."""
    release: ReleaseSection
    """Section [release]."""
    given_prior: Mapping[str, Any] | None = None
    """Section [prior], as written; `prior` is the prior that it describes."""
    given_benchmark: Mapping[str, Any] | None = None
    """Section [benchmark], as written; `benchmark` is what it describes."""
    compare: Mapping[str, Any] | None = None
    """Section [compare], which `stratsynth compare` varies and scores; a fit ignores it."""

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Recipe:
        """Return the recipe in the TOML file `path`, parsed and checked; its data are not opened.

        Raises:
            RecipeError: No such file, or no valid recipe.
        """
        path = given_path("the recipe", path, error=RecipeError)
        document = _parse(path)
        for name, keys in document.items():
            if name not in _SECTIONS:
                raise RecipeError(f"{path.name}: there is no section [{name}]{nearest(name, _SECTIONS)}.")
            if not isinstance(keys, dict):
                raise RecipeError(f"{path.name}: {name} must be a section, [{name}].")
        for name in ("data", "mechanism", "budget"):
            if name not in document:
                raise RecipeError(f"{path.name}: the section [{name}] is missing.")

        settings = dict(document["mechanism"])
        mechanism = settings.pop("name", None)
        if not isinstance(mechanism, str):
            raise RecipeError(f'{path.name}: [mechanism] name is missing; for example name = "independent".')
        if "strata" in document and "weights" not in document:
            raise RecipeError(f"{path.name}: [strata] needs [weights]: strata are combined by weights.")
        if "strata" in document["budget"] and "strata" not in document:
            raise RecipeError(
                f"{path.name}: [budget] strata is a table of the strata's budgets, but there are no strata."
            )
        sections: dict[str, Any] = {
            name: read_section(kind, document[name], f"{path.name}: [{name}]", path.parent)
            for name, kind in _KINDS.items()
            if name in document
        }
        return cls(
            path.parent,
            sections["data"],
            sections.get("strata"),
            document.get("weights"),
            MechanismSection(mechanism, settings),
            sections["budget"],
            sections.get("release", ReleaseSection()),
            document.get("prior"),
            document.get("benchmark"),
            document.get("compare"),
        )

    def budget(self) -> Budget:
        """Return the fit's budget: epsilon, delta and neighbours as [budget] states them."""
        spend = self.spend
        neighbours = cast("Neighbours", spend.neighbours)
        return budget_of(
            spend.epsilon,
            spend.delta,
            neighbours,
            first=spend.first,
            public=self.data.public,
            accounting=spend.accounting,
        )

    def table(self, new_account: str | None = None) -> PrivateTable:
        """Return the private table, its header checked; no row is read.

        `new_account` is the reason for another ledger than the one that the data have; None if it goes on.
        """
        schema = self.schema()
        if self.data.linked:
            return self._linked_tables(schema, new_account)
        return open_table(
            self.data.rows,
            schema=schema,
            ledger=self.spend.ledger,
            ledger_epsilon=self.spend.ledger_epsilon,
            account=self.spend.account,
            new_account=new_account,
            declared_size=self.data.declared_size,
            public=self.data.public,
            engine=self.data.engine,
        )

    def _linked_tables(self, schema: Schema, new_account: str | None) -> PrivateTable:
        from stratsynth.data.open_linked import open_tables

        if not isinstance(schema, CountedTables):
            raise RecipeError("[data] parent and child need a schema of two linked tables, stratsynth-schema/2.")
        return open_tables(
            self.data.parent,
            self.data.child,
            schema=schema.linked,
            declared_size=self.data.declared_size,
            ledger=self.spend.ledger,
            ledger_epsilon=self.spend.ledger_epsilon,
            account=self.spend.account,
            new_account=new_account,
            public=self.data.public,
        )

    def schema(self) -> Schema:
        """Return the schema that [data] names, read once; the data are not opened."""
        return self._schema

    @cached_property
    def _schema(self) -> Schema:
        return Schema.load(self.data.schema)

    def how(self) -> Mechanism[Any]:
        """Return the mechanism, in strata if the recipe has some; the tables that it needs are read once."""
        return self._how

    @cached_property
    def _how(self) -> Mechanism[Any]:
        name, settings = self.mechanism.name, self.mechanism.settings
        if self.strata is None or self.weights is None:
            if makes_strata(name):
                raise RecipeError(f"mechanism: {name} makes strata; add the sections [strata] and [weights].")
            vanilla = make(name, settings)
            return vanilla if self.weights is None else Weighted(vanilla, read_weights(self.weights, self.folder))
        budgets = None if self.spend.strata is None else StratumBudgets.read(self.spend.strata)
        weights = read_weights(self.weights, self.folder)
        return stratify(name, settings, self.strata.by, weights, self.strata.groups, budgets)

    @cached_property
    def prepared(self) -> Prepared:
        """`Prepared`: all facts of the fit that public knowledge decides; computed once, for plan, progress and run."""
        return prepare(self.how(), self.schema(), self.budget(), self.data.declared_size, self.prior)

    @cached_property
    def prior(self) -> Prior | None:
        """Prior that the fit starts from, of [prior]; None without. Rows are read when a fit is prepared."""
        if self.given_prior is None:
            return None
        found = read_prior(self.given_prior, self.folder)
        if not self.data.public:
            for path in (self.data.path, self.data.parent, self.data.child):
                check_public_inputs(path, prior=found.origins)
        return found

    def groups(self) -> Groups:
        """Return the `Groups` that [strata] declares besides the columns; the default ones without [strata]."""
        return Groups() if self.strata is None else self.strata.groups

    def run(self, folder: Path, options: RecipeOptions | None = None, observer: Observer = SILENT) -> Release:
        """Fit, write the release folder, and return the release; after an interruption it resumes.

        Args:
            folder: The release folder, which must not exist.
            options: `RecipeOptions` of the fit; those of the recipe if None.
            observer: Receiver of the rehearsal and of every step.

        Returns:
            The release, which is also in the folder.

        Raises:
            UsageError: A recipe or data that are refused before anything is charged; a fit that the ledger has done.
            BudgetRefused: More epsilon than the ledger has left.

        Warns:
            NoticeWarning: Something that a reader has to know before using the release.
        """
        rows, options = self.drawn(), options or self.options
        table, budget = self.table(options.new_account), self.budget()
        if not options.again:
            request = request_of(self.prepared, options.seed, private=options.private, query=self.data.query)
            refuse_repeat(table, request, self.directory)
        with fitted(self.prepared, table, budget, options, observer, folder=folder) as fit:
            release = fit.called(self.release.title, self.release.publisher)
            release.save(folder, rows=rows, seed=options.seed, csv=self.release.csv)
        warn_of_notices(release, stacklevel=3)
        return release

    @property
    def options(self) -> RecipeOptions:
        """Options of the fit that the recipe's section [release] states; the others are the defaults."""
        release = self.release
        return RecipeOptions(
            seed=release.seed,
            workers=release.workers,
            groups=release.groups,
            margin=release.margin,
            benchmark=self.benchmark,
        )

    @cached_property
    def benchmark(self) -> Benchmark | None:
        """`Benchmark` of published totals that rows are raked to; None without [benchmark]."""
        return None if self.given_benchmark is None else read_benchmark(self.given_benchmark, self.folder)

    @property
    def directory(self) -> Path:
        """Folder of the release if the command line names none: the recipe's, else `release` beside it."""
        return self.release.directory or self.folder / "release"

    @property
    def seed(self) -> int | None:
        """Seed of post-processing; None if the recipe has none."""
        return self.release.seed

    @property
    def rows(self) -> int:
        """Number of synthetic rows to write; RecipeError if it is missing or below 0."""
        # a total of weights is no number of rows; the schema is read only where that matters
        weight = None if self.data.linked else self.schema().row_weight.column
        if self.release.rows is None and weight is not None:
            raise RecipeError(
                f"[release] rows is missing: rows count as {weight} says, so declared_size is of people; how many rows "
                "to write?"
            )
        rows = self.data.declared_size if self.release.rows is None else self.release.rows
        if rows is None:
            raise RecipeError("[release] rows is missing, and [data] declared_size too: how many rows to write?")
        if rows < 0:
            raise RecipeError("[release] rows must be at least 0.")
        return rows

    def drawn(self) -> int | None:
        """Return the number of rows in the release, None if it has none; Unsupported for too many for the memory."""
        from stratsynth.release.sampling import check_rows

        if self.how().returns not in (Returns.ROWS, Returns.TABLES):
            return None
        check_rows(self.rows, self.schema())
        return self.rows


def benchmark_in(path: str | PathLike[str]) -> Benchmark:
    """Return the benchmark of the section [benchmark] of the TOML file at `path`: a recipe, or that section alone.

    Raises:
        RecipeError: No such file or section, or an invalid one.
    """
    file = given_path("the tables of totals", path, error=RecipeError)
    section = _parse(file).get("benchmark")
    if not isinstance(section, Mapping):
        raise RecipeError(
            f'{file.name} has no section [benchmark] with tables = [{{ path = "totals.csv", citation = "..." }}].'
        )
    return read_benchmark(section, file.parent)


def _parse(path: Path) -> dict[str, Any]:
    """Return the dict of the TOML file `path`; RecipeError if it is missing, too large, or not TOML in UTF-8."""
    try:
        return tomllib.loads(read_bytes(path, MAX_BYTES, error=RecipeError).decode())
    except OSError:
        raise RecipeError(f"there is no recipe {path}.") from None
    except UnicodeDecodeError:
        raise RecipeError(f"{path.name} is not a text in UTF-8.") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError, and so is a number too long
        raise RecipeError(f"{path.name} is not TOML: {error}.{_comma_hint(path, str(error))}") from None


def _comma_hint(path: Path, error: str) -> str:
    """Return a sentence on a comma in a number of the file `path`, if the line in TOML's `error` has one; else ""."""
    place, lines = (
        re.search(r"at line (\d+)", error),
        read_bytes(path, MAX_BYTES, error=RecipeError).decode().split("\n"),
    )
    line = lines[int(place[1]) - 1] if place and int(place[1]) <= len(lines) else ""
    wrong = re.search(r"=\s*([-+]?[\d_.]+(?:,\d+)+)\s*(?:#.*)?$", line)
    if wrong is None:
        return ""
    whole = re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+", wrong[1])
    right = wrong[1].replace(",", "_") if whole else wrong[1].replace(",", ".")
    return f" Numbers have no comma: write {right} for {wrong[1]}."
