"""Checks that both kinds of column share; each names the key that is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NoReturn

from stratsynth.checks import is_list
from stratsynth.errors import SchemaError, nearest
from stratsynth.schema.text import check_text

MAX_LEVELS = 1_000_000
"""The most levels a column may have: a guard against slips, far above what a mechanism can use."""


def refuse(message: str) -> NoReturn:
    """Raise a SchemaError."""
    raise SchemaError(message)


def items(key: str, value: object) -> tuple[object, ...]:
    """The items of a list, or a refusal."""
    if not is_list(value):
        refuse(f"{key} must be a list")
    return tuple(value)


def count(key: str, count: int) -> None:
    """Refuse none, or more than `MAX_LEVELS`."""
    if not 1 <= count <= MAX_LEVELS:
        refuse(f"{key} must not be empty" if count < 1 else f"{key} must be at most {MAX_LEVELS:,}")


def unique(key: str, texts: Sequence[str]) -> None:
    """Refuse a text that is there twice."""
    if len(set(texts)) < len(texts):
        [(twice, _)] = Counter(texts).most_common(1)
        refuse(f"{key} must differ from one another: {twice!r} is there twice")


def flag(key: str, value: object) -> None:
    """Refuse what is neither true nor false."""
    if not isinstance(value, bool):
        refuse(f"{key} must be true or false")


def choice(key: str, value: object, known: Sequence[str]) -> None:
    """Refuse what is not one of a few words."""
    if value not in known:
        refuse(f"{key} must be one of {', '.join(known)}{hint(value, known)}")


def hint(word: object, known: Sequence[str]) -> str:
    """The nearest of the known words, as the end of a message."""
    return nearest(word, known[:1000]) if isinstance(word, str) else ""


def labels(labels: object, levels: Sequence[str]) -> dict[str, str]:
    """A copy of the labels, each of which names a level."""
    if not isinstance(labels, Mapping):
        refuse("labels must be a table from level to text")
    known = set(levels)
    for level, label in labels.items():
        if level not in known:
            refuse(f"labels name {level!r}, which is not a level{hint(level, levels)}")
        check_text("a label", label)
    return dict(labels)
