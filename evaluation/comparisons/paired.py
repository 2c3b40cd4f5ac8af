"""Differences between settings over repetitions, with intervals and tests: the grounds of "better at epsilon 1".

Two settings are paired by the number of the repetition and differ at the same epsilon, in the same metric, for the same
people. Repetitions share the real rows and nothing else, as noise is fresh in each: intervals and tests are about the
noise and the drawing of other releases from the same real rows, not about other real rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stratsynth.evaluation.scores.declared import with_mean

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

Setting: TypeAlias = "tuple[str, str]"
"""Mechanism's label and its stratification."""

VANILLA, DIRECT = "vanilla", "direct"
"""Stratifications of a table without strata, and of a predictor without a table."""
BASELINE = "(baseline)"
"""Stratification of baselines; their mechanisms are in brackets too, and their epsilon is infinite."""
COVERAGE = 0.95
"""Coverage of each interval; 1 minus it is the level of the tests."""
ENOUGH = 5
"""Smallest number of repetitions for a verdict: from fewer, a spread is hardly known."""
HIGHER = ("k_marginal_score", "accuracy", "f1", "auc", "r2", "demographic_parity_ratio")
"""Metrics whose larger values are better."""
SIGNED = ("mean_error", "median_error", "P90_error", "P99_error", "share_error")
"""Metrics that have a sign in the tidy frame; settings are compared by their sizes."""
NEITHER = ("prevalence", "selection_rate", "bias")
"""Metrics with no better direction; for all others smaller is better."""


def better(metric: str) -> int:
    """Direction of a metric such as `accuracy:forest`: 1 if larger is better, -1 if smaller is, 0 if neither."""
    name = metric.partition(":")[0]
    if (score := with_mean().get(name)) is not None:
        return score.better
    return 1 if name in HIGHER else 0 if name in NEITHER else -1


