"""Checks of what users write: settings, arguments, recipes and schemas. Never of values that come from rows.

Each takes the name that its message begins with, and the class of error that it raises.
"""

from __future__ import annotations

import math
import reprlib
import sys
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeGuard, cast

from stratsynth.errors import StratsynthError, UsageError


def is_whole(value: object) -> TypeGuard[int]:
    """True for an int `value` by its exact class, which excludes bool."""
    return type(value) is int


def is_number(value: object) -> TypeGuard[float]:
    """True for a finite number `value` that a float can hold, by its exact class: no bool, infinity or NaN.

    A derived class could be one number when it is checked, and another when it is used.
    """
    numpy = sys.modules.get("numpy")  # whose float is known by its class, but not imported for it
    if type(value) in (int, float) or (numpy is not None and type(value) is numpy.float64):
        return abs(cast("float", value)) <= sys.float_info.max
    return False


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """True if `value` is a list, a tuple or another sequence, but not a text."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def is_texts(value: object) -> TypeGuard[Sequence[str]]:
    """True if `value` is a list, tuple or other sequence of texts; not for a text."""
    return is_list(value) and all(isinstance(text, str) for text in value)


def check_integer(
    what: str, value: object, least: int = 0, most: float = math.inf, *, optional: bool = False,
    error: type[StratsynthError] = UsageError,
) -> None:  # fmt: skip
    """Refuse, with `error` on `what`, a `value` no whole number from `least` to `most`; None passes if `optional`."""
    if not (is_whole(value) and least <= value <= most) and not (optional and value is None):
        raise error(f"{what} must be a {whole_words(least, most)}, not {quoted_value(value)}.")


def whole_words(least: float, most: float) -> str:
    """Return words for the range from `least` to `most`, such as "whole number from 1 to 10"."""
    return f"whole number of at least {least:,}" if most == math.inf else f"whole number from {least:,} to {most:,}"


def number(
    what: str, value: object, *, least: float = -math.inf, above: float = -math.inf, most: float = math.inf,
    below: float = math.inf, optional: bool = False, hint: str = "", error: type[StratsynthError] = UsageError,
) -> None:  # fmt: skip
    """Refuse, with `error` on `what`, a `value` no finite number from `least` to `most`, `above` and `below` excluded.

    `hint` follows the bounds in the message. None passes if it is `optional`.
    """
    fits = is_number(value) and least <= value <= most and above < value < below
    if not fits and not (optional and value is None):
        raise error(f"{what} must be a {number_words(least, above, most, below)}{hint}, not {quoted_value(value)}.")


def number_words(least: float, above: float, most: float, below: float) -> str:
    """Return words for numbers from `least` or `above` to `most` or `below`, such as "number above 0 and below 1"."""
    if max(abs(least), abs(most)) < math.inf:
        return f"number from {least:g} to {most:g}"
    ends = {"of at least": least, "above": above, "at most": most, "below": below}
    bounds = " and ".join(f"{word} {end:g}" for word, end in ends.items() if abs(end) < math.inf)
    return f"number {bounds}" if bounds else "finite number"


def one_of(what: str, value: object, known: Sequence[str], *, error: type[StratsynthError] = UsageError) -> None:
    """Refuse, with `error` that opens with `what`, any value but one of the texts `known`, compared as plain texts."""
    if not isinstance(value, str) or type(value).__eq__ is not str.__eq__ or str.__str__(value) not in known:
        words = " or ".join(f'"{word}"' for word in known)
        raise error(f"{what} must be {words}, not {quoted_value(value)}.")


def flag(what: str, value: object, *, error: type[StratsynthError] = UsageError) -> None:
    """Refuse, with `error`, any value but True and False; `what` names it in the message."""
    if not isinstance(value, bool):
        raise error(f"{what} must be true or false, not {quoted_value(value)}.")


def path(what: str, value: object, *, error: type[StratsynthError] = UsageError) -> Path:
    """Return a text or path-like `value` as a Path; refuse, by `error` on `what`, others, blanks, several lines."""
    if not isinstance(value, str | PathLike) or (isinstance(value, str) and not value.strip()):
        raise error(f"{what} must be a path, such as 'folder/name', not {quoted_value(value)}.")
    if "\n" in str(value):
        raise error(f"{what} must be the path of a file; this is a text of several lines. Write it to a file first.")
    return Path(value)


def check_seed(seed: int | None) -> None:
    """Raise UsageError on a seed of post-processing that is no whole number of at least 0; None passes."""
    check_integer("the seed", seed, optional=True)


def quoted_value(value: object) -> str:
    """Return the text of a value for a message; of an object that could hold rows the name of its class alone."""
    if value is None or isinstance(value, str | float) or (isinstance(value, int) and value.bit_length() < 128):
        return reprlib.repr(value)
    return f"{type(value).__name__} object" if not isinstance(value, int) else "a number that large"


MOST_LINE = 200
"""Largest number of characters of a line for readers: a title, a name, a reason."""


def check_line(what: str, value: object) -> None:
    """Raise UsageError, opening with `what`, on a value but None or a printable line of up to MOST_LINE signs."""
    if value is None:
        return
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > MOST_LINE:
        raise UsageError(f"{what} must be a line of text, of at most {MOST_LINE} characters.")


def check_account(ledger_epsilon: object, account: object, new_account: object = None) -> None:
    """Raise UsageError: cap `ledger_epsilon` not positive, `account`, `new_account` no line; None passes."""
    number("ledger_epsilon", ledger_epsilon, above=0, optional=True)
    check_line("account", account)
    check_line("new_account", new_account)
