"""The two kinds of column of a public schema: `Categorical` and `Numeric`.

A column turns every value into one of `all_levels`, or leaves its row out, by rules fixed here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from stratsynth.checks import flag, is_number, is_whole, quoted_value
from stratsynth.errors import SchemaError
from stratsynth.schema import checks, drawn, typed
from stratsynth.schema.bins import EVEN, LINEAR, SPACINGS, Binned
from stratsynth.schema.text import MISSING, check_text, number

EXACT = 2**53
"""Largest size of whole numbers in integer columns: up to it, floats are exact."""


@dataclass(frozen=True, kw_only=True)
class Categories(ABC):
    """Base of columns: their categories, and the code of each."""

    public: bool = field(default=False, metadata={"digest": False})
    """True if the values need no protection under neighbours = "attribute"; without effect under others. The schema's
    hash includes it if true."""

    stored: str | None = field(default=None, metadata={"digest": False})
    """Type in which tables hold values, where `dtype` leaves it open: "uint8", "timestamp[us, tz=UTC]", "mixed"."""

    @property
    @abstractmethod
    def all_levels(self) -> tuple[str, ...]:
        """Tuple of the names of all categories of the column's tables, in the order of their codes."""

    @property
    def size(self) -> int:
        """Number of categories of the column."""
        return len(self.all_levels)

    @cached_property
    def codes(self) -> Mapping[str, int]:
        """Mapping from the name of each category to its code: the index in `all_levels`."""
        return {level: code for code, level in enumerate(self.all_levels)}


@dataclass(frozen=True, kw_only=True)
class Categorical(Categories):
    """A column whose values are a fixed list of texts.

    A value matches a level as text first; failing that as a number ("3.0" is level "3") or truth value
    ("true" is level "1"), when exactly one level has that value.
    """

    levels: tuple[str, ...] = field(kw_only=False)
    """All levels, as text, as in the file. Their order is that of the codes."""

    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Meanings of levels, for readers; any level may be left without one."""

    not_applicable: str | None = None
    """Level for records that the question does not apply to; None if there is none. Null is this level, unless
    `outside` is declared."""

    outside: str | None = None
    """The level that null, and any value outside the levels, becomes.

    "missing" adds a level of that name when there is none. None leaves the whole row out, but for null where
    `not_applicable` is declared.
    """

    dtype: str = "string"
    """Type of synthetic values: "string", "category", "int64", "float64" or "bool".

    In the last three, `not_applicable` and "missing" are drawn as null."""

    ordered: bool = False
    """True if the levels are ordered as listed; of dtype "category" alone, which keeps it."""

    def __post_init__(self) -> None:
        levels = checks.items("levels", self.levels)
        checks.count("levels", len(levels))
        object.__setattr__(self, "levels", tuple(check_text("a level", level) for level in levels))
        checks.unique("levels", self.levels)
        if not isinstance(self.not_applicable, str | None) or self.not_applicable not in (None, *self.levels):
            checks.refuse(f"not_applicable must be one of the levels{checks.hint(self.not_applicable, self.levels)}")
        if not isinstance(self.outside, str | None) or self.outside not in (None, MISSING, *self.levels):
            checks.refuse(f'outside must be "missing" or one of the levels{checks.hint(self.outside, self.levels)}')
        object.__setattr__(self, "labels", checks.labels(self.labels, self._named))
        checks.choice("dtype", self.dtype, ("string", "category", "int64", "float64", "bool"))
        flag("ordered", self.ordered, error=SchemaError)
        flag("public", self.public, error=SchemaError)
        if self.ordered and self.dtype != "category":
            checks.refuse('ordered needs dtype = "category"')
        if self.stored is not None or self.dtype not in {"string", "category"}:
            self._check_typed()

    @property
    def admits_all(self) -> bool:
        """True if each value has a category, so that none leaves its row out."""
        return self.outside is not None

    @cached_property
    def all_levels(self) -> tuple[str, ...]:
        """Tuple of the names of all categories, by code: the levels, then `missing` if `outside` adds it."""
        added = self.outside == MISSING and MISSING not in self.levels
        return (*self.levels, MISSING) if added else self.levels

    @property
    def _named(self) -> tuple[str, ...]:
        """Tuple of the names of categories that `labels` may have texts for."""
        return self.all_levels

    @cached_property
    def values(self) -> tuple[typed.TypedValue, ...]:
        """Tuple, by code, of the values in a synthetic table, in the type `dtype`; None for null."""
        return tuple(typed.value(self, level) for level in self.all_levels)

    def _check_typed(self) -> None:
        """Raise SchemaError if one of the column's levels cannot be told from its value in `dtype` and `stored`."""
        typed.check(self)


