"""`answers`: how often the published intervals hold, how fast questions are answered, and how wide intervals are.

Every fit has new people of the built-in census, so that one fit serves both intervals: the one for noise is to hold
what these very people say, the one for noise and sampling what the population says. Cells are fixed before any fit;
of a cell that a fit did not measure, that fit counts neither way, and the part of such cells is printed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from stratsynth.evaluation.bench.figures import Figure, limited
from stratsynth.evaluation.scores.coverage import real_values
from stratsynth.evaluation.scores.marginals import coded

import stratsynth as ss
from stratsynth import census
from stratsynth.answers import Query
from stratsynth.answers.ask import answers
from stratsynth.mechanisms import make

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.mechanisms import Mechanism
    from stratsynth.schema import Schema

COLUMNS = ("AGEP", "SEX", "RAC1P", "HISP", "TEN", "MAR", "ESR", "PUBCOV")
ROWS = 5_000
POPULATION = 2_000_000
"""People who stand for the population; their own sampling error is a twentieth of that of the rows of a fit."""
LEVELS = (0.9, 0.95)
WITHIN = {"noise": 0.02, "noise and sampling": 0.03}
"""How far coverage may be from its level."""
FEW = 100
"""Of fewer intervals chance alone moves the coverage by more than what is allowed."""
GROUP = "RAC1P"
SIZES = {"under 100": 0.0, "100 to 999": 100.0, "1,000 and more": 1_000.0}
"""Classes of groups by their expected number of people."""
QUESTIONS = {
    "counts": [Query(["MAR"], by=[GROUP]), Query(["PUBCOV"], by=[GROUP], where={"SEX": "2"})],
    "rates": [Query(["MAR"], by=[GROUP], statistic="rate"), Query(["ESR"], by=[GROUP], statistic="rate")],
    "differences of rates": [Query(["PUBCOV"], by=[GROUP], statistic="rate", versus={GROUP: "1"})],
    "means": [Query(["AGEP"], by=[GROUP], statistic="mean")],
    "medians": [Query(["AGEP"], by=[GROUP], statistic="quantile")],
    "counts of everybody": [Query(["MAR"]), Query(["SEX", "ESR"]), Query(["HISP"], where={"SEX": "1"})],
    "shares of everybody": [Query(["TEN"], statistic="share"), Query(["AGEP"], statistic="share")],
}
"""What is asked, by kind."""


def mechanisms() -> dict[str, Callable[[], Mechanism[Any]]]:
    """Those compared, by name: in strata where groups are to be estimated."""
    weights = census.weights([GROUP])
    mst = {"name": "mst", "iterations": 1}  # the last fit has no part in answers
    return {
        "independent": lambda: ss.Stratified(make("independent", {}), [GROUP], weights),
        "mst": lambda: make("mst", {"iterations": 1}),
        "aim": lambda: make("aim", {"model_cells": 2**12, "iterations": 30}),
        "pooled": lambda: make("pooled", {"base": mst, "by": [GROUP], "weights": weights}),
        "fixed": lambda: ss.Stratified(make("fixed", {"tables": _tables()}), [GROUP], weights),
    }


def _tables() -> tuple[tuple[str, ...], ...]:
    return (("MAR",), ("ESR",), ("SEX", "PUBCOV"), ("AGEP",), ("TEN",), ("SEX", "ESR"), ("SEX", "HISP"))


def run(*, seeds: int = 1_000, only: str | None = None, acs: str | None = None) -> list[Figure]:
    """Coverage of every mechanism over `seeds` fits, then speed, and the error of published tables."""
    from stratsynth.evaluation.bench.published import published
    from stratsynth.evaluation.bench.several import several

    figures, wanted = [], [name for name in mechanisms() if only in (None, name)]
    schema = census.schema().restrict(COLUMNS)
    population = coded(census.make(POPULATION, seed=1)[list(COLUMNS)], schema) if wanted else {}
    for name in wanted:
        figures += coverage(name, mechanisms()[name], schema, population, seeds)
    if only in (None, "speed"):
        figures += [_speed(), _cold()]
    if only in (None, "samples"):
        figures += several(min(seeds, 300))
    if only in (None, "tables"):
        figures += published(acs, min(seeds, 5))
    return figures


def coverage(
    name: str, how: Callable[[], Mechanism[Any]], schema: Schema, population: Any, fits: int, rows: int = ROWS
) -> list[Figure]:
    """One mechanism's, by kind of question, size of group, level, and interval."""
    queries = [query for some in QUESTIONS.values() for query in some]
    kinds = [kind for kind, some in QUESTIONS.items() for _ in some]
    whole = len(next(iter(population.values())))
    truth = [
        values * rows / whole if query.statistic == "count" else values
        for query, values in zip(queries, real_values(population, schema, queries), strict=True)
    ]
    share = np.bincount(population[GROUP], minlength=schema.size(GROUP)) / whole
    found: dict[tuple[str, str, float, str], list[float]] = {}
    lost: dict[tuple[str, str], list[float]] = {}
    for fit in range(fits):
        people = census.make(rows, seed=2, offset=fit * rows)[list(COLUMNS)]
        own = real_values(coded(people, schema), schema, queries)
        table = ss.open_table(people, schema=schema, declared_size=rows, public=True)
        release = ss.fit(how(), table, ss.Budget(epsilon=1, delta=1e-9))
        for level in LEVELS:
            asked = [replace(query, level=level) for query in queries]
            for i, answer in enumerate(answers(release.answers.squares, asked)):
                known = np.isfinite(answer.estimate)
                size = _sizes(queries[i], schema, share * rows)
                for kind, low, high, true in (
                    ("noise", answer.noise_low, answer.noise_high, own[i]),
                    ("noise and sampling", answer.low, answer.high, truth[i]),
                ):
                    hit = (low <= true) & (true <= high)
                    for label, inside in size.items():
                        some = inside & known & np.isfinite(true)
                        found.setdefault((kinds[i], label, level, kind), []).extend(hit[some].tolist())
                for label, inside in size.items():
                    lost.setdefault((kinds[i], label), []).extend((~known)[inside].tolist())
    return [*_covered(name, found, fits), *_unknown(name, lost, fits)]


