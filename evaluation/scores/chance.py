"""INTERNAL. The error that chance alone would leave: the mean of subsamples, drawn until it is known well enough.

One subsample's error of a small group can be half or twice another's, and every "so many times what chance would
leave" with it. So subsamples are drawn until the standard error of their mean is at most a tenth of what it is
compared with. The draws are the same ones for every seed of a caller.
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
"""The smallest and the largest number of draws."""
PART = 0.1
"""The largest standard error of the mean, as a part of the difference that is shown: release minus chance."""
FLOOR = 0.2
"""Differences below this part of the chance error itself need not be told apart from none."""
_COUNTED = frozenset({"n", "cliques"})
"""Columns that are the same in every draw."""


@dataclass(frozen=True, eq=False)
class Chance:
    """The frames of the averaged subsample."""

    frames: Mapping[str, pd.DataFrame]
    """By the name of the score. `value` is the mean over draws, `low` and `high` its 95 % interval."""
    draws: int
    """The number of subsamples."""
    reached: bool
    """Whether the error is as small as wanted; otherwise `MOST` draws were not enough."""


def chance(
    real: EncodedRows,
    rows: int,
    score: Callable[[EncodedRows], Mapping[str, pd.DataFrame]],
    release: pd.DataFrame | None = None,
) -> Chance:
    """Score subsamples of the real rows, as a release of `rows` rows would be, until their mean is known well.

    Args:
        real: The real rows.
        rows: The rows of the release.
        score: The frames of a table's scores; those of the first name decide how many draws are needed.
        release: The first frame of the release, which chance is compared with; without, a mean is known well enough
            when its standard error is at most `PART` x `FLOOR` of itself. Groups with few rows do not decide.
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
    """The mean of frames with the same rows in the same order; scores that a draw lacks are left out of it."""
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
    """Mean and its standard error, over the draws that have a value; NaN where none or only one has."""
    values = np.array(draws)
    there = (~np.isnan(values)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(values, axis=0) / np.where(there, there, np.nan)
        spread = np.nansum((values - mean) ** 2, axis=0) / np.where(there > 1, there - 1, np.nan)
        error = np.sqrt(spread / there)
    return mean, error


def _known(frames: list[pd.DataFrame], release: pd.DataFrame | None) -> bool:
    """Whether the mean is known well enough for everybody and every group that is not small."""
    mean, error = _mean([frame["value"].to_numpy(float) for frame in frames])
    least = FLOOR * np.abs(mean)
    status = frames[0]["status"] if release is None else release["status"]
    if release is not None:
        # where the release has nobody there is nothing to compare
        least = np.fmax(least, np.abs(release["value"].to_numpy(float) - mean))
    decides = ~status.isin([SMALL, NOT_ESTIMABLE]).to_numpy() & ~np.isnan(mean)
    return bool((error[decides] <= PART * least[decides]).all())


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Marginals one by one are sorted by their error, which draws do not share: by their names instead."""
    if "clique" not in frame:
        return frame
    return frame.sort_values(["clique", "scope"], kind="stable", ignore_index=True)
