"""Recipes: a fit written down, to be reviewed before it is run.

`Recipe.read` judges everything that can be judged without data; nothing is spent by a recipe that is refused.
Paths are relative to the recipe's folder.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Budget
from stratsynth.checks import check_seed
from stratsynth.data.table import Table, open_table
from stratsynth.errors import RecipeError, nearest
from stratsynth.fitting import fitted
from stratsynth.mechanisms import Mechanism, draws_rows, make
from stratsynth.schema import Schema
from stratsynth.strata.budgets import StratumBudgets
from stratsynth.strata.groups import Groups
from stratsynth.stratified import makes_strata, stratify
from stratsynth.weights.section import read_weights

if TYPE_CHECKING:
    from stratsynth.release import Release

MAX_BYTES = 1 << 20

Kind = type | tuple[type, ...]
_KEYS: Mapping[str, Mapping[str, Kind]] = {
    "data": {"path": str, "schema": str, "declared_size": int, "public": bool},
    "strata": {"by": list, "merge": dict, "bands": dict, "hierarchy": dict, "small": str, "threshold": (int, float)},
    "budget": {"epsilon": (int, float), "delta": (int, float), "neighbours": str, "ledger": str,
               "ledger_epsilon": (int, float), "strata": str},
    "release": {"rows": int, "directory": str, "seed": int, "csv": bool},
}  # fmt: skip
"""Every section's keys and their types.

