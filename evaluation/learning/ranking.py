"""Area under the ROC curve, in each group, for everybody and between groups, with DeLong's intervals.

    auc               share of pairs of a true positive and a true negative in which the positive has the larger score;
                      a tie counts half
    auc_difference    between groups: the largest minus the smallest, of groups with `few` positives and negatives

Undefined (NaN) if one of the two classes has no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.tables import NOT_ESTIMABLE, OK, Array, joined, statuses, tidy
from stratsynth.models.intervals import NORMAL_95
from stratsynth.strata import Stratum

if TYPE_CHECKING:
    import pandas as pd


def area(truth: Array, score: Array) -> tuple[float, float]:
    """(Area under the ROC curve of `score` for the classes `truth`; its standard error, of DeLong 1988).

    `score` is an array of numbers, `truth` one of truth values, one a row. The area is NaN if a class has no row, the
    error if a class has fewer than two.
    """
    from scipy.stats import rankdata

    positive, negative = score[truth], score[~truth]
    m, n = len(positive), len(negative)
    if not m or not n:
        return np.nan, np.nan
    together = rankdata(np.concatenate([positive, negative]))
    # DeLong's placements: share of the other class that each row is ranked correctly against
    right = (together[:m] - rankdata(positive)) / n, 1 - (together[m:] - rankdata(negative)) / m
    if min(m, n) < 2:
        return float(right[0].mean()), np.nan
    return float(right[0].mean()), float(np.sqrt(right[0].var(ddof=1) / m + right[1].var(ddof=1) / n))


def areas(
    by: Sequence[str], groups: Sequence[Stratum], members: Array, few: int, truth: Array, score: Array
) -> pd.DataFrame:
    """Frame of the area under the ROC curve of `score` for `truth`: a row a group, everybody, and the largest gap.

    The gap has the scope "between", and is there with `by`, the groups' columns, alone. `score`, `truth` and `members`
    are arrays of one a row: numbers, truth values, numbers of the groups. `base` counts the rarer class; below `few` is
    small.
    """
    import pandas as pd

    scopes = [members == i for i in range(len(groups))] if by else []
    scopes.append(np.ones(len(truth), bool))
    found = np.array([area(truth[here], score[here]) for here in scopes])
    value, error = found.T[:, None, :]
    base = np.array([[min(int(truth[here].sum()), int((~truth[here]).sum())) for here in scopes]])
    sizes = np.array([[int(here.sum()) for here in scopes]])
    frame = tidy(
        by,
        groups,
        value,
        np.maximum(value - NORMAL_95 * error, 0),
        np.minimum(value + NORMAL_95 * error, 1),
        counts={"n": sizes},
        status=statuses(value, base, few),
        items={"metric": ["auc"]},
        more={"base": base},
    )
    frame = frame.assign(**dict.fromkeys(("groups", "left_out"), pd.array([None] * len(frame), "Int64")))
    if not by:
        return frame
    kept = value[0, :-1][base[0, :-1] >= max(few, 1)]
    gap = float(np.ptp(kept)) if len(kept) > 1 else np.nan
    row: dict[str, Any] = {
        "metric": "auc_difference",
        "scope": "between",
        **dict.fromkeys(by, pd.NA),
        "value": gap,
        "low": np.nan,
        "high": np.nan,
        "status": NOT_ESTIMABLE if np.isnan(gap) else OK,
        "groups": len(kept),
        "left_out": len(groups) - len(kept),
        "base": 0,
        "n": len(truth),
    }
    return joined([frame, pd.DataFrame([row]).astype(dict(frame.dtypes))])
