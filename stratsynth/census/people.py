"""Rows of the census: each person's variables drawn in turn, then income and poverty computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stratsynth.census.draws import BITS, keys
from stratsynth.census.model import NUMBERS, Codes, schema, tables
from stratsynth.census.years import YEAR, drawn
from stratsynth.schema import Categorical

if TYPE_CHECKING:
    import pandas as pd

CHUNK = 1 << 15
"""Number of people made at a time: few enough that their codes stay in the processor's cache."""

# Thousandths of the median, at 1/256, 1/32, 2/32, ..., 31/32 and 255/256 of the people: the quantiles of
# exp(0.55 Z) and exp(0.8 Z) for a standard normal Z, rounded. As literals, since exp differs between machines.
_PAY = (
    *(232, 359, 430, 484, 531, 574, 614, 652, 690, 727, 764, 802, 839, 878, 917, 958, 1000),
    *(1044, 1090, 1139, 1192, 1248, 1308, 1375, 1449, 1533, 1629, 1743, 1883, 2065, 2325, 2786, 4319),
)
_OTHERS = (
    *(119, 225, 293, 348, 398, 446, 492, 537, 583, 629, 676, 725, 775, 827, 882, 939, 1000),
    *(1065, 1134, 1209, 1290, 1380, 1478, 1589, 1715, 1861, 2033, 2243, 2510, 2870, 3412, 4438, 8399),
)

_POVERTY = np.array([13300, 17000, 20300, 26200, 31000, 35100, 39900, 44600])
"""Poverty thresholds in dollars a year, for households of one to eight people: Census Bureau, 2019, rounded."""

_WEEKS, _WEEKS_OTHERS = 50, 22
"""Weeks worked a year, by people with a job and by people who had one in the past year."""

ABSENT = {"WKHP": 0, "PINCP": -(2**31), "POVPIP": NUMBERS["POVPIP"] - 1}
"""Numeric column -> number that stands for a missing value."""


def frame(seed: int, start: int, rows: int, year: int = YEAR) -> pd.DataFrame:
    """Return a frame of `rows` made-up people, from number `start` on, of a seed and year, as `census.make` does."""
    import pyarrow as pa

    from stratsynth.schema.codec import to_pandas

    columns = schema().columns
    codes = {n: np.empty(rows, np.uint8 if isinstance(c, Categorical) else np.int32) for n, c in columns.items()}
    for at, chunk in chunks(seed, start, rows, year):
        for name, whole in codes.items():
            whole[at : at + CHUNK] = chunk[name]
    arrays, fields = [], []
    for name, column in columns.items():
        if isinstance(column, Categorical):
            array = pa.array(column.levels, pa.string()).take(pa.array(codes.pop(name)))
        elif column.missing:
            numbers = codes.pop(name)
            array = pa.array(numbers.astype(np.float64), mask=numbers == ABSENT[name])
        else:
            array = pa.array(codes.pop(name).astype(np.int64))
        arrays.append(array)
        fields.append(pa.field(name, array.type, nullable=pa.types.is_floating(array.type)))
    return to_pandas(pa.table(arrays, schema=pa.schema(fields)))


def chunks(seed: int, start: int, rows: int, year: int = YEAR) -> Iterator[tuple[int, Mapping[str, Codes]]]:
    """Yield (first row's number, mapping from column to int array) for chunks of `rows` people of `seed` and year.

    People are counted from `start` on. Arrays have levels' codes, of numeric columns numbers, or `ABSENT`.
    """
    for at in range(0, rows, CHUNK):
        yield at, people_of(keys(seed, start + at, min(CHUNK, rows - at)), year)


