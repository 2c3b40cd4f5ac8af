"""Checks that both kinds of column share, and refusals of bins, spikes and codes of numeric columns; all name the key.

The code of a record depends on that record alone in any column, and `Numeric` sees to it that each number has one: a
mistake here lets an odd column pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn

from stratsynth.checks import check_integer, is_list
from stratsynth.errors import SchemaError, nearest
from stratsynth.schema.text import MISSING, check_text

if TYPE_CHECKING:
    from stratsynth.schema.columns import Numeric


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
    """Raise SchemaError, naming `key`, if `value` is no text in `known`, a list of words."""
    if not isinstance(value, str) or value not in known:
        refuse(f"{key} must be one of {', '.join(known)}{hint(value, known)}")


def hint(word: object, known: Sequence[str]) -> str:
    """Return the end of a message, a text: the nearest to `word` in the list `known`; "" for no text, or none near."""
    return nearest(word, known[:1000]) if isinstance(word, str) else ""


def labels(labels: object, levels: Sequence[str]) -> dict[str, str]:
    """Return a copy of `labels`, a mapping from level to text; SchemaError for others, or levels not in `levels`."""
    if not isinstance(labels, Mapping):
        refuse("labels must be a table from level to text")
    known = set(levels)
    for level, label in labels.items():
        if level not in known:
            refuse(f"labels name {level!r}, which is not a level{nearest(level, levels)}")
        check_text("a label", label)
    return dict(labels)


def check_bins(column: Numeric) -> None:
    """Raise SchemaError for a numeric column whose `edges`, `bins`, `spacing` or `spikes` make no bins."""
    if column.edges is not None and column.bins is not None:
        refuse("give edges or bins, not both")
    if column.bins is not None:
        check_integer("bins", column.bins, 1, MAX_LEVELS, error=SchemaError)
        if column.integer and column.bins > column.upper - column.lower + 1:
            refuse("bins must not exceed the number of whole numbers from lower to upper")
    if column.spacing != "even" and column.edges is not None:
        refuse("spacing is of bins; leave it out where edges are given")
    if column.spikes_within(column.lower, column.upper) != column.spikes:
        refuse("spikes must lie between lower and upper; a code outside them is `special`")
    if column.edges is not None and any(a >= b for a, b in pairwise(column.edges)):
        refuse("edges must increase strictly")
    ends = column.breaks
    if len(ends) < 2:
        refuse("edges must hold at least two numbers")
    if column.edges is None and any(a >= b for a, b in pairwise(column.spaced())):
        refuse("bins are too many for numbers this close")
    if ends[0] <= column.lower < column.upper <= ends[-1] and (ends[1] <= column.lower or ends[-2] > column.upper):
        refuse("edges must not make a bin that lies outside lower and upper")


def check_words(column: Numeric) -> None:
    """Raise SchemaError if a Numeric column's `special`, `not_applicable` texts are within bounds, reserved, equal."""
    for key, words in (("special", column.special), ("not_applicable", column.words[len(column.special) :])):
        for word in words:
            check_text(key, word)
            if word == MISSING:
                refuse(f'{key} must not be "missing"; declare missing = true instead')
            value = column.quantity(word)
            if value is not None and column.lower <= value <= column.upper:
                remedy = "; a number within them is one of `spikes`" if key == "special" else ""
                refuse(f"{key} must not be a number between lower and upper{remedy}")
    values = [column.quantity(word) for word in column.words]
    same = [word if value is None else repr(value) for word, value in zip(column.words, values, strict=True)]
    unique("special codes", same)