def _sizes(query: Query, schema: Schema, expected: NDArray[np.float64]) -> dict[str, NDArray[np.bool_]]:
    """Which cells belong to groups of which size; a cell compared with itself belongs to none."""
    shape = schema.shape(query.cells)
    number = int(np.prod(shape, dtype=int))
    if GROUP not in query.by:
        return {"": np.ones(number, dtype=bool)}
    code = np.unravel_index(np.arange(number), shape)[query.cells.index(GROUP)]
    compared = np.array([schema.levels(GROUP)[i] == query.versus.get(GROUP) for i in code])
    ends = [*SIZES.values(), np.inf]
    return {
        f", groups of {label}": (expected[code] >= low) & (expected[code] < high) & ~compared
        for (label, low), high in zip(SIZES.items(), ends[1:], strict=True)
    }


def _covered(name: str, found: Mapping[tuple[str, str, float, str], Sequence[float]], fits: int) -> Iterator[Figure]:
    for (kind, label, level, interval), hits in found.items():
        if not hits:
            continue
        value, most = float(np.mean(hits)), WITHIN[interval]
        against = f"{100 * level:g} within {100 * most:g} points; {len(hits):,} intervals"
        what = f"{name}: coverage at {100 * level:g} % of {interval}, {kind}{label}"
        if len(hits) < FEW:
            yield Figure(what, 100 * value, "%", fits, None, f"{len(hits):,} intervals: too few to judge")
        else:
            yield Figure(what, 100 * value, "%", fits, None, against, bool(abs(value - level) <= most))


def _unknown(name: str, lost: Mapping[tuple[str, str], Sequence[float]], fits: int) -> Iterator[Figure]:
    for (kind, label), unknown in lost.items():
        if any(unknown):
            yield Figure(f"{name}: not estimable, {kind}{label}", 100 * float(np.mean(unknown)), "%", fits)


def _release(columns: Sequence[str] = COLUMNS) -> Any:
    """One of 18 strata."""
    schema = census.schema().restrict(columns)
    people = census.make(20_000)[list(columns)]
    table = ss.open_table(people, schema=schema, declared_size=20_000, public=True)
    by = ["SEX", "RAC1P"]
    return ss.fit(ss.Stratified(make("independent", {}), by, census.weights(by)), table, ss.Budget(1, 1e-9))


def _speed() -> Figure:
    """Ten thousand questions, each of its own cell, to a saved release of 18 strata."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        saved = _release().save(Path(folder) / "release", rows=100)
        schema = census.schema().restrict(COLUMNS)
        cells = [
            Query(where={"SEX": sex, "RAC1P": race, column: level}, statistic=statistic)
            for column in ("AGEP", "HISP", "TEN", "MAR", "ESR", "PUBCOV") for level in schema.levels(column)
            for sex in schema.levels("SEX") for race in schema.levels("RAC1P") for statistic in ("count", "share")
        ]  # fmt: skip
        queries = [cells[i % len(cells)] for i in range(10_000)]
        queries = [replace(query) for query in queries]
        start = time.perf_counter()
        ss.Release.load(saved).answers.frames(queries)
        return limited("10,000 questions to a saved release of 18 strata", time.perf_counter() - start, 5, "s")


def _cold() -> Figure:
    """A question on the command line, Python's start included."""
    import tempfile
    from pathlib import Path

    from stratsynth.evaluation.bench.figures import seconds, started

    with tempfile.TemporaryDirectory() as folder:
        saved = _release().save(Path(folder) / "release", rows=100)
        timing = started("-m", "stratsynth", "query", str(saved), "--columns", "MAR", "--by", "SEX")
        return seconds("first answer of a process of its own", timing, at_most=1)
