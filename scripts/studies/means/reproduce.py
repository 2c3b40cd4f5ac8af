"""The papers' experiments on private means, redone; `scripts/reproduce_means` runs this.

Everything is a simulation on public rows, seeded, so that the same arguments give the same figures.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from studies.figures import Figure, limited, show
from studies.harness import Found
from studies.means import columns, coverage, laplace, mixtures, theory
from studies.means.pictures import alpha_picture, census_picture, laplace_picture, mixture_picture

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

CENSUS_ROWS = 100_000
COVERAGE_RUNS = 2_000
FIGURE_1 = {"n": theory.NY_2018_PEOPLE, "k": len(theory.NY_2018)}
COVERAGE = (("coinpress", "bought"), ("clipped_mean", "bought"), ("coinpress", "bounded"))


def run(*, acs: Path | None, runs: int, workers: int, json: bool) -> Found:
    """Run all experiments."""
    start, rng = time.perf_counter(), np.random.default_rng(20240)
    people = columns.acs(acs) if acs is not None else columns.simulated(CENSUS_ROWS)
    mixed, census, plain, covered = _experiments(people, rng, runs, workers)
    found = [*_theory(), *laplace.figures(plain), *_mixtures(mixed, runs), _parity(rng, runs), *covered]
    found.append(limited("the whole, in seconds", time.perf_counter() - start, 120, "s"))
    first = figure_1(**FIGURE_1)
    tables = [
        *(summary(mixed, f"mixture, {key}", [key]) for key in mixtures.GRID),
        *census_tables(census),
        laplace.summary(plain),
        f"Figure 1, n = {FIGURE_1['n']:,}, k = {FIGURE_1['k']}: sum of the logarithms of the groups' sizes, by alpha\n"
        + first.iloc[::3].to_string(index=False, float_format="{:.4g}".format),
    ]
    if json:
        text = show(found, as_json=True)
    else:
        source = f"{acs}" if acs is not None else f"{CENSUS_ROWS:,} simulated people"
        head = f"Private means of public data, {runs} runs each, epsilon 1, delta 1e-9. Census columns: {source}."
        text = "\n\n".join([head, *tables, show(found, as_json=False)])
    drawn = {
        "mixtures": partial(mixture_picture, mixed),
        "census": partial(census_picture, census),
        "laplace": partial(laplace_picture, plain),
        "figure_1": partial(alpha_picture, first),
    }
    return Found(text, {"mixtures": mixed, "census": census, "laplace": plain, "figure_1": first}, drawn)


def figure_1(n: int, k: int) -> pd.DataFrame:
    """The theory of n people in k groups, over the alphas of Figure 1."""
    import pandas as pd

    return pd.DataFrame(theory.by_alpha(n, k, [step / 20 for step in range(1, 21)]))


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
    """Percentage points that stratifying adds to the error of the mean of all, from 10,000 people on; at most 1."""
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
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, list[Figure]]:
    """Run the long experiments in `workers` processes: mixtures, census columns, Laplace means, coverage."""
    import pandas as pd
    from joblib import Parallel, delayed

    aside = rng.random(len(people)) < mixtures.HOLDOUT
    given, studied, plain = mixtures.settings(), columns.tasks(people), laplace.settings()
    streams = iter(rng.spawn(len(given) + len(studied) + len(COVERAGE) + len(plain)))
    jobs = [
        [delayed(_coverage)(*check, next(streams), max(COVERAGE_RUNS * runs // 50, 1)) for check in COVERAGE],
        [
            delayed(columns.experiment)(*columns.split(people, aside, column, by), column, by, next(streams), runs)
            for column, by in studied
        ],
        [delayed(mixtures.experiment)(one, next(streams), runs) for one in given],
        [delayed(laplace.experiment)(one, next(streams), runs) for one in plain],
    ]
    done = iter(Parallel(n_jobs=workers)(job for some in jobs for job in some))
    covered, census, mixed, means = ([row for _ in some for row in next(done)] for some in jobs)
    return pd.DataFrame(mixed), pd.DataFrame(census), pd.DataFrame(means), covered


def _coverage(name: str, variance: str, rng: np.random.Generator, runs: int) -> list[Figure]:
    """Coverage of 95 % intervals."""
    found = []
    for of, part in coverage.coverage(name, rng, runs, variance=variance).items():
        title = f"coverage of 95 % intervals, {name}, {variance} variance: {of}"
        exact, off = variance == "bought", abs(100 * part - 95)
        against = "within 2 of 95" if exact else "at least 95: conservative"
        found.append(Figure(title, 100 * part, "%", runs, against=against, reached=off <= 2 if exact else part >= 0.95))
    return found
