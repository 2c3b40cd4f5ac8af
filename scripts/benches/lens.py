"""`predict --only lens`: the speed of many models as columns, closed forms against draws, and what mitigation buys."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

import stratsynth as ss
from benches.figures import seconds, timed
from benches.predict import simulated
from stratsynth.evaluation.lens import tables
from stratsynth.evaluation.lens.scores import lens
from stratsynth.mechanisms import make
from stratsynth.schema.rules import Rule
from studies.figures import Figure, limited
from studies.lens.cases import simulated as simulated_cases
from studies.lens.claims import gaps
from studies.lens.experiments import mitigation
from studies.lens.losses import Linear, Logistic
from studies.lens.people import People
from studies.lens.step import Step, decompose
from studies.lens.training import Training, descend

ROWS, FEATURES, MODELS, BATCH, STEPS = 30_000, 100, 60, 1024, 200
DRAWS = 1_000_000


def run(*, seeds: int = 5) -> list[Figure]:
    """Return all figures."""
    return [_columns(), *_step(), _ratio(), _fit(), *_parts(), *_mitigations(seeds)]


def _columns() -> Figure:
    """A step of private gradient descent for all models at once."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, FEATURES))
    people = People(x, (x[:, 0] > 0).astype(float), np.zeros(ROWS, np.intp), ("everybody",))
    clip, noise = np.full(MODELS, 1.0), np.repeat(np.linspace(0.5, 3, 6), MODELS // 6)
    start, how = np.zeros((FEATURES, MODELS)), Training(0.1, STEPS, BATCH)
    timing = timed(lambda: descend(Logistic(), people, start, clip, noise, how, np.random.default_rng(1)), 5)
    each = [1000 * one / STEPS for one in timing.seconds]
    name = f"one step of {MODELS} logistic models: {ROWS:,} rows, {FEATURES} features, samples of about {BATCH:,}"
    middle = float(np.median(each))
    return Figure(name, middle, "ms", len(each), (max(each) - min(each)) / 2, "at most 4", middle <= 4)


def _two(rows: int) -> People:
    """Two groups alike, but that the features of the second are twice as long."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(rows, 4))
    return People(np.concatenate([x, 2 * x]), rng.normal(size=2 * rows), np.repeat([0, 1], rows), ("short", "long"))


def _step() -> list[Figure]:
    """The parts of one step on a quadratic, against drawing samples and noise."""
    people, rng = _two(20), np.random.default_rng(3)
    step, theta = Step(0.5, clip=4.0, noise=5.0, sampling=0.4), np.ones(4)
    parts = decompose(Linear(), people, theta, step).set_index("group")
    local = Linear().local(people.x, people.y, theta)
    norms = np.linalg.norm(local.gradients, axis=1, keepdims=True)
    kept = local.gradients * np.minimum(1, step.clip / norms)
    before = people.means(Linear().values(people.x, people.y, theta[:, None]))[:, 0]
    found, pieces = np.zeros(3), 20
    for _ in range(pieces):
        coins = (rng.random((DRAWS // pieces, people.size)) < step.sampling) / (step.sampling * people.size)
        moved = coins @ kept + step.noise * rng.normal(size=(DRAWS // pieces, 4))
        after = people.means(Linear().values(people.x, people.y, theta[:, None] - step.rate * moved.T))
        found += (after.mean(axis=1) - before) / pieces
    said = (parts["plain"] + parts["excess"]).to_numpy()
    return [
        limited(
            f"change of a group's loss in one step, {name} features: {mine:.2f}, by draws {drawn:.2f}; apart by",
            100 * abs(mine - drawn) / abs(drawn),
            1.0,
            "%",
            DRAWS,
        )
        for name, mine, drawn in zip(people.labels, said, found, strict=False)
    ]


def _ratio() -> Figure:
    """Features twice as long: traces four times as large."""
    parts = decompose(Linear(), _two(500), np.zeros(4), Step(0.1, clip=1.0, noise=0.5)).set_index("group")
    ratio = parts["trace"]["long"] / parts["trace"]["short"]
    return Figure("ratio of traces, features twice as long", float(ratio), "", 1, None, "exactly 4", bool(ratio == 4.0))


def _fit() -> Figure:
    """A fit with all statistics."""
    frame, schema = simulated(20_000, 0)
    settings = {"target": "D", "groups": ["G"], "features": ["X0", "X1", "X2", "X3", "J"]}
    budget = ss.Budget(epsilon=1, delta=1e-6)

    def fit() -> None:
        ss.fit(make("fair_sgd", settings), ss.open_table(frame, schema=schema, declared_size=len(frame)), budget)

    return seconds("one fit of fair_sgd: 20,000 rows, 1,000 steps on samples of about 1,024", timed(fit, 3))


RECIPE = """\
[data]
path = "people.parquet"
schema = "schema.toml"
declared_size = {size}
{strata}
[mechanism]
{mechanism}

[budget]
epsilon = 1.0
delta = 1e-6
"""
STRATA = """
[strata]
by = ["SEX"]

[weights]
source = "public"
path = "shares.csv"
citation = "the built-in census"
"""
WAYS = {
    "vanilla": ('name = "mst"', ""),
    "stratified": ('name = "mst"', STRATA),
    "pooled": ('name = "pooled"\nbase = "mst"', STRATA),
}
CENSUS_ROWS, REPEATS = 10_000, 10


def _parts() -> list[Figure]:
    """The parts of a table's error under some fits, added up, against the error under others: the built-in census.

    Ages above 80 lie outside the schema, and children are not married by a rule, so that every part is there.
    """
    plain = ss.census.schema()
    age = ss.Numeric(lower=0, upper=80, edges=(0, 15, 25, 40, 65, 81), integer=True)
    names = ("AGEP", "SEX", "RAC1P", "CIT", "MAR", "DIS", "ESR", "PUBCOV")
    rule = Rule(when={"AGEP": "< 15"}, never={"MAR": ("1", "2", "3", "4")})
    schema = ss.Schema({name: age if name == "AGEP" else plain.column(name) for name in names}, rules=(rule,))
    figures = []
    for way, (mechanism, strata) in WAYS.items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            ss.census.make(CENSUS_ROWS)[list(names)].to_parquet(folder / "people.parquet")
            schema.write_toml(folder / "schema.toml")
            ss.census.shares(("SEX",)).to_csv(folder / "shares.csv", index=False)
            text = RECIPE.format(size=CENSUS_ROWS, strata=strata, mechanism=mechanism)
            (folder / "recipe.toml").write_text(text, encoding="utf-8")
            start = time.perf_counter()
            some, others = (
                lens(folder / "recipe.toml", "RAC1P", repeats=REPEATS, seed=seed).lens for seed in (0, 1000)
            )
            took = (time.perf_counter() - start) / 2
        total = some[list(tables.PARTS)].sum(axis=1)
        halves = [(some[f"{part}_high"] - some[f"{part}_low"]) / 2 for part in tables.PARTS]
        wide = np.sqrt(sum(half**2 for half in [*halves, (others["high"] - others["low"]) / 2]))
        inside = int((np.abs(total - others["value"]) <= wide).sum())
        figures += [
            Figure(
                f"{way}: groups and widths, of {len(some)}, whose parts add up to the error of other fits within their "
                "intervals of 95 %",
                inside,
                "",
                2 * REPEATS,
                None,
                f"at least {len(some) - 2}",
                inside >= len(some) - 2,
            ),
            *(
                Figure(f"{way}: part of {part}, tables of two columns, everybody", float(part_of), "", REPEATS)
                for part, part_of in some[some["columns"] == 2].iloc[-1][list(tables.PARTS)].items()
            ),
            Figure(f"{way}: one lens of {REPEATS} fits, {CENSUS_ROWS:,} rows", took, "s"),
        ]
    return figures


def _mitigations(seeds: int) -> list[Figure]:
    """The gap of excessive risk between two groups, by world, model and mitigation."""
    start = time.perf_counter()
    found = gaps(mitigation(simulated_cases(np.random.default_rng(4)), max(2, seeds))).reset_index()
    took = time.perf_counter() - start
    figures = [
        Figure(
            f"gap of excessive risk between the groups, {row['world']}, {row['model']}: {row['mitigation']}",
            float(row["gap"]),
            "",
            max(2, seeds),
            float(row["spread"]),
        )
        for row in found.to_dict("records")
    ]
    return [*figures, Figure("all fits for these gaps", took, "s")]
