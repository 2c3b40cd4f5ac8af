"""INTERNAL. Parity error (paper 003, Definition 10).

Definition 10 speaks of an average and prints a sum; it gives everybody the weight 1/k, which it calls that of any one
stratum, where a stratum has the weight 1. The default here is what is printed; `strata="mean"` is the average. It does
not define the term of a group whose true value is 0: here the term is left out and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.checks import number, one_of
from stratsynth.errors import UsageError
from stratsynth.evaluation.scores.intervals import absolute, interval
from stratsynth.evaluation.scores.marginals import WorkloadError
from stratsynth.evaluation.scores.parity_terms import ParityTerms, marginal_terms, mean_terms
from stratsynth.evaluation.scores.workload import workload_of
from stratsynth.evaluation.tables import FEW, NOT_ESTIMABLE, OK, SMALL, Array, By, Pair, joined, share
from stratsynth.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

ALL = "(all)"
"""Value of `variable` in a row about all variables."""
PARITY = "parity"
"""Value of `scope` in a row that adds up groups and everybody."""


def parity_error(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    by: By,
    statistic: Literal["means", "marginals"] = "means",
    *,
    omega: float | None = None,
    strata: Literal["sum", "mean"] = "sum",
    tau: float = 0.0,
    columns: Sequence[str] | None = None,
    k: int = 3,
    most: int | None = None,
    few: int = FEW,
) -> pd.DataFrame:
    """Inequality of a release's errors: the sum of the groups' normalised errors, and omega times everybody's; a frame.

        parity = omega |f(X) - M(X)| / |f(X)|  +  sum over groups of |f(G) - M(G)| / |f(G)|

    where f is computed from the real rows and M from the release. With "means", f is the mean of a variable
    (`EncodedRows.values`: numbers, or the numbers that levels spell; depends on the coding, as in the paper), over the
    rows where it applies; `(all)` is the mean over variables. With "marginals", f is a k-way marginal, the numerator
    the L1 distance, and the denominator 1; `(all)` is the mean over all sets of k columns.

    A term without a true value (no real row, or a mean of 0) is left out and counted in `undefined`: it is left out for
    every release alike. A group that only the release lacks has no error of its own, but must not make the sum better:
    it counts as 1, as if f were estimated by 0, and is counted in `lost`.

    Args:
        real: The private table: a frame, an Arrow table or a path.
        synthetic: The release.
        schema: The schema of both, or its path.
        by: Columns whose crossing makes the groups.
        statistic: "means" or "marginals".
        omega: Weight of everybody's term; by default 1/k for k groups that have a term.
        strata: "sum", as Definition 10 is printed, or "mean", the average that it speaks of.
        tau: Smallest denominator; above 0, means of 0 have a term too.
        columns: The variables; by default all columns but those of `by` (of "marginals", all).
        k: Number of columns of a marginal.
        most: For "marginals", the largest number of sets of columns.
        few: Groups with fewer rows in either table are `small`.

    Returns:
        For each variable, then for `(all)`: a row for each declared group, one for everybody, and one with scope
        "parity". `real` and `synthetic` are the means; `terms` is the number of terms that a row adds up or averages.

    Raises:
        UsageError: `by` is empty, a setting is out of range, or a column is not in the schema.
    """
    one_of("evaluation: the statistic", statistic, ("means", "marginals"))
    one_of("evaluation: strata, for the groups' terms,", strata, ("sum", "mean"))
    number("evaluation: tau", tau, least=0)
    number("evaluation: omega", omega, least=0, optional=True)
    pair = Pair.of(real, synthetic, schema, by, few)
    if not pair.by:
        raise UsageError("evaluation: parity error needs groups; name columns with `by`.")
    if statistic == "means":
        return means_frame(pair, pair.variables(columns), Weighting(omega, strata), tau)
    return marginals_frame(pair, workload_of(pair, k, most, columns), Weighting(omega, strata))


@dataclass(frozen=True)
class Weighting:
    """Weights of the terms of Definition 10."""

    omega: float | None = None
    """Weight of everybody's term; None for 1/k, with k groups that have a term."""
    strata: Literal["sum", "mean"] = "sum"
    """"sum" to add the groups' terms up, "mean" to average them."""

    def weights(self, terms: int) -> tuple[float, float]:
        """Two numbers, weights of each group's error and of everybody's, if `terms` groups have an error."""
        group = 1 / terms if self.strata == "mean" and terms else 1.0
        return group, (1 / terms if terms else 0.0) if self.omega is None else self.omega


def means_frame(pair: Pair, variables: Sequence[str], weighting: Weighting, tau: float = 0.0) -> pd.DataFrame:
    """Frame of the parity errors of the means of the columns `variables` in a Pair, by a Weighting of the groups.

    `tau` is the least divisor. A row a group, everybody and scope "parity", for each variable and `(all)`. UsageError
    without variables.
    """
    if not variables:
        raise UsageError("evaluation: no variable is left; name others with `columns`.")
    parts, every = [], [mean_terms(pair, name, tau) for name in variables]
    for name, terms in zip(variables, every, strict=True):
        parts += [_single(pair, name, terms), _added(pair, name, [terms], weighting)]
    parts += [_averaged(pair, every), _added(pair, ALL, every, weighting)]
    return joined(parts)


