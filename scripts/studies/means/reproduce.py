"""The papers' experiments on private means, redone; `scripts/reproduce_means` runs this.

    python -m studies.means [--acs FILE] [--runs N] [--out DIR] [--json]

Everything is a simulation on public rows, seeded, so that the same arguments give the same figures.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.errors import StratsynthError, UsageError
from studies.figures import Figure, limited, show
from studies.means import columns, coverage, mixtures, theory

if TYPE_CHECKING:
    import pandas as pd

CENSUS_ROWS = 100_000
COVERAGE_RUNS = 2_000
COVERAGE = (("coinpress", "bought"), ("clipped_mean", "bought"), ("coinpress", "bounded"))


def main(arguments: list[str] | None = None) -> int:
    """Run everything, print tables and figures, and write them into a folder if one is named."""
    parser = argparse.ArgumentParser(
        prog="scripts/reproduce_means", description="The papers' experiments on private means, redone on public data."
    )
    parser.add_argument(
        "--acs", metavar="FILE", type=Path, help="person records of the ACS, instead of simulated people"
    )
    parser.add_argument("--runs", metavar="N", type=int, default=50, help="how many runs of each experiment (50)")
    parser.add_argument("--out", metavar="DIR", type=Path, help="a new folder for tables (CSV) and pictures (PNG)")
    parser.add_argument("--workers", metavar="N", type=int, default=2, help="how many processes (2)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, for programs")
    given = parser.parse_args(arguments)
    try:
        text = reproduce(given.acs, given.runs, given.out, given.workers, as_json=given.json)
    except StratsynthError as error:
        sys.stderr.write(f"reproduce_means: {error}\n")
        return error.exit_code
    sys.stdout.write(text + "\n")
    return 0


def reproduce(acs: Path | None, runs: int, out: Path | None, workers: int, *, as_json: bool) -> str:
    """All experiments; the text to print."""
    if runs < 1 or workers < 1:
        raise UsageError("runs and workers are whole numbers of at least 1.")
    if out is not None and out.exists():
        raise UsageError(f"{out} exists already; name a new folder with --out.")
    start, rng = time.perf_counter(), np.random.default_rng(20240)
    people = columns.acs(acs) if acs is not None else columns.simulated(CENSUS_ROWS)
    mixed, census, covered = _experiments(people, rng, runs, workers)
    found = [*_theory(), *_mixtures(mixed, runs), _parity(rng, runs), *covered]
    found.append(limited("the whole, in seconds", time.perf_counter() - start, 120, "s"))
    tables = [*(summary(mixed, f"mixture, {key}", [key]) for key in mixtures.GRID), *census_tables(census)]
    if out is not None:
        _write(out, mixed, census)
    if as_json:
        return show(found, as_json=True)
    source = f"{acs}" if acs is not None else f"{CENSUS_ROWS:,} simulated people"
    head = f"Private means of public data, {runs} runs each, epsilon 1, delta 1e-9. Census columns: {source}."
    return "\n\n".join([head, *tables, show(found, as_json=False)])


def summary(frame: pd.DataFrame, experiment: str, by: list[str]) -> str:
    """Mean errors by method, in percent; parity errors as they are."""
    part = frame[frame["experiment"] == experiment]
    if part.empty:
        return ""
    lines = []
    for measure, times, note in (
        ("error", 100.0, "error of the mean of all, percent"),
        ("parity of large groups", 1.0, "parity error over groups of at least 500 people"),
        ("parity", 1.0, "parity error over all groups"),
    ):
        table = part.pivot_table(index=by, columns="method", values=measure) * times
        table = table.where(table.abs() > 1e-9, 0.0)  # exact figures would show the rounding of their sums
        kept = [m for m in ("pooled", "stratified", "public-stratified", "plain", "plain, public") if m in table]
        lines.append(f"{experiment}: {note}\n{table[kept].to_string(float_format='{:.4g}'.format)}")
    return "\n\n".join(lines)


def census_tables(census: pd.DataFrame) -> list[str]:
    """One block a column."""
    named = census.assign(experiment="census, " + census["column"])
    return [summary(named, str(name), ["by", "k"]) for name in named["experiment"].unique()]


def _theory() -> list[Figure]:
    """The paper's worked example."""
    read = theory.savings(theory.NY_2018, n=theory.NY_2018_PEOPLE, alpha=0.13)
    against = "the paper says about 80"
    return [
        Figure("theory, New York 2018: saving by expectation", 100 * read.expected, "%", against=against),
        Figure("  by the groups' own sizes", 100 * read.actual, "%", against=against),
        Figure("  by expectation for whole people", 100 * read.whole, "%", against=against),
    ]


