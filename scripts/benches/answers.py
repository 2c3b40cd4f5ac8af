"""`answers`: coverage of the published intervals, speed of answers, and widths of intervals."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import stratsynth as ss
from benches.coverage import COLUMNS, coverage, mechanisms
from stratsynth import census
from stratsynth.answers import Query
from stratsynth.mechanisms import make
from studies.figures import Figure, limited


def run(
    *, seeds: int = 1_000, only: str | None = None, acs: str | None = None, jobs: int = 1, out: str | None = None
) -> list[Figure]:
    """Coverage of every mechanism over `seeds` fits, then speed, and the error of published tables."""
    from benches.published import published
    from benches.several import several

    figures: list[Figure] = []
    if wanted := [name for name in mechanisms() if only in (None, name)]:
        figures += coverage(wanted, seeds, jobs=jobs, folder=None if out is None else Path(out))
    if only in (None, "speed"):
        figures += [_speed(), _cold()]
    if only in (None, "samples"):
        figures += several(min(seeds, 300))
    if only in (None, "tables"):
        figures += published(acs, min(seeds, 5))
    return figures


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

    with tempfile.TemporaryDirectory() as folder:
        saved = _release().save(Path(folder) / "release", rows=100)
        schema = census.schema().restrict(COLUMNS)
        cells = [
            Query(where={"SEX": sex, "RAC1P": race, column: level}, statistic=statistic)
            for column in ("AGEP", "HISP", "TEN", "MAR", "ESR", "PUBCOV")
            for level in schema.levels(column)
            for sex in schema.levels("SEX")
            for race in schema.levels("RAC1P")
            for statistic in ("count", "share")
        ]
        queries = [cells[i % len(cells)] for i in range(10_000)]
        queries = [replace(query) for query in queries]
        start = time.perf_counter()
        ss.Release.load(saved).answers.frames(queries)
        return limited("10,000 questions to a saved release of 18 strata", time.perf_counter() - start, 5, "s")


def _cold() -> Figure:
    """A question on the command line, Python's start included."""
    import tempfile

    from benches.figures import seconds, started

    with tempfile.TemporaryDirectory() as folder:
        saved = _release().save(Path(folder) / "release", rows=100)
        timing = started("-m", "stratsynth", "query", str(saved), "--columns", "MAR", "--by", "SEX")
        return seconds("first answer of a process of its own", timing, at_most=1)
