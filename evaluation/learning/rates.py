"""Scores of predictions, in each group, for everybody and between groups, with bootstrap intervals.

Names and definitions are fairlearn's, except that a rate over no rows is undefined here: NaN, never 0.

    accuracy                  share of rows predicted rightly
    prevalence                share of rows that are positive in truth
    selection_rate            share of rows predicted positive
    false_negative_rate       share of the true positives that are predicted negative
    false_positive_rate       share of the true negatives that are predicted positive
    f1                        of the positives: the harmonic mean of the share found and the share that is right
    auc                       where scores are given, as `evaluation.learning.ranking` defines it

and between the groups of `few` rows or more (for a rate, rows in its denominator), counted in `groups`; smaller groups
are counted in `left_out`, since their extremes are chance:

    accuracy_difference, false_negative_rate_difference, false_positive_rate_difference, f1_difference,
    auc_difference                                             largest minus smallest
    demographic_parity_difference, demographic_parity_ratio    of selection rates: minus, and smallest by largest
    equalized_odds_difference                                  the larger difference of the two error rates

Of numbers: mean_absolute_error, root_mean_squared_error, bias (mean of predicted minus true) and r2 (1 minus the
squared error by that of the mean, within the group), and the largest minus the smallest of each but r2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import UsageError
from stratsynth.evaluation.learning.ranking import areas
from stratsynth.evaluation.tables import (
    FEW,
    NOT_ESTIMABLE,
    OK,
    Array,
    By,
    EncodedRows,
    as_schema,
    group_numbers,
    groups_of,
    joined,
    share,
    stamped,
    statuses,
    tidy,
)
from stratsynth.schema import Schema
from stratsynth.strata import Stratum

if TYPE_CHECKING:
    import pandas as pd

BETWEEN = "between"
"""Value of `scope` in a row that compares the groups."""
RESAMPLES = 200
Statistics = Array
"""Sufficient statistics of each scope: the last axis has tn, fp, fn and tp, or sums over rows."""


def prediction_rates(
    truth: Any,
    predicted: Any,
    rows: Any,
    schema: Schema | str | Path,
    by: By = None,
    *,
    score: Any = None,
    few: int = FEW,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> pd.DataFrame:
    """Accuracy and error rates of predictions, in each group and between groups; a frame.

    Args:
        truth: The true value of each row: truth values, or numbers.
        predicted: The predicted value of each row, of the same kind.
        rows: The rows themselves, for their groups: a frame, an Arrow table or a path with the columns of `by`.
        schema: Their schema, or its path.
        by: Columns whose crossing makes the groups.
        score: For truth values, a number for each row that is larger the likelier "true" is, for the area under the
            curve.
        few: A rate over fewer rows is `small`.
        resamples: Number of bootstrap draws of rows within each group, for the intervals.
        seed: Seed of the draws.

    Returns:
        For each metric a row for each declared group and one for everybody, then one with scope "between" for each
        comparison of groups. `base` is the number of rows that a rate is over.

    Raises:
        UsageError: Truth and predictions differ in length, or `rows` has not one row of the schema for each.
    """
    schema = as_schema(schema)
    names, groups = groups_of(schema, by)
    truth, predicted = np.asarray(truth), np.asarray(predicted)
    if truth.shape != predicted.shape or truth.ndim != 1:
        raise UsageError("evaluation: truth and predictions must be two lists of one length.")
    group = np.zeros(len(truth), np.int64)
    if names:
        table = EncodedRows.read(rows, schema.restrict(names))
        if table.rows != len(truth) or table.left_out:
            raise UsageError("evaluation: there must be a row of the schema for each prediction.")
        group = group_numbers(table, names)
    if truth.dtype != bool or predicted.dtype != bool:
        both = {float(v) for v in np.unique(truth)} | {float(v) for v in np.unique(predicted)}
        if both <= {0.0, 1.0}:
            truth, predicted = truth.astype(bool), predicted.astype(bool)
    grouped = GroupedRows(names, groups, group, few)
    sure = None if score is None else np.asarray(score, float)
    if sure is not None and (sure.shape != truth.shape or truth.dtype != bool):
        raise UsageError("evaluation: give a score for each prediction of one of two classes.")
    return grouped.scores(truth, predicted, resamples, np.random.default_rng(seed), sure)


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Assignment of rows to groups."""

    by: tuple[str, ...]
    """Columns whose crossing makes the groups; empty for everybody alone."""
    groups: tuple[Stratum, ...]
    """Every declared group."""
    members: Array
    """Group number of each row."""
    few: int = FEW
    """Number of rows below which a rate is `small`."""

    def scores(
        self, truth: Array, predicted: Array, resamples: int, rng: np.random.Generator, score: Array | None = None
    ) -> pd.DataFrame:
        """Frame of rates (of numbers, errors) of the array `predicted` against `truth`, by scope, with 95 % intervals.

        Both arrays have a value for each row. Intervals are by `resamples` draws of `rng`. With `score`, an array of a
        number for each row that is larger the likelier "true" is, it has the area under the curve too.
        """
        count = len(self.groups)
        if truth.dtype == bool:
            cell = 2 * truth + predicted
            # cells in the order tn, fp, fn, tp
            counts = np.bincount(4 * self.members + cell, minlength=4 * count).reshape(count, 4).astype(float)
            again = _redrawn_counts(counts, resamples, rng)
            frame = self._frame((_CLASSES, _BETWEEN_CLASSES), counts, again, counts.sum(axis=1))
            if score is None:
                return frame
            return joined([frame, areas(self.by, self.groups, self.members, self.few, truth, score)])
        error = predicted.astype(float) - truth
        # centred, so that no digit is lost for numbers far from 0
        away = truth - (truth.mean() if len(truth) else 0.0)
        each = np.stack([np.ones(len(error)), np.abs(error), error**2, error, away, away**2], axis=1)
        sums = _by_group(each, self.members, count)
        redrawn = _redrawn_rows(each, self.members, count, resamples, rng)
        return self._frame((_NUMBERS, _BETWEEN_NUMBERS), sums, redrawn, sums[:, 0])

    def _frame(
        self, kinds: tuple[_Metrics, Mapping[str, _Between]], sums: Statistics, again: Statistics, sizes: Array
    ) -> pd.DataFrame:
        import pandas as pd

        metrics, between = kinds
        scoped, redrawn = (_with_everybody(found, self.by) for found in (sums, again))
        value, base = (np.array(figures) for figures in zip(*(m(scoped) for m in metrics.values()), strict=True))
        samples = np.array([metric(redrawn)[0] for metric in metrics.values()])
        low, high = _ends(samples)
        sure = base > 1  # a single row has no bootstrap spread
        rows = np.broadcast_to(_with_everybody(sizes[:, None], self.by)[:, 0], value.shape)
        frame = tidy(
            self.by,
            self.groups,
            value,
            np.where(sure, low, np.nan),
            np.where(sure, high, np.nan),
            counts={"n": rows.astype(int)},
            status=statuses(value, base, self.few),
            items={"metric": list(metrics)},
            more={"base": base.astype(int)},
        )
        frame = frame.assign(**dict.fromkeys(_COUNTS, pd.array([None] * len(frame), "Int64")))
        if not self.by:
            return stamped(frame)
        compared = self._compare(dict(zip(metrics, zip(value, base, samples, strict=True), strict=True)), between)
        compared["n"] = int(rows[0, -1])
        return joined([frame, compared.astype(dict(frame.dtypes))])

    def _compare(self, found: Mapping[str, Any], between: Mapping[str, _Between]) -> pd.DataFrame:
        import pandas as pd

        rows = []
        for name, (metric_names, compare) in between.items():
            parts, left_out = [], 0
            for metric in metric_names:
                value, base, samples = found[metric]
                kept = base[:-1] >= max(self.few, 1)
                left_out = max(left_out, int((~kept).sum()))
                # row 0 is the score, the others are bootstrap draws: differences are redrawn together
                parts.append(np.vstack([value[:-1], samples[:, :-1]])[:, kept])
            groups = min(part.shape[1] for part in parts)
            figures = np.max([compare(part) for part in parts], axis=0) if groups >= 2 else np.full(1, np.nan)
            low, high = _ends(figures[1:, None]) if len(figures) > 1 else (np.array([np.nan]),) * 2
            rows.append(
                {
                    "metric": name,
                    "scope": BETWEEN,
                    **dict.fromkeys(self.by, pd.NA),
                    "value": float(figures[0]),
                    "low": float(low[0]),
                    "high": float(high[0]),
                    "status": NOT_ESTIMABLE if np.isnan(figures[0]) else OK,
                    "groups": groups,
                    "left_out": left_out,
                    "base": 0,
                    "n": 0,
                }
            )
        return pd.DataFrame(rows)


