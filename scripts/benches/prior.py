"""`prior`: fits that start from public rows, beside fits that do not, and beside these rows used as the release.

Overall error is the mean L1 of 64 three-way marginals, a group's error and parity are as in `pooled`. Every seed fits
with and without the prior, and the differences are paired by seed. With `--acs FILE --prior FILE` the table is one
file of NIST's excerpt and the prior another, such as the year before; `--wrong FILE` is a third that is no good
prior. Without files, the table is the built-in census of 2019 and priors are its years 2018 and 2009. Columns that are
shuffled one by one are a wrong prior in either case: right about every column, wrong about every pair. Times are of
processors, the median fit with a prior against the median one without; the first of each kind does not count.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benches.fit import BY
from benches.pooled import scores
from stratsynth.evaluation.scores.marginals import coded
from stratsynth.models.intervals import NORMAL_95
from studies.figures import Figure, limited

if TYPE_CHECKING:
    import pandas as pd

    import stratsynth as ss
    from stratsynth.schema import Schema

EPSILONS = (0.1, 1.0, 3.0)
KINDS = ("aim", "mst", "gem", "independent", "pooled", "strata")
GROUPED = ("pooled", "strata")
"""Mechanisms that fit groups of BY apart; `strata` is MST in each."""
SCORES = ("overall error", "group error", "parity")
TARGETS = {1.0: (0.115, 0.36, 0.10), 3.0: (0.10, 0.33, 0.09)}
"""Largest scores for Texas with its year before as the prior, by epsilon; at .1 the target is the prior used as the
release."""
COSTS = 1.05
"""Largest ratio of a score with a wrong prior to the score without a prior."""
SLOWER = 1.5
"""Largest ratio of a fit's time to that without a prior."""


def run(
    acs: str | None = None,
    prior: str | None = None,
    wrong: str | None = None,
    *,
    base: str = "aim",
    epsilons: Sequence[float] = EPSILONS,
    seeds: int = 5,
    rows: int | None = None,
) -> list[Figure]:
    """Fit with every prior at every epsilon; `base` is a mechanism, or `all` for each of them."""
    case = _files(acs, prior, wrong) if acs is not None and prior is not None else _census(rows or 10_000)
    figures = list(_alone(case))
    for kind in KINDS if base == "all" else (base,):
        for epsilon in epsilons:
            figures += _compared(case, kind, epsilon, seeds)
    return figures


class Case:
    """A table, and what may be known besides."""

    def __init__(self, frame: pd.DataFrame, schema: Schema, good: Mapping[str, Any], wrong: Mapping[str, Any]) -> None:
        """Frames by name: of priors that should help, and of priors that must do no harm."""
        self.frame, self.schema, self.good, self.wrong = frame, schema, good, wrong
        self.real = coded(frame, schema)

    def prior(self, frame: pd.DataFrame) -> ss.Prior:
        """A frame as a prior; columns without any level of the schema count as missing."""
        import stratsynth as ss

        without = [n for n in self.schema.names if not frame[n].isin(self._levels(n)).any()]
        return ss.Prior.public(frame, citation="for a benchmark", without=without, unknown="drop")

    def _levels(self, name: str) -> Any:
        """Return the values of a column; the data are public."""
        return self.frame[name].unique()

    def scores(self, rows: Any) -> tuple[float, ...]:
        """Overall error, the mean of groups, parity."""
        overall, groups, _, parity = scores(self.real, rows, self.schema, BY)
        return overall, groups, parity


def _files(acs: str, prior: str, wrong: str | None) -> Case:
    from stratsynth.schema import Categorical, Schema
    from studies.acs import excerpt
    from studies.data import texts

    frames = [texts(Path(f), excerpt().names) for f in (acs, prior, *([wrong] if wrong else []))]
    areas = tuple(sorted({*frames[0].PUMA, *frames[1].PUMA}))
    schema = Schema({**excerpt().columns, "PUMA": Categorical(levels=areas)})
    wrongs = {"another file": frames[2]} if wrong else {}
    return Case(frames[0], schema, {"the other file": frames[1]}, {**wrongs, "shuffled columns": _shuffled(frames[1])})


def _census(rows: int) -> Case:
    from stratsynth import census

    good = {f"{year}": census.make(rows, year=year) for year in (2018, 2009)}
    # without the structural rules: shuffled columns break them, and would be refused as a prior
    schema = replace(census.schema(), rules=())
    return Case(census.make(rows), schema, good, {"shuffled columns": _shuffled(good["2018"])})


def _shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return frame.assign(**{str(n): frame[n].to_numpy()[rng.permutation(len(frame))] for n in frame})


def _alone(case: Case) -> Sequence[Figure]:
    """The priors used as if they were the release: without any budget, and without any protection of theirs."""
    return [
        Figure(f"{name} used as the release: {score}", value, "")
        for name, frame in case.good.items()
        for score, value in zip(SCORES, case.scores(coded(frame, case.schema)), strict=True)
    ]


