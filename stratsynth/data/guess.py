"""INTERNAL: guesses of the columns of private rows, for the draft of a schema that a person will review.

Identifiers, names and free text are no columns of a release: they are refused with the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from stratsynth.data.guess_bins import decimal_keys, looks_coded, numeric_keys
from stratsynth.data.guess_people import named_as_people, person_note, place_note, unit_line
from stratsynth.data.guess_times import moment_kind, temporal
from stratsynth.errors import SchemaError
from stratsynth.schema import spellings, values
from stratsynth.schema.columns import EXACT, Categorical, Column, Numeric
from stratsynth.schema.text import INFINITE, MISSING, number

FEW = 30
"""Largest number of different values for which a column of numbers is drafted as categorical."""
OFTEN = 50
"""Least mean number of rows per value at which a column of few different reals is drafted as categorical."""
MANY = 1000
"""Largest number of different texts of a column that is drafted."""
MOST_DIGITS = 4
"""Largest number of decimals that is kept in the draft."""
ENOUGH = 50
"""Number of rows from which values that all differ are taken for an identifier."""

_PERSONAL = re.compile(
    r"(^|[_ .-])((first|last|full|sur|family|given)?[_ .-]?name|e-?mail|phone|address|street)s?$", re.IGNORECASE
)
_GROUPED = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+(\.\d{3})*,\d+")
_OTHER_DATES = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}")


@dataclass(frozen=True)
class Guess:
    """A drafted column, with notes for its reviewer."""

    column: Column
    notes: list[str] = field(default_factory=list)


def guess(name: str, data: pa.ChunkedArray, own_type: str | None = None) -> Guess:
    """Return the `Guess`, a draft of the column that these values look like, with notes for its reviewer.

    Args:
        name: Its name.
        data: Its values, an Arrow column.
        own_type: Type by the table itself, where the values as read do not show it: "int64", "ordered",
            "decimal", or "text", which is drawn as text whatever it spells.

    Raises:
        SchemaError: A column that cannot or should not be released, with the remedy.
    """
    values.check_type(name, data.type)
    texts = spellings.counted(data)
    if not texts:
        raise SchemaError("it has no value at all")
    found = _guess(name, data, texts, own_type)
    found.notes.extend(note for note in (person_note(name, texts), place_note(name, texts)) if note is not None)
    return found


def _guess(name: str, data: pa.ChunkedArray, texts: dict[str, int], own_type: str | None) -> Guess:
    """Return a Guess of column `name`: `data` are its values, `texts` their texts with numbers of rows; or SchemaError.

    `own_type` is its type by the table itself, None if that says no more.
    """
    missing = bool(data.null_count)
    if pa.types.is_dictionary(data.type):
        return Guess(_category(data, texts, missing=missing, ordered=own_type == "ordered" or data.type.ordered))
    if kind := moment_kind(data.type, texts):
        return Guess(*temporal(kind, data.type, texts, missing=missing, as_text=own_type == "text"))
    if all(_OTHER_DATES.fullmatch(text) for text in texts):
        raise SchemaError("its dates are not in ISO form; write them as 2024-12-31, or leave it out")
    if commas := _commas(texts):
        raise SchemaError(commas)
    if all(text.lower() in {"true", "false"} for text in texts) and own_type != "text":
        outside = MISSING if missing else None
        return Guess(Categorical(levels=("false", "true"), outside=outside, dtype="bool"))
    return _numbers_or_levels(name, data.type, texts, own_type, missing=missing)


def _commas(texts: Mapping[str, int]) -> str:
    """Return the end of a refusal, words on commas in numbers, if all `texts` but one that are no numbers have them.

    Texts map to numbers of rows; "" if they have none.
    """
    others = [text for text in texts if number(text) is None]
    for form, words in (
        (_GROUPED, "commas between their thousands; write 1234"),
        (_DECIMAL_COMMA, "decimal commas; write 1.5"),
    ):
        fitting = sum(form.fullmatch(text) is not None for text in others)
        if fitting and fitting >= len(others) - 1:
            return f"its numbers have {words}, or leave it out"
    return ""


def _numbers_or_levels(
    name: str, kind: pa.DataType, texts: Mapping[str, int], own_type: str | None, *, missing: bool
) -> Guess:
    """Return the `Guess` of column `name`, with notes: numeric for reals and many integers, else categorical.

    `kind` is the Arrow type, `own_type` the table's own. `texts` are the column's different texts with their numbers of
    rows; `missing` tells if some row has no value.
    """
    numbers = {text: value for text in texts if (value := number(text)) is not None}
    infinite = tuple(word for word in INFINITE if word in texts and numbers)
    words = sorted(texts.keys() - numbers.keys() - set(infinite))
    whole = all(value.is_integer() and abs(value) <= EXACT for value in numbers.values())
    coded = any(len(text) > 1 and text[0] == "0" and text[1].isdigit() for text in numbers)
    _refuse_identifier(name, texts, numbers, quantities=len(words) <= 1 and bool(numbers) and not coded, whole=whole)
    dtype = _type(kind, own_type, texts, whole=whole and not coded and not words)
    dtype = "float64" if infinite and not words and own_type != "text" else dtype
    counts: dict[float, int] = {}
    for text, value in numbers.items():
        counts[value] = counts.get(value, 0) + texts[text]
    rare = not whole and sum(counts.values()) < OFTEN * len(counts)
    listed = whole and looks_coded(counts)
    if len(words) <= 1 and counts and (len(counts) > FEW or rare) and not coded and not listed:
        keys, notes = numeric_keys(counts, whole=whole)
        if infinite:
            keys["special"] = (*keys.get("special", ()), *infinite)
            notes.append("it has infinite values: `special` keeps them apart from the numbers")
        own = words[0] if words else None
        typed = own_type == "text" or (dtype != "string" and not own and (whole or dtype != "int64"))
        if (digits := _decimals(numbers)) is not None and not whole:
            keys |= decimal_keys(keys, digits)
        if whole and not notes and FEW < len(counts) <= MANY and len(counts) < 0.3 * (keys["upper"] - keys["lower"]):
            notes.append("if these are codes, as of an occupation, and no amounts, list them as levels")
        return Guess(Numeric(**keys, missing=missing, not_applicable=own, dtype=dtype if typed else None), notes)
    if dtype != "string":  # one spelling of each number, the shortest: 0.1 and 0.10 are one value
        once = {numbers[text]: text for text in sorted(numbers, key=len, reverse=True)}
        numbers = {text: value for value, text in once.items()}
    levels = (*sorted(numbers, key=lambda text: (numbers[text], text)), *infinite, *words)
    _refuse_many(texts)
    notes = ["it looks like codes, as of an occupation; if these are amounts, declare a numeric column"] * listed
    return Guess(Categorical(levels=levels, outside=MISSING if missing else None, dtype=dtype), notes)


def _decimals(numbers: Mapping[str, float]) -> int | None:
    """Return the largest number of decimals in texts of numbers (text -> number).

    None if above MOST_DIGITS or for none.
    """
    found = {len(text.partition(".")[2].rstrip("0")) for text in numbers if "e" not in text.lower()}
    return max(found) if found and max(found) <= MOST_DIGITS else None


def _category(data: pa.ChunkedArray, texts: Mapping[str, int], *, missing: bool, ordered: bool) -> Categorical:
    """Return a draft `Categorical` column for `data`, a dictionary-encoded Arrow column: its levels in order.

    If not `ordered`, levels are those in `texts` (with numbers of rows); `missing`: some row has no value.
    """
    declared = list(dict.fromkeys(text for chunk in data.chunks for text in spellings.texts(chunk.dictionary)))
    _refuse_many(dict.fromkeys(declared, 1))
    spelt = {text: number(text) for text in declared}
    if not ordered:
        key = lambda text: (spelt[text] is None, spelt[text] or 0.0, text)  # noqa: E731
        declared = sorted(texts, key=key)
    outside = MISSING if missing else None
    return Categorical(levels=tuple(declared), outside=outside, dtype="category", ordered=ordered)


def _refuse_many(texts: Mapping[str, int]) -> None:
    """Raise SchemaError for more than MANY different `texts` (text -> rows)."""
    if len(texts) > MANY:
        raise SchemaError(f"it has more than {MANY} different texts; leave it out, or group its values first")


def _refuse_identifier(
    name: str, texts: Mapping[str, int], numbers: Mapping[str, float], *, quantities: bool, whole: bool
) -> None:
    """Refuse, with a SchemaError, a column called `name` whose values identify people, or are names or free text.

    `texts` maps texts to numbers of rows, `numbers` those that spell a number to it. `quantities` tells if the column
    is stored as numbers, `whole` if these are whole.
    """
    rows, different = sum(texts.values()), len(texts)
    unit = f"if it tells people apart, write {unit_line(name, max(texts.values()))}"
    if rows >= ENOUGH and different == rows:
        close = whole and bool(numbers) and max(numbers.values()) - min(numbers.values()) < 2 * rows
        long = whole and min(map(len, texts)) == max(map(len, texts)) >= 8
        if not quantities or (whole and (close or long or named_as_people(name))):
            raise SchemaError(
                f"its values all differ, as an identifier's do, and none may be released; leave it out, or {unit}"
            )
    if quantities or different <= FEW:
        return
    if _PERSONAL.search(name) and different > 0.3 * rows:
        raise SchemaError("it looks like names or addresses, which may not be released; leave it out")
    if different > MANY or different > 0.5 * rows > ENOUGH:
        spaces = sum(text.count(" ") for text in texts) / different
        if spaces >= 1:
            raise SchemaError("it looks like free text or names, which may not be released; leave it out")
        if different > MANY:
            raise SchemaError(
                f"it has more than {MANY} different texts, as an identifier has; leave it out, group its values first, "
                f"or {unit}"
            )


def _type(kind: pa.DataType, own_type: str | None, texts: Mapping[str, int], *, whole: bool) -> str:
    """Return the `dtype` of drawn values, "int64", "float64" or "string", for a column of Arrow type `kind`.

    `own_type` is the table's own or None; `texts` maps texts to numbers of rows; `whole`: all spell numbers.
    """
    if pa.types.is_integer(kind) or own_type == "int64":
        return "int64"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or own_type == "decimal":
        return "float64"
    if own_type == "text":
        return "string"
    if not whole:
        return "string"
    return "int64" if all(text.lstrip("-").isdigit() for text in texts) else "float64"
