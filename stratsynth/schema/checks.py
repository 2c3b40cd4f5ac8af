"""Checks that both kinds of column share; messages name the wrong key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NoReturn

from stratsynth.checks import is_list
from stratsynth.errors import SchemaError, nearest
from stratsynth.schema.text import check_text

MAX_LEVELS = 1_000_000
"""Largest number of levels of a column: a guard against slips, far above the capacity of any mechanism."""


def refuse(message: str) -> NoReturn:
    """Raise a SchemaError with this `message`; never return."""
    raise SchemaError(message)


def items(key: str, value: object) -> tuple[object, ...]:
    """Return the items of `value`, a list or tuple, as a tuple; SchemaError, naming `key`, for any other value."""
    if not is_list(value):
        refuse(f"{key} must be a list")
    return tuple(value)


def count(key: str, count: int) -> None:
    """Raise SchemaError, naming `key`, if the number `count` of its items is below 1 or above `MAX_LEVELS`."""
    if not 1 <= count <= MAX_LEVELS:
        refuse(f"{key} must not be empty" if count < 1 else f"{key} must be at most {MAX_LEVELS:,}")


def unique(key: str, texts: Sequence[str]) -> None:
    """Raise SchemaError, naming `key` and the text, if one of `texts` occurs twice."""
    if len(set(texts)) < len(texts):
        [(twice, _)] = Counter(texts).most_common(1)
        refuse(f"{key} must differ from one another: {twice!r} is there twice")


def choice(key: str, value: object, known: Sequence[str]) -> None:
    """Raise SchemaError, naming `key`, if `value` is no text among the words `known`."""
    if not isinstance(value, str) or value not in known:
        refuse(f"{key} must be one of {', '.join(known)}{hint(value, known)}")


def hint(word: object, known: Sequence[str]) -> str:
    """Return the end of a message, a text with the word of `known` nearest to `word`; "" for no text, or none near."""
    return nearest(word, known[:1000]) if isinstance(word, str) else ""


def labels(labels: object, levels: Sequence[str]) -> dict[str, str]:
    """Return a copy of `labels`, a mapping from level to text; SchemaError for another value or an unknown level."""
    if not isinstance(labels, Mapping):
        refuse("labels must be a table from level to text")
    known = set(levels)
    for level, label in labels.items():
        if level not in known:
            refuse(f"labels name {level!r}, which is not a level{nearest(level, levels)}")
        check_text("a label", label)
    return dict(labels)