_COUNTS = ("groups", "left_out")
_Metrics = Mapping[str, Callable[[Statistics], tuple[Array, Array]]]
_Between = tuple[Sequence[str], Callable[[Array], Array]]


def _divided(part: Array, whole: Array) -> tuple[Array, Array]:
    """Return two arrays: the share `part` / `whole`, arrays alike, NaN where `whole` is 0; and `whole` itself."""
    return share(part, whole), whole


def _difference(values: Array) -> Array:
    """Array: largest less smallest of `values` along axis 1, the groups."""
    found: Array = values.max(axis=1) - values.min(axis=1)
    return found


def _ratio(values: Array) -> Array:
    """Array: smallest over largest of `values` along axis 1, the groups; NaN where the largest is 0."""
    return share(values.min(axis=1), values.max(axis=1))


_CLASSES: _Metrics = {
    "accuracy": lambda c: _divided(c[..., 0] + c[..., 3], c.sum(axis=-1)),
    "prevalence": lambda c: _divided(c[..., 2] + c[..., 3], c.sum(axis=-1)),
    "selection_rate": lambda c: _divided(c[..., 1] + c[..., 3], c.sum(axis=-1)),
    "false_negative_rate": lambda c: _divided(c[..., 2], c[..., 2] + c[..., 3]),
    "false_positive_rate": lambda c: _divided(c[..., 1], c[..., 0] + c[..., 1]),
    "f1": lambda c: _divided(2 * c[..., 3], 2 * c[..., 3] + c[..., 1] + c[..., 2]),
}
_BETWEEN_CLASSES: Mapping[str, _Between] = {
    "accuracy_difference": (["accuracy"], _difference),
    "demographic_parity_difference": (["selection_rate"], _difference),
    "demographic_parity_ratio": (["selection_rate"], _ratio),
    "equalized_odds_difference": (["false_negative_rate", "false_positive_rate"], _difference),
    "false_negative_rate_difference": (["false_negative_rate"], _difference),
    "false_positive_rate_difference": (["false_positive_rate"], _difference),
    "f1_difference": (["f1"], _difference),
}


