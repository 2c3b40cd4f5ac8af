"""Checks of what recipes and commands are given beside numbers: their keys, lines of text, citations, new files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stratsynth.checks import is_list, is_whole
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
"""Words that stand in templates, this project's own among them, until somebody replaces them."""


_KINDS: Mapping[Any, tuple[str, Any]] = {
    int: ("a whole number", is_whole),
    float: ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    Sequence: ("a list", is_list),
    Mapping: ("a table", lambda value: isinstance(value, Mapping)),
    int | str: ("a whole number or a text", lambda value: is_whole(value) or isinstance(value, str)),
}
"""What a key's type is called, and whether a value is of it; every other type is written as a text."""


def check_keys(section: Mapping[str, Any], keys: Mapping[str, Any], where: str, among: str = "") -> None:
    """Refuse a key that is not among `keys`, or whose value is not of the type given there.

    `among` is said of an unknown key: what it would have to go with.
    """
    for key, value in section.items():
        if key not in keys:
            raise RecipeError(f"{where} has no key {key!r}{among}{nearest(key, keys)}. It has: {', '.join(keys)}.")
        words, fits = _KINDS.get(keys[key], ("a text", lambda value: isinstance(value, str)))
        if not fits(value):
            raise RecipeError(f"{where} {key} must be {words}.")


def output_path(path: Path, remedy: str = "name another file with -o") -> Path:
    """A path that nothing is at yet; what is written never replaces anything."""
    if path.exists():
        raise UsageError(f"{path} exists already; {remedy}.")
    return path


def check_citation(what: str, text: str, *, error: type[StratsynthError] = UsageError) -> str:
    """A citation without outer spaces; refuses one that nobody has filled in."""
    found = TEMPLATE.search(text)
    if found or not any(character.isalnum() for character in text):
        wrong = f"still holds the words {found[0]!r} of a template" if found else "has no words"
        raise error(f"{what}: the citation {wrong}; say where it was published, so that a reader can look them up.")
    return text.strip()
