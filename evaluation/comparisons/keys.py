"""Keys of a recipe's section [compare]: their types and descriptions, for messages and the reference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stratsynth.checks import is_number, is_texts
from stratsynth.errors import RecipeError, nearest
from stratsynth.evaluation.comparisons.competitors import MECHANISMS
from stratsynth.evaluation.learning.learners import EVERY
from stratsynth.evaluation.scores.declared import with_mean

OWN = (
    "workload_error",
    "k_marginal_score",
    "clique_error",
    "parity_means",
    "parity_marginals",
    "downstream",
    "mean_disparity",
    "numbers",
)
"""Metrics that need more than the rows of two tables; all others declare themselves."""


def metrics() -> tuple[str, ...]:
    """Tuple of the names of all metrics that a grid can score."""
    return (*OWN, *with_mean())


KINDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "mechanisms": (list, MECHANISMS),
    "stratifications": (list, "a list of lists of columns; [] is vanilla"),
    "epsilons": (list, "a list of numbers"),
    "seeds": (int, "a whole number from 1: how often each setting is repeated"),
    "metrics": (list, f"a list of some of {', '.join(metrics())}"),
    "k": (int, "a whole number from 1"),
    "cliques": (int, "a whole number from 1"),
    "holdout": (str, "a file, or a recipe for its rows"),
    "target": (str, "a column, or employment or income"),
    "positive": (list, "a list of levels"),
    "above": ((int, float), "a number"),
    "thresholds": (dict, "numbers by column, as { PINCP = [100000, 200000] }"),
    "models": (list, f"a list of some of {', '.join(EVERY)}"),
    "workers": (int, "a whole number from 1"),
    "pairs": (list, "a list of pairs of settings"),
}
"""Key -> its type and its description."""


def check_keys(said: Mapping[str, Any]) -> None:
    """Raise RecipeError for unknown keys in `said`, the mapping of a section [compare], values of other types.

    And for whole numbers below 1.
    """
    for key, value in said.items():
        if key not in KINDS:
            raise RecipeError(f"[compare] has no key {key!r}{nearest(key, KINDS)}.")
        kind, words = KINDS[key]
        wrong = not isinstance(value, kind) or isinstance(value, bool)
        if wrong or (kind is int and int(value) < 1):
            raise RecipeError(f"[compare] {key} must be {words}.")
    columns = said.get("stratifications", [])
    if not all(map(is_texts, columns)):
        raise RecipeError(f"[compare] stratifications must be {KINDS['stratifications'][1]}.")
    epsilons = said.get("epsilons", [])
    if not all(is_number(epsilon) or epsilon == math.inf for epsilon in epsilons):
        raise RecipeError(f"[compare] epsilons must be {KINDS['epsilons'][1]}.")
    for key in ("metrics", "positive", "models"):
        if not is_texts(said.get(key, [])):
            raise RecipeError(f"[compare] {key} must be {KINDS[key][1]}.")
