"""The settings that predictors have in common: checked once and kept as tuples, whoever declares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stratsynth.checks import is_list, is_texts
from stratsynth.errors import UsageError


def check_names(settings: Any) -> None:
    """Settle `features`, `groups` and `target`: different columns, and the target none of the others."""
    for key in ("features", "groups"):
        names = getattr(settings, key)
        if not is_texts(names) or len(set(names)) < len(names):
            raise UsageError(f'{settings.name}: {key} is a list of different column names, such as ["SEX"].')
        object.__setattr__(settings, key, tuple(names))
    check_target(settings, settings.groups)


def check_target(settings: Any, groups: Sequence[str]) -> None:
    """The target is one column, and neither a feature nor one of the groups' columns."""
    if not isinstance(settings.target, str) or settings.target in (*settings.features, *groups):
        raise UsageError(f"{settings.name}: the target is one column, and neither a feature nor a group.")


def check_interactions(settings: Any) -> None:
    """Settle `interactions`: pairs of names."""
    pairs = settings.interactions
    if not is_list(pairs) or not all(is_texts(pair) and len(pair) == 2 for pair in pairs):
        raise UsageError(f'{settings.name}: interactions is a list of pairs, such as [["AGEP", "SEX"]].')
    object.__setattr__(settings, "interactions", tuple(tuple(pair) for pair in pairs))


def check_tables(settings: Any, *keys: str) -> None:
    """These settings are tables."""
    for key in keys:
        if not isinstance(getattr(settings, key), Mapping):
            raise UsageError(f"{settings.name}: {key} is a table.")
