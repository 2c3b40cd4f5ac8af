"""Scores that every release of a comparison gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from stratsynth.errors import RecipeError, UsageError, nearest
from stratsynth.evaluation.comparisons.keys import KINDS
from stratsynth.evaluation.comparisons.keys import metrics as every_metric
from stratsynth.evaluation.evaluations.evaluate import CLIQUES
from stratsynth.evaluation.learning.learners import EVERY, LEARNERS
from stratsynth.evaluation.learning.tasks import Task, task
from stratsynth.evaluation.scores.headline import number_columns, thresholds_by_column
from stratsynth.evaluation.tables import RESERVED, groups_of
from stratsynth.recipes.recipe import Recipe
from stratsynth.schema import Schema

ASKED = frozenset({"mean_disparity"})
"""Metrics of single papers: scored only if a recipe asks for them."""
COLUMNS = frozenset(
    {
        "mechanism",
        "stratification",
        "epsilon",
        "seed",
        "metric",
        "group",
        "clique",
        "stamp",
        "seconds",
        *RESERVED,
    }
)
"""Names that a column to group by cannot have."""


@dataclass(frozen=True)
class Scoring:
    """Settings of the scores that every release gets."""

    metrics: tuple[str, ...]
    """Metrics to compute, a subset of `keys.metrics`."""
    by: tuple[str, ...]
    """Recipe's strata: the groups that are scored, whatever a release was stratified by."""
    k: int = 3
    """Number of columns of a marginal."""
    cliques: int = CLIQUES
    """Largest number of marginals."""
    holdout: Path | None = None
    """Real rows that nothing is fitted to; only with `target`."""
    target: str | None = None
    """Column or task that models predict; None for no models."""
    positive: tuple[str, ...] | None = None
    """Levels of a categorical target that count as 1."""
    above: float | None = None
    """Number above which a numeric target counts as 1."""
    thresholds: tuple[tuple[str, tuple[float, ...]], ...] = ()
    """Columns of numbers with the stated thresholds above which shares are compared; others have the schema's own."""
    models: tuple[str, ...] = LEARNERS
    """Models that are trained on tables."""
    parities: tuple[tuple[str, ...], ...] = ()
    """Coarser groups whose parity error of the means is scored too: the grid's other stratifications."""

    def goal(self, schema: Schema) -> Task | None:
        """Task of predicting under a schema, from target and positive levels or bound; None if nothing is predicted."""
        if self.target is None:
            return None
        return task(schema, self.target, positive=self.positive, above=self.above)


def read_scoring(
    recipe: Recipe, said: Mapping[str, Any], by: tuple[str, ...], stratified: Sequence[Sequence[str]]
) -> Scoring:
    """Scoring, the settings of scores, from a recipe's section [compare], checked against the recipe's schema.

    Args:
        recipe: The Recipe.
        said: Its section [compare], a mapping.
        by: Columns of the recipe's strata.
        stratified: Sequences of columns that the grid stratifies by.

    Raises:
        RecipeError: Keys that contradict each other.
        UsageError: Unknown columns or targets.
    """
    schema = recipe.schema()
    for column in by:
        if column in COLUMNS:
            raise UsageError(f"[compare] a column to group by cannot be called {column!r}; rename it.")
    groups_of(schema, by)
    target, holdout = said.get("target"), said.get("holdout")
    known = every_metric()
    left = ASKED if target is not None else ASKED | {"downstream"}
    metrics = tuple(said.get("metrics", [metric for metric in known if metric not in left]))
    for metric in metrics:
        if metric not in known:
            hint = nearest(str(metric), known)
            raise RecipeError(f"[compare] metrics: there is no {metric!r}{hint}. There are: {', '.join(known)}.")
    if not metrics or len(set(metrics)) < len(metrics):
        raise RecipeError("[compare] metrics is empty, or holds something twice.")
    if ("downstream" in metrics) != (target is not None) or (target is not None) != (holdout is not None):
        raise RecipeError(
            "[compare] predicting needs a target and a holdout, real rows that nothing is fitted to; without, leave "
            "both and downstream out."
        )
    positive = said.get("positive")
    if target is not None:
        task(schema, target, positive=positive, above=said.get("above"))
    elif positive is not None or "above" in said or "models" in said:
        raise RecipeError("[compare] `positive`, `above` and `models` are about a target; name it.")
    models = _models(said.get("models", LEARNERS))
    # an unknown column is refused with its stratification, and the crossing of `by` is scored anyway
    parities = tuple(tuple(some) for some in stratified if some and set(some) < set(by))
    if not number_columns(schema, by):
        metrics = tuple(m for m in metrics if m != "numbers")
    if not by:
        metrics = tuple(m for m in metrics if not m.startswith("parity") and m != "mean_disparity")
        if not metrics:
            raise RecipeError("[compare] parity error and disparity need groups; add the section [strata].")
    if not metrics:
        raise RecipeError("[compare] the schema has no column of numbers but those of the strata.")
    return Scoring(
        metrics,
        by,
        min(said.get("k", 3), len(schema.names)),
        said.get("cliques", CLIQUES),
        None if holdout is None else recipe.folder / holdout,
        target,
        None if positive is None else tuple(positive),
        said.get("above"),
        _thresholds(schema, said.get("thresholds", {})),
        models,
        parities if "parity_means" in metrics else (),
    )


def _thresholds(schema: Schema, said: Mapping[str, Any]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Return a tuple of pairs (column of the schema, tuple of thresholds) of those that a recipe states.

    `said` maps columns to thresholds; UsageError for others.
    """
    found = thresholds_by_column(schema, said)
    return tuple((name, found[name]) for name in said)


def _models(said: Sequence[str]) -> tuple[str, ...]:
    """Return the tuple of names of models in a recipe's list `said`; RecipeError for unknown ones, none, or doubles."""
    for model in said:
        if model not in EVERY:
            raise RecipeError(f"[compare] models: there is no {model!r}{nearest(model, EVERY)}; {KINDS['models'][1]}.")
    if not said or len(set(said)) < len(said):
        raise RecipeError("[compare] models is empty, or holds something twice.")
    return tuple(said)


def plain(scoring: Scoring) -> dict[str, Any]:
    """Dict from the name of each setting in `scoring` to its value; the path of the hold-out is left out."""
    return {f.name: getattr(scoring, f.name) for f in fields(scoring) if f.name != "holdout"}
