"""Exact share of every group in the population that people are drawn from, computed from the tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.census.draws import BITS
from stratsynth.census.model import schema, tables
from stratsynth.checks import is_texts
from stratsynth.errors import UsageError, nearest
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("AREA", "AGEP", "SEX", "RAC1P", "HISP")
"""Columns with known shares: they depend on few others, so that every combination can be enumerated."""

_DRAWN = ("AREA", "RAC1P", "HISP", "SEX")
_AGE = ("ETH", "AGE5", "AGE1")


def frame(by: Sequence[str]) -> pd.DataFrame:
    """Return a frame of the columns `by` and `share`, a row for each cell of their crossing; UsageError for others."""
    import pandas as pd

    if not is_texts(by) or not by or len(set(by)) < len(by):
        raise UsageError("census: `by` is a list of different columns, at least one.")
    for column in by:
        if column not in COLUMNS:
            hint = nearest(str(column), COLUMNS)
            raise UsageError(f"census: exact shares are known by {', '.join(COLUMNS)}{hint}.")
    weights, whole = _weights(tuple(by))
    cells = zip(*product(*(schema().levels(column) for column in by)), strict=True)
    columns: dict[str, Any] = {name: pd.array(levels, "string") for name, levels in zip(by, cells, strict=True)}
    # Python divides whole numbers exactly and rounds once.
    return pd.DataFrame({**columns, "share": [weight / whole for weight in weights.ravel()]})


def _weights(by: tuple[str, ...]) -> tuple[NDArray[Any], int]:
    """Return (int array in proportion to the census model's cell shares, an axis a column of `by`; its sum)."""
    joint, have = np.array(1, object), list[str]()
    steps = _DRAWN + _AGE if "AGEP" in by else _DRAWN
    for name in steps:
        chances = _chances(name, have)
        joint = joint[..., None] * chances
        have.append(name)
    if "AGEP" in by:
        joint, have = _ages(joint, have)
    gone = tuple(i for i, name in enumerate(have) if name not in by)
    kept = [name for name in have if name in by]
    weights = joint.sum(axis=gone).transpose([kept.index(name) for name in by])
    return weights, 1 << BITS * len(steps)


def _chances(name: str, have: Sequence[str]) -> NDArray[Any]:
    """Return an array of probabilities, times 2**31, of the levels of variable `name`, on its last axis.

    An axis for each of the columns `have` comes before it.
    """
    table = tables()[name]
    at = np.zeros([1] * len(have), np.intp)
    for column, adds in table.parents.items():
        at = at + adds.reshape([-1 if other == column else 1 for other in have])
    ends = table.thresholds[:, at].astype(object)
    full = np.full((1, *at.shape), 1 << BITS, object)
    return np.moveaxis(np.diff(np.concatenate([0 * full, ends, full]), axis=0), 0, -1)


def _ages(joint: NDArray[Any], have: Sequence[str]) -> tuple[NDArray[Any], list[str]]:
    """Return (array, list of its columns): `joint` over the columns `have`, its last two axes merged into bins of AGEP.

    The two axes, last in `have` too, are five-year groups and years within them.
    """
    column = schema().column("AGEP")
    assert isinstance(column, Numeric)  # noqa: S101 - as schema.toml says
    fives, ones = joint.shape[-2:]
    ages = 5 * np.arange(fives)[:, None] + np.arange(ones)
    bins = np.searchsorted(np.array(column.breaks), ages, side="right") - 1
    per_bin = [joint[..., bins == code].sum(axis=-1) for code in range(column.size)]
    return np.stack(per_bin, axis=-1), [*have[:-2], "AGEP"]