def _mixtures(frame: pd.DataFrame, runs: int) -> list[Figure]:
    """Whether stratifying costs the mean of all more than one percent, once there are 10,000 people."""
    part = frame[(frame["experiment"] == "mixture, n") & (frame["n"] >= 10_000)]
    means = part.groupby("method")["error"].mean()
    worse = 100 * (means["stratified"] - means["pooled"])
    ratio = means["stratified"] / means["pooled"]
    return [
        limited("mixtures, n from 10,000: stratified minus pooled error of the mean of all", worse, 1, "points", runs),
        Figure("  as a ratio", ratio, "", runs, against="1 is as good"),
    ]


def _parity(rng: np.random.Generator, runs: int) -> Figure:
    ratio = mixtures.parity_ratio(rng, runs)
    return limited("parity error, stratified over pooled: 5 groups of 500, a deviation apart", ratio, 0.2, "", runs)


def _experiments(
    people: pd.DataFrame, rng: np.random.Generator, runs: int, workers: int
) -> tuple[pd.DataFrame, pd.DataFrame, list[Figure]]:
    """Everything that takes long, in `workers` processes: mixtures, census columns, coverage."""
    import pandas as pd
    from joblib import Parallel, delayed

    aside = rng.random(len(people)) < mixtures.HOLDOUT
    given, studied = mixtures.settings(), columns.tasks(people)
    streams = iter(rng.spawn(len(given) + len(studied) + len(COVERAGE)))
    checks = [delayed(_coverage)(*check, next(streams), max(COVERAGE_RUNS * runs // 50, 1)) for check in COVERAGE]
    census = [
        delayed(columns.experiment)(*columns.split(people, aside, column, by), column, by, next(streams), runs)
        for column, by in studied
    ]
    mixed = [delayed(mixtures.experiment)(one, next(streams), runs) for one in given]
    done = Parallel(n_jobs=workers)([*checks, *census, *mixed])
    tables = [
        pd.DataFrame([row for rows in part for row in rows])
        for part in (done[len(checks) + len(census) :], done[len(checks) : len(checks) + len(census)])
    ]
    return tables[0], tables[1], [figure for figures in done[: len(checks)] for figure in figures]


def _coverage(name: str, variance: str, rng: np.random.Generator, runs: int) -> list[Figure]:
    """Coverage of 95 % intervals."""
    found = []
    for of, part in coverage.coverage(name, rng, runs, variance=variance).items():
        title = f"coverage of 95 % intervals, {name}, {variance} variance: {of}"
        exact, off = variance == "bought", abs(100 * part - 95)
        against = "within 2 of 95" if exact else "at least 95: conservative"
        found.append(Figure(title, 100 * part, "%", runs, against=against, reached=off <= 2 if exact else part >= 0.95))
    return found


def _write(out: Path, mixed: pd.DataFrame, census: pd.DataFrame) -> None:
    """Tidy tables and pictures."""
    from studies.means.pictures import census_picture, mixture_picture

    out.mkdir(parents=True)
    mixed.to_csv(out / "mixtures.csv", index=False)
    census.to_csv(out / "census.csv", index=False)
    mixture_picture(mixed, out / "mixtures.png")
    census_picture(census, out / "census.png")
