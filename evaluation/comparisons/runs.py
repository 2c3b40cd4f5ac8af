"""INTERNAL. Figures of a comparison: means over seeds, looked up by method, epsilon and group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from stratsynth.errors import UsageError
from stratsynth.evaluation.report.groups import SERIES, GroupErrors, ScoreWithInterval, group_name
from stratsynth.evaluation.tables import EVERYBODY, FAR_OFF, GROUP, NOT_ESTIMABLE, OK, SMALL
from stratsynth.report.numbers import listed

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

COLUMNS = (
    "mechanism",
    "stratification",
    "epsilon",
    "seed",
    "metric",
    "scope",
    "clique",
    "value",
    "low",
    "high",
    "n",
    "status",
)
ERRORS = ("workload_error", "workload", "parity_marginals", "error")
"""Metrics that a page draws by default, in order of preference."""
BASELINE = "subsample"
WORST_FIRST = (NOT_ESTIMABLE, SMALL, FAR_OFF)
"""Statuses from worst to best: a mean over seeds has the worst of them."""


class Runs:
    """Figures of one metric, looked up by mechanism, stratification, epsilon and group."""

    def __init__(self, frame: pd.DataFrame, metric: str | None, epsilon: float | None, schema: Schema | None) -> None:
        """Compute means over seeds, smallest and largest value for one metric of a comparison's frame.

        `metric` None is workload error or else the commonest, `epsilon` None the one closest to 1; missing ones are
        refused.
        """
        missing = [name for name in COLUMNS if name not in frame.columns and name != "clique"]
        if missing or frame.empty:
            raise UsageError(f"report: the comparison {f'lacks the column {missing[0]}' if missing else 'is empty'}.")
        self.metric = metric if metric is not None else _metric(frame)
        frame = frame[frame["metric"] == self.metric]
        if frame.empty:
            raise UsageError(f"report: the comparison has no metric {self.metric!r}.")
        self.by = [name for name in frame.columns if name not in COLUMNS and name != "stamp"]
        whole = _of_all_cliques(frame)
        self.cliques = frame[~whole]
        self.schema = schema
        frame = frame[whole & frame["scope"].isin([GROUP, EVERYBODY])]
        based = (frame["mechanism"] == BASELINE) | (frame["stratification"] == BASELINE)
        runs, self._base = frame[~based], _by_group(frame[based], self.by)
        if runs.empty:
            raise UsageError(f"report: the comparison has no figure of {self.metric!r} for groups or everybody.")
        self.methods = sorted(
            {(str(m), str(s)) for m, s in zip(runs["mechanism"], runs["stratification"], strict=True)},
            key=lambda pair: (pair[0], SERIES.get(pair[1], len(SERIES)), pair[1]),
        )
        self.epsilons = sorted({float(e) for e in runs["epsilon"]})
        if epsilon is not None and epsilon not in self.epsilons:
            raise UsageError(
                f"report: there is no epsilon {epsilon:g}; there are {listed([f'{e:g}' for e in self.epsilons])}."
            )
        self.epsilon = (
            epsilon if epsilon is not None else min(self.epsilons, key=lambda e: (abs(math.log(max(e, 1e-9))), e))
        )
        self.seeds = int(runs["seed"].nunique())
        self.found: dict[tuple[str, str, float], dict[tuple[str, ...], dict[str, Any]]] = {}
        for method in runs.groupby(["mechanism", "stratification", "epsilon"], sort=False):
            key, part = cast("tuple[Any, pd.DataFrame]", method)
            self.found[str(key[0]), str(key[1]), float(key[2])] = _by_group(part, self.by)
        sizes: dict[tuple[str, ...], float] = {}
        for groups in self.found.values():
            for key, row in groups.items():
                sizes[key] = max(sizes.get(key, 0.0), row["n"])
        self.sizes = sizes
        self.groups = sorted((key for key in sizes if key), key=lambda key: (-sizes[key], key))

    def score(self, method: tuple[str, str], epsilon: float, key: tuple[str, ...]) -> ScoreWithInterval:
        """ScoreWithInterval: mean error over seeds, with its range (of one seed, its interval); NaN if unknown.

        It is that of `method`, a pair (mechanism, stratification), for this epsilon and the group whose levels are
        `key`, () for everybody.
        """
        row = self.found.get((*method, epsilon), {}).get(key)
        return ScoreWithInterval(math.nan) if row is None else ScoreWithInterval(row["value"], row["low"], row["high"])

    def name(self, key: tuple[str, ...]) -> str:
        """Name for readers of the group of the levels `key` of the columns `by`; `everybody` without levels."""
        if self.by == ["group"]:
            return key[0] if key else "everybody"
        return group_name(dict(zip(self.by, key, strict=True)) if key else {}, self.schema)

    def group_errors(self, mechanism: str, epsilon: float) -> tuple[list[GroupErrors], GroupErrors]:
        """(List of GroupErrors, one a group; everybody's GroupErrors) of a mechanism, by its label, at an epsilon.

        In each the errors are a mapping by stratification.
        """
        methods = [method for method in self.methods if method[0] == mechanism]

        def one(key: tuple[str, ...]) -> GroupErrors:
            errors = {method[1]: self.score(method, epsilon, key) for method in methods}
            rows = [self.found.get((*method, epsilon), {}).get(key) for method in methods]
            worth = {row["status"] for row in rows if row is not None}
            status = next((s for s in WORST_FIRST if s in worth), OK)
            levels = dict(zip(self.by, key, strict=True)) if key else {}
            n, base = self.sizes.get(key, math.nan), self._base.get(key)
            return GroupErrors(self.name(key), n, errors, math.nan if base is None else base["value"], status, levels)

        return [one(key) for key in self.groups], one(())

    def base(self, key: tuple[str, ...]) -> float:
        """Sampling error, a float, of the group whose levels are `key`, () for everybody; NaN if unknown."""
        return float(self._base[key]["value"]) if key in self._base else math.nan


def _metric(frame: pd.DataFrame) -> str:
    """Return the name of the metric that a page is about: the first of `ERRORS` in the frame, or its commonest."""
    there = frame["metric"].value_counts()
    return next((name for name in ERRORS if name in there.index), str(there.index[0]))


def _of_all_cliques(frame: pd.DataFrame) -> Any:
    """Mask, a Series, of the rows of the tidy frame about a whole metric: no value in the column `clique`."""
    if "clique" not in frame.columns:
        return frame["value"].notna() | True
    return frame["clique"].isna() | (frame["clique"].astype(str) == "")


def _by_group(frame: pd.DataFrame, by: Sequence[str]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Mapping from a group's levels in the columns `by` (() for everybody) to a dict, from the frame of one method.

    The dict has mean and range over seeds, number of rows, and status; the rows are of one epsilon.
    """
    rows: dict[tuple[str, ...], list[Any]] = {}
    for row in frame.to_dict("records"):
        key = () if row["scope"] == EVERYBODY else tuple(str(row[name]) for name in by)
        rows.setdefault(key, []).append(row)
    return {key: _mean(several_) for key, several_ in rows.items()}


def _mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a dict of `rows`, mappings, one a seed: mean "value", range "low" and "high", largest "n", worst "status".

    Of one row with a value, the range is its interval.
    """
    values = [v for row in rows if math.isfinite(v := _number(row["value"]))]
    status = [str(row["status"]) for row in rows]
    worth = next((s for s in WORST_FIRST if s in status), OK)
    ends = (min(values), max(values)) if len(values) > 1 else (_number(rows[0]["low"]), _number(rows[0]["high"]))
    sizes = [n for row in rows if math.isfinite(n := _number(row["n"]))]
    mean = sum(values) / len(values) if values else math.nan
    return {"value": mean, "low": ends[0], "high": ends[1], "n": max(sizes, default=0.0), "status": worth}


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
