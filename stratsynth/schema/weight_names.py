"""Columns with names of survey weights, which should not be released as if they were facts of a person.

The check is by name alone, which is public; no row is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stratsynth.schema.schema import Schema

_SURVEYS = (
    r"p?wgtp\d*",  # American Community Survey: PWGTP of persons, WGTP of households, and their 80 replicates
    r"perwt|hhwt|asecwth?|wtfinl|earnwt|slwt",  # IPUMS
    r"pwsswgt|pwcmpwgt|pworwgt|marsupwt|a_fnlwgt|fnlwgt",  # Current Population Survey; fnlwgt is Adult's
    r"_?llcpwt|_?finalwt|wtint\dyr|wtmec\dyr|wtfa\w*|nr?weight",  # health surveys
)
_WORDS = (
    r"(person|people|household|survey|sample|sampling|design|final|analysis|calibration|grossing|expansion)"
    r"[ _.-]?(weight|wght|wgt|wt)s?"
)
_NAME = re.compile(rf"(?:{'|'.join((*_SURVEYS, _WORDS))})", re.IGNORECASE)
NAMED = 3
"""Largest number of columns that a warning names."""


def looks_like_weight(name: str) -> bool:
    """True if the column name `name` is one that survey weights usually have."""
    return _NAME.fullmatch(name) is not None


def weight_warnings(schema: Schema, header: Iterable[str] = ()) -> list[str]:
    """Return warning texts, each with its remedy, for columns that look like survey weights; mostly none.

    Args:
        schema: The schema.
        header: The names of the data's columns; empty if unknown.
    """
    told, said = schema.row_weight.column, []
    ordinary = [name for name in schema.names if looks_like_weight(name)]
    if ordinary:
        said.append(
            f"{_listed(ordinary)} {_looks(ordinary)}, and the schema has {_it(ordinary)} as a fact about people; every "
            f"row counts 1, so the release is of the sample. {_remedy(ordinary)}"
        )
    idle = [name for name in header if looks_like_weight(name) and name not in schema.columns and name != told]
    if idle and told is None and not ordinary:
        said.append(
            f"the data have {_listed(idle)}, which {_looks(idle)}, and the schema does not use {_it(idle)}: every "
            f"row counts 1, so a release is of the sample. {_remedy(idle)}"
        )
    return said


def _listed(names: list[str]) -> str:
    """Return text: "column A", or "columns A, B and 3 more" for more `names`."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"column{'s' if len(names) > 1 else ''} {', '.join(names[:NAMED])}{more}"


def _looks(names: list[str]) -> str:
    return "looks like a survey weight" if len(names) == 1 else "look like survey weights"


def _it(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _remedy(names: list[str]) -> str:
    """Return a sentence: how to declare the first of the columns `names` as the rows' weight."""
    return (
        f"For a release of the population, leave {_it(names)} out of the columns and write "
        f'weight = {{ column = "{names[0]}", '
        "max = ... } above them, with a public largest weight."
    )