def marginals_frame(pair: Pair, found: WorkloadError, weighting: Weighting) -> pd.DataFrame:
    """Frame of the parity error of a pair's marginals: a row a group, everybody, and one of scope "parity".

    `found` is their WorkloadError, `weighting` the Weighting of the groups.
    """
    terms = marginal_terms(pair, found)
    return joined([_single(pair, ALL, terms), _added(pair, ALL, [terms], weighting)])


def _single(pair: Pair, name: str, terms: ParityTerms) -> pd.DataFrame:
    """Frame of a Pair, a row a group, then everybody: absolute relative errors of variable `name`, by ParityTerms."""
    value = np.abs(terms.error)
    low, high = absolute(terms.error, terms.spread)
    more = {
        "real": terms.real,
        "synthetic": terms.synthetic,
        "terms": (~np.isnan(value)).astype(int),
        "undefined": terms.undefined.astype(int),
        "lost": terms.lost.astype(int),
    }
    rows = terms.rows[:, None, :].astype(int)
    return pair.frame(value, low, high, items={"variable": [name]}, more=more, n=rows)


def _averaged(pair: Pair, every: Sequence[ParityTerms]) -> pd.DataFrame:
    """Frame of a Pair, a row a group, then everybody: mean absolute relative error of variables.

    `every` has their ParityTerms.
    """
    errors = np.abs([terms.error for terms in every])
    there = (~np.isnan(errors)).sum(axis=0)
    value = share(np.nansum(errors, axis=0), there)
    spread = _error_of_sum(pair, every, np.where(there > 0, 1 / np.maximum(there, 1), np.nan))
    low, high = interval(value, spread)
    nothing = np.full(value.shape, np.nan)
    more = {
        "real": nothing,
        "synthetic": nothing,
        "terms": there,
        "undefined": sum(terms.undefined.astype(int) for terms in every),
        "lost": sum(terms.lost.astype(int) for terms in every),
    }
    return pair.frame(value, low, high, items={"variable": [ALL]}, more=more)


def _error_of_sum(pair: Pair, every: Sequence[ParityTerms], scale: Array) -> Array:
    """Array by a Pair's groups, then everybody: standard error of `scale`, such an array, x the sum of errors.

    `every` has the variables' ParityTerms.
    """
    variance = np.zeros(len(pair.groups) + 1)
    for side in (0, 1):
        group, whole = pair.members[side], np.full(len(pair.members[side]), len(pair.groups))
        pull = sum(terms.influence[side] for terms in every)
        pull_whole = sum(terms.influence_everybody[side] for terms in every)
        squares = np.bincount(group, pull**2, len(variance)) + np.bincount(whole, pull_whole**2, len(variance))
        sizes = pair.counts[side]
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = variance + np.where(sizes > 1, squares * sizes / (sizes - 1), np.nan)
    found: Array = scale * np.sqrt(variance)
    return found


def _added(pair: Pair, name: str, every: Sequence[ParityTerms], weighting: Weighting) -> pd.DataFrame:
    """Frame of one row of scope "parity" of a Pair: Definition 10 by a Weighting, for the variable called `name`.

    `every` are the ParityTerms of the variables; of several, it is the mean.
    """
    import pandas as pd

    totals, pulls = [], [np.zeros(table.rows) for table in pair.tables]
    terms = [t for t in every if not t.undefined[:-1].all()]
    for t in terms:
        # Definition 10; a lost group counts as an error of 1, undefined terms as 0
        size = np.where(t.undefined, 0.0, np.where(t.lost, 1.0, np.nan_to_num(np.abs(t.error))))
        group, everybody = weighting.weights(int((~t.undefined[:-1]).sum()))
        totals.append(group * size[:-1].sum() + everybody * size[-1])
        for side in (0, 1):
            pull = group * t.influence[side] + everybody * t.influence_everybody[side]
            pulls[side] = pulls[side] + pull / len(terms)
    value = float(np.mean(totals)) if totals else np.nan
    # influences of all terms on a row add up before squaring, since terms share rows
    low, high = interval(np.array(value), np.sqrt(sum((pull**2).sum() for pull in pulls)))
    undefined, lost = (sum(int(getattr(t, what)[:-1].sum()) for t in every) for what in ("undefined", "lost"))
    small = bool(undefined or lost or (pair.counts[:, :-1].min(axis=0) < pair.few).any())
    row = {
        "variable": name,
        "scope": PARITY,
        **dict.fromkeys(pair.by, pd.NA),
        "n": pair.counts[0, -1],
        "n_synthetic": pair.counts[1, -1],
        "value": value,
        "low": float(low),
        "high": float(high),
        "status": NOT_ESTIMABLE if np.isnan(value) else SMALL if small else OK,
        "real": np.nan,
        "synthetic": np.nan,
        "terms": sum(int((~t.undefined[:-1]).sum()) for t in every),
        "undefined": undefined,
        "lost": lost,
    }
    texts = dict.fromkeys(("variable", "scope", *pair.by, "status"), "string")
    return pd.DataFrame([row]).astype(texts)
