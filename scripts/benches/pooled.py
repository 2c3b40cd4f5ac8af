"""`pooled`: vanilla, stratified and pooled side by side, over epsilons, groupings and repetitions.

Overall error is the mean L1 of 64 three-way marginals; a group's error the mean L1 of 60 two-way ones, averaged
over groups of at least 10 people; parity the mean distance of means in units of everybody's standard deviation,
over the same groups and all columns. Releases have as many rows as the table. Figures compare pooled with the
better of the other two, which are fitted on the same base; one line is pooled without its last step, in which strata
are raked to everybody's tables. All kinds see noise of the same seeds.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benches.fit import data
from benches.small import replaced
from stratsynth.evaluation.scores.marginals import coded, mean_l1, members, some_cliques
from stratsynth.models.intervals import NORMAL_95
from studies.figures import Figure, limited

if TYPE_CHECKING:
    from stratsynth.evaluation.tables import Codes
    from stratsynth.schema import Schema

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
GROUPINGS = (("SEX", "RAC1P"), ("RAC1P",))
LEAST = 10
SCORES = ("overall error", "group error", "worst group", "parity")
NOT_RAKED = {"pooled.mechanism": {"raked": lambda model, *_: model}}
"""The function that is replaced for `pooled, not raked`."""


def run(
    acs: str | None,
    *,
    base: str = "mst",
    epsilons: Sequence[float] = EPSILONS,
    seeds: int = 5,
    rows: int | None = None,
    by: Sequence[str] = (),
    shares: Sequence[float] = (),
) -> list[Figure]:
    """Every grouping and epsilon; a fit of each kind for each repetition, and of pooled for each share besides."""
    figures = []
    for columns in [tuple(by)] if by else GROUPINGS:
        frame, schema, weights = data(acs, rows, columns)
        real = coded(frame, schema)
        hows = _hows(base, columns, weights, shares)
        for epsilon in epsilons:
            found: dict[str, list[tuple[float, ...]]] = {kind: [] for kind in hows}
            seconds: dict[str, list[float]] = {kind: [] for kind in hows}
            for seed, (kind, how) in itertools.product(range(seeds), hows.items()):
                start = time.perf_counter()
                with replaced(NOT_RAKED if kind == "pooled, not raked" else {}):
                    release = _fit(how, frame, schema, epsilon, seed)
                seconds[kind].append(time.perf_counter() - start)
                made = coded(release.sample(len(frame), seed=seed), schema)
                found[kind].append(scores(real, made, schema, columns))
            figures.extend(_figures(f"{base}, {' x '.join(columns)}, epsilon {epsilon:g}", found, seconds))
    return figures


def _hows(base: str, by: Sequence[str], weights: Any, shares: Sequence[float]) -> dict[str, Any]:
    """The mechanisms compared, by name."""
    import stratsynth as ss
    from stratsynth.mechanisms import make

    inner = make(base, {"model_cells": 2**16} if base == "aim" else {})
    strata = {"base": inner, "by": by, "weights": weights}
    return {
        "vanilla": inner,
        "stratified": ss.Stratified(inner, by, weights),
        "pooled": make("pooled", strata),
        "pooled, not raked": make("pooled", strata),
        **{f"pooled, share {share:g}": make("pooled", {**strata, "share": share}) for share in shares},
    }


def _fit(how: Any, frame: Any, schema: Schema, epsilon: float, seed: int) -> Any:
    import stratsynth as ss
    from stratsynth.noise import SeededEntropy

    table = ss.open_table(frame, schema=schema, declared_size=len(frame), public=True)
    # with a seed all kinds see the same noise; these are public data
    return ss.fit(how, table, ss.Budget(epsilon=epsilon, delta=1e-9), entropy=SeededEntropy(seed))


def scores(real: Codes, synthetic: Codes, schema: Schema, by: Sequence[str]) -> tuple[float, ...]:
    """Overall error, mean and worst error of groups, parity."""
    rest = [column for column in schema.names if column not in by]
    pairs, spread = some_cliques(rest, 2, 60), {c: max(float(real[c].std()), 1e-9) for c in rest}
    errors, off = [], []
    for levels in itertools.product(*(schema.levels(column) for column in by)):
        group = dict(zip(by, levels, strict=True))
        true, made = members(real, schema, group), members(synthetic, schema, group)
        if len(true[rest[0]]) < LEAST:
            continue
        errors.append(mean_l1(true, made, schema, pairs))
        empty = len(made[rest[0]]) == 0  # a group that a release lost is off by as much as everybody varies
        off.append(np.mean([1.0 if empty else abs(true[c].mean() - made[c].mean()) / spread[c] for c in rest]))
    overall = mean_l1(real, synthetic, schema, some_cliques(schema.names, 3, 64))
    return overall, float(np.mean(errors)), max(errors), float(np.mean(off))


def _figures(what: str, found: dict[str, list[tuple[float, ...]]], seconds: dict[str, list[float]]) -> list[Figure]:
    figures = []
    for i, score in enumerate(SCORES):
        means = {kind: float(np.mean([s[i] for s in runs])) for kind, runs in found.items()}
        better = min(means["vanilla"], means["stratified"])
        for kind, runs in found.items():
            values = [s[i] for s in runs]
            half = NORMAL_95 * float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else None
            against = f"{means[kind] / better:.2f} of the better one" if kind.startswith("pooled") else ""
            figures.append(Figure(f"{what}: {score}, {kind}", means[kind], "", len(values), half, against))
    ratio = float(np.median(seconds["pooled"]) / np.median(seconds["vanilla"]))
    figures.append(limited(f"{what}: time of pooled, vanilla's being 1", ratio, 4, "x", len(seconds["pooled"])))
    return figures
