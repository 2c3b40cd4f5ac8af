"""Stratified differentially private synthetic data.

A table is split into declared groups, one mechanism is fitted in each under parallel composition, and the
release is drawn by public group weights, so that small groups do not pay for everyone's privacy.

    import stratsynth as ss
    from stratsynth.adapters import Independent

    table = ss.open_table("people.parquet", schema="schema.toml", declared_size=27_000)
    how = ss.Stratified(Independent(), by=["SEX", "RAC1P"], weights=ss.Weights.public("shares.csv", citation="ACS"))
    release = ss.fit(how, table, ss.Budget(epsilon=1, delta=1e-9))
    people = release.sample(30_000, seed=7)
"""

from __future__ import annotations

from importlib import import_module
from os import path as _path  # not pathlib: importing this package fast is a promise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
    from stratsynth import census
    from stratsynth.accounting.budget import Budget, Neighbours
    from stratsynth.accounting.public_budget import PublicBudget
    from stratsynth.certificate import Certificate
    from stratsynth.data.duckdb_source import database
    from stratsynth.data.open_linked import open_tables
    from stratsynth.data.table import open_table
    from stratsynth.errors import StratsynthError
    from stratsynth.fitting import fit
    from stratsynth.layout.budgets import StratumBudgets
    from stratsynth.planning import plan
    from stratsynth.priors import Prior, PublishedTable
    from stratsynth.recipes.check import check
    from stratsynth.recipes.recipe import Recipe
    from stratsynth.release import Release
    from stratsynth.release.controls import Benchmark, ControlTable
    from stratsynth.release.sensitivity import weight_sensitivity
    from stratsynth.schema import Categorical, Nested, Numeric, Schema, Temporal, Unit
    from stratsynth.schema.kinds import ParentKind
    from stratsynth.schema.linked import ChildCount, ChildSum, LinkedSchema
    from stratsynth.strata.groups import Groups
    from stratsynth.stratified import Stratified, Weighted
    from stratsynth.synthesizing import synthesize
    from stratsynth.verifying import verify
    from stratsynth.weights import Weights

# In the source tree the adapters and the evaluation lie beside this folder, not in it: a Python started there finds
# this folder before the installed package, and would find neither.
_HERE = _path.dirname(__file__)  # noqa: PTH120
_ABOVE = _path.dirname(_HERE)  # noqa: PTH120
if not _path.isdir(f"{_HERE}/adapters") and _path.isdir(f"{_ABOVE}/adapters"):  # noqa: PTH112
    __path__.append(_ABOVE)

# Names are imported when they are first used: `import stratsynth` stays instant, and a name's cost is its own.
_HOME = {
    "Benchmark": "release.controls",
    "Budget": "accounting.budget",
    "Categorical": "schema",
    "Certificate": "certificate",
    "ChildCount": "schema.linked",
    "ChildSum": "schema.linked",
    "ControlTable": "release.controls",
    "Groups": "strata.groups",
    "LinkedSchema": "schema.linked",
    "Neighbours": "accounting.budget",
    "Nested": "schema",
    "Numeric": "schema",
    "ParentKind": "schema.kinds",
    "Prior": "priors",
    "PublicBudget": "accounting.public_budget",
    "PublishedTable": "priors",
    "Recipe": "recipes.recipe",
    "Release": "release",
    "Schema": "schema",
    "StratsynthError": "errors",
    "StratumBudgets": "layout.budgets",
    "Stratified": "stratified",
    "Temporal": "schema",
    "Unit": "schema",
    "Weighted": "stratified",
    "Weights": "weights",
    "check": "recipes.check",
    "database": "data.duckdb_source",
    "fit": "fitting",
    "open_table": "data.table",
    "open_tables": "data.open_linked",
    "plan": "planning",
    "synthesize": "synthesizing",
    "verify": "verifying",
    "weight_sensitivity": "release.sensitivity",
}

__all__ = [
    "Benchmark",
    "Budget",
    "Categorical",
    "Certificate",
    "ChildCount",
    "ChildSum",
    "ControlTable",
    "Groups",
    "LinkedSchema",
    "Neighbours",
    "Nested",
    "Numeric",
    "ParentKind",
    "Prior",
    "PublicBudget",
    "PublishedTable",
    "Recipe",
    "Release",
    "Schema",
    "Stratified",
    "StratsynthError",
    "StratumBudgets",
    "Temporal",
    "Unit",
    "Weighted",
    "Weights",
    "census",
    "check",
    "database",
    "fit",
    "open_table",
    "open_tables",
    "plan",
    "synthesize",
    "verify",
    "weight_sensitivity",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from stratsynth.version import VERSION

        return VERSION
    if name == "census":  # a module of its own: `ss.census.make(1000)`
        return import_module("stratsynth.census")
    if name not in _HOME:
        raise AttributeError(f"module 'stratsynth' has no attribute {name!r}")
    value = getattr(import_module(f"stratsynth.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
