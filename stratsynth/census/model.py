"""Tables of the simulator: people.toml and its neighbours, prepared for drawing.

The levels of a variable have probabilities in proportion to a product of integer weights, with a factor for each of the
variable's `times`. The `rows` of a factor are the weights, in reading order: a row for each combination of groups of
people, and in it a weight for each level.

- `on` names the columns that make the combinations, the last one varying fastest, with their groups: for numbers,
  the start of each group ("AGEP 0 15 65"); for levels, the members of each group ("HISP 0|1 2|*"), where * is all the
  rest and comes last, and 18..20 is a span.
- `levels` of a factor lists sets of levels that share a weight, in percent; levels not listed have 100.
- Weights may be written with their level, "1:60 2:40", a row a line; levels not named have 0.

A weight of zero is a structural zero. An `amount` is not drawn: its first factor is an amount, and the others are
percentages of it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stratsynth.schema import Categorical, Schema

Codes: TypeAlias = NDArray[np.intp]
"""Code of each row: the number of its level, or the number itself in a numeric column."""

NUMBERS = {"AGEP": 96, "POVPIP": 503}
"""Numeric columns that others depend on -> their number of codes."""

_FOLDER = Path(__file__).parent
_FILES = ("people", "school", "family", "health", "work", "money")  # in the order of drawing
_DIGITS = (8, 8, 8, 7)  # in bits: 31 together


@dataclass(frozen=True, eq=False)
class ConditionalTable:
    """Conditional distribution of a variable, or an amount, for every combination of the columns it depends on."""

    levels: tuple[str, ...]
    """Levels of the variable, in the order of their codes."""

    parents: Mapping[str, Codes]
    """Column that the variable depends on -> summand of each of its codes in the number of the combination."""

    thresholds: NDArray[np.uint32]
    """Array (levels - 1, combinations): 2**31 times the cumulative probability of the levels up to this one."""

    possible: NDArray[np.bool_]
    """Mask of combinations with any level of positive weight; the others never occur, which the tests check."""

    amounts: NDArray[np.int64]
    """Value of an amount for each combination; empty for a drawn variable."""

    def combination(self, codes: Mapping[str, Codes]) -> Codes:
        """Return an array with each row's combination of the parents' codes, a number; `codes` are arrays by column."""
        parts = [adds.take(codes[name]) for name, adds in self.parents.items()]
        return sum(parts[1:], start=parts[0]) if parts else np.zeros(1, np.intp)

    def draw(self, codes: Mapping[str, Codes], drawn: NDArray[np.uint32]) -> Codes:
        """Return an array of each row's code: the number of thresholds that its 31-bit number in `drawn` reaches.

        The thresholds depend on its other `codes`, arrays by column.
        """
        at = self.combination(codes)
        found = np.zeros(len(drawn), np.uint8)
        for threshold in self.thresholds:
            found += drawn >= threshold.take(at)
        return found.astype(np.intp)


@cache
def schema() -> Schema:
    """Return the schema of the census, as the file schema.toml beside this module says."""
    return Schema.from_toml(_FOLDER / "schema.toml")


@cache
def tables() -> Mapping[str, ConditionalTable]:
    """Return a mapping from variable to its `ConditionalTable`, in the order of drawing."""
    return _tables(_FILES, {})


@cache
def household_tables() -> Mapping[str, ConditionalTable]:
    """Return a mapping from variable of a household to its `ConditionalTable`, in the order of drawing."""
    return _tables(("households",), {name: table.levels for name, table in tables().items()})


def _tables(files: Sequence[str], before: Mapping[str, tuple[str, ...]]) -> Mapping[str, ConditionalTable]:
    """Return {variable: `ConditionalTable`} of some files, by name, in the order of drawing.

    `before` maps variables drawn before to tuples of their levels.
    """
    levels: dict[str, tuple[str, ...]] = {name: tuple(map(str, range(size))) for name, size in NUMBERS.items()}
    for name, column in schema().columns.items():
        if isinstance(column, Categorical):
            levels[name] = column.levels
    levels |= {name: own for name, own in before.items() if name not in levels}
    texts = [(_FOLDER / f"{file}.toml").read_text(encoding="utf-8") for file in files]
    said = [each for text in texts for each in tomllib.loads(text).items()]
    for name, keys in said:
        levels.setdefault(name, tuple(keys.get("levels", ("amount",))))
    return {name: _table(levels[name], keys, levels) for name, keys in said}


def _table(own: tuple[str, ...], keys: Mapping[str, Any], levels: Mapping[str, tuple[str, ...]]) -> ConditionalTable:
    """Return the `ConditionalTable` of a variable with the levels `own`: the product of the factors in `keys`.

    That is its TOML section. The table has the coarsest groups of the other columns' codes that all factors need;
    `levels` maps these columns to tuples of their levels.
    """
    factors = [(dict(_groups(on, levels) for on in factor.get("on", ())), factor) for factor in keys["times"]]
    columns = list(dict.fromkeys(column for groups, _ in factors for column in groups))
    kinds, places = {}, {}
    for column in columns:
        told = np.array([groups[column] for groups, _ in factors if column in groups])
        # first code of each new group, and new group of each code
        _, kinds[column], places[column] = np.unique(told, axis=1, return_index=True, return_inverse=True)
    shape = tuple(len(kinds[column]) for column in columns)
    product = np.ones((*shape, len(own)), np.int64)
    for groups, factor in factors:
        weights = _weights(factor, tuple(max(group) + 1 for group in groups.values()), own)
        if "amount" not in keys:
            weights //= np.gcd.reduce(weights, axis=None)  # a common factor cancels, and would overflow sooner
        product *= weights[tuple(_along(columns, c, np.array(group)[kinds[c]]) for c, group in groups.items())]
    flat = product.reshape(-1, len(own))
    strides = {column: math.prod(shape[i + 1 :]) for i, column in enumerate(columns)}
    parents = {column: (places[column].reshape(-1) * strides[column]).astype(np.intp) for column in columns}
    if "amount" in keys:
        return ConditionalTable(
            own, parents, np.empty((0, 0), np.uint32), flat[:, 0] > 0, flat[:, 0] // 100 ** (len(factors) - 1)
        )
    return ConditionalTable(own, parents, *_thresholds(flat), np.empty(0, np.int64))


def _along(columns: Sequence[str], column: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return the array `values`, one for each code of `column`, with an axis for each of `columns`, to broadcast.

    All axes but the column's own are of length 1.
    """
    return values.reshape([-1 if c == column else 1 for c in columns])


