"""Scores of synthetic tables, comparisons and reports. Nothing here fits or spends, but for `compare`.

    from stratsynth.evaluation import parity_error, workload_error

    print(workload_error("people.csv", "release/synthetic.parquet", schema, by=["SEX", "RAC1P"]))

What reads private rows is stamped INTERNAL: it is paid for by no budget, and is not for publication.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stratsynth.evaluation.associations import correlations
    from stratsynth.evaluation.baseline import Baseline, baseline_errors, baselines
    from stratsynth.evaluation.comparing import compare
    from stratsynth.evaluation.consistency import inconsistencies, levels_lost
    from stratsynth.evaluation.disparity import mean_disparity
    from stratsynth.evaluation.learning import downstream
    from stratsynth.evaluation.matching import matches
    from stratsynth.evaluation.parity import parity_error
    from stratsynth.evaluation.rates import prediction_rates
    from stratsynth.evaluation.tasks import Task
    from stratsynth.evaluation.telling import principal_components, propensity
    from stratsynth.evaluation.whole import Evaluation, evaluate
    from stratsynth.evaluation.workload import clique_errors, k_marginal_score, workload_error

# As in `stratsynth`: names are imported when they are first used. No module has the name of a function here.
_HOME = {
    "Baseline": "baseline",
    "Evaluation": "whole",
    "Task": "tasks",
    "baseline_errors": "baseline",
    "baselines": "baseline",
    "clique_errors": "workload",
    "compare": "comparing",
    "correlations": "associations",
    "downstream": "learning",
    "evaluate": "whole",
    "inconsistencies": "consistency",
    "k_marginal_score": "workload",
    "levels_lost": "consistency",
    "matches": "matching",
    "mean_disparity": "disparity",
    "parity_error": "parity",
    "prediction_rates": "rates",
    "principal_components": "telling",
    "propensity": "telling",
    "workload_error": "workload",
}

__all__ = [
    "Baseline",
    "Evaluation",
    "Task",
    "baseline_errors",
    "baselines",
    "clique_errors",
    "compare",
    "correlations",
    "downstream",
    "evaluate",
    "inconsistencies",
    "k_marginal_score",
    "levels_lost",
    "matches",
    "mean_disparity",
    "parity_error",
    "prediction_rates",
    "principal_components",
    "propensity",
    "workload_error",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'stratsynth.evaluation' has no attribute {name!r}")
    value = getattr(import_module(f"stratsynth.evaluation.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
