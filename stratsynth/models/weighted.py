"""Mean of all records from the means of groups: weights, and each source of error.

A column without missing values is weighted by the strata's shares. A column that some records lack, because a question
did not apply or was not answered, is a mean over those that have it, among whom the groups have other shares: it is
weighted by the sizes that the estimates were divided by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import MechanismError
from stratsynth.models.estimate import Estimate, Figures
from stratsynth.models.intervals import weighted_variance
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from stratsynth.schema import Schema
    from stratsynth.strata import Stratum
    from stratsynth.weights.design import DesignError


def weighted(
    schema: Schema,
    parts: Mapping[Stratum, Estimate],
    shares: Mapping[Stratum, float],
    covariance: ArrayLike | None = None,
    *,
    of_rows: bool = False,
    design: DesignError | None = None,
) -> Estimate:
    """Return a schema's estimate of all records: the strata's estimates `parts`, their means weighted by the shares.

    `covariance` is that of the shares, in the order of the parts; None if they are exact. Shares counted in a public
    sample or measured in the private table are uncertain: see `sampled_shares_covariance` and `noisy_shares_covariance`
    in `stratsynth.models.intervals`. With `of_rows`, the shares are of the very rows that were summed, and the random
    sizes of the groups add to the sampling error. `design` is the design error of public shares, in the order of
    the parts; None if it is not known. MechanismError for groups of other columns or noise, and an unsound covariance.
    """
    first = next(iter(parts.values()))
    if any(part.columns != first.columns or part.laplace != first.laplace for part in parts.values()):
        raise MechanismError("a weighted estimate needs the same columns and noise in all groups.")
    w = np.array([shares[stratum] for stratum in parts])
    c = None if covariance is None else np.asarray(covariance, dtype=float)
    if c is not None and (c.shape != (len(w), len(w)) or not np.isfinite(c).all()):
        raise MechanismError("the covariance of the shares is a square of finite numbers, one line a group.")
    combined = [
        _combined(
            [_one(part, i) for part in parts.values()],
            None if not complete(schema, name) else w,
            c,
            mixed=schema.max_multiplicity if of_rows or not complete(schema, name) else 0,
            law=first.laplace,
        )
        | {"design": _design(parts, w, i, design if complete(schema, name) else None)}
        for i, name in enumerate(first.columns)
    ]
    figures = Figures(**{key: np.array([found[key] for found in combined]) for key in combined[0]})
    conservative = any(part.conservative for part in parts.values())
    by = "" if design is None else design.by
    return Estimate(schema, first.columns, figures, first.laplace, conservative, dict(parts), dict(shares), by)


def complete(schema: Schema, name: str) -> bool:
    """True if the schema gives every record a number in the column `name`: no missing values, no words."""
    column = schema.column(name)
    return isinstance(column, Numeric) and not column.missing and not column.words


def _design(
    parts: Mapping[Stratum, Estimate], shares: NDArray[np.float64], i: int, design: DesignError | None
) -> float:
    """Return the design standard deviation of column `i`'s mean of `parts`, weighted by `shares`; NaN for no `design`.

    `parts` maps strata to `Estimate`s; `shares` is an array in their order, `design` its `DesignError`, or None.

    Of groups that are weighted means themselves, whose shares may be of the same survey, deviations are added up: at
    most that, whatever their correlations.
    """
    if design is None:
        return math.nan
    inner = [
        abs(share) * float(part.figures.design[i]) if part.parts else 0.0
        for share, part in zip(shares, parts.values(), strict=True)
    ]
    return design.sd(np.array([part.figures.value[i] for part in parts.values()])) + math.fsum(inner)


def _one(part: Estimate, i: int) -> dict[str, float]:
    """Return {name of a figure: number} of column number `i` of an estimate, `part`."""
    return {key: float(array[i]) for key, array in vars(part.figures).items()}


def _combined(
    parts: list[dict[str, float]], w: NDArray[Any] | None, c: NDArray[Any] | None, *, mixed: int, law: bool
) -> dict[str, float]:
    """Return {name: figure} of one column over groups: `parts` is a list of such dicts, `w` an array of their weights.

    Weights are by the groups' sizes if `w` is None. `c` is its covariance matrix, None if exact; `law` is True for
    Laplace noise. `mixed`: largest weighted number of rows that one person adds to groups' sizes; 0 if not random.
    """
    f = {key: np.array([part[key] for part in parts]) for key in parts[0]}
    sizes = f["size"]
    tails, drift = 3.0 * law * f["size_noise"] ** 4, f["pull"]
    if w is None:
        w, c = sizes / sizes.sum(), None
        # noise in a size N_g moves the group's mean and its weight N_g / N: with m its mean and M the mean of all,
        # the mean of all moves by w pull + (m - M) / N per record
        drift = f["pull"] + (f["value"] - w @ f["value"]) / sizes
    moved = w * drift
    mean = float(w @ f["value"])
    between = f["value"] - mean
    errors = f["direct"] ** 2 + (f["pull"] * f["size_noise"]) ** 2 + f["sampling"] ** 2 + f["weighting"] ** 2
    # shares sum to 1, so their errors act only on differences between the groups' means
    doubt = 0.0 if c is None else weighted_variance(between, errors, np.zeros_like(w), c)
    mixing = mixed * float(w @ between**2) / max(sizes.sum(), 1.0)  # shares of rows in a random sample of this size
    return {
        "value": mean,
        "direct": float(np.sqrt((w**2 * f["direct"] ** 2 + (moved * f["size_noise"]) ** 2).sum())),
        "fourth": float((w**4 * f["fourth"] + moved**4 * tails).sum()),
        "size": float(sizes.sum()),
        "size_noise": float(np.sqrt((f["size_noise"] ** 2).sum())),
        "pull": 0.0,
        "spread": float(np.sqrt(np.maximum(w @ (f["spread"] ** 2 + between**2), 0.0))),
        "sampling": float(np.sqrt(max(0.0, (w**2 * f["sampling"] ** 2).sum() + mixing))),
        "weighting": float(np.sqrt(max(0.0, (w**2 * f["weighting"] ** 2).sum() + doubt))),
        "low": float(f["low"].max()),  # the innermost bounds: a value clipped in any group counts as clipped
        "high": float(f["high"].min()),
    }