`[mechanism]` has `name` and the settings of that mechanism, `[weights]` the keys that fit its source, and
`[compare]` those of `stratsynth compare`, which judges them.
"""
_NEEDED = {
    "data": ("path", "schema"),
    "budget": ("epsilon", "delta"),
    "strata": ("by",),
}
_NAMES = {
    int: "a whole number",
    str: "a text",
    list: "a list",
    dict: "a table",
    bool: "true or false",
    (int, float): "a number",
}


@dataclass(frozen=True)
class Recipe:
    """A recipe whose words are understood. The data's header is checked when `table` is called."""

    folder: Path
    data: Mapping[str, Any]
    strata: Mapping[str, Any] | None
    weights: Mapping[str, Any] | None
    mechanism: Mapping[str, Any]
    budget_: Mapping[str, Any] = dataclasses.field(repr=False)
    release: Mapping[str, Any]
    compare: Mapping[str, Any] | None = None
    """What `stratsynth compare` varies; a fit takes no notice of it."""

    @classmethod
    def read(cls, path: Path) -> Recipe:
        """Parse and check a recipe file."""
        document = _parse(path)
        sections = {"mechanism", "weights", "compare", *_KEYS}
        for name in document:
            if name not in sections:
                raise RecipeError(f"{path.name}: there is no section [{name}]{nearest(name, sections)}.")
            if not isinstance(document[name], dict):
                raise RecipeError(f"{path.name}: {name} must be a section, [{name}].")
        for name in ("data", "mechanism", "budget"):
            if name not in document:
                raise RecipeError(f"{path.name}: the section [{name}] is missing.")
        for name, section in document.items():
            if name in _KEYS:
                _check(path.name, name, section)
        if not isinstance(document["mechanism"].get("name"), str):
            raise RecipeError(f'{path.name}: [mechanism] name is missing; for example name = "independent".')
        if ("strata" in document) != ("weights" in document):
            has, lacks = ("strata", "weights") if "strata" in document else ("weights", "strata")
            raise RecipeError(f"{path.name}: [{has}] needs [{lacks}]: strata are combined by weights.")
        if "strata" in document["budget"] and "strata" not in document:
            raise RecipeError(
                f"{path.name}: [budget] strata is a table of the strata's budgets, but there are no strata."
            )
        check_seed(document.get("release", {}).get("seed"))
        return cls(
            path.parent,
            document["data"],
            document.get("strata"),
            document.get("weights"),
            document["mechanism"],
            document["budget"],
            document.get("release", {}),
            document.get("compare"),
        )

    def budget(self) -> Budget:
        """The budget of the fit."""
        wanted = {k: self.budget_[k] for k in ("epsilon", "delta", "neighbours") if k in self.budget_}
        return Budget(**wanted)

    def table(self) -> Table:
        """The private table, its header checked; no row is read."""
        ledger = self.budget_.get("ledger")
        return open_table(
            self.folder / self.data["path"],
            schema=self.schema(),
            ledger=None if ledger is None else self.folder / ledger,
            ledger_epsilon=self.budget_.get("ledger_epsilon"),
            declared_size=self.data.get("declared_size"),
            public=self.data.get("public", False),
        )

    def schema(self) -> Schema:
        """The schema, read without the data."""
        return Schema.load(self.folder / self.data["schema"])

    def how(self) -> Mechanism[Any]:
        """The mechanism, stratified if the recipe says so."""
        name = self.mechanism["name"]
        settings = {k: v for k, v in self.mechanism.items() if k != "name"}
        if self.strata is None or self.weights is None:
            if makes_strata(name):
                raise RecipeError(f"mechanism: {name} makes strata; add the sections [strata] and [weights].")
            return make(name, settings)
        table = self.budget_.get("strata")
        budgets = None if table is None else StratumBudgets.read(self.folder / table)
        weights = read_weights(self.weights, self.folder)
        return stratify(name, settings, self.strata["by"], weights, self.groups(), budgets)

    def groups(self) -> Groups:
        """What [strata] says besides the columns."""
        return Groups(**{key: value for key, value in (self.strata or {}).items() if key != "by"})

    def run(self, folder: Path, *, tick: Callable[[], None] | None = None, workers: int = 1) -> Release:
        """Fit and write the release folder. Interrupted at any moment, the same recipe goes on from there.

        `tick` is called after every moment at which questions were answered, and for every model that was fitted.
        """
        from stratsynth.release.release import check_new

        how, seed = self.how(), self.seed
        rows = self.rows if draws_rows(how) else None
        ready, table, budget = partial(check_new, folder), self.table(), self.budget()
        with fitted(how, table, budget, seed=seed, tick=tick, ready=ready, workers=workers) as release:
            release.save(folder, rows=rows, seed=seed, csv=self.release.get("csv", False))
        return release

    @property
    def directory(self) -> Path:
        """Where the release goes when the command line does not say."""
        return self.folder / str(self.release.get("directory", "release"))

    @property
    def seed(self) -> int | None:
        """The seed of post-processing, if the recipe has one."""
        return self.release.get("seed")

    @property
    def rows(self) -> int:
        """How many synthetic rows to write."""
        rows = self.release.get("rows", self.data.get("declared_size"))
        if rows is None:
            raise RecipeError("[release] rows is missing, and [data] declared_size too: how many rows to write?")
        if rows < 0:
            raise RecipeError("[release] rows must be at least 0.")
        return int(rows)


def _parse(path: Path) -> dict[str, Any]:
    if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises where a name is too long
        raise RecipeError(f"there is no recipe {path}.")
    if path.stat().st_size > MAX_BYTES:
        raise RecipeError(f"{path.name} is larger than a recipe can be.")
    try:
        return tomllib.loads(path.read_bytes().decode())
    except UnicodeDecodeError:
        raise RecipeError(f"{path.name} is not a text in UTF-8.") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError, and so is a number too long
        raise RecipeError(f"{path.name} is not TOML: {error}.") from None


def _check(file: str, name: str, section: Mapping[str, Any]) -> None:
    kinds = _KEYS[name]
    for key, value in section.items():
        if key not in kinds:
            raise RecipeError(f"{file}: [{name}] has no key {key!r}{nearest(key, kinds)}.")
        kind = kinds[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise RecipeError(f"{file}: [{name}] {key} must be {_NAMES[kind]}.")
    for key in _NEEDED.get(name, ()):
        if key not in section:
            raise RecipeError(f"{file}: [{name}] {key} is missing.")
