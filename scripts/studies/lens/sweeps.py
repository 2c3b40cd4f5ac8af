"""INTERNAL. Sweeps of paper 001's appendix: over epsilon (figures 8, 12), the clip (C.2) and groups' sizes (figure 11).

Each leaves all else as it is in `studies.lens.experiments`, and looks at the end of a training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from stratsynth.evaluation.tables import FEW
from studies.lens import experiments
from studies.lens.claims import gaps
from studies.lens.losses import Logistic
from studies.lens.output import fitted, perturbed, spread
from studies.lens.people import People
from studies.lens.training import Training, risks

if TYPE_CHECKING:
    from numpy.random import Generator

    from studies.lens.cases import Case

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Epsilons of output perturbation."""
FITTED_AT = (0.5, 1.0, 3.0)
"""Epsilons of `fair_sgd`."""
FITTED_WAYS = ("none", "gamma1 and gamma2 of 1", "global_adapt")
CLIPS = (0.03, 0.1, 0.3, 1.0, 3.0)
RATIOS = (0.1, 0.25, 0.5, 1.0)
"""Sizes of the second largest group, in those of the largest."""


def by_epsilon(cases: Sequence[Case], runs: int, rng: Generator) -> pd.DataFrame:
    """Figure 8: excessive risk of logistic models under output perturbation, by epsilon."""
    frames = []
    for case in cases:
        people, loss = case.people, Logistic()
        longest = float(np.sqrt((people.x**2).sum(axis=1).max()))
        theta = fitted(loss, people, experiments.PENALTY)
        for epsilon in EPSILONS:
            noise = spread(epsilon, experiments.DELTA, 2 * longest / (people.size * experiments.PENALTY))
            found = perturbed(loss, people, theta, noise, runs, rng)
            frames.append(found.assign(world=case.name, model="logistic", epsilon=epsilon, noise=noise))
    return pd.concat(frames, ignore_index=True)


def by_clip(cases: Sequence[Case], runs: int, rng: Generator) -> pd.DataFrame:
    """C.2: excessive risk at a training's end, and its parts, by the clip C; the noise is C times the multiplier."""
    return pd.concat(
        [
            found.assign(world=case.name, clip=clip)
            for case in cases
            for clip in CLIPS
            for found in _trained(case.people, clip, runs, rng)
        ],
        ignore_index=True,
    )


def by_ratio(cases: Sequence[Case], runs: int, rng: Generator) -> pd.DataFrame:
    """Figure 11: gradient norms and excessive risk of the two largest groups, subsampled to relative sizes."""
    return pd.concat(
        [
            found.assign(world=case.name, ratio=ratio)
            for case in cases
            for ratio in RATIOS
            for found in _trained(resized(case.people, ratio, rng), experiments.CLIP, runs, rng)
        ],
        ignore_index=True,
    )


def resized(people: People, ratio: float, rng: Generator) -> People:
    """As many rows as there are of the two largest groups, the second of `ratio` times the first's size."""
    first, second = np.argsort(-people.counts, kind="stable")[:2]
    most = min(people.counts[first], people.counts[second] / ratio)
    sizes = {first: round(most), second: round(most * ratio)}
    chosen = np.sort(
        np.concatenate([rng.permutation(np.flatnonzero(people.group == k))[:size] for k, size in sizes.items()])
    )
    group = (people.group[chosen] == second).astype(np.intp)
    return People(people.x[chosen], people.y[chosen], group, (people.labels[first], people.labels[second]))


def by_budget(cases: Sequence[Case], repeats: int) -> pd.DataFrame:
    """Figure 12: `fair_sgd` with its mitigation, without, and with a clip that adapts, by epsilon."""
    return pd.concat(
        [
            experiments.mitigated(case, model, repeats, epsilon, FITTED_WAYS).assign(epsilon=epsilon)
            for case in cases
            for model in experiments.MODELS
            for epsilon in FITTED_AT
        ],
        ignore_index=True,
    )


def _trained(people: People, clip: float, runs: int, rng: Generator) -> Iterator[pd.DataFrame]:
    """Each model's figures at its end."""
    for name, loss, start in experiments.kinds(people):
        seed = int(rng.integers(2**32))
        found = risks(
            loss,
            people,
            start,
            clip,
            experiments.MULTIPLIER,
            Training(experiments.RATE, experiments.STEPS, experiments.BATCH),
            runs=runs,
            seed=seed,
            samples=3,
        )
        yield found[found["step"] == experiments.STEPS].assign(model=name)


