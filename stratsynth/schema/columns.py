"""The two kinds of column, as declared in public: `Categorical` and `Numeric`.

A column turns every value into one of `all_levels`, or leaves its row out, by rules fixed here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from stratsynth.checks import is_number, is_whole, said
from stratsynth.schema import checks
from stratsynth.schema.text import MISSING, check_text, meaning, number

EXACT = 2**53
"""Whole numbers up to this size are exact as floating point; integer columns stay within it."""


@dataclass(frozen=True, kw_only=True)
class Categorical:
    """A column whose values are a fixed list of texts.

    A value matches a level as text first; failing that as a number ("3.0" is level "3") or truth value
    ("true" is level "1"), when exactly one level has that value.
    """

    levels: tuple[str, ...]
    """Every level, as text, as it appears in the file. The order is that of the codes."""

    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What levels mean, for readers; any level may be left without a label."""

    not_applicable: str | None = None
    """The level that says the question does not apply to this record; None when there is none."""

    outside: str | None = None
    """The level that null, and any value outside the levels, becomes.

    "missing" adds a level of that name when there is none. None leaves the whole row out.
    """

    dtype: str = "string"
    """The type of synthetic values: "string", "category", "int64", "float64" or "bool".

    In the last three, `not_applicable` and "missing" come back as null.
    """

    def __post_init__(self) -> None:
        levels = checks.items("levels", self.levels)
        checks.count("levels", len(levels))
        object.__setattr__(self, "levels", tuple(check_text("a level", level) for level in levels))
        checks.unique("levels", self.levels)
        if self.not_applicable is not None and self.not_applicable not in self.levels:
            checks.refuse(f"not_applicable must be one of the levels{checks.hint(self.not_applicable, self.levels)}")
        if self.outside not in (None, MISSING, *self.levels):
            checks.refuse(f'outside must be "missing" or one of the levels{checks.hint(self.outside, self.levels)}')
        object.__setattr__(self, "labels", checks.labels(self.labels, self.all_levels))
        checks.choice("dtype", self.dtype, ("string", "category", "int64", "float64", "bool"))
        if self.dtype not in {"string", "category"}:
            self._check_typed()

    @cached_property
    def all_levels(self) -> tuple[str, ...]:
        """The categories of a contingency table: the levels, then "missing" when `outside` adds it."""
        added = self.outside == MISSING and MISSING not in self.levels
        return (*self.levels, MISSING) if added else self.levels

    @property
    def size(self) -> int:
        """The number of categories."""
        return len(self.all_levels)

    @cached_property
    def codes(self) -> Mapping[str, int]:
        """The code of each level: its place in `all_levels`."""
        return {level: code for code, level in enumerate(self.all_levels)}

    @cached_property
    def values(self) -> tuple[str | int | float | bool | None, ...]:
        """What a synthetic table holds for each code, in the type `dtype`; None for null."""
        return tuple(self._value(level) for level in self.all_levels)

    def _value(self, level: str) -> str | int | float | bool | None:
        if self.dtype in {"string", "category"}:
            return None if level == MISSING and MISSING not in self.levels else level
        if level in {self.not_applicable, MISSING}:
            return None
        exact = meaning(level)
        if exact is None:
            return None
        if self.dtype == "float64":
            return float(exact) + 0.0
        return int(exact) if self.dtype == "int64" else bool(exact)

    def _check_typed(self) -> None:
        """Refuse a typed column unless each level can be told from its typed value."""
        spelt = [meaning(level) for level in self.levels]
        times = Counter(spelt)
        for level, exact in zip(self.levels, spelt, strict=True):
            if level in {self.not_applicable, MISSING}:
                continue
            fits = exact is not None and (
                -(2**63) < exact < 2**63 and exact == exact.to_integral_value() if self.dtype == "int64"
                else exact in {0, 1} if self.dtype == "bool"
                else math.isfinite(float(exact)) and meaning(repr(float(exact))) == exact
            )  # fmt: skip
            if not fits:
                checks.refuse(f'dtype {self.dtype!r} cannot hold level {level!r}; use dtype = "string"')
            if times[exact] > 1:
                checks.refuse(f'dtype {self.dtype!r} cannot tell level {level!r} from another; use dtype = "string"')


