"""Texts that may be levels, labels or names, and texts that spell numbers."""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import Decimal, InvalidOperation

from stratsynth.errors import SchemaError

MAX_TEXT = 1000
"""Largest length of a level, label, name or number, in characters; longer text in a file matches nothing."""

MISSING = "missing"
"""Level of missing values, in columns that declare one."""

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
INFINITE = {"inf": math.inf, "-inf": -math.inf}
_TRUTH = {"true": Decimal(1), "false": Decimal(0)}


def number(text: str) -> float | None:
    """Return the finite number that `text` spells, a float, or None.

    Sign, digits, fraction and exponent, with spaces around; no underscores, "nan", "inf" or hexadecimal.
    """
    text = text.strip(" \t")
    if len(text) > MAX_TEXT or not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value + 0.0 if abs(value) != float("inf") else None  # + 0.0 turns -0.0 into 0.0


def truth(text: str) -> float:
    """Return 1.0 for the text "true", 0.0 for "false", in any case, with spaces or tabs around; NaN for any other."""
    return float(_TRUTH.get(text.strip(" \t").lower(), "nan"))


def meaning(text: str) -> Decimal | None:
    """Return the number that spellings like `text` share: 3 for "3" and "3.0", 1 for "True"; None if it spells none."""
    text = text.strip(" \t")
    if len(text) > MAX_TEXT or not _NUMBER.fullmatch(text):
        return _TRUTH.get(text.lower())
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        return None


def check_text(what: str, text: object) -> str:
    """Return `text`; SchemaError on `what` if it is no text, empty, too long, a formula, or has control characters."""
    if not isinstance(text, str):
        raise SchemaError(f"{what} must be text, in quotes, not {text!r}")
    if not text:
        raise SchemaError(f"{what} must not be empty text: an empty field is a missing value")
    if len(text) > MAX_TEXT:
        raise SchemaError(f"{what} must have at most {MAX_TEXT} characters")
    if any(unicodedata.category(c) in {"Cc", "Cs"} for c in text):
        raise SchemaError(f"{what} must not hold control characters: {text!r}")
    if text[0] in "=+-@" and not _NUMBER.fullmatch(text) and text not in INFINITE:
        raise SchemaError(
            f"{what} {text!r} would run as a formula in a spreadsheet; spell it without the first character"
        )
    return text
