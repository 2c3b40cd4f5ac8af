"""Scores of synthetic tables, comparisons and reports. Nothing here fits or spends, but for `compare`.

    from stratsynth.evaluation import parity_error, workload_error

    print(workload_error("people.csv", "release/synthetic.parquet", schema, by=["SEX", "RAC1P"]))

Scores of private rows are stamped INTERNAL: no budget pays for them, and they are not for publication.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stratsynth.evaluation.comparisons.compare import compare
    from stratsynth.evaluation.comparisons.plots import plot_tradeoff
    from stratsynth.evaluation.evaluations.evaluate import Evaluation, evaluate
    from stratsynth.evaluation.evaluations.predictions import PredictionScores, evaluate_predictions
    from stratsynth.evaluation.learning.downstream import downstream
    from stratsynth.evaluation.learning.propensity import principal_components, propensity
    from stratsynth.evaluation.learning.rates import prediction_rates
    from stratsynth.evaluation.learning.tasks import Task
    from stratsynth.evaluation.linked.errors import linked_errors, linked_means
    from stratsynth.evaluation.linked.evaluation import LinkedEvaluation, evaluate_linked
    from stratsynth.evaluation.linked.metadata import linked_metadata
    from stratsynth.evaluation.linked.queries import linked_queries
    from stratsynth.evaluation.linked.rows import LinkedColumns
    from stratsynth.evaluation.linked.structures import Household, broken_rules, household_shares
    from stratsynth.evaluation.scores.associations import correlations
    from stratsynth.evaluation.scores.baseline import Baseline, baseline_errors, baselines
    from stratsynth.evaluation.scores.consistency import inconsistencies, levels_lost
    from stratsynth.evaluation.scores.coverage import interval_coverage
    from stratsynth.evaluation.scores.disparity import mean_disparity
    from stratsynth.evaluation.scores.headline import number_errors
    from stratsynth.evaluation.scores.matching import matches
    from stratsynth.evaluation.scores.parity import parity_error
    from stratsynth.evaluation.scores.raw import raw_values
    from stratsynth.evaluation.scores.streamed import streamed_workload_error
    from stratsynth.evaluation.scores.workload import clique_errors, k_marginal_score, workload_error

# As in `stratsynth`: names are imported when they are first used. No module has the name of a function here.
_NAMES = {
    "comparisons.compare": ("compare",),
    "comparisons.plots": ("plot_tradeoff",),
    "evaluations.evaluate": ("Evaluation", "evaluate"),
    "evaluations.predictions": ("PredictionScores", "evaluate_predictions"),
    "learning.downstream": ("downstream",),
    "learning.propensity": ("principal_components", "propensity"),
    "learning.rates": ("prediction_rates",),
    "learning.tasks": ("Task",),
    "linked.errors": ("linked_errors", "linked_means"),
    "linked.evaluation": ("LinkedEvaluation", "evaluate_linked"),
    "linked.metadata": ("linked_metadata",),
    "linked.queries": ("linked_queries",),
    "linked.rows": ("LinkedColumns",),
    "linked.structures": ("Household", "broken_rules", "household_shares"),
    "scores.associations": ("correlations",),
    "scores.baseline": ("Baseline", "baseline_errors", "baselines"),
    "scores.consistency": ("inconsistencies", "levels_lost"),
    "scores.coverage": ("interval_coverage",),
    "scores.disparity": ("mean_disparity",),
    "scores.headline": ("number_errors",),
    "scores.matching": ("matches",),
    "scores.parity": ("parity_error",),
    "scores.raw": ("raw_values",),
    "scores.streamed": ("streamed_workload_error",),
    "scores.workload": ("clique_errors", "k_marginal_score", "workload_error"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "Baseline",
    "Evaluation",
    "Household",
    "LinkedColumns",
    "LinkedEvaluation",
    "PredictionScores",
    "Task",
    "baseline_errors",
    "baselines",
    "broken_rules",
    "clique_errors",
    "compare",
    "correlations",
    "downstream",
    "evaluate",
    "evaluate_linked",
    "evaluate_predictions",
    "household_shares",
    "inconsistencies",
    "interval_coverage",
    "k_marginal_score",
    "levels_lost",
    "linked_errors",
    "linked_means",
    "linked_metadata",
    "linked_queries",
    "matches",
    "mean_disparity",
    "number_errors",
    "parity_error",
    "plot_tradeoff",
    "prediction_rates",
    "principal_components",
    "propensity",
    "raw_values",
    "streamed_workload_error",
    "workload_error",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        value = getattr(import_module(f"stratsynth.evaluation.{_HOME[name]}"), name)
    elif (value := _declared(name)) is None:
        raise AttributeError(f"module 'stratsynth.evaluation' has no attribute {name!r}")
    globals()[name] = value
    return value


def _declared(name: str) -> object:
    """Return the callable score of this name, if some file of `scores/` declares one; else None."""
    if name.startswith("_") or name in {module.name for module in iter_modules(__path__)}:
        return None
    return import_module("stratsynth.evaluation.scores.declared").by_name(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *import_module("stratsynth.evaluation.scores.declared").names()})
