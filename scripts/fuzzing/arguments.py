"""Malformed arguments of the public callables: our errors alone may come, and a refused fit charges nothing."""

from __future__ import annotations

import inspect
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import stratsynth as ss
from fuzzing import world
from fuzzing.harness import Outcomes
from fuzzing.values import bad_value
from stratsynth import adapters, evaluation
from stratsynth.adapters import sklearn

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Door:
    """One public callable with valid arguments."""

    name: str
    call: Callable[..., object]
    given: Sequence[object] = ()
    named: Mapping[str, object] = field(default_factory=dict)

    def options(self) -> list[str]:
        """Return the names of parameters that may be given by name beside those of `named`."""
        plain = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
        parameters = list(inspect.signature(self.call).parameters.values())[len(self.given) :]
        return [p.name for p in parameters if p.kind in plain and p.name not in self.named]

    def malformed(self, rng: random.Random) -> tuple[str, Callable[[], object]]:
        """Return words for a call of which one or two arguments are malformed, and the call."""
        given, named, said = list(self.given), dict(self.named), []
        places: list[int | str] = [*range(len(given)), *named, *self.options()]
        for at in rng.sample(places, k=min(len(places), rng.choice((1, 1, 1, 2)))):
            value = bad_value(rng)
            said.append(f"{at} = {type(value).__name__} {repr(value)[:40]!s}")
            if isinstance(at, int):
                given[at] = value
            else:
                named[at] = value
        return f"{self.name}({', '.join(said)})", partial(self.call, *given, **named)


def fuzz(folder: Path, cases: int, seed: int) -> Outcomes:
    """Call every door with malformed arguments, in turn; return the outcomes."""
    rng, outcomes = random.Random(seed), Outcomes()  # noqa: S311 - cases, no noise # nosec B311
    place = world.place(folder)
    ledger = place / "people.ledger"
    charges = partial(_charges, ledger)
    doors = _doors(place)
    for number in range(cases):
        door = doors[number % len(doors)]
        name, call = door.malformed(rng)
        before = charges()
        outcomes.case(name, call, lambda before=before: charges() > before)  # type: ignore[misc]
        if charges() > before:  # an accepted fit: the account is put back
            shutil.copy(place / "kept.ledger", ledger)
    return outcomes


def _charges(ledger: Path) -> int:
    """Return the number of charges in a ledger."""
    return ledger.read_bytes().count(b'"kind":"charge"')