def _r2(sums: Statistics) -> tuple[Array, Array]:
    n = sums[..., 0]
    spread = sums[..., 5] - share(sums[..., 4] ** 2, n)
    with np.errstate(invalid="ignore", divide="ignore"):
        # the spread of equal numbers is rounding error
        return np.where(spread > 1e-9 * sums[..., 5], 1 - sums[..., 2] / spread, np.nan), n


_NUMBERS: _Metrics = {
    "mean_absolute_error": lambda s: _divided(s[..., 1], s[..., 0]),
    "root_mean_squared_error": lambda s: (np.sqrt(share(s[..., 2], s[..., 0])), s[..., 0]),
    "bias": lambda s: _divided(s[..., 3], s[..., 0]),
    "r2": _r2,
}
_BETWEEN_NUMBERS: Mapping[str, _Between] = {
    f"{name}_difference": ([name], _difference) for name in _NUMBERS if name != "r2"
}


def _with_everybody(sums: Statistics, by: Sequence[str]) -> Statistics:
    """Array of the array `sums` (groups, figures), and everybody's as one more group: along the last axis but one.

    If `by`, the groups' columns, is empty, only everybody's.
    """
    everybody = sums.sum(axis=-2, keepdims=True)
    return np.concatenate([sums, everybody], axis=-2) if by else everybody


def _ends(samples: Array) -> tuple[Array, Array]:
    """Two arrays: quantiles 0.025 and 0.975 of the array `samples` along its axis before the last, that of draws.

    They are NaN if more than 5 % of the draws are undefined.
    """
    undefined = np.isnan(samples)
    filled = np.where(undefined.all(axis=-2, keepdims=True), 0.0, samples)
    low, high = np.nanquantile(filled, [0.025, 0.975], axis=-2)
    often = undefined.mean(axis=-2) > 0.05
    return np.where(often, np.nan, low), np.where(often, np.nan, high)


def _redrawn_counts(counts: Statistics, resamples: int, rng: np.random.Generator) -> Statistics:
    """Array (resamples, groups, 4) of bootstrap counts, by `rng`, from `counts`, an array (groups, 4): multinomial.

    The 4 cells are true negatives, false positives, false negatives, true positives.
    """
    sizes = counts.sum(axis=1)
    # an empty group needs some distribution; none of its rows is drawn
    shares = np.where(sizes[:, None] > 0, counts / np.maximum(sizes, 1)[:, None], 0.25)
    return rng.multinomial(sizes.astype(int), shares, size=(resamples, len(sizes))).astype(float)


def _redrawn_rows(each: Array, members: Array, count: int, resamples: int, rng: np.random.Generator) -> Statistics:
    """Array (resamples, groups, columns) of sums of `each`, an array (rows, columns), over bootstrap draws of rows.

    Rows are drawn by `rng` within their groups; `members` is an array of the number of each row's group, of `count`
    groups.
    """
    order = np.argsort(members, kind="stable")
    each, sizes = each[order], np.bincount(members, minlength=count)
    starts, group = np.cumsum(sizes) - sizes, members[order]
    found = [_by_group(each[starts[group] + rng.integers(0, sizes[group])], group, count) for _ in range(resamples)]
    return np.array(found).reshape(resamples, count, each.shape[1])


def _by_group(each: Array, members: Array, count: int) -> Statistics:
    """Array (`count` groups, columns): sums of the array `each` (rows, columns) by group.

    `members` is an array of the number of each row's group.
    """
    return np.stack([np.bincount(members, column, count) for column in each.T], axis=1)
