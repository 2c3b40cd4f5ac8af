"""Row functions by users: their evaluation, and the test that they work on each row alone.

The test is made on rows drawn from the schema with a public seed, so it reads no data and proves nothing:
what such a function makes is stamped `unverified`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stratsynth.checks import check_integer
from stratsynth.errors import MechanismError
from stratsynth.questions.admission import OPAQUE, known
from stratsynth.questions.sums.base import Block, Ints, Norm, Sum, check_clip, check_norm, clipped
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

    Codes = Mapping[str, NDArray[Any]]
    Numbers = Mapping[str, NDArray[np.float64]]

BLOCK = 256
"""Rows in each frame that a function is given; the last frame is padded with made-up rows."""
SEED = 20180
"""Public seed of made-up rows."""
SINGLES = 24
"""Number of made-up rows that are also evaluated alone."""
REMEDY = "compute each row's vector from that row alone, with nothing summed, sorted, counted or drawn over rows"


@known
@dataclass(frozen=True)
class RowVectors(Sum):
    """A user's function of rows, which gives one vector per row. Tested for row-locality on made-up rows, never proven.

    The function takes a pandas frame of decoded rows and returns an array with one row for each. What it
    makes is stamped `unverified` in the certificate.
    """

    function: Callable[[Any], Any] = field(metadata={OPAQUE: True})
    size: int
    clip: float
    norm: Norm = "l2"
    unverified: ClassVar[str] = "row vectors by a function that was tested for row-locality, not proven"

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: no function, size, clip or norm; it fails on rows made from `schema`."""
        if not callable(self.function):
            raise MechanismError("row vectors: the function cannot be called.")
        check_integer("row vectors: size", self.size, 1, error=MechanismError)
        check_clip("row vectors", self.clip)
        check_norm("row vectors", self.norm)
        check_row_local(self.function, self.size, schema)

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return a tuple of one `Block` of `size` coordinates, clipped together; `schema` changes nothing."""
        return (Block(self.size, self.clip),)

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return [int array]: clipped sum of the function's vectors, coded rows `which`; one where it fails adds 0."""
        part = rows.take(which)
        vectors = evaluate(self.function, self.size, part.schema, part.codes, part.numbers, part.size)
        return clipped(vectors.T, self.clip, self.norm)


def frame(schema: Schema, codes: Codes, numbers: Numbers, rows: int) -> pd.DataFrame:
    """Return a frame of `rows` rows, columns by `schema`: `codes` as level texts, `numbers` as floats, NaN: none."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for name, column in schema.columns.items():
        if isinstance(column, Numeric):
            columns[name] = np.array(numbers[name], np.float64)
        else:
            columns[name] = np.array(column.all_levels, object)[codes[name].astype(np.intp)]
    return pd.DataFrame(columns, index=pd.RangeIndex(rows))


def made_up(schema: Schema, size: int) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[np.float64]]]:
    """Return (codes, numbers), arrays by column of `schema`, of `size` made-up rows; half of numbers at bin ends."""
    rng = np.random.default_rng(SEED)
    codes = {name: rng.integers(column.size, size=size) for name, column in schema.columns.items()}
    numbers = {}
    for name, column in schema.columns.items():
        if isinstance(column, Numeric):
            bins = len(column.extents)
            low, top = np.array(column.extents, np.float64)[np.minimum(codes[name], bins - 1)].T
            share = np.clip(rng.uniform(-0.5, 1.5, size), 0, 1)
            drawn = low * (1 - share) + top * share
            drawn = np.clip(np.rint(drawn) if column.integer else drawn, low, top)
            numbers[name] = np.where(codes[name] < bins, drawn, np.nan)
    return codes, numbers


def evaluate(
    function: Callable[[Any], Any], size: int, schema: Schema, codes: Codes, numbers: Numbers, rows: int
) -> NDArray[np.float64]:
    """Return a `rows` x `size` array: `function` of frames of `codes`, `numbers` by column; NaN where it fails.

    All frames, by `schema`, have BLOCK rows, the last one padded. When a block fails, its rows are tried one by one.
    """
    padding = made_up(schema, 1)
    found = np.full((rows, size), np.nan)
    for start in range(0, rows, BLOCK):
        block = np.arange(start, min(start + BLOCK, rows))
        pad = np.zeros(BLOCK - len(block), np.intp)
        padded = [
            {name: np.concatenate([column[block], more[name][pad]]) for name, column in columns.items()}
            for columns, more in zip((codes, numbers), padding, strict=True)
        ]
        answer = _sound(function, size, frame(schema, padded[0], padded[1], BLOCK))
        if answer is not None:
            found[block] = answer[: len(block)]
            continue
        for i in block:
            alone = _sound(function, size, frame(schema, _take(codes, [i]), _take(numbers, [i]), 1))
            if alone is not None:
                found[i] = alone[0]
    return found


def check_row_local(function: Callable[[Any], Any], size: int, schema: Schema) -> None:
    """Raise MechanismError if `function`'s `size`-vectors of rows by `schema` depend on other rows, order, time."""
    codes, numbers = made_up(schema, BLOCK)
    rng = np.random.default_rng(SEED + 1)
    whole = _tried(function, size, frame(schema, codes, numbers, BLOCK))
    tries = {
        "are called a second time": np.arange(BLOCK),
        "come in another order": rng.permutation(BLOCK),
        "come in reverse": np.arange(BLOCK)[::-1],
        "come with fewer others": np.flatnonzero(rng.integers(3, size=BLOCK)),
    }
    tries |= {f"come alone (row {i})": np.array([i]) for i in rng.permutation(BLOCK)[:SINGLES]}
    for how, which in tries.items():
        again = _tried(function, size, frame(schema, _take(codes, which), _take(numbers, which), len(which)))
        # Equal to the last bit, so any dependence on other rows is refused.
        if not np.array_equal(again, whole[which], equal_nan=True):
            raise MechanismError(f"row vectors: made-up rows get other vectors when they {how}; {REMEDY}.")


def _tried(function: Callable[[Any], Any], size: int, rows: pd.DataFrame) -> NDArray[np.float64]:
    """Return `function`'s array (`rows` x `size`) on made-up rows; MechanismError: errors, shapes, changed rows."""
    before = rows.copy(deep=True)
    try:
        answer = np.asarray(function(rows))
    except Exception as problem:
        raise MechanismError(f"row vectors: the function fails on made-up rows: {problem!r}.") from problem
    if not rows.equals(before):
        raise MechanismError("row vectors: the function changes the rows it is given; let it work on a copy.")
    if answer.shape != (len(rows), size):
        raise MechanismError(
            f"row vectors: for {len(rows)} rows the function must return shape {(len(rows), size)}, not {answer.shape}."
        )
    if answer.dtype.kind != "f":
        raise MechanismError(f"row vectors: the function must return floats, not {answer.dtype}; use astype(float).")
    return answer.astype(np.float64)


def _sound(function: Callable[[Any], Any], size: int, rows: pd.DataFrame) -> NDArray[np.float64] | None:
    """Return the function's array (private `rows` x `size`); None if it fails, with no error or warning."""
    shape = (len(rows), size)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            answer = np.asarray(function(rows))
            return answer.astype(np.float64) if answer.shape == shape and answer.dtype.kind == "f" else None
        except (Exception, SystemExit):  # noqa: BLE001 - its message could quote a row
            return None


def _take(columns: Mapping[str, NDArray[Any]], which: ArrayLike) -> dict[str, NDArray[Any]]:
    """Return the rows `which` (indices or mask) of each column, by its name."""
    return {name: column[np.asarray(which)] for name, column in columns.items()}