def words(found: dict[str, pd.DataFrame]) -> list[str]:
    """Return what each sweep shows, a sentence each; a gap is the largest excessive risk of a group less the least."""
    output, clips, ratios = (
        gaps_over(found[name], by) for name, by in (("epsilons", "epsilon"), ("clips", "clip"), ("ratios", "ratio"))
    )
    falls = [all(b < a for a, b in pairwise(line.sort_index())) for _, line in _lines(output, "risk")]
    parts = {part: _lines(clips, part) for part in ("clipping", "noise")}
    most = {
        part: [float(line.index[int(line.abs().to_numpy().argmax())]) for _, line in lines]
        for part, lines in parts.items()
    }
    norms = [line.max() / line.min() for _, line in _groups(found["ratios"], "gradient_norm")]
    spans = [(line.min(), line.max()) for _, line in _lines(ratios, "excess")]
    first = (
        f"Over epsilon {EPSILONS[0]:g} to {EPSILONS[-1]:g} the gap of excessive risk under output perturbation shrinks "
        f"with every larger epsilon in {sum(falls)} of {len(falls)} cases (figure 8)."
    )
    changed = sum(low * 2 < high for low, high in spans)
    last = (
        f"With the smaller group {RATIOS[0]:g} to {RATIOS[-1]:g} times as large as the other, a group's gradient norm "
        f"changes by a factor of {np.median(norms):.2f} at the median and {max(norms):.2f} at most; the gap of "
        f"excessive risk changes by more than a factor of 2 in {changed} of {len(spans)} cases (figure 11)."
    )
    between = [
        f"Over clips of {CLIPS[0]:g} to {CLIPS[-1]:g} the gap's part of {part} is largest at {_counted(at)} (C.2)."
        for part, at in most.items()
    ]
    return [first, *between, last, *_narrowed(by_way(found["budgets"]))]


def _narrowed(found: pd.DataFrame) -> list[str]:
    """Return, for each epsilon and way, in how many cases the gap is narrower, or wider, intervals being disjoint."""
    ends = found.assign(low=found["gap"] - found["spread"], high=found["gap"] + found["spread"])
    lines = []
    for epsilon, one in ends.groupby(level="epsilon"):
        none = one.xs("none", level="mitigation")
        for way in FITTED_WAYS[1:]:
            here = one.xs(way, level="mitigation").reindex(none.index)
            better, worse = int((here["high"] < none["low"]).sum()), int((here["low"] > none["high"]).sum())
            lines.append(
                f"fair_sgd at epsilon {epsilon:g}, {way}: the gap is narrower by more than chance in {better} of "
                f"{len(none)} cases, wider in {worse} (figure 12)."
            )
    return lines


def _counted(values: Sequence[float]) -> str:
    """Return `C = 0.3 in 4 cases, 1 in 2 cases`."""
    places, times = np.unique(values, return_counts=True)
    return "C = " + ", ".join(f"{place:g} in {n} cases" for place, n in zip(places, times, strict=True))


def gaps_over(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return, for each case and value of `by`, the range of all figures over groups that are not tiny."""
    own = frame[(frame["group"] != "everybody") & (frame["n"] >= FEW)]
    figures = [name for name in ("risk", "excess", "clipping", "noise") if name in own and name != by]
    each = own.groupby(["world", "model", by], sort=False)[figures]
    found: pd.DataFrame = each.max() - each.min()
    return found


def by_way(frame: pd.DataFrame) -> pd.DataFrame:
    """Return `claims.gaps` of the fits at each epsilon."""
    each = {epsilon: gaps(fits) for epsilon, fits in frame.groupby("epsilon", sort=True)}
    return pd.concat(each, names=["epsilon"])


def _lines(found: pd.DataFrame, figure: str) -> list[tuple[object, pd.Series[float]]]:
    """Each case's figure over the sweep."""
    return [(case, line.droplevel([0, 1])) for case, line in found[figure].groupby(level=[0, 1], sort=False)]


def _groups(frame: pd.DataFrame, figure: str) -> list[tuple[object, pd.Series[float]]]:
    """Each group's figure over the sweep."""
    own = frame[(frame["group"] != "everybody") & (frame["n"] >= FEW)]
    return list(own.groupby(["world", "model", "group"], sort=False)[figure])
