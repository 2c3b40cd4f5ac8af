"""Trade-off curves: error against violation over lambda and epsilon, with bands over seeds. On public data alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import UsageError
from stratsynth.evaluation.fermi.columns import CurveFit, fitted
from stratsynth.evaluation.fermi.postprocessed import PART, corrected, derived, noisy_counts
from stratsynth.evaluation.fermi.violations import violations
from stratsynth.report.drawing import new_figure, save

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.models import Predictor
    from stratsynth.schema import Schema

METHOD, BASELINE = "fermi", "post-processing"
TOLERANCES = (0.0, 0.02, 0.05, 0.1, 0.2)
"""Largest differences allowed between post-processed rates of groups."""


def tradeoff(
    train: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    *,
    public: bool,
    target: str,
    groups: Sequence[str],
    penalties: Sequence[float],
    epsilons: Sequence[float],
    delta: float,
    seeds: int = 10,
    criterion: str = "parity",
    settings: Mapping[str, Any] | None = None,
    baseline: bool = True,
    seed: int = 0,
) -> pd.DataFrame:
    """Fit every penalty at every epsilon several times; return a frame of error and violations on other rows.

    Args:
        train: Rows to fit, a frame; nothing is charged, so they must be public.
        test: Rows to measure on, a frame.
        schema: Schema of both.
        public: True if a person declares all these rows public; refused otherwise.
        target: Column to predict.
        groups: Sensitive attribute: columns whose crossing makes the groups.
        penalties: Values of lambda; 0 is noisy gradient descent on the loss alone.
        epsilons: Budgets of single fits; infinite for no noise.
        delta: Delta of each fit.
        seeds: Number of fits of each penalty and epsilon.
        criterion: `parity` or `odds`.
        settings: Mapping of further settings of `fermi`; None for none.
        baseline: True to fit noisy gradient descent with post-processing too; for two classes.
        seed: Seed of all draws, by which results are reproducible.

    Returns:
        A row for each fit: method, criterion, epsilon, penalty (for post-processing, its tolerance), seed, and the
        measures of `violations`.

    Raises:
        UsageError: Rows that nobody declares public.
    """
    import pandas as pd

    if public is not True:
        raise UsageError(
            "tradeoff: curves are many fits, and choosing by them learns from the rows: declare the rows public with "
            "public=True, or fit at a budget and accept its one result."
        )
    common = {**(settings or {}), "target": target, "groups": list(groups), "criterion": criterion}
    columns = [CurveFit(p, e, s) for p, e, s in product(penalties, epsilons, range(seeds))]
    models = fitted(train, schema, columns, delta=delta, settings=common, seed=seed)
    seen = CurveRows.of(test, schema, target, groups)
    lines = [
        _line(METHOD, criterion, column, seen.measured(seen.predictions(model)))
        for column, model in zip(columns, models, strict=True)
    ]
    if baseline and schema.size(target) == 2:
        lines += _post_processed(train, schema, seen, common, epsilons, delta, seeds, seed)
    return pd.DataFrame(lines)


def _line(method: str, criterion: str, column: CurveFit, measured: Mapping[str, float]) -> dict[str, Any]:
    return {
        "method": method,
        "criterion": criterion,
        "epsilon": column.epsilon,
        "penalty": column.penalty,
        "seed": column.seed,
        **measured,
    }


class CurveRows:
    """Rows to measure on, with target and group as level numbers."""

    def __init__(self, rows: pd.DataFrame, levels: Sequence[str], truth: NDArray[np.intp], group: Any) -> None:
        """Keep a frame of rows and the target's `levels`; `truth` and `group` hold a level or group number per row."""
        self._rows, self._levels, self.truth, self.group = rows, list(levels), truth, group
        self._codes: Any = None

    @classmethod
    def of(cls, rows: pd.DataFrame, schema: Schema, target: str, groups: Sequence[str]) -> CurveRows:
        """Return CurveRows from a frame of a schema, to measure predictions of the column `target` in groups.

        These cross the columns `groups`. Rows whose value is no level are left out.
        """
        codes: list[Any] = [
            rows[c].astype(str).map({v: i for i, v in enumerate(schema.levels(c))}) for c in (*groups, target)
        ]
        kept = np.all([one.notna() for one in codes], axis=0)
        numbers = [one[kept].to_numpy(np.intp) for one in codes]
        group = np.ravel_multi_index(numbers[:-1], schema.shape(tuple(groups)))
        return cls(rows[kept], schema.levels(target), numbers[-1], group)

    def predictions(self, model: Predictor) -> NDArray[np.intp]:
        """Array of a model's predictions as level numbers of the target; rows are encoded once for all models."""
        if self._codes is None:
            self._codes = model.shown(self._rows)
        place = {level: i for i, level in enumerate(self._levels)}
        found: NDArray[np.intp] = np.array([place[str(level)] for level in model.predict(self._codes)], np.intp)
        return found

    def measured(self, said: NDArray[np.intp]) -> dict[str, float]:
        """Mapping from measure to number: error and violations of predictions `said`, an array of level numbers."""
        return violations(self.truth, said, self.group)