@dataclass(frozen=True, kw_only=True)
class Numeric(drawn.DrawnWithin, Binned, Categories):
    """A column of numbers between public bounds, counted in public bins.

    A value is not a number when it is null, NaN, infinite, or text that spells no finite number: it becomes
    "missing" where that level exists, and otherwise its row is left out.
    """

    lower: float = field(kw_only=False)
    """Smallest value that a record can have."""

    upper: float = field(kw_only=False)
    """Largest value that a record can have."""

    edges: tuple[float, ...] | None = None
    """Ends of the bins [e0, e1), [e1, e2), ...; the last bin is closed if its end equals `upper`."""

    bins: int | None = None
    """Number of bins of equal width, instead of `edges` (for integers, widths differ by at most one).

    With neither, an integer column of at most 100 values has one bin per value, and any other has 20 bins."""

    integer: bool = False
    """True if values are whole numbers; `lower`, `upper` and `edges` must then be whole too."""

    outside: str = "clip"
    """Treatment of a number below `lower` or above `upper`: "clip" to the bound, or "missing"."""

    missing: bool = False
    """True if there is a level for missing values; `outside = "missing"` implies it."""

    spikes: tuple[float, ...] = ()
    """Numbers within the bounds that many records have exactly, such as 0: each is a bin of its own."""

    spacing: str = "even"
    """Spacing of bins without `edges`: "even", or "log", of equal width on the scale sign(x) log(1 + |x| /
    transform_unit). Ends of logarithmic bins are rounded to three digits, and equal ends are one, so there may be fewer
    than `bins`."""

    shape: str = "even"
    """Law of synthetic numbers within a bin: "even", or "log", even on that scale, as in a long tail; "pareto" is "log"
    with a Pareto tail in the last bins, whose slope follows from noisy counts and `tail`; "smooth" is a curve through
    the counts of all bins, as of ages. Single whole numbers that are smooth may be counted in bands."""

    digits: int | None = None
    """Number of decimals of synthetic numbers, from 0 to 9; None for as many as a float has."""

    special: tuple[str, ...] = ()
    """Codes that are no quantities, such as "-9" or "99999": each is a level of its own, and is drawn as itself. Those
    that spell numbers lie outside the bounds; others but "inf" and "-inf" are drawn as null in the numeric types."""

    not_applicable: str | None = None
    """Text in the file for records that the question does not apply to: a level of its own."""

    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Meanings of levels, for readers."""

    dtype: str | None = None
    """Type of synthetic values: "int64", "float64" or "string".

    The default is "string" if `not_applicable` is declared, so that nothing is lost, and otherwise the type of
    the numbers. In the numeric types `not_applicable` is drawn as null."""

    transform: str | None = None
    """Scale on which means are taken: "log", "square-root" or "fourth-root" (`stratsynth.schema.transforms`).

    For numbers of wide range with a long tail. None for the numbers themselves."""

    transform_unit: float = 1.0
    """Unit of the transform, and of logarithmic bins and shapes: numbers far below it are hardly transformed. A public
    choice, such as 1,000 for incomes."""

    def __post_init__(self) -> None:
        flag("integer", self.integer, error=SchemaError)
        flag("missing", self.missing, error=SchemaError)
        flag("public", self.public, error=SchemaError)
        for key in ("lower", "upper"):
            object.__setattr__(self, key, self._number(key, getattr(self, key)))
        if self.lower >= self.upper:
            checks.refuse("upper must be above lower")
        checks.choice("outside", self.outside, ("clip", MISSING))
        object.__setattr__(self, "missing", self.missing or self.outside == MISSING)
        for key in ("edges", "spikes"):
            if key == "spikes" or getattr(self, key) is not None:
                given = checks.items(key, getattr(self, key))
                if key == "edges" or given:
                    checks.count(key, len(given))
                object.__setattr__(self, key, tuple(self._number(key, item) for item in given))
        if self.transform is not None:
            checks.choice("transform", self.transform, ("log", "square-root", "fourth-root"))
        checks.choice("spacing", self.spacing, SPACINGS)
        self._check_unit()
        checks.check_bins(self)
        if self.breaks[0] > self.lower or self.breaks[-1] < self.upper:  # a number without a bin leaves its row out
            checks.refuse("edges must reach from lower (or below) to upper (or above)")
        drawn.check(self)
        object.__setattr__(self, "special", tuple(checks.items("special", self.special)))
        checks.check_words(self)
        self._check_dtype()
        if self.stored is not None:
            typed.check_stored(self)
        checks.count("bins", self.size)
        checks.unique("bins", self.all_levels)
        object.__setattr__(self, "labels", checks.labels(self.labels, self.all_levels))

    @property
    def admits_all(self) -> bool:
        """True if missing values have a category, so that no value leaves its row out."""
        return self.missing

    @cached_property
    def middles(self) -> tuple[float, ...]:
        """Tuple, one a bin: the mean of the numbers that are drawn in it."""
        from stratsynth.schema.inside import middles

        return middles(self)

    @property
    def words(self) -> tuple[str, ...]:
        """Tuple of texts that are values, no quantities: special codes, then the not-applicable one, if any."""
        return (*self.special, *((self.not_applicable,) if self.not_applicable is not None else ()))

    @cached_property
    def all_levels(self) -> tuple[str, ...]:
        """Names of all categories, by code: bins, special codes, then not applicable and missing if declared."""
        names = [self.bin_name(i) for i in range(len(self.breaks) - 1)]
        return (*names, *self.words, *([MISSING] if self.missing else []))

    def quantity(self, text: str) -> float | None:
        """Return the finite number that `text` spells, a float; None if it spells none."""
        return number(text)

    def _number(self, key: str, value: object) -> float:
        if not is_number(value):
            checks.refuse(f"{key} must be a finite number, not {quoted_value(value)}")
        if self.integer and key == "edges" and is_whole(value) and value == EXACT + 1:
            return value  # where a bin ends that has the largest number; as a real it would be that number
        real = float(value) + 0.0  # -0.0 becomes 0.0
        if self.integer and (real != int(real) or abs(real) > EXACT):
            checks.refuse(f"{key} of an integer column must be a whole number within 2**53")
        return int(real) if self.integer else real

    def _check_unit(self) -> None:
        """Raise SchemaError for a `transform_unit` not positive, out of proportion to the bounds, or without a use."""
        unit = self.transform_unit
        fits = is_number(unit) and 1e-100 < unit < 1e100
        if not fits or not math.isfinite(max(abs(self.lower), abs(self.upper)) / unit):
            checks.refuse("transform_unit must be a positive number in proportion to the bounds")
        if self.transform is None and unit != 1 and self.spacing == EVEN and self.shape in LINEAR:
            checks.refuse("transform_unit needs a transform, or spacing or shape that is logarithmic")

    def _check_dtype(self) -> None:
        default = "string" if self.not_applicable else "int64" if self.integer else "float64"
        object.__setattr__(self, "dtype", self.dtype if self.dtype is not None else default)
        typed.check_dtype(self)


Column: TypeAlias = Categorical | Numeric
"""Any column of a schema."""