def people_of(
    keys: NDArray[np.uint64], year: int, stated: Mapping[str, Callable[[Mapping[str, Codes]], Codes]] | None = None
) -> Mapping[str, Codes]:
    """Return a mapping from column to an array of codes of people, one for each of `keys`, in a year.

    Each column is drawn given earlier ones. `stated` maps variables to functions, called with the mapping so far, whose
    array takes the place of what was drawn; None for none.
    """
    codes: dict[str, Codes] = {}
    for name, table in tables().items():
        draw = drawn(keys, name, year)
        if name == "PAY":
            codes["WKHP"] = between(tables()["HOURS"].levels, codes["HOURS"], drawn(keys, "WKHP", year))
            extra = drawn(keys, "PINCP", year)
            codes["PINCP"] = _income(codes, table.amounts.take(table.combination(codes)), draw, extra)
        elif name == "OTHERS":
            others = _spread(table.amounts.take(table.combination(codes)), _OTHERS, draw)
            codes["POVPIP"] = _poverty(codes, others)
        else:
            codes[name] = table.draw(codes, draw)
        if stated is not None and name in stated:
            codes[name] = stated[name](codes)
        if name == "AGE1":
            codes["AGEP"] = 5 * codes["AGE5"] + codes["AGE1"]
    return codes


def between(levels: Sequence[str], codes: Codes, drawn: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return an int array: a number for each row between the ends that its level names, by `drawn`, 31-bit numbers.

    `levels` are texts such as "10-19", `codes` an array of each row's place among them; "N" and "none" give 0.
    """
    ends = [(0, 0) if level in {"N", "none"} else _ends(level) for level in levels]
    low, high = np.array(ends).T
    found: NDArray[np.int64] = low.take(codes) + ((high - low + 1).take(codes) * drawn.astype(np.int64) >> BITS)
    return found


def _ends(level: str) -> tuple[int, int]:
    """Return the two integers of a level such as "10-19"; the first may be negative."""
    low, _, high = level[1:].partition("-")  # the first character may be a sign
    return int(level[0] + low), int(high)


def _spread(median: NDArray[np.int64], quantiles: tuple[int, ...], drawn: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return an int array of amounts: each row's `median`, an array, times a factor drawn from `quantiles`.

    These are a tuple of thousandths, evenly spaced; `drawn` is an array of a 31-bit number for each row.
    """
    knots = np.array(quantiles, np.int64)
    place = drawn.astype(np.int64) * (len(quantiles) - 1)
    at, part = place >> BITS, place & ((1 << BITS) - 1)
    thousandths = knots.take(at) + (np.diff(knots).take(at) * part >> BITS)
    found: NDArray[np.int64] = median * thousandths // 1000
    return found


def _income(
    codes: Mapping[str, Codes], pay: NDArray[np.int64], drawn: NDArray[np.uint32], extra: NDArray[np.uint32]
) -> NDArray[np.int64]:
    """Return an int array of income in dollars a year: `pay` for the hours worked, and other income.

    `codes` maps columns to arrays, an entry a person; `pay` has medians in cents an hour; `drawn` and `extra` have
    31-bit numbers by which both vary. People below 15 have `ABSENT`.
    """
    levels = schema().levels("ESR")
    employed = np.array([level in {"1", "2", "4", "5"} for level in levels]).take(codes["ESR"])
    weeks = np.where(employed, _WEEKS, _WEEKS_OTHERS)
    earned = _spread(pay, _PAY, drawn) * codes["WKHP"] * weeks // 100
    income = earned + between(tables()["EXTRA"].levels, codes["EXTRA"], extra)
    size = np.abs(income)
    unit = np.where(size < 1000, 10, np.where(size < 50_000, 100, 1000))
    rounded = np.where((size > 0) & (size < 8), 4, (size + unit // 2) // unit * unit)  # the survey's own rule
    bounded = np.clip(np.sign(income) * rounded, -19998, 999_999)
    return np.where(codes["AGEP"] < 15, ABSENT["PINCP"], bounded)


def _poverty(codes: Mapping[str, Codes], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return an int array of family income in percent of the poverty threshold, at most 501, or `ABSENT`.

    `codes` maps columns to arrays, an entry a person; `others` is an array of the income of the rest of each one's
    family.
    """
    people = codes["NP"]  # the code is the number of people, and 0 for "N"
    together = np.maximum(np.where(codes["AGEP"] < 15, 0, codes["PINCP"]) + others, 0)
    percent = np.minimum(100 * together // _POVERTY.take(np.maximum(people - 1, 0)), 501)
    return np.where(people == 0, ABSENT["POVPIP"], percent)
