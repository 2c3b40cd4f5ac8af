"""Differences between settings over repetitions, with intervals: the grounds of "better at epsilon 1".

Two settings are paired by the number of the repetition and differ at the same epsilon, in the same metric, for the
same people. Repetitions share the real rows and nothing else, as noise is fresh in each: the interval is about the
noise and the drawing of other releases from the same real rows, not about other real rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from stratsynth.evaluation.comparisons.cells import BASELINE

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

COVERAGE = 0.95
HIGHER = ("k_marginal_score", "accuracy", "r2", "demographic_parity_ratio")
"""Metrics of which more is better."""
NEITHER = ("prevalence", "selection_rate", "bias")
"""Metrics of which neither more nor less is better; of all others less is."""


def better(metric: str) -> int:
    """1 where more is better, -1 where less is, 0 where neither is."""
    name = metric.partition(":")[0]
    return 1 if name in HIGHER else 0 if name in NEITHER else -1


def mean_interval(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The mean over the last axis and its 95 % interval, by Student's t; NaN are left out.

    There are no ends where there are fewer than two values, or no two that differ.
    """
    from scipy.stats import t

    values = np.asarray(values, float)
    there = ~np.isnan(values)
    count = there.sum(axis=-1)
    many = np.maximum(count, 2)
    filled = np.where(there, values, 0.0)
    mean = np.where(count > 0, filled.sum(axis=-1) / np.maximum(count, 1), np.nan)
    off = np.where(there, values - mean[..., None], 0.0)
    spread = np.sqrt((off**2).sum(axis=-1) / (many - 1))
    half = t.ppf((1 + COVERAGE) / 2, many - 1) * spread / np.sqrt(many)
    # the mean of equal values is rounded: differences this small are no spread
    flat = np.abs(off).max(axis=-1, initial=0.0) <= 1e-12 * np.maximum(1.0, np.abs(np.nan_to_num(mean)))
    half = np.where((count < 2) | flat, np.nan, half)
    return mean, mean - half, mean + half


def paired(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Every two settings at the same epsilon: the mean of first minus second, its interval, and a verdict.

    `repetitions` counts those in which both have a value, over which all figures are. The verdict says which is
    better (of a metric that is neither: higher) where the interval excludes 0, and nothing otherwise. Each interval
    covers by itself: of twenty true equalities, one is excluded by chance.

    Returns:
        A row for each metric, epsilon, scope and group, and pair of settings; marginals one by one are left out.
    """
    import pandas as pd

    keys = ["metric", "epsilon", "scope", *by, "group"]
    own = frame[(frame["stratification"] != BASELINE) & (frame["metric"] != "clique_error")].reset_index(drop=True)
    settings = list(dict.fromkeys(zip(own["mechanism"], own["stratification"], strict=True)))
    number = {setting: i for i, setting in enumerate(settings)}
    place = own.groupby(keys, sort=False, dropna=False).ngroup().to_numpy()
    which = np.array([number[s] for s in zip(own["mechanism"], own["stratification"], strict=True)], int)
    seeds, seed = np.unique(own["seed"], return_inverse=True)
    heads = own[keys].iloc[np.unique(place, return_index=True)[1]].reset_index(drop=True)
    values = np.full((len(heads), len(settings), len(seeds)), np.nan)
    values[place, which, seed] = own["value"]
    parts = [
        _differences(heads, values[:, i], values[:, j], settings[i], settings[j])
        for i, j in combinations(range(len(settings)), 2)
    ]
    found = pd.concat([_differences(heads.iloc[:0], values[:0, 0], values[:0, 0], ("", ""), ("", "")), *parts])
    found["stamp"] = pd.array([frame["stamp"].iloc[0]] * len(found), "string")
    return found.reset_index(drop=True)


def _differences(
    heads: pd.DataFrame, one: NDArray[Any], two: NDArray[Any], first: tuple[str, str], second: tuple[str, str]
) -> pd.DataFrame:
    """Two settings, in every metric, epsilon and group."""
    import pandas as pd

    difference = one - two
    there = ~np.isnan(difference)
    mean, low, high = mean_interval(difference)
    names = {
        "first_mechanism": first[0], "first_stratification": first[1],
        "second_mechanism": second[0], "second_stratification": second[1],
    }  # fmt: skip
    words = (setting_name(*first), setting_name(*second))
    verdicts = [
        _verdict(str(metric), bottom, top, *words)
        for metric, bottom, top in zip(heads["metric"], low, high, strict=True)
    ]
    return heads.assign(
        **{name: pd.array([text] * len(heads), "string") for name, text in names.items()},
        first=mean_interval(np.where(there, one, np.nan))[0],
        second=mean_interval(np.where(there, two, np.nan))[0],
        difference=mean, low=low, high=high, repetitions=there.sum(axis=-1),
        verdict=pd.array(verdicts, "string"),
    )  # fmt: skip


def _verdict(metric: str, low: float, high: float, first: str, second: str) -> str:
    """In words, only where the interval excludes 0."""
    if np.isnan(low) or low <= 0 <= high:
        return ""
    sign, direction = (1 if low > 0 else -1), better(metric)
    if not direction:
        return f"{first if sign > 0 else second} is higher"
    return f"{first if sign == direction else second} is better"


def setting_name(mechanism: str, stratification: str) -> str:
    """A setting in words: `mst, vanilla` or `mst by SEX x RAC1P`."""
    return f"{mechanism}, vanilla" if stratification == "vanilla" else f"{mechanism} by {stratification}"
