"""Pipelines around an estimator: which step spends, and which others would read private rows for nothing."""

from __future__ import annotations

from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from stratsynth.adapters.sklearn.grouped import GroupedEstimator
from stratsynth.errors import UsageError


def last_step(estimator: Any) -> GroupedEstimator:
    """Return the `GroupedEstimator`: the estimator itself, or the last step of a pipeline; else UsageError."""
    found = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if isinstance(found, Pipeline):
        return last_step(found)
    if not isinstance(found, GroupedEstimator):
        raise UsageError(
            f"an estimator of stratsynth.adapters.sklearn is wanted, or a pipeline that ends with one, not "
            f"{type(found).__name__}: only these state what a fit spends."
        )
    return found


def prefix_of(estimator: Any) -> str:
    """Return the text that begins the names of fit parameters of a pipeline's last step, "last__".

    "" for an estimator.
    """
    if not isinstance(estimator, Pipeline):
        return ""
    name, step = estimator.steps[-1]
    return f"{name}__{prefix_of(step)}"


def check_steps(estimator: Any) -> None:
    """Refuse (UsageError) an estimator that is a pipeline with a step that learns from private rows for free."""
    if not isinstance(estimator, Pipeline):
        return
    for name, step in estimator.steps[:-1]:
        if step in {None, "passthrough"} or isinstance(step, FrozenEstimator):
            continue
        if isinstance(step, Pipeline) or get_tags(step).requires_fit:
            raise UsageError(
                f"the step {name!r}, {type(step).__name__}, learns from private rows, and nothing pays for it. Scale "
                "by public bounds, which the estimator does itself; fit the step on public rows and freeze it, "
                "FrozenEstimator(step); or declare the data public."
            )
    check_steps(estimator.steps[-1][1])
