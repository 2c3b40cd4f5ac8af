"""Small fits of every mechanism, by name: what `scripts/same` compares between two versions of the code.

Rows are made up, noise is seeded, and most fits take less than a second. Nothing here may name what only one version
has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import stratsynth as ss
from _same_asked import RATE, STEPS, Asking, AskingPublic
from _same_rows import (
    Rows,
    attributes,
    census,
    coded,
    dated,
    declared_public,
    heavy,
    heavy_measured,
    measured,
    measured_persons,
    people,
    persons,
    unsized,
)
from stratsynth import Budget, Neighbours, Prior, PublishedTable, Stratified, Weights
from stratsynth.adapters import External
from stratsynth.mechanisms import Mechanism, make
from stratsynth.strata import crossing

CITED = "made up for testing"
ADDED = Budget(3, 1e-6)
REPLACED = Budget(3, 1e-6, Neighbours.REPLACE)
ATTRIBUTE = Budget(3, 1e-6, Neighbours.ATTRIBUTE)


@dataclass(frozen=True)
class Case:
    """Fit whose results are compared."""

    mechanism: Callable[[], Mechanism[Any] | str]
    rows: Callable[[], Rows]
    budget: Budget = ADDED
    settings: Callable[[], Mapping[str, Any]] = field(default=dict)
    """Further arguments of `fit`."""
    form: str = "frame"
    """The form of the rows: "frame", "csv", "parquet", or "stream", a CSV file that is read a part at a time."""
    kills: tuple[int, ...] = ()
    """Numbers of answers after which a fit is killed and resumed; empty for a fit in one go."""


# Weights and strata


def even(rows: Rows, *by: str) -> Weights:
    """Equal shares."""
    strata = crossing(rows.schema, by)
    lines = [{**stratum.to_dict(), "share": 1 / len(strata)} for stratum in strata]
    return Weights.public(pd.DataFrame(lines), citation=CITED)


def uneven(rows: Rows, *by: str, source: str = "public") -> Weights:
    """Shares that fall from one stratum to the next, from one source or another."""
    strata = crossing(rows.schema, by)
    parts = 0.5 ** np.arange(len(strata))
    lines = pd.DataFrame(
        [{**stratum.to_dict(), "share": float(part)} for stratum, part in zip(strata, parts / parts.sum(), strict=True)]
    )
    return Weights.invariant(lines) if source == "invariant" else Weights.public(lines, citation=CITED)


def stratified(inner: str, rows: Callable[[], Rows], *by: str, **given: Any) -> Callable[[], Mechanism[Any]]:
    """A mechanism in strata of shares that differ."""
    settings = {key: given.pop(key) for key in ("weights", "groups", "budgets") if key in given}

    def build() -> Mechanism[Any]:
        found = {key: value() if callable(value) else value for key, value in settings.items()}
        return Stratified(make(inner, given), list(by), **{"weights": uneven(rows(), *by), **found})

    return build


def pooled(base: Any, **given: Any) -> Callable[[], Mechanism[Any]]:
    """Strata by group, moved from a base."""
    return lambda: make(
        "pooled", {"base": base, "share": 0.5, "by": ["GROUP"], "weights": uneven(people(), "GROUP"), **given}
    )


def named(name: str, **settings: Any) -> Callable[[], Mechanism[Any]]:
    """A mechanism by its name."""
    return lambda: make(name, settings)


# Other people's code


def resample(frame: pd.DataFrame, sizes: dict[str, int], epsilon: float, delta: float, rows: int) -> pd.DataFrame:  # noqa: ARG001 - handed to all
    """Rows drawn from the rows by a seeded generator: the claim is a toy's."""
    rng = np.random.default_rng(len(frame))
    return pd.DataFrame({name: rng.permutation(np.resize(frame[name].to_numpy(), rows)) for name in sizes})


