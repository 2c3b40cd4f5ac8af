"""INTERNAL. Error due to sampling alone: the mean score of subsamples, drawn until its standard error is small.

The score of one subsample of a small group can be half or twice that of another, and so can ratios to it. So subsamples
are drawn until the standard error of their mean is at most a tenth of the difference it is compared with. The draws are
the same for every seed of a caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.scores.baseline import subsample
from stratsynth.evaluation.tables import FAR_OFF, NOT_ESTIMABLE, OK, SMALL, EncodedRows
from stratsynth.models.intervals import NORMAL_95

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

LEAST, MOST = 3, 20
"""Smallest and largest number of draws."""
PART = 0.1
"""Largest standard error of the mean, as a fraction of the difference that is shown: release minus chance."""
FLOOR = 0.2
"""Fraction of the chance error below which a difference need not be resolved."""
_COUNTED = frozenset({"n", "cliques"})
"""Columns that are equal in every draw."""


@dataclass(frozen=True, eq=False)
class Chance:
    """Mean scores of subsamples of the real rows, and the number of draws."""

    frames: Mapping[str, pd.DataFrame]
    """Score's name -> frame: `value` is the mean over draws, `low` and `high` its 95 % interval."""
    draws: int
    """Number of subsamples."""
    reached: bool
    """True if the standard error is as small as wanted; False if `MOST` draws were not enough."""


def chance(
    real: EncodedRows,
    rows: int,
    score: Callable[[EncodedRows], Mapping[str, pd.DataFrame]],
    release: pd.DataFrame | None = None,
) -> Chance:
    """Return Chance: mean scores of subsamples of the real rows, drawn as a release of `rows` rows until precise.

    Args:
        real: Real rows, EncodedRows.
        rows: Number of rows of the release.
        score: Function from EncodedRows, a table, to a mapping from name to frame of its scores; those of the first
            name decide the number of draws.
        release: First frame of the release, which chance is compared with; without it, a mean is precise enough if its
            standard error is at most `PART` x `FLOOR` of itself. Groups with few rows do not decide.
    """
    kept: dict[str, list[pd.DataFrame]] = {}
    known = False
    draws = 0
    while draws < MOST and not known:
        found = score(subsample(real, rows, seed=draws))
        draws += 1
        for name, frame in found.items():
            kept.setdefault(name, []).append(_in_order(frame))
        known = draws >= LEAST and _known(next(iter(kept.values())), release)
    return Chance({name: averaged(frames) for name, frames in kept.items()}, draws, known)


def averaged(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Frame of the mean scores of `frames`, a list, one a draw, with a 95 % interval of the mean.

    Unknown scores are left out. The frames have the same rows in the same order. A status is one that at least half of
    the draws have.
    """
    made = frames[0].copy()
    for name in made.columns:
        if name in _COUNTED or made[name].dtype.kind not in "if":
            continue
        mean, _ = _mean([frame[name].to_numpy(float) for frame in frames])
        made[name] = mean.round().astype(int) if made[name].dtype.kind == "i" else mean
    mean, error = _mean([frame["value"].to_numpy(float) for frame in frames])
    made["low"], made["high"] = np.maximum(mean - NORMAL_95 * error, 0), mean + NORMAL_95 * error
    said = np.array([frame["status"].to_numpy(str) for frame in frames])
    few = np.isin(said, [SMALL, NOT_ESTIMABLE]).mean(axis=0) >= 0.5
    far = (said == FAR_OFF).mean(axis=0) >= 0.5
    made["status"] = np.where(np.isnan(mean), NOT_ESTIMABLE, np.where(few, SMALL, np.where(far, FAR_OFF, OK)))
    return made.astype({"status": "string"})


def _mean(draws: list[NDArray[Any]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two arrays from `draws`, arrays of one shape: mean and standard error over those with a value.

    NaN without one, the error also with one alone.
    """
    values = np.array(draws)
    there = (~np.isnan(values)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(values, axis=0) / np.where(there, there, np.nan)
        spread = np.nansum((values - mean) ** 2, axis=0) / np.where(there > 1, there - 1, np.nan)
        error = np.sqrt(spread / there)
    return mean, error


def _known(frames: list[pd.DataFrame], release: pd.DataFrame | None) -> bool:
    """True if the mean of the draws' `frames`, a list, is precise enough for all groups that are not small.

    The standard error is compared with the mean, and with the distance from it in the frame `release`, if that is not
    None.
    """
    mean, error = _mean([frame["value"].to_numpy(float) for frame in frames])
    least = FLOOR * np.abs(mean)
    status = frames[0]["status"] if release is None else release["status"]
    if release is not None:
        # a group without released rows has no difference to compare
        least = np.fmax(least, np.abs(release["value"].to_numpy(float) - mean))
    decides = ~status.isin([SMALL, NOT_ESTIMABLE]).to_numpy() & ~np.isnan(mean)
    return bool((error[decides] <= PART * least[decides]).all())


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame sorted by clique and scope if it has cliques, which come sorted by error; else itself."""
    if "clique" not in frame:
        return frame
    return frame.sort_values(["clique", "scope"], kind="stable", ignore_index=True)
