"""Recipes: a fit written down, to be reviewed before it is run.

`Recipe.read` judges everything that can be judged without data; nothing is spent by a recipe that is refused.
Paths are relative to the recipe's folder.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stratsynth.accounting.budget import Budget, Neighbours
from stratsynth.checks import path as given_path
from stratsynth.data.overlap import check_public_inputs
from stratsynth.data.table import PrivateTable, open_table
from stratsynth.errors import RecipeError, nearest
from stratsynth.files.reading import read_bytes
from stratsynth.fitting import SILENT, FitOptions, Observer, fitted
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
from stratsynth.schema import Schema
from stratsynth.strata.groups import Groups
from stratsynth.stratified import Weighted, makes_strata, stratify
from stratsynth.weights.sources import read_weights

if TYPE_CHECKING:
    from stratsynth.release import Release

MAX_BYTES = 1_000_000
"""The largest recipe that is read."""

_KINDS: Mapping[str, type[Any]] = {
    "data": DataSection, "strata": StrataSection, "budget": BudgetSection, "release": ReleaseSection
}  # fmt: skip
"""The sections whose keys are the fields of a class; what the others hold is read by others."""
_SECTIONS = ("data", "prior", "strata", "weights", "mechanism", "budget", "release", "compare")


@dataclass(frozen=True, kw_only=True)
class RecipeOptions(FitOptions):
    """Options of a fit by a recipe."""

    new_account: str | None = None
    """Why it may be fitted beside the account that the data file has, as for `open_table`; certificates quote it."""


@dataclass(frozen=True)
class Recipe:
    """A recipe whose words are understood. The data's header is checked when `table` is called."""

    folder: Path
    """Where it lies; its paths are relative to this folder."""
    data: DataSection
    """[data]."""
    strata: StrataSection | None
    """[strata], if there are any."""
    weights: Mapping[str, Any] | None
    """[weights], as written: its tables are read when a mechanism is made. Without [strata], shares that are known."""
    mechanism: MechanismSection
    """[mechanism]."""
    spend: BudgetSection
    """[budget]; `budget` is the Budget that it describes."""
    release: ReleaseSection
    """[release]."""
    given_prior: Mapping[str, Any] | None = None
    """[prior], as written; `prior` is what it describes."""
    compare: Mapping[str, Any] | None = None
    """[compare], which `stratsynth compare` varies and judges; a fit takes no notice of it."""

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Recipe:
        """Parse and check a recipe file.

        Raises:
            RecipeError: A file that is not there, or makes no sense as a recipe.
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
            document.get("compare"),
        )

    def budget(self) -> Budget:
        """The budget of the fit."""
        return Budget(self.spend.epsilon, self.spend.delta, cast("Neighbours", self.spend.neighbours))

    def table(self, new_account: str | None = None) -> PrivateTable:
        """The private table, its header checked; no row is read. `new_account` is as for `open_table`."""
        schema = self.schema()
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

    def schema(self) -> Schema:
        """The schema, read without the data."""
        return self._schema

    @cached_property
    def _schema(self) -> Schema:
        return Schema.load(self.data.schema)

    def how(self) -> Mechanism[Any]:
        """The mechanism, stratified if the recipe says so; the tables that it needs are read once."""
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
        """All that public facts decide of the fit: worked out once, for its plan, its progress and itself."""
        return prepare(self.how(), self.schema(), self.budget(), self.data.declared_size, self.prior)

    @cached_property
    def prior(self) -> Prior | None:
        """What the fit starts from, if the recipe says so; its rows are read when the fit is prepared."""
        if self.given_prior is None:
            return None
        found = read_prior(self.given_prior, self.folder)
        if not self.data.public:
            check_public_inputs(self.data.path, prior=found.origins)
        return found

    def groups(self) -> Groups:
        """What [strata] says besides the columns."""
        return Groups() if self.strata is None else self.strata.groups

    def run(self, folder: Path, options: RecipeOptions | None = None, observer: Observer = SILENT) -> Release:
        """Fit and write the release folder. Interrupted at any moment, the same recipe goes on from there.

        Args:
            folder: The release folder, which must not exist.
            options: Those of the fit; by default `options`, as the recipe says.
            observer: Told of the rehearsal, and of every step.

        Returns:
            The release, which is in the folder too.

        Raises:
            UsageError: What is refused before anything is charged.
            BudgetRefused: What the ledger has not enough left for.
        """
        rows, options = self.drawn(), options or self.options
        table, budget = self.table(options.new_account), self.budget()
        with fitted(self.prepared, table, budget, options, observer, folder=folder) as fit:
            release = fit.called(self.release.title, self.release.publisher)
            release.save(folder, rows=rows, seed=options.seed, csv=self.release.csv)
        return release

    @property
    def options(self) -> RecipeOptions:
        """The options of the fit, as far as the recipe says any."""
        return RecipeOptions(seed=self.release.seed, workers=self.release.workers)

    @property
    def directory(self) -> Path:
        """Where the release goes when the command line does not say."""
        return self.release.directory or self.folder / "release"

    @property
    def seed(self) -> int | None:
        """The seed of post-processing, if the recipe has one."""
        return self.release.seed

    @property
    def rows(self) -> int:
        """How many synthetic rows to write."""
        # a total of weights is no number of rows; the schema is read only where that matters
        if self.release.rows is None and (weight := self.schema().row_weight.column) is not None:
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
        """How many rows the release will hold; None for one that draws none. A plan refuses what a fit would."""
        from stratsynth.release.sampling import check_rows

        if self.how().returns != Returns.ROWS:
            return None
        check_rows(self.rows, self.schema())
        return self.rows


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_bytes(path, MAX_BYTES, error=RecipeError).decode())
    except OSError:
        raise RecipeError(f"there is no recipe {path}.") from None
    except UnicodeDecodeError:
        raise RecipeError(f"{path.name} is not a text in UTF-8.") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError, and so is a number too long
        raise RecipeError(f"{path.name} is not TOML: {error}.") from None