def _groups(on: str, levels: Mapping[str, tuple[str, ...]]) -> tuple[str, list[int]]:
    """Return (column, list: for each of its codes the number of its group) that the text `on` of a factor describes.

    `levels` maps columns to tuples of their levels.
    """
    column, _, said = on.partition(" ")
    if column in NUMBERS:
        starts = [int(start) for start in said.split()]
        return column, [sum(start <= code for start in starts) - 1 for code in range(NUMBERS[column])]
    parts = [levels[column] if part == "*" else _span(part, levels[column]) for part in said.split("|")]
    return column, [[level in part for part in parts].index(True) for level in levels[column]]


def _span(part: str, levels: Sequence[str]) -> list[str]:
    """Return the list of those of `levels` that a text `part`, such as "1 2" or "18..20", names."""
    ends = [word.partition("..") for word in part.split()]
    return [level for a, _, b in ends for level in levels[levels.index(a) : levels.index(b or a) + 1]]


def _weights(factor: Mapping[str, Any], sizes: tuple[int, ...], levels: Sequence[str]) -> NDArray[np.int64]:
    """Return a factor's array of integer weights: an axis for each of its columns, of `sizes` groups, then the levels.

    The factor is a mapping from TOML, `levels` are the variable's own.
    """
    lines = [words for line in factor["rows"].splitlines() if (words := line.partition("#")[0].split())]
    if ":" in lines[0][0]:
        named = [dict(word.split(":") for word in words) for words in lines]
        return np.array([[int(row.get(level, 0)) for level in levels] for row in named]).reshape(*sizes, -1)
    said = np.array([int(word) for words in lines for word in words])
    if "levels" not in factor:
        return said.reshape(*sizes, len(levels))
    weights = np.full((math.prod(sizes), len(levels)), 100)
    for part, column in zip(factor["levels"], said.reshape(len(weights), -1).T, strict=True):
        weights[:, [levels.index(level) for level in _span(part, levels)]] = column[:, None]
    return weights.reshape(*sizes, -1)


def _thresholds(weights: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Return (array of 2**31 times cumulative weights over their total, rounded down; mask of totals above 0).

    `weights` has a row for each combination and a column for each level; the result has a row for each level but the
    last.
    """
    sums = weights.cumsum(axis=1)
    total = np.maximum(sums[:, -1:], 1)
    whole, rest = np.zeros_like(sums[:, :-1]), sums[:, :-1]
    for bits in _DIGITS:  # long division, since the product with 2**31 would not fit in 64 bits
        digit, rest = np.divmod(rest << bits, total)
        whole = (whole << bits) + digit
    return np.ascontiguousarray(whole.T, np.uint32), sums[:, -1] > 0
