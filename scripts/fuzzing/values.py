"""Malformed values: of every plain type, at the ends of their ranges, and things of other libraries."""

from __future__ import annotations

import datetime as dt
import math
import random
import threading
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

TEXTS = (
    *(
        "",
        " ",
        "x",
        "x" * 5_000,
        "a\0b",
        "\ud800",
        "\u2028",
        "..",
        "/",
        "/dev/null",
        "~",
        "nan",
        "1e999",
        "-1",
        "0",
        "SEX",
    ),
    *("people.csv", "none", "all", "auto", "true", "schema.toml", "; DROP TABLE", "{}", "[]", "\n", "é" * 300),
)
NUMBERS = (0, -1, 1, 2, 2**31, 2**63, 2**200, 0.0, -0.0, 1e-320, 1e308, -1.5, 0.5, math.inf, -math.inf, math.nan)
MAKERS: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: True,
    lambda: False,
    lambda: 1j,
    lambda: b"bytes",
    lambda: (),
    list,
    dict,
    set,
    lambda: [None],
    lambda: [1, "a"],
    lambda: ["SEX", "SEX"],
    lambda: [["SEX"], "AGE"],
    lambda: {"SEX": None},
    lambda: {1: 2},
    lambda: {"": ""},
    lambda: {("1", "2"): 0.5},
    object,
    lambda: int,
    lambda: len,
    lambda: lambda *_, **__: None,
    lambda: (i for i in range(3)),
    lambda: range(3),
    lambda: slice(1),
    lambda: ...,
    lambda: Path("nowhere"),
    Path,
    lambda: Decimal("0.1"),
    lambda: Decimal("NaN"),
    lambda: Fraction(1, 3),
    lambda: dt.date(2024, 1, 1),
    lambda: dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    lambda: dt.timedelta(1),
    lambda: np.array([1.0, np.nan]),
    lambda: np.array(["a", "b"]),
    lambda: np.zeros((0,)),
    lambda: np.zeros((2, 2, 2)),
    lambda: np.float64("nan"),
    lambda: np.int64(3),
    lambda: np.bool_(True),
    lambda: np.random.default_rng(1),
    lambda: pd.NA,
    lambda: pd.NaT,
    pd.DataFrame,
    lambda: pd.DataFrame({"SEX": [None], "x": [1]}),
    lambda: pd.DataFrame([[1, 2]], columns=["SEX", "SEX"]),
    lambda: pd.DataFrame({0: [1]}),
    lambda: pd.DataFrame({"SEX": [{}], "AGE": [[1]], "WORK": [object()]}),
    lambda: pd.Series([1, 2]),
    lambda: pd.MultiIndex.from_tuples([(1, 2)]),
    lambda: pa.table({"SEX": ["1"]}),
    lambda: pa.table({}),
    lambda: pa.scalar(1),
    threading.Lock,
    type("Odd", (), {"__eq__": None, "__hash__": None}),
    lambda: type("Text", (str,), {})("SEX"),
    lambda: ValueError("x"),
)


def bad_value(rng: random.Random) -> Any:
    """Return one malformed value, made anew."""
    kind = rng.random()
    if kind < 0.3:
        return rng.choice(TEXTS)
    if kind < 0.5:
        return rng.choice(NUMBERS)
    value = rng.choice(MAKERS)()
    return [value] if rng.random() < 0.1 else value
