"""Checks of what users write: settings, arguments, recipes and schemas. Never of values that come from rows.

Each takes the name that its message begins with, returns the value, and raises the caller's class of error.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from stratsynth.errors import RecipeError, StratsynthError, UsageError, nearest


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is a whole number; True is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a number that a float can hold: neither True nor infinite nor NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether this is a list or a tuple, or another sequence but a text."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def is_texts(value: object) -> TypeGuard[Sequence[str]]:
    """Whether this is a list of texts."""
    return is_list(value) and all(isinstance(text, str) for text in value)


def whole(
    what: str, value: object, least: int = 0, most: int | None = None, *, error: type[StratsynthError] = UsageError
) -> int:
    """A whole number between two bounds, both among what is allowed."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        bounds = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise error(f"{what} must be a whole number {bounds}, not {said(value)}.")
    return value


def number(
    what: str,
    value: object,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    hint: str = "",
    error: type[StratsynthError] = UsageError,
) -> float:
    """A finite number: `least` and `most` are among what is allowed, `above` and `below` are not.

    `hint` follows the bounds in the message.
    """
    ends = {"of at least": least, "above": above, "at most": most, "below": below}
    fits = is_number(value) and (
        (least is None or value >= least) and (above is None or value > above)
        and (most is None or value <= most) and (below is None or value < below)
    )  # fmt: skip
    if not fits:
        bounds = " and ".join(f"{word} {end:g}" for word, end in ends.items() if end is not None)
        if least is not None and most is not None:
            bounds = f"from {least:g} to {most:g}"
        kind = f"number {bounds}" if bounds else "finite number"
        raise error(f"{what} must be a {kind}{hint}, not {said(value)}.")
    return value  # type: ignore[return-value]  # `fits` holds what mypy cannot see


def one_of(what: str, value: object, known: Sequence[str], *, error: type[StratsynthError] = UsageError) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in known:
        words = " or ".join(f'"{word}"' for word in known)
        raise error(f"{what} must be {words}, not {said(value)}.")
    return value


def flag(what: str, value: object, *, error: type[StratsynthError] = UsageError) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise error(f"{what} must be true or false, not {said(value)}.")
    return value


_KINDS: Mapping[Any, tuple[str, Any]] = {
    int: ("a whole number", is_whole),
    float: ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    Sequence: ("a list", is_list),
    Mapping: ("a table", lambda value: isinstance(value, Mapping)),
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


def check_seed(seed: int | None) -> None:
    """A seed for post-processing is a whole number of at least 0, or left out."""
    if seed is not None:
        whole("the seed", seed)


def said(value: object) -> str:
    """A value as a message quotes it: of what is no plain value, which could hold rows, its class alone."""
    if value is None or isinstance(value, str | float) or (isinstance(value, int) and value.bit_length() < 128):
        return reprlib.repr(value)
    return f"{type(value).__name__} object" if not isinstance(value, int) else "a number that large"
