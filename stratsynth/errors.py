"""Every error a user can meet, each with the exit code the command line gives it.

A message is one or two short sentences: what is wrong, and the remedy. It never quotes a private value.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class StratsynthError(Exception):
    """Anything this package refuses or fails at on purpose."""

    exit_code = 1


class UsageError(StratsynthError):
    """The request itself is wrong: an argument, a recipe, an output that exists already."""

    exit_code = 2


class SchemaError(UsageError):
    """A schema that does not parse or does not make sense, or a table that lacks its columns."""


class RecipeError(UsageError):
    """A recipe that does not parse or does not make sense."""


class WeightsError(UsageError):
    """Public shares that do not cover the strata, or do not add up to one."""


class Unsupported(UsageError):
    """A sound request that this mechanism, backend or size cannot serve; says what would work instead."""


class ReleaseError(UsageError):
    """A release folder that exists already, is damaged, or is not a release."""


class LedgerError(StratsynthError):
    """A ledger that is damaged, locked, unreadable, or belongs to other data."""


class MechanismError(StratsynthError):
    """A mechanism asked something malformed, or returned something that is not a model."""


class BudgetRefused(StratsynthError):
    """A question would cost more than is left. Nothing was read for it."""

    exit_code = 3


class FewPeopleWarning(UserWarning):
    """Rows are drawn of a group of very few people, or of one that was fitted only together with others."""


class DraftWarning(UserWarning):
    """INTERNAL. What the reviewer of a draft schema should know: it was read from private rows."""


class NotPrivateWarning(UserWarning):
    """What is made is not private: it may show single records as they are."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for a misspelt word, to go before the full stop; or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}" if close else ""
