"""INTERNAL. Frames of scores.

Every score of this package is a frame made by `Pair.frame`: one row for everybody and one for each declared group,
whatever its count, with the columns

    scope                    "group", or "everybody", whose columns of `by` are null
    the columns of `by`      the levels that make the group
    n, n_synthetic           its real and its synthetic rows
    value, low, high         the score and its 95 % interval, for chance in which rows were drawn
    status                   "ok"; "small", a table has few rows there; "not_estimable", and the value is null; for the
                             mean error of marginals also "far_off": a total variation of one half or more
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.checks import check_integer
from stratsynth.evaluation.tables.encoded import Array
from stratsynth.strata import Stratum

if TYPE_CHECKING:
    import pandas as pd

STAMP = "INTERNAL: computed from private rows without a charge; not differentially private, not for publication"
OK, FAR_OFF, SMALL, NOT_ESTIMABLE = "ok", "far_off", "small", "not_estimable"
HALF = 0.5
"""Mean total variation, half of its largest value, from which a score is `far_off` and not `ok`."""
FEW = 30
"""Number of rows below which a group is `small`: its score is mostly chance."""
EVERYBODY, GROUP = "everybody", "group"
RESERVED = frozenset({"scope", "n", "n_synthetic", "value", "low", "high", "status"})


def tidy(
    by: Sequence[str],
    groups: Sequence[Stratum],
    value: Array,
    low: Array | None,
    high: Array | None,
    *,
    counts: Mapping[str, Array],
    status: Array,
    items: Mapping[str, Sequence[Any]] | None = None,
    more: Mapping[str, Array] | None = None,
) -> pd.DataFrame:
    """Frame in the form of `Pair.frame`, from arrays (items, scopes): scores `value`, ends `low`, `high`, `counts`.

    Scopes are the `groups`, strata which cross the columns `by`, and everybody. `counts` and `more` map names to arrays
    shaped like `value`, as `status` is; `items` maps names to a list of one value for each item. None for unknown ends.
    """
    import pandas as pd

    scopes = value.shape[1]
    nothing = np.full(value.shape, np.nan)
    made: dict[str, Any] = {name: np.repeat(pd.array(list(what)), scopes) for name, what in (items or {}).items()}
    made["scope"] = pd.array([*[GROUP] * (scopes - 1), EVERYBODY] * len(value), "string")
    for name in by:
        levels = [*[group.to_dict()[name] for group in groups], None]
        made[name] = pd.array(levels * len(value), "string")
    made |= {name: np.ravel(rows) for name, rows in counts.items()}
    made["value"] = value.ravel()
    for name, ends in (("low", low), ("high", high)):
        made[name] = np.where(np.isnan(value), np.nan, nothing if ends is None else ends).ravel()
    made["status"] = pd.array(status.ravel(), "string")
    made |= {name: np.atleast_2d(figures).ravel() for name, figures in (more or {}).items()}
    return stamped(pd.DataFrame(made))


def statuses(value: Array, rows: Array, few: int = FEW) -> Array:
    """Array shaped like the array `value`, each score's status as text: "not_estimable", "small" or "ok".

    The first is for NaN; the second for scores whose number in `rows`, an array alike, is below `few`.
    """
    check_integer("evaluation: few", few, 0)
    return np.where(np.isnan(value), NOT_ESTIMABLE, np.where(rows < few, SMALL, OK))


def judged(frame: pd.DataFrame, distance: Array) -> pd.DataFrame:
    """Return `frame`, of a mean error, changed in place: status `far_off` instead of `ok` where `distance` >= `HALF`.

    `distance` is an array, the mean total variation of each row.
    """
    wrong = (frame["status"] == OK).to_numpy() & (np.nan_to_num(distance) >= HALF)
    frame["status"] = frame["status"].mask(wrong, FAR_OFF)
    return frame


def stamped(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame itself, with the stamp INTERNAL put in its `attrs`, for `evaluate` to write into files."""
    frame.attrs["stamp"] = STAMP
    return frame


def joined(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Frame of the rows of the frames `parts`, one after another, with the `attrs` of the first and the stamp."""
    import pandas as pd

    frames = list(parts)
    found = pd.concat(frames, ignore_index=True)
    found.attrs |= frames[0].attrs
    return stamped(found)


def named(frame: pd.DataFrame, name: str, column: str = "table") -> pd.DataFrame:
    """Return the frame itself with a new first column, called `column`, that holds the text `name` in every row."""
    import pandas as pd

    frame.insert(0, column, pd.Series([name] * len(frame), dtype="string"))
    return frame


def share(part: Array, whole: Array) -> Array:
    """Array of `part` / `whole`, arrays alike, entry by entry; NaN where `whole` is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)