@dataclass(frozen=True, kw_only=True)
class Numeric:
    """A column of numbers between public bounds, counted in public bins.

    A value is not a number when it is null, NaN, infinite, or text that spells no finite number: it becomes
    "missing" where that level exists, and otherwise its row is left out.
    """

    lower: float
    """The smallest value a record can have."""

    upper: float
    """The largest value a record can have."""

    edges: tuple[float, ...] | None = None
    """Ends of the bins [e0, e1), [e1, e2), ...; the last bin is closed where its end equals `upper`."""

    bins: int | None = None
    """The number of bins of equal width, instead of `edges` (for integers, widths differ by at most one).

    With neither, an integer column of at most 100 values has one bin a value, and any other has 20 bins.
    """

    integer: bool = False
    """Whether values are whole numbers; `lower`, `upper` and `edges` must then be whole too."""

    outside: str = "clip"
    """What a number below `lower` or above `upper` becomes: "clip", the bound; or "missing"."""

    missing: bool = False
    """Whether a level for missing values exists; `outside = "missing"` implies it."""

    not_applicable: str | None = None
    """The text in the file that says the question does not apply: a level of its own."""

    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What levels mean, for readers."""

    dtype: str | None = None
    """The type of synthetic values: "int64", "float64" or "string".

    By default "string" where `not_applicable` is declared, so that nothing is lost, and otherwise the type of
    the numbers. In the numeric types `not_applicable` comes back as null.
    """

    transform: str | None = None
    """The scale on which means are taken: "log", "square-root" or "fourth-root" (`stratsynth.schema.transforms`).

    For numbers that range widely and have a long tail. None: the numbers as they are.
    """

    transform_unit: float = 1.0
    """The unit of the transform: what is small beside it is hardly bent. A public choice, say 1,000 for incomes."""

    def __post_init__(self) -> None:
        checks.flag("integer", self.integer)
        checks.flag("missing", self.missing)
        for key in ("lower", "upper"):
            object.__setattr__(self, key, self._number(key, getattr(self, key)))
        if self.lower >= self.upper:
            checks.refuse("upper must be above lower")
        checks.choice("outside", self.outside, ("clip", MISSING))
        object.__setattr__(self, "missing", self.missing or self.outside == MISSING)
        self._check_bins()
        if self.not_applicable is not None:
            self._check_not_applicable(self.not_applicable)
        default = "string" if self.not_applicable else "int64" if self.integer else "float64"
        object.__setattr__(self, "dtype", self.dtype if self.dtype is not None else default)
        checks.choice("dtype", self.dtype, ("int64", "float64", "string"))
        if self.dtype == "int64" and not self.integer:
            checks.refuse('dtype "int64" needs integer = true')
        if self.transform is not None:
            checks.choice("transform", self.transform, ("log", "square-root", "fourth-root"))
        self._check_unit()
        checks.count("bins", self.size)
        checks.unique("bins", self.all_levels)
        object.__setattr__(self, "labels", checks.labels(self.labels, self.all_levels))

    @cached_property
    def breaks(self) -> tuple[float, ...]:
        """The ends of the bins, whichever way they were declared; one more than there are bins."""
        if self.edges is not None:
            return self.edges
        values = self.upper - self.lower + 1
        few = self.integer and values <= 100
        parts = self.bins if self.bins is not None else int(values) if few else 20
        if self.integer:
            low = int(self.lower)
            return tuple(low + i * int(values) // parts for i in range(parts + 1))
        inner = (self.lower * (1 - i / parts) + self.upper * (i / parts) for i in range(1, parts))
        return (self.lower, *inner, self.upper)

    @cached_property
    def extents(self) -> tuple[tuple[float, float], ...]:
        """The smallest and the largest value in each bin, both included, within the bounds."""
        tops = [end - 1 if self.integer else math.nextafter(end, -math.inf) for end in self.breaks[1:]]
        tops[-1] = self.upper
        return tuple((max(low, self.lower), top) for low, top in zip(self.breaks, tops, strict=False))

    @cached_property
    def all_levels(self) -> tuple[str, ...]:
        """The categories of a contingency table: the bins, then not applicable, then missing."""
        bins = [self._bin_label(i) for i in range(len(self.breaks) - 1)]
        own = [self.not_applicable] if self.not_applicable is not None else []
        return (*bins, *own, *([MISSING] if self.missing else []))

    @property
    def size(self) -> int:
        """The number of categories."""
        return len(self.all_levels)

    @cached_property
    def codes(self) -> Mapping[str, int]:
        """The code of each level: its place in `all_levels`."""
        return {level: code for code, level in enumerate(self.all_levels)}

    def _bin_label(self, i: int) -> str:
        low, top = self.extents[i]
        if self.integer:
            if low == top:
                return _short(low)
            return f"{_short(low)}-{_short(top)}" if low >= 0 else f"[{_short(low)},{_short(top)}]"
        closed = i == len(self.breaks) - 2 and self.breaks[-1] == self.upper
        return f"[{_short(self.breaks[i])},{_short(self.breaks[i + 1])}{']' if closed else ')'}"

    def _number(self, key: str, value: object) -> float:
        if not is_number(value):
            checks.refuse(f"{key} must be a finite number, not {said(value)}")
        real = float(value) + 0.0  # -0.0 becomes 0.0
        if self.integer and (real != int(real) or abs(real) > EXACT):
            checks.refuse(f"{key} of an integer column must be a whole number within 2**53")
        return int(real) if self.integer else real

    def _check_bins(self) -> None:
        if self.edges is not None and self.bins is not None:
            checks.refuse("give edges or bins, not both")
        if self.bins is not None:
            if not is_whole(self.bins) or self.bins < 1:
                checks.refuse("bins must be a whole number, at least 1")
            checks.count("bins", self.bins)
            if self.integer and self.bins > self.upper - self.lower + 1:
                checks.refuse("bins must not exceed the number of whole numbers from lower to upper")
        if self.edges is not None:
            edges = checks.items("edges", self.edges)
            checks.count("edges", len(edges))
            object.__setattr__(self, "edges", tuple(self._number("edges", edge) for edge in edges))
        if len(self.breaks) < 2:
            checks.refuse("edges must hold at least two numbers")
        if any(a >= b for a, b in pairwise(self.breaks)):
            given = self.edges is not None
            checks.refuse("edges must increase strictly" if given else "bins are too many for numbers this close")
        if self.breaks[0] > self.lower or self.breaks[-1] < self.upper:
            checks.refuse("edges must reach from lower (or below) to upper (or above)")
        if self.breaks[1] <= self.lower or self.breaks[-2] > self.upper:
            checks.refuse("edges must not make a bin that lies outside lower and upper")

    def _check_unit(self) -> None:
        """A unit far below the bounds is harmless; one that overflows when they are divided by it is not."""
        unit = self.transform_unit
        fits = is_number(unit) and 1e-100 < unit < 1e100
        if not fits or not math.isfinite(max(abs(self.lower), abs(self.upper)) / unit):
            checks.refuse("transform_unit must be a positive number in proportion to the bounds")
        if self.transform is None and unit != 1:
            checks.refuse("transform_unit needs a transform")

    def _check_not_applicable(self, text: str) -> None:
        check_text("not_applicable", text)
        if text == MISSING:
            checks.refuse('not_applicable must not be "missing"; declare missing = true instead')
        value = number(text)
        if value is not None and self.lower <= value <= self.upper:
            checks.refuse("not_applicable must not be a number between lower and upper")


Column: TypeAlias = Categorical | Numeric
"""Any column of a schema."""


def _short(value: float) -> str:
    """The shortest text that reads back as `value`, without ".0"."""
    return repr(value).removesuffix(".0")