def _doors(place: Path) -> list[Door]:
    """Return every public callable with arguments that it accepts, on files in a folder."""
    shutil.copy(place / "people.ledger", place / "kept.ledger")
    (place / "domain.json").write_text('{"SEX": 2, "AGE": 10}', encoding="utf-8")
    frame, shares = world.people(), world.shares()
    weights = ss.Weights.public(shares, citation="made up for the fuzzers, 2026")
    table = ss.open_table(frame, schema=world.SCHEMA, declared_size=world.ROWS)
    paid = ss.open_table(
        place / "people.csv", schema=world.SCHEMA, declared_size=world.ROWS, ledger=place / "people.ledger"
    )
    rows, predicts = ss.Release.load(place / "rows"), ss.Release.load(place / "predicts")
    how = adapters.Independent()
    cited = {"citation": "made up for the fuzzers, 2026"}
    made = [
        Door(kind.__name__, kind, (), settings)
        for kind, settings in (
            (adapters.MST, {}),
            (adapters.AIM, {}),
            (adapters.GEM, {}),
            (adapters.Independent, {}),
            (adapters.Fixed, {"tables": (("SEX", "AGE"),)}),
            (adapters.Pooled, {"by": ["SEX"], "weights": weights}),
            (adapters.CoinPress, {"columns": ("AGE",), "scale": {"AGE": 5.0}}),
            (adapters.ClippedMean, {"columns": ("AGE",)}),
            (adapters.GroupRegression, {"target": "AGE", "features": ("WORK",), "groups": ("SEX",)}),
            (adapters.Reductions, {"target": "WORK", "features": ("AGE",), "groups": ("SEX",)}),
            (adapters.DPFermi, {"target": "WORK", "features": ("AGE",), "groups": ("SEX",), "penalty": 1.0}),
            (adapters.OutputPerturbation, {"target": "WORK", "features": ("AGE",), "groups": ("SEX",)}),
            (adapters.FairSGD, {"target": "WORK", "features": ("AGE",), "groups": ("SEX",)}),
        )
    ]
    x, y, s = frame[["AGE"]].to_numpy(float), frame["WORK"].to_numpy(), frame["SEX"].to_numpy()
    regressor = {
        "epsilon": 1.0,
        "delta": 1e-9,
        "bounds": (0.0, 9.0),
        "groups": ["1", "2"],
        "target_bounds": (0.0, 9.0),
    }
    bounds = {"epsilon": 1.0, "delta": 1e-9, "bounds": (0.0, 9.0), "groups": ["1", "2"]}
    estimators = [
        Door(f"{kind.__name__}.fit", partial(_estimated, kind, x, y, s), (), {**bounds, "classes": ["yes", "no", "N"]})
        for kind in (
            sklearn.GroupClassifier,
            sklearn.FermiClassifier,
            sklearn.ReductionsClassifier,
            sklearn.FairSGDClassifier,
        )
    ]
    pairs = [
        Door(f"evaluation.{name}", getattr(evaluation, name), (frame, frame, world.SCHEMA))
        for name in (
            "workload_error",
            "clique_errors",
            "correlations",
            "levels_lost",
            "raw_values",
            "number_errors",
            "k_marginal_score",
            "inconsistencies",
            "matches",
        )
    ]
    return [
        Door("Budget", ss.Budget, (1.0, 1e-9)),
        Door("Categorical", ss.Categorical, (), {"levels": ("1", "2")}),
        Door("Numeric", ss.Numeric, (), {"lower": 0, "upper": 9}),
        Door("Temporal", ss.Temporal, (), {"lower": "2020-01-01", "upper": "2024-12-31", "kind": "date"}),
        Door("Nested", ss.Nested, (), {"levels": ("11", "12", "21"), "members": {"1": ("11", "12"), "2": ("21",)}}),
        Door("Schema", ss.Schema, (dict(world.SCHEMA.columns),)),
        Door("Schema.draft", ss.Schema.draft, (frame,)),
        Door("Schema.load", ss.Schema.from_toml, (place / "schema.toml",)),
        Door("Schema.restrict", world.SCHEMA.restrict, (["SEX"],)),
        Door("Schema.reviewed", ss.Schema.draft(frame).reviewed, ("the head of the office",)),
        Door("Groups", ss.Groups),
        Door("StratumBudgets.read", ss.StratumBudgets.read, (budgets(),)),
        Door("Weights.public", ss.Weights.public, (shares,), cited),
        Door("Weights.raked", ss.Weights.raked, (weights,)),
        Door("Weights.holdout", ss.Weights.holdout, (frame[:50],), {**cited, "confidential": True}),
        Door("Weights.private", ss.Weights.private, (), {"share": 0.1}),
        Door("Weights.invariant", ss.Weights.invariant, (pd_counts(),)),
        Door("Prior.public", ss.Prior.public, (frame[:50],), cited),
        Door("PublishedTable", ss.PublishedTable, (pd_counts(),), cited),
        Door("Stratified", ss.Stratified, (how,), {"by": ["SEX"], "weights": weights}),
        Door("Weighted", ss.Weighted, (how, weights)),
        Door("open_table", ss.open_table, (frame,), {"schema": world.SCHEMA, "declared_size": world.ROWS}),
        Door("open_table file", ss.open_table, (place / "people.csv",), {"schema": place / "schema.toml"}),
        Door("plan", ss.plan, (how, world.SCHEMA, world.BUDGET), {"declared_size": world.ROWS}),
        Door("fit", ss.fit, (how, table, world.BUDGET)),
        Door("fit with a ledger", ss.fit, (how, paid, world.BUDGET)),
        Door(
            "synthesize",
            ss.synthesize,
            (frame,),
            {"epsilon": 1.0, "schema": world.SCHEMA, "declared_size": world.ROWS, "mechanism": "independent"},
        ),
        Door("verify", ss.verify, (place / "rows",)),
        Door("weight_sensitivity", ss.weight_sensitivity, (rows,)),
        Door("database", ss.database, (place / "people.db",), {"table": "people"}),
        Door("Recipe.read", ss.Recipe.read, (place / "recipe.toml",)),
        Door("Certificate.from_dict", ss.Certificate.from_dict, (dict(rows.certificate),)),
        Door("Release.load", ss.Release.load, (place / "rows",)),
        Door("Release.sample", rows.sample, (20,)),
        Door("Release.sample_arrow", rows.sample_arrow, (20,)),
        Door("Release.query", rows.query, (["AGE"],), {"by": ["SEX"]}),
        Door("Release.samples", rows.samples, (2, 20)),
        Door("Release.predict", predicts.predict, (frame,)),
        Door("Release.predictions", predicts.predictions, (frame,)),
        Door("Release.cite", rows.cite),
        Door("Release.called", rows.called, ("a title",)),
        Door("Release.rules_moved", rows.rules_moved, (20,)),
        Door("Release.estimates", rows.estimates),
        Door("Release.save", rows.save, (place / "people.csv",)),
        Door("evaluate", evaluation.evaluate, (rows, frame, world.SCHEMA)),
        Door("evaluation.parity_error", evaluation.parity_error, (frame, frame, world.SCHEMA), {"by": ["SEX"]}),
        Door("evaluation.mean_disparity", evaluation.mean_disparity, (frame, frame, world.SCHEMA), {"by": ["SEX"]}),
        Door("Schema.without", world.SCHEMA.without, (["SEX"],)),
        Door("Schema.from_domain_json", ss.Schema.from_domain_json, (place / "domain.json",)),
        Door("Schema.write_toml", world.SCHEMA.write_toml, (place / "people.csv",)),
        Door("Prior.tables", ss.Prior.tables, ([ss.PublishedTable(pd_counts(), **cited)],)),
        Door("Prior.release", ss.Prior.release, (place / "rows",)),
        Door("Release.by_measured_sizes", rows.by_measured_sizes),
        Door("check", ss.check, (place / "recipe.toml",)),
        Door("GroupRegressor.fit", partial(_estimated, sklearn.GroupRegressor, x, x[:, 0], s), (), regressor),
        *made,
        *estimators,
        *pairs,
    ]


def pd_counts() -> Any:
    """Return exact counts of the sexes, as a frame."""
    return world.shares().rename(columns={"share": "count"}).assign(count=[100, 100])


def budgets() -> Any:
    """Return budgets of the sexes, as a frame."""
    return world.shares().rename(columns={"share": "epsilon"})


def _estimated(kind: Any, x: Any, y: Any, s: Any, **settings: Any) -> object:
    """Fit an estimator of these settings."""
    return kind(**settings).fit(x, y, sensitive_features=s)