def mean_interval(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return three arrays: mean of `values` over the last axis, and both ends of its 95 % interval by Student's t.

    NaN values are left out. The ends are NaN if there are fewer than two values, or all are equal.
    """
    from scipy.stats import t

    mean, error, count = _mean(values)
    half = t.ppf((1 + COVERAGE) / 2, np.maximum(count, 2) - 1) * error
    return mean, mean - half, mean + half


def p_values(differences: NDArray[Any]) -> NDArray[np.float64]:
    """Array of p-values of Student's two-sided t test that a mean over the last axis of `differences`, an array, is 0.

    The value is NaN where there is no interval.
    """
    from scipy.stats import t

    mean, error, count = _mean(differences)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: NDArray[np.float64] = 2 * t.sf(np.abs(mean / error), np.maximum(count, 2) - 1)
    return found


def holm(p: NDArray[Any]) -> NDArray[np.float64]:
    """Array of the p-values in the flat array `p`, adjusted for their number, after Holm 1979.

    NaN values are no tests and stay NaN. The i-th smallest of m is multiplied by m - i + 1, and is no smaller than
    those before it.
    """
    found = np.full(len(p), np.nan)
    there = np.flatnonzero(~np.isnan(p))
    order = there[np.argsort(p[there], kind="stable")]
    found[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1.0)
    return found


def _mean(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return three arrays of the array `values` over its last axis without NaN: mean, standard error, number of values.

    The error is NaN if it is unknown.
    """
    values = np.asarray(values, float)
    there = ~np.isnan(values)
    count = there.sum(axis=-1)
    many = np.maximum(count, 2)
    filled = np.where(there, values, 0.0)
    mean = np.where(count > 0, filled.sum(axis=-1) / np.maximum(count, 1), np.nan)
    off = np.where(there, values - mean[..., None], 0.0)
    error = np.sqrt((off**2).sum(axis=-1) / (many - 1) / many)
    # the mean of equal values is rounded: deviations this small are no spread
    flat = np.abs(off).max(axis=-1, initial=0.0) <= 1e-12 * np.maximum(1.0, np.abs(np.nan_to_num(mean)))
    return mean, np.where((count < 2) | flat, np.nan, error), count


def paired(
    frame: pd.DataFrame, by: Sequence[str], pairs: Collection[tuple[Setting, Setting]] | None = None
) -> pd.DataFrame:
    """Compare settings at the same epsilon pairwise: mean of first minus second, its interval, a test and a verdict.

    `repetitions` counts those in which both have a value, over which all figures are. `p_value` is that of the paired t
    test, and `p_holm` allows for the number of tests of the same metric and scope: all pairs, epsilons and groups in
    the frame. The verdict says which is better (of a metric that is neither: higher) where `p_holm` is below .05 over
    `ENOUGH` repetitions or more, and nothing otherwise. Intervals cover one by one: of twenty true equalities, one is
    excluded by chance. Of errors with a sign their sizes are compared.

    Args:
        frame: Result of `compare`.
        by: Columns of its groups.
        pairs: Pairs to test, first and second setting, each a pair (mechanism, stratification); by default every two
            settings. Fewer pairs are fewer tests to allow for.

    Returns:
        A frame with a row for each metric, epsilon, scope and group, and pair of settings; marginals one by one are
        left out.
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
    # cube (rows of `heads`, settings, repetitions), NaN without a value
    sizes = own["value"].abs().where(own["metric"].str.partition(":")[0].isin(SIGNED), own["value"])
    values[place, which, seed] = sizes
    chosen = list(combinations(settings, 2)) if pairs is None else list(pairs)
    parts = [
        _differences(heads, values[:, number[one]], values[:, number[two]], one, two)
        for one, two in chosen
        if one in number and two in number
    ]
    found = pd.concat([_differences(heads.iloc[:0], values[:0, 0], values[:0, 0], ("", ""), ("", "")), *parts])
    # drop pairs without values: predictors have no marginals, and tables no predictions of their own
    scored = own.loc[own["value"].notna(), ["metric", "mechanism", "stratification"]].drop_duplicates()
    for place_of in ("first", "second"):
        named = {column: f"{place_of}_{column}" for column in ("mechanism", "stratification")}
        found = found.merge(scored.rename(columns=named), on=["metric", *named.values()])
    found["p_holm"] = (
        found.groupby(["metric", "scope"], sort=False)["p_value"]
        .transform(lambda tests: holm(tests.to_numpy(float)))
        .astype(float)
    )
    found["verdict"] = pd.array([_verdict(row) for row in found.to_dict("records")], "string")
    found["stamp"] = pd.array([frame["stamp"].iloc[0]] * len(found), "string")
    return found


def _differences(
    heads: pd.DataFrame, one: NDArray[Any], two: NDArray[Any], first: Setting, second: Setting
) -> pd.DataFrame:
    """Frame of `heads` (a row a metric, epsilon, scope and group) with the mean of one minus two, interval and p-value.

    `one` and `two` are arrays (rows of `heads`, repetitions) of the scores of the settings `first` and `second`, each a
    pair (mechanism, stratification).
    """
    import pandas as pd

    difference = one - two
    there = ~np.isnan(difference)
    mean, low, high = mean_interval(difference)
    names = {
        "first_mechanism": first[0],
        "first_stratification": first[1],
        "second_mechanism": second[0],
        "second_stratification": second[1],
    }
    return heads.assign(
        **{name: pd.array([text] * len(heads), "string") for name, text in names.items()},
        first=mean_interval(np.where(there, one, np.nan))[0],
        second=mean_interval(np.where(there, two, np.nan))[0],
        difference=mean,
        low=low,
        high=high,
        repetitions=there.sum(axis=-1),
        p_value=p_values(difference),
    )


def _verdict(row: dict[Any, Any]) -> str:
    """Text such as `mst, vanilla is better` on `row`, a dict of one row of `paired`; of a neutral metric, `is higher`.

    The verdict is empty with few repetitions, or within chance.
    """
    if row["repetitions"] < ENOUGH or not row["p_holm"] < 1 - COVERAGE:
        return ""
    sign, direction = (1 if row["difference"] > 0 else -1), better(str(row["metric"]))
    first = setting_name(row["first_mechanism"], row["first_stratification"])
    second = setting_name(row["second_mechanism"], row["second_stratification"])
    if not direction:
        return f"{first if sign > 0 else second} is higher"
    return f"{first if sign == direction else second} is better"


def setting_name(mechanism: str, stratification: str) -> str:
    """Name of a setting, mechanism and stratification: `mst, vanilla`, `mst by SEX x RAC1P` or `fermi, direct`."""
    whole = stratification in (VANILLA, DIRECT)
    return f"{mechanism}, {stratification}" if whole else f"{mechanism} by {stratification}"
