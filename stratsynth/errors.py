"""The errors of this package, each with the exit code that the command line gives it.

A message is one or two short sentences: what is wrong, and the remedy. It never quotes a private value.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice


class StratsynthError(Exception):
    """Any refusal or failure that this package raises on purpose."""

    exit_code = 1


class UsageError(StratsynthError):
    """A wrong request: an argument, a recipe, an output that exists already."""

    exit_code = 2


class SchemaError(UsageError):
    """A schema that does not parse or is invalid, or a table that lacks its columns."""


class RecipeError(UsageError):
    """A recipe that does not parse or is invalid."""


class WeightsError(UsageError):
    """Public shares that do not cover the strata, or do not add up to one."""


class Unsupported(UsageError):
    """A sound request that this mechanism, backend or size cannot serve; the message has an alternative."""


class ReleaseError(UsageError):
    """A release folder that exists already, is damaged, or is not a release."""


class LedgerError(StratsynthError):
    """A ledger that is damaged, locked, unreadable, or belongs to other data."""


class MechanismError(StratsynthError):
    """A mechanism asked a malformed question, or returned an object that is no model."""


class BudgetRefused(StratsynthError):
    """A question or fit would cost more than is left. Nothing was read for it."""

    exit_code = 3


class Stopped(StratsynthError):
    """A fit stopped after its first question, which found far fewer usable records than declared; its charge stands."""

    exit_code = 4


class FewPeopleWarning(UserWarning):
    """Rows are drawn of a group of very few people, or of one that was fitted only together with others."""


class NoticeWarning(UserWarning):
    """A notice of a release's certificate: something that a reader has to know before using the release."""


class DraftWarning(UserWarning):
    """INTERNAL. A remark for the reviewer of a draft schema, which was read from private rows."""


class NotPrivateWarning(UserWarning):
    """The result is not private: it may show single records."""


def nearest(word: object, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'" with the word nearest to `word`, to end a message; empty if none is near.

    Of the known words, the first 1,000 are looked at.
    """
    close = difflib.get_close_matches(str(word), list(islice(known, 1000)), n=1)
    return f"; did you mean {close[0]!r}" if close else ""
