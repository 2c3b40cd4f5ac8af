"""Refusals of bins, spikes and codes of numeric columns that cannot be meant as they are declared.

The code of a record depends on that record alone in any column, and `Numeric` sees to it that each number has one: a
mistake here lets an odd column pass.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from stratsynth.checks import check_integer
from stratsynth.errors import SchemaError
from stratsynth.schema import checks
from stratsynth.schema.text import MISSING, check_text

if TYPE_CHECKING:
    from stratsynth.schema.columns import Numeric


def check_bins(column: Numeric) -> None:
    """Raise SchemaError for a numeric column whose `edges`, `bins`, `spacing` or `spikes` make no bins."""
    if column.edges is not None and column.bins is not None:
        checks.refuse("give edges or bins, not both")
    if column.bins is not None:
        check_integer("bins", column.bins, 1, checks.MAX_LEVELS, error=SchemaError)
        if column.integer and column.bins > column.upper - column.lower + 1:
            checks.refuse("bins must not exceed the number of whole numbers from lower to upper")
    if column.spacing != "even" and column.edges is not None:
        checks.refuse("spacing is of bins; leave it out where edges are given")
    if column.spikes_within(column.lower, column.upper) != column.spikes:
        checks.refuse("spikes must lie between lower and upper; a code outside them is `special`")
    if column.edges is not None and any(a >= b for a, b in pairwise(column.edges)):
        checks.refuse("edges must increase strictly")
    ends = column.breaks
    if len(ends) < 2:
        checks.refuse("edges must hold at least two numbers")
    if column.edges is None and any(a >= b for a, b in pairwise(column.spaced())):
        checks.refuse("bins are too many for numbers this close")
    if ends[0] <= column.lower < column.upper <= ends[-1] and (ends[1] <= column.lower or ends[-2] > column.upper):
        checks.refuse("edges must not make a bin that lies outside lower and upper")


def check_words(column: Numeric) -> None:
    """Raise SchemaError if a Numeric column's `special`, `not_applicable` texts are within bounds, reserved, equal."""
    for key, words in (("special", column.special), ("not_applicable", column.words[len(column.special) :])):
        for word in words:
            check_text(key, word)
            if word == MISSING:
                checks.refuse(f'{key} must not be "missing"; declare missing = true instead')
            value = column.quantity(word)
            if value is not None and column.lower <= value <= column.upper:
                remedy = "; a number within them is one of `spikes`" if key == "special" else ""
                checks.refuse(f"{key} must not be a number between lower and upper{remedy}")
    values = [column.quantity(word) for word in column.words]
    same = [word if value is None else repr(value) for word, value in zip(column.words, values, strict=True)]
    checks.unique("special codes", same)