def _post_processed(
    train: pd.DataFrame,
    schema: Schema,
    seen: CurveRows,
    settings: Mapping[str, Any],
    epsilons: Sequence[float],
    delta: float,
    seeds: int,
    seed: int,
) -> list[dict[str, Any]]:
    """List of dicts, one a fit to `train` and tolerance: noisy descent, corrected by noisy counts that cost `PART`.

    `train` is a frame of the schema. `seeds` fits at each of `epsilons` and `delta`, with the mapping `settings` of the
    mechanism, are measured on `seen`, CurveRows; `seed` is for all draws.
    """
    rng, lines = np.random.default_rng(seed + 1), []
    columns = [CurveFit(0.0, (1 - PART) * e, s) for e, s in product(epsilons, range(seeds))]
    models = fitted(train, schema, columns, delta=delta, settings=settings, seed=seed + 2)
    known = CurveRows.of(train, schema, settings["target"], settings["groups"])
    for column, model in zip(columns, models, strict=True):
        # basic composition: epsilons of classifier and counts add up
        epsilon = column.epsilon / (1 - PART)
        counts = noisy_counts(known.predictions(model), known.truth, known.group, PART * epsilon, rng)
        said = seen.predictions(model)
        for tolerance in TOLERANCES:
            chances = derived(counts, settings["criterion"], tolerance)
            measured = seen.measured(corrected(chances, said, seen.group, rng))
            own = CurveFit(tolerance, epsilon, column.seed)
            lines.append(_line(BASELINE, settings["criterion"], own, measured))
    return lines


def summary(frame: pd.DataFrame, violation: str | None = None) -> pd.DataFrame:
    """Frame with a row for each method, epsilon and penalty: means over seeds of `error` and `violation`.

    It also has the ends of their bands of 80 %, with the endings `_low` and `_high`.

    Args:
        frame: Result of `tradeoff`, a frame, for one criterion.
        violation: Name of the measure, a column; by default the criterion's own.
    """
    name = violation or str(frame["criterion"].iloc[0])
    by = frame.groupby(["method", "epsilon", "penalty"], sort=False)[["error", name]]
    parts = {"": by.mean(), "_low": by.quantile(0.1), "_high": by.quantile(0.9)}
    table = parts[""].join([parts[end].add_suffix(end) for end in ("_low", "_high")])
    return table.rename(columns=lambda c: c.replace(name, "violation")).reset_index()


def pareto(table: pd.DataFrame) -> pd.Series[bool]:
    """Boolean series over the lines of `table`, a `summary`: True if no line of the same method and epsilon beats it.

    To beat is to be no worse in `error` and `violation`, and better in one of them.
    """

    def beaten(row: Any) -> bool:
        others = table[(table["method"] == row["method"]) & (table["epsilon"] == row["epsilon"])]
        no_worse = (others["error"] <= row["error"]) & (others["violation"] <= row["violation"])
        better = (others["error"] < row["error"]) | (others["violation"] < row["violation"])
        return bool((no_worse & better).any())

    return ~table.apply(beaten, axis=1)


def picture(table: pd.DataFrame, path: Path, title: str = "") -> None:
    """Plot error against violation of `table`, a `summary`, to `path`, a panel an epsilon; off the front hollow.

    `title` is above the panels.
    """
    epsilons = sorted(table["epsilon"].unique())
    figure = new_figure(3.4 * len(epsilons), 3.6)
    panels = figure.subplots(1, len(epsilons), squeeze=False, sharey=True)[0]
    front = pareto(table)
    for panel, epsilon in zip(panels, epsilons, strict=True):
        for i, method in enumerate(table["method"].unique()):
            here = (table["method"] == method) & (table["epsilon"] == epsilon)
            line = table[here].sort_values("violation")
            panel.plot(line["violation"], line["error"], "-", color=f"C{i}", label=method)
            panel.fill_between(line["violation"], line["error_low"], line["error_high"], color=f"C{i}", alpha=0.15)
            for beaten, part in line.groupby(~front[here].loc[line.index]):
                face = "white" if beaten else f"C{i}"
                panel.plot(part["violation"], part["error"], "o", color=f"C{i}", markerfacecolor=face, ms=4)
        panel.set(title=f"epsilon {epsilon:g}", xlabel="violation")
    panels[0].set_ylabel("part predicted wrongly")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.suptitle(title)
    save(figure, path)
