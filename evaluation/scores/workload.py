"""INTERNAL. Marginal workload error: distance of a release's k-way tables from the real ones, by group and clique."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.checks import one_of
from stratsynth.evaluation.scores.intervals import interval
from stratsynth.evaluation.scores.marginals import WorkloadError, all_cliques, workload
from stratsynth.evaluation.tables import FEW, By, Pair, judged
from stratsynth.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

Distance = Literal["l1", "tv"]


def workload_error(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    k: int = 3,
    by: By = None,
    *,
    distance: Distance = "l1",
    most: int | None = None,
    columns: Sequence[str] | None = None,
    few: int = FEW,
) -> pd.DataFrame:
    """Mean distance of the two tables' k-way marginals, within each group and for everybody; a frame.

    A marginal is the share of each combination of levels of k columns. Its L1 distance is the sum of the absolute
    differences of all shares: 0 where the tables agree, 2 where they have nothing in common. Total variation is half of
    it. The error is the mean over all sets of k columns; those of `by` count too, so that groups and everybody are
    measured by the same sets.

    The interval is of chance in the rows, by the delta method. It leaves out bias: a small group is far from any other
    sample of its people; the baseline `subsample` shows the error that is normal for its size.

    Args:
        real: The private table: a frame, an Arrow table or a path.
        synthetic: The release.
        schema: The schema of both, or its path.
        k: Number of columns of a marginal.
        by: Columns whose crossing makes the groups; None for everybody alone.
        distance: "l1", from 0 to 2; or "tv", total variation, from 0 to 1.
        most: The largest number of sets of columns, a fixed choice; None for all.
        columns: The columns to take sets of; by default all.
        few: Groups with fewer rows in either table are `small`.

    Returns:
        A row for each declared group, then one for everybody; `cliques` is the number of sets of columns. `status`
        is "far_off" where the error is half of its largest value or more.

    Raises:
        UsageError: k or `distance` is out of range, or a column is not in the schema.
    """
    scale, pair = _scale(distance), Pair.of(real, synthetic, schema, by, few)
    return workload_frame(pair, workload_of(pair, k, most, columns), scale)


def clique_errors(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    k: int = 3,
    by: By = None,
    *,
    distance: Distance = "l1",
    most: int | None = None,
    columns: Sequence[str] | None = None,
    few: int = FEW,
) -> pd.DataFrame:
    """Distance of each marginal of k of the `columns` of `real` and `synthetic` rows, by group and all, in a frame.

    At most `most` marginals are counted, by a `schema` (or its path); groups cross the columns `by`, and are small
    below `few` rows; `distance` is "l1" or "tv". UsageError for a k, distance or column that there is not.

    Returns:
        A row for each marginal and scope, largest distance first; `clique` holds the columns' names joined by a comma.
    """
    scale, pair = _scale(distance), Pair.of(real, synthetic, schema, by, few)
    return clique_frame(pair, workload_of(pair, k, most, columns), scale)


def k_marginal_score(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    k: int = 3,
    by: By = None,
    *,
    most: int | None = None,
    columns: Sequence[str] | None = None,
    few: int = FEW,
) -> pd.DataFrame:
    """NIST's score: 1000 x (1 - mean total variation of the k-way marginals); 1000 is perfect, 0 the worst.

    Compared are `real` and `synthetic` rows of a `schema` (or its path), in sets of k of the `columns`, at most `most`;
    groups cross the columns `by`, such as that of an area, and are small below `few` rows. UsageError for a k or column
    that there is not.

    Returns:
        A frame with a row for each declared group, then one for everybody; the score is in `value`.
    """
    pair = Pair.of(real, synthetic, schema, by, few)
    return score_frame(pair, workload_of(pair, k, most, columns))


def workload_of(
    pair: Pair, k: int, most: int | None, columns: Sequence[str] | None, *, errors_of_means: bool = True
) -> WorkloadError:
    """Return WorkloadError of a Pair's marginals of k of the columns (None: of all), or of a fixed choice of `most`.

    `errors_of_means`: True to compute what the standard errors of means take too.
    """
    # all columns, those of `by` too: constant in a group, not for everybody
    wanted = pair.schema.names if columns is None else pair.variables(columns)
    return workload(pair, all_cliques(wanted, k, most), errors_of_means=errors_of_means)


def workload_frame(pair: Pair, found: WorkloadError, scale: float = 2.0) -> pd.DataFrame:
    """Frame of mean distances over marginals, with intervals: a row for each group of `pair`, then everybody.

    `found` is the pair's `WorkloadError`; `scale` is 2 for L1, 1 for total variation.
    """
    mean = found.mean()
    low, high = interval(mean, found.mean_errors(pair), 1.0)
    cliques = np.full(mean.shape, len(found.cliques))
    return judged(pair.frame(scale * mean, scale * low, scale * high, more={"cliques": cliques}), mean)


def score_frame(pair: Pair, found: WorkloadError) -> pd.DataFrame:
    """Frame of NIST's k-marginal score, 0 to 1000, by the WorkloadError `found` of a Pair: groups, then everybody."""
    mean = found.mean()
    low, high = interval(mean, found.mean_errors(pair), 1.0)
    return judged(pair.frame(1000 * (1 - mean), 1000 * (1 - high), 1000 * (1 - low)), mean)


def clique_frame(pair: Pair, found: WorkloadError, scale: float = 2.0) -> pd.DataFrame:
    """Frame of the distances of each marginal of a Pair, by its WorkloadError `found`: a row a clique and scope.

    Largest first, unknown last; `scale` multiplies them, 2 for L1, 1 for total variation.
    """
    low, high = interval(found.values, found.errors, 1.0)
    items = {"clique": [",".join(clique) for clique in found.cliques]}
    frame = pair.frame(scale * found.values, scale * low, scale * high, items=items)
    return frame.sort_values("value", ascending=False, kind="stable", na_position="last", ignore_index=True)


def _scale(distance: str) -> float:
    """Return 2 for the distance "l1" and 1 for "tv", which multiplies total variation; UsageError for other texts."""
    scales = {"l1": 2.0, "tv": 1.0}
    one_of("evaluation: distance", distance, tuple(scales))
    return scales[distance]