def _compared(case: Case, kind: str, epsilon: float, seeds: int) -> list[Figure]:
    priors = {name: case.prior(frame) for name, frame in (*case.good.items(), *case.wrong.items())}
    _fitted(case, kind, epsilon, None, seeds)  # what is imported and mapped once takes its time in the first fits
    for prior in priors.values():
        _fitted(case, kind, epsilon, prior, seeds)
    # one after the other for each seed, so that they meet a machine that is as busy
    every = {"": None, **priors}
    fits = [{name: _fitted(case, kind, epsilon, prior, seed) for name, prior in every.items()} for seed in range(seeds)]
    plain = [fit[""] for fit in fits]
    figures = _shown(f"{kind}, epsilon {epsilon:g}, no prior", plain, [""] * 3, [None] * 3)
    base = np.mean([found for found, _ in plain], axis=0)
    for name in priors:
        runs = [fit[name] for fit in fits]
        ratios = np.mean([found for found, _ in runs], axis=0) / base
        against = [f"{ratio:.2f} of no prior, {_paired(runs, plain, i)}" for i, ratio in enumerate(ratios)]
        wrong = name in case.wrong
        most: Sequence[float | None] = list(COSTS * base) if wrong else _targets(case, epsilon, case.good[name])
        figures += _shown(f"{kind}, epsilon {epsilon:g}, prior {name}", runs, against, most)
        taken, without = (float(np.median([seconds for _, seconds in each])) for each in (runs, plain))
        what = f"{kind}, epsilon {epsilon:g}, prior {name}: processor time, {taken:.3f} s for {without:.3f} s without"
        figures.append(limited(what, taken / without, SLOWER, "x", seeds))
    return figures


def _targets(case: Case, epsilon: float, frame: pd.DataFrame) -> Sequence[float | None]:
    """Return the target scores: the prior's own at a small epsilon, the stated ones on the files at larger ones."""
    if epsilon <= min(EPSILONS):
        return case.scores(coded(frame, case.schema))
    return TARGETS.get(epsilon, (None,) * 3) if "the other file" in case.good else (None,) * 3


def _fitted(
    case: Case, kind: str, epsilon: float, prior: ss.Prior | None, seed: int
) -> tuple[tuple[float, ...], float]:
    """The scores of one fit's sample, and the seconds of processor time that the fit took."""
    import stratsynth as ss
    from stratsynth.mechanisms import make

    frame, by = case.frame, list(BY)
    how: Any = make("mst" if kind == "strata" else kind, {}) if kind != "pooled" else None
    if kind in GROUPED:
        weights = weights_of(frame, case.schema, by)
        how = ss.Stratified(how, by, weights) if how else make("pooled", {"by": by, "weights": weights})
    table = ss.open_table(frame, schema=case.schema, declared_size=len(frame), public=True)
    start = time.process_time()
    release = ss.fit(how, table, ss.Budget(epsilon=epsilon, delta=1e-9), seed=seed, prior=prior)
    seconds = time.process_time() - start
    return case.scores(coded(release.sample(len(frame), seed=seed), case.schema)), seconds


def weights_of(frame: pd.DataFrame, schema: Schema, by: Sequence[str]) -> ss.Weights:
    """Public weights of groups: their shares in a frame."""
    import pandas as pd

    import stratsynth as ss

    columns = list(by)
    counted = frame.groupby(columns).size().div(len(frame)).rename("share").reset_index()
    every = pd.MultiIndex.from_product([schema.levels(c) for c in columns], names=columns).to_frame(index=False)
    shares = every.merge(counted.astype(dict.fromkeys(columns, str)), how="left").fillna({"share": 0.0})
    return ss.Weights.public(shares, citation="the table, for a benchmark")


def _paired(runs: Sequence[Any], plain: Sequence[Any], i: int) -> str:
    """Return the mean difference by seed with its interval of 95 percent."""
    off = [with_it[0][i] - without[0][i] for with_it, without in zip(runs, plain, strict=True)]
    half = NORMAL_95 * float(np.std(off, ddof=1)) / len(off) ** 0.5 if len(off) > 1 else float("nan")
    return f"difference {np.mean(off):+.4f} +- {half:.4f}"


def _shown(what: str, runs: Sequence[Any], against: Sequence[str], most: Sequence[float | None]) -> list[Figure]:
    figures = []
    for i, score in enumerate(SCORES):
        values = [found[i] for found, _ in runs]
        half = NORMAL_95 * float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else None
        mean, limit = float(np.mean(values)), most[i]
        target = "" if limit is None else f"at most {limit:.3g}; "
        reached = None if limit is None else bool(mean <= limit)
        figures.append(Figure(f"{what}: {score}", mean, "", len(values), half, target + against[i], reached))
    return figures
