"""INTERNAL: columns of private rows that look as if they told people, or places of few people, apart.

A record is what is protected unless a schema names a unit: where one person has several rows, that is too little, and
nobody notices it by looking at one row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from stratsynth.schema.text import number

ENOUGH, REPEATED = 20, 2
"""Least number of different values of an identifier, and least mean number of rows of each."""
_SUFFIX = re.compile(r"(^|[_ .-])(id|ids|uuid|guid|key|ssn|bsn|pid|serial|serialno|number|nr|no)$", re.IGNORECASE)
_WHO = re.compile(
    r"(^|[_ .-])(subjects?|persons?|people|participants?|respondents?|patients?|pupils?|students?|users?|members?|"
    r"clients?|customers?|employees?|households?|hh|hhid|famil(y|ies)|serialno|idno|pernum|caseid)"
    r"([_ .-]?(id|no|nr|num|number|key|code|#))?#?$",
    re.IGNORECASE,
)
_PLACE = re.compile(r"(^|[_ .-])(zip|zip[_ .-]?codes?|post[_ .-]?(al)?[_ .-]?codes?|plz|postcodes?)$", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def named_as_people(name: str) -> bool:
    """True if a column's name is one that identifiers of people, households or cases usually have."""
    plain = _CAMEL.sub("_", name)
    return any(pattern.search(text) is not None for pattern in (_SUFFIX, _WHO) for text in (name, plain))


def person_note(name: str, texts: Mapping[str, int]) -> str | None:
    """Return a note if column `name` (`texts`: text -> rows) looks like an identifier with several rows each.

    Else None.
    """
    rows, different = sum(texts.values()), len(texts)
    if not named_as_people(name) or different < ENOUGH or rows < REPEATED * different:
        return None
    return (
        f"its {different:,} values look like people or households with up to {max(texts.values()):,} rows each, and "
        "now each row is protected by itself. If they are, the column must not be released: leave it out and write "
        f"{unit_line(name, max(texts.values()))} above the columns, with a public largest number of rows"
    )


def unit_line(name: str, rows: int) -> str:
    """Return a schema file's line that makes rows with one value of the column `name` a unit, of up to `rows` rows."""
    return f"unit = {{ column = {json.dumps(name)}, max_rows = {rows} }}"


def place_note(name: str, texts: Mapping[str, int]) -> str | None:
    """Return a note on column `name` (`texts`: text -> rows) if it has nearly as many codes as rows.

    None for amounts, or fewer.
    """
    rows, different = sum(texts.values()), len(texts)
    if rows < 50 or different <= 0.5 * rows:
        return None
    numbers = [number(text) for text in texts]
    whole = all(value is not None and value.is_integer() for value in numbers)
    coded = whole and len({len(text) for text in texts}) == 1 and len(next(iter(texts))) >= 4
    if not (coded or _PLACE.search(name) or not any(value is not None for value in numbers)):
        return None
    return (
        f"it has {different:,} different values in {rows:,} rows, as codes of places have: most are one person's, and "
        "nothing is learned of them. If they are codes, leave it out, or group them first, as by their first digits"
    )


def repeats(columns: Iterable[tuple[str, Mapping[str, int]]]) -> list[str]:
    """Return a list of sentences, one for each column that looks like an identifier with repeats.

    `columns` are pairs (name, text -> rows), of a schema without a unit.
    """
    notes = ((name, person_note(name, texts)) for name, texts in columns)
    return [f"column {name!r}: {note}" for name, note in notes if note is not None]
