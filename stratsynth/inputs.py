"""Checks of what users write beside numbers: keys, lines of text, citations, new files, ledgers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stratsynth.checks import flag, is_list, is_whole
from stratsynth.errors import RecipeError, StratsynthError, UsageError, nearest

TEMPLATE = re.compile(
    r"""
    \b(TODO|FIXME|TBD|XXX+|lorem\ ipsum)\b
    | \byour\ (source|citation|publisher|reference|table)\b
    | \b(source|citation|reference)\ (goes\ )?here\b
    | [\[<{]\s*(publisher|title|author|year|date|source|citation|url|name|table|agency|insert|your|where)\b
      [^\]>}]*[\]>}]
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Words of templates, this project's included, that somebody has to replace."""


_KINDS: Mapping[Any, tuple[str, Any]] = {
    int: ("a whole number", is_whole),
    float: ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    Sequence: ("a list", is_list),
    Mapping: ("a table", lambda value: isinstance(value, Mapping)),
    int | str: ("a whole number or a text", lambda value: is_whole(value) or isinstance(value, str)),
}
"""Name of each type of a key, and the check of its values; every other type is written as a text."""


def check_keys(section: Mapping[str, Any], keys: Mapping[str, Any], where: str, among: str = "") -> None:
    """Refuse, with a RecipeError on `where`, a key of `section` not among `keys`, or a value not of the type there.

    `among` is added to the message about an unknown key: the condition under which it would be known.
    """
    for key, value in section.items():
        if key not in keys:
            raise RecipeError(f"{where} has no key {key!r}{among}{nearest(key, keys)}. It has: {', '.join(keys)}.")
        words, fits = _KINDS.get(keys[key], ("a text", lambda value: isinstance(value, str)))
        if not fits(value):
            raise RecipeError(f"{where} {key} must be {words}.")


def output_path(path: Path, remedy: str = "name another file with -o") -> Path:
    """Return the path itself; UsageError, which ends with `remedy`, if something is there: outputs replace nothing."""
    if path.exists():
        raise UsageError(f"{path} exists already; {remedy}.")
    return path


SHORTEST = 6
"""Smallest number of letters and figures of a citation."""


def check_citation(what: str, text: str, *, error: type[StratsynthError] = UsageError) -> str:
    """Return the citation `text`, stripped; raise `error`, opening with `what`, for a template's words or none."""
    found = TEMPLATE.search(text)
    size, words = sum(character.isalnum() for character in text), text.split()
    if found or size < SHORTEST or (len(words) < 2 and text.isascii()):
        wrong = (
            f"still holds the words {found[0]!r} of a template"
            if found
            else f"{text.strip()!r} is too short to find anything by"
            if size
            else "has no words"
        )
        raise error(
            f"{what}: the citation {wrong}; say where it was published, so that a reader can look them up: who "
            "published what, of which year, as in 'U.S. Census Bureau, 2020 Census, table P9'."
        )
    return text.strip()


def check_ledger(ledger: object, cap: float | None, account: str | None, *, public: bool) -> None:
    """Raise UsageError: a ledger or its `cap` of `public` data, an `account` (name) without a ledger."""
    flag("public", public)
    if account is not None and ledger is None:
        raise UsageError(f"account {account!r} needs a ledger, the file that keeps it.")
    if public and (ledger is not None or cap is not None):
        raise UsageError("public data are not charged: leave the ledger out, or do not declare the data public.")