def shuffled(frame: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Values drawn from the values."""
    rng = np.random.default_rng(rows)
    return frame.apply(lambda column: rng.permutation(column.to_numpy()))


# Public facts of other years


def last_year(**given: Any) -> Mapping[str, Any]:
    """Rows that are public already."""
    before = people().frame.sample(frac=1, random_state=3).assign(GROUP="a")
    return {"prior": Prior.public(before, citation=CITED, unknown="drop", **given)}


def known_tables() -> Mapping[str, Any]:
    """Published tables, one with standard errors."""
    rows = people()
    levels = {name: rows.schema.levels(name) for name in ("SEX", "GROUP", "AGE")}
    pairs = pd.MultiIndex.from_product([levels["SEX"], levels["GROUP"]], names=["SEX", "GROUP"]).to_frame(index=False)
    ages = pd.DataFrame({"AGE": levels["AGE"], "share": 1 / len(levels["AGE"])})
    counted = pairs.assign(count=1.0 + np.arange(len(pairs)), error=0.5)
    return {"prior": Prior.tables([PublishedTable(counted, CITED), PublishedTable(ages, CITED)])}


def drawn_by() -> Mapping[str, Any]:
    """Shares that rows are drawn by, without strata."""
    return {"weights": uneven(people(), "GROUP")}


# The list

MERGE = ss.Groups(merge={"GROUP": {"rest": ["b", "c"]}})
LADDER = ss.Groups(hierarchy={"GROUP": {"rest": ["b", "c"]}}, small="merge", threshold=400)
ONE_WAY = ss.Groups(small="one-way", threshold=300)
HALF = ss.StratumBudgets.factors({"a": 0.5})
TINY = {"components": 4, "hidden": [3], "latent": 2, "iterations": 2, "rounds": 2, "least": 20}
PREDICTING = {"target": "D", "groups": ["G"]}
ODDS = {
    "target": "D",
    "groups": ["G"],
    "constraints": {"equalized_odds": 0.05},
    "iterations": 3,
    "inner_steps": 2,
    "start_steps": 2,
}
SAMPLED = {"groups": ["G"], "iterations": STEPS, "sampling": RATE}
REGRESSION = {"groups": ["G"], "iterations": 3}


def holdout() -> Weights:
    """A sample of other people."""
    return Weights.holdout(people().frame.head(60), citation=CITED)


def confidential() -> Weights:
    """A sample that was cut from the file."""
    return Weights.holdout(people().frame.tail(60), confidential=True)


def raked() -> Weights:
    """Two margins, one of which is of a sample."""
    return Weights.raked(uneven(people(), "SEX"), Weights.holdout(people().frame[["GROUP"]].head(80), citation=CITED))


def cases() -> dict[str, Case]:  # noqa: PLR0915 - a list
    """All fits by name."""
    found: dict[str, Case] = {}

    def add(name: str, *given: Any, **more: Any) -> None:
        if name in found:
            raise KeyError(name)
        found[name] = Case(*given, **more)

    # independent
    add("independent, census", named("independent"), census)
    add("independent, replace", named("independent"), people, REPLACED)
    add("independent, no size", named("independent"), unsized)
    add("independent, persons", named("independent"), persons)
    add("independent, heavy", named("independent"), heavy)
    add("independent, a prior", named("independent"), people, settings=last_year)
    add("independent, known tables", named("independent"), people, settings=known_tables)
    add("independent, weighted", named("independent"), people, settings=drawn_by)
    add("independent, public rows", named("independent"), declared_public)
    add("independent, CSV", named("independent"), people, form="csv")
    add("independent, spells of time", named("independent"), dated)
    add("independent, code lists", named("independent"), coded)
    # mst
    add("mst, census", named("mst"), census)
    add("mst, people", named("mst"), people, Budget(0.5, 1e-9))
    add("mst, replace", named("mst", rare=0, prior=0), people, REPLACED)
    add("mst, persons", named("mst"), persons)
    add("mst, heavy", named("mst"), heavy)
    add("mst, a prior", named("mst"), people, settings=last_year)
    add("mst, a prior of fewer columns", named("mst"), people, settings=lambda: last_year(without=["WORK"]))
    add("mst, known tables", named("mst"), people, settings=known_tables)
    add("mst, weighted", named("mst"), people, settings=drawn_by)
    add("mst, Parquet", named("mst"), census, form="parquet")
    add("mst, stream", named("mst"), census, form="stream")
    add("mst, code lists", named("mst"), coded)
    # aim
    add("aim, census", named("aim", rounds=3, model_cells=2**12), census)
    add("aim, people", named("aim"), people)
    add("aim, workload", named("aim", workload="all 2-way", weights={"AGE": 2.0}, rounds=2), people, REPLACED)
    add("aim, heavy", named("aim", rounds=2), heavy)
    add("aim, a prior", named("aim", rounds=2), people, settings=last_year)
    add("aim, weighted", named("aim", rounds=2), people, settings=drawn_by)
    # gem
    add("gem, people", named("gem", **TINY), people)
    add("gem, cells", named("gem", **TINY, measure="cells"), people)
    add("gem, table", named("gem", **{**TINY, "generator": "table"}), people, REPLACED)
    add("gem, a prior", named("gem", **TINY), people, settings=last_year)
    add("gem, census", named("gem", **TINY), census)
    # fixed
    add("fixed, columns", named("fixed"), people)
    add("fixed, pairs", named("fixed", tables=[["SEX", "GROUP"], ["AGE", "WORK"]], importance=[2, 1]), people)
    add("fixed, absolute", named("fixed", tables=[["SEX", "GROUP"], ["GROUP", "AGE"]], errors="absolute"), people)
    add("fixed, weighted", named("fixed", tables=[["SEX", "AGE"]]), people, settings=drawn_by)
    # strata
    add("strata, independent", stratified("independent", people, "GROUP"), people)
    add("strata, two columns", stratified("independent", people, "SEX", "GROUP"), people, REPLACED)
    add("strata, census", stratified("mst", census, "SEX"), census)
    add("strata, mst", stratified("mst", people, "GROUP"), people)
    add("strata, aim", stratified("aim", people, "SEX", rounds=2), people)
    add("strata, gem", stratified("gem", people, "SEX", **TINY), people)
    add("strata, fixed", stratified("fixed", people, "GROUP", tables=[["SEX", "AGE"]]), people)
    add("strata, even", stratified("mst", people, "SEX", weights=lambda: even(people(), "SEX")), people)
    add("strata, a merge", stratified("mst", people, "GROUP", groups=MERGE), people)
    add("strata, a ladder", stratified("independent", people, "GROUP", groups=LADDER), people)
    add("strata, one-way", stratified("mst", people, "GROUP", groups=ONE_WAY), people)
    add("strata, budgets", stratified("mst", people, "GROUP", budgets=HALF), people)
    add("strata, a holdout", stratified("independent", people, "SEX", "GROUP", weights=holdout), people)
    add("strata, a confidential holdout", stratified("mst", people, "GROUP", weights=confidential), people)
    add("strata, raked", stratified("independent", people, "SEX", "GROUP", weights=raked), people)
    add(
        "strata, invariant",
        stratified("independent", people, "GROUP", weights=lambda: uneven(people(), "GROUP", source="invariant")),
        people,
    )
    add("strata, private", stratified("mst", people, "GROUP", weights=lambda: Weights.private(share=0.2)), people)
    add(
        "strata, private with a prior",
        stratified(
            "independent",
            people,
            "GROUP",
            weights=lambda: Weights.private(share=0.1, prior=uneven(people(), "GROUP")),
            groups=LADDER,
            budgets=HALF,
        ),
        people,
    )
    add("strata, persons", stratified("mst", people, "SEX"), persons)
    add("strata, heavy", stratified("independent", people, "GROUP"), heavy)
    add("strata, a prior", stratified("mst", people, "GROUP"), people, settings=last_year)
    add(
        "strata in strata",
        lambda: Stratified(stratified("independent", people, "GROUP")(), ["SEX"], uneven(people(), "SEX")),
        people,
    )
    # pooled
    add("pooled, mst", pooled("mst"), people)
    add("pooled, aim", pooled({"name": "aim", "rounds": 2}), people)
    add("pooled, gem", pooled({"name": "gem", **TINY}), people)
    add("pooled, all of it", pooled("mst", share=1), people)
    add("pooled, nothing of it", pooled("mst", share=0.0), people)
    add("pooled, by itself", pooled("mst", share="auto"), people)
    add("pooled, a merge", pooled("mst", groups=MERGE), people, REPLACED)
    add("pooled, a prior", pooled("mst"), people, settings=last_year)
    add("pooled, private weights", pooled("mst", weights=Weights.private(share=0.2)), people)
    # means
    add("clipped_mean", named("clipped_mean"), measured)
    add("clipped_mean, declared", named("clipped_mean", count="declared", tail="paper", columns=["Z"]), measured)
    add("clipped_mean, strata", stratified("clipped_mean", measured, "G"), measured, REPLACED)
    add("clipped_mean, heavy", named("clipped_mean", columns=["Z"]), heavy_measured)
    add("coinpress", named("coinpress"), measured)
    add("coinpress, joint", named("coinpress", joint=True, tail="exact", shares=[1, 1, 2]), measured)
    add("coinpress, bounded", named("coinpress", variance="bounded", scale={"Z": 3}), measured, REPLACED)
    add("coinpress, strata", stratified("coinpress", measured, "G"), measured)
    add("coinpress, persons", named("coinpress", columns=["Z"]), measured_persons)
    # regression
    add("group_regression, linear", named("group_regression", **REGRESSION), measured)
    add(
        "group_regression, tailored",
        named("group_regression", **REGRESSION, mode="DPSE", accounting="parallel"),
        measured,
    )
    add("group_regression, paper", named("group_regression", **REGRESSION, mode="DPSE", accounting="paper"), measured)
    add(
        "group_regression, worst group",
        named("group_regression", **REGRESSION, objective="maximum", stage_one=0.3),
        measured,
    )
    add(
        "group_regression, bounds",
        named("group_regression", **REGRESSION, loss_bounds={"": 0.1}, features=["G", "X", "C"], target="Y"),
        measured,
    )
    add("group_regression, logistic", named("group_regression", **REGRESSION, model="logistic", target="D"), measured)
    add(
        "group_regression, logistic, tailored",
        named("group_regression", **REGRESSION, model="logistic", target="D", mode="DPSE", accounting="parallel"),
        measured,
    )
    add("group_regression, softmax", named("group_regression", **REGRESSION, model="softmax", target="C"), measured)
    add("group_regression, replace", named("group_regression", **REGRESSION, stage_one=0.3), measured, REPLACED)
    add(
        "group_regression, network",
        named("group_regression", **REGRESSION, model="network", target="D", hidden=3),
        heavy_measured,
    )
    # reductions
    add("reductions, gradients", named("reductions", **ODDS), measured)
    add(
        "reductions, exponential",
        named("reductions", **ODDS, oracle="exponential", candidates="net", number=20),
        measured,
    )
    add("reductions, sampling", named("reductions", **ODDS, method="sampling", number=20, objective="g_mean"), measured)
    add(
        "reductions, losses",
        named("reductions", **{**ODDS, "constraints": {"bounded_squared_loss": 0.3}}, objective="worst_log_loss"),
        measured,
        REPLACED,
    )
    # fermi and fair_sgd
    add("fermi, parity", named("fermi", **SAMPLED, target="D", penalty=1.0), measured)
    add("fermi, odds", named("fermi", **SAMPLED, target="D", criterion="odds", warm_up=0.5, penalty=1.0), measured)
    add(
        "fermi, softmax",
        named("fermi", **SAMPLED, target="C", features=["X", "D"], region="ball", penalty=1.0),
        measured,
    )
    add("fermi, no adversary", named("fermi", **SAMPLED, target="D", penalty=0.0), measured)
    add(
        "fermi, attribute",
        named(
            "fermi",
            target="D",
            features=["X", "C"],
            groups=["G"],
            iterations=STEPS,
            sampling=RATE,
            protect="sensitive",
            penalty=1.0,
        ),
        attributes,
        ATTRIBUTE,
    )
    add("fair_sgd, surrogate", named("fair_sgd", **SAMPLED, target="D"), measured)
    add("fair_sgd, group clips", named("fair_sgd", **SAMPLED, target="C", mitigation="group_clip"), measured)
    add("fair_sgd, adapting", named("fair_sgd", **SAMPLED, target="D", mitigation="global_adapt"), measured)
    add("fair_sgd, network", named("fair_sgd", **SAMPLED, target="D", model="network", hidden=2), measured)
    # other people's code
    add("external", lambda: External(resample, "nobody 1.0"), people, REPLACED)
    add("external, plain", lambda: External.plain(shuffled), declared_public)
    # every sum and score by itself
    for what in ("columns", "moments", "gradients", "losses", "curvature", "networks", "fair", "mitigated"):
        add(f"sums, {what}", lambda what=what: Asking(what), measured)
    for what in ("confusions", "per row", "row vectors", "distances", "peaks", "composites"):
        add(f"sums, {what}", lambda what=what: Asking(what), measured)
    add("sums, pure", lambda: Asking("l1 columns", "pure"), measured)
    add("sums, sampled", lambda: Asking("sampled", "sampled"), measured)
    add("sums, stream", lambda: Asking("gradients"), measured, form="stream")
    add("sums, heavy", lambda: Asking("gradients"), heavy_measured)
    add("sums, persons", lambda: Asking("columns"), measured_persons)
    add("sums, attribute", lambda: AskingPublic("attribute"), attributes, ATTRIBUTE)
    add("sums, by row", lambda: AskingPublic("per row"), attributes, ATTRIBUTE)
    return found


def resumed() -> dict[str, Case]:
    """Fits that one version begins and another goes on with."""
    return {
        "counts": Case(named("independent"), people, form="csv", kills=(1,)),
        "counts in strata": Case(stratified("independent", people, "GROUP"), people, form="csv", kills=(1, 2)),
        "choose": Case(named("mst"), people, form="csv", kills=(1, 2, 3)),
        "choose in strata": Case(stratified("mst", people, "SEX"), people, form="parquet", kills=(1, 3, 6)),
        "aim": Case(named("aim", rounds=3), people, form="stream", kills=(1, 2, 4)),
        "total": Case(named("coinpress"), measured, form="csv", kills=(1, 2, 3)),
        "pure totals": Case(named("clipped_mean"), measured, form="csv", kills=(1, 2)),
        "many sums": Case(lambda: Asking("mitigated"), measured, form="csv", kills=(1, 3)),
        "composites": Case(named("reductions", **ODDS), measured, form="csv", kills=(2, 5)),
        "peaks": Case(lambda: Asking("peaks"), measured, form="csv", kills=(1,)),
        "sampled": Case(named("fermi", **SAMPLED, target="D", penalty=1.0), measured, form="csv", kills=(1, 2)),
        "public rows": Case(lambda: AskingPublic("attribute"), attributes, ATTRIBUTE, form="parquet", kills=(1, 2, 3)),
        "gradients in strata": Case(stratified("coinpress", measured, "G"), measured, form="csv", kills=(2, 4)),
        "group_regression": Case(
            named("group_regression", **REGRESSION, model="logistic", target="D"), measured, form="csv", kills=(1, 3)
        ),
    }
