"""Means and their errors from noisy sums: common parts of the clipped mean and COINPRESS."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from stratsynth.adapters.means.scales import ColumnScale, check_numbers, scales
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms import Mechanism
from stratsynth.models import Estimate, Figures
from stratsynth.questions import Columns, NoisySum, Program, total
from stratsynth.settings import at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.mechanisms import Public
    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Payment:
    """A part of the budget, in the currency of the fit: epsilon if `pure`, else rho."""

    amount: float
    pure: bool

    def parts(self, weights: Sequence[float]) -> list[Payment]:
        """Return a list of payments in proportion to `weights`, numbers; together they come to at most this amount."""
        whole = math.fsum(weights) * (1 + 1e-14)
        return [Payment(self.amount * (w / whole), self.pure) for w in weights]

    def ask(self, query: Columns) -> Program[NoisySum]:
        """Program that asks a query of one sum at this amount, epsilon or rho, and returns its NoisySum."""
        if self.pure:
            (answer,) = yield from total(query, epsilon=self.amount)
        else:
            (answer,) = yield from total(query, rho=self.amount)
        return answer


@dataclass(frozen=True)
class MeanCount:
    """Number of records in a mean, with the standard deviation of its noise."""

    value: float
    """Noisy or public number, at least 1, so that it can be divided by."""
    noise: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Settings(Mechanism[Estimate]):
    """Public settings of both mechanisms, on each column's own scale."""

    columns: Sequence[str] = at(())
    """Numeric columns whose means are estimated; all of them by default."""
    centre: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Public guess of each mean, in the column's unit; the middle of the bounds by default."""
    radius: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Public bound on each mean's distance from its centre, in the column's unit; up to the bounds by default."""
    scale: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Public guess of each standard deviation, in the column's unit; a sixth of the range by default.

    Too small a guess clips values and biases the mean; too large a guess adds noise.
    """
    count: Literal["noisy", "declared"] = at("noisy")
    """Divisor of the sums: a noisy count of the values, or the declared size times the stratum's share.

    A declared size that is off by a part p biases a mean by p times its distance from the centre.
    """
    count_share: float = at(0.1, above=0, below=1)
    """Fraction of the budget for noisy counts; with `declared` it goes to the means."""
    variance: Literal["bought", "bounded"] = at("bought")
    """Source of the sampling error: a noisy sum of squares, or the public bounds, which is conservative."""
    variance_share: float = at(0.2, above=0, below=1)
    """Fraction of the budget for sums of squares; with `bounded` it goes to the means."""

    def __post_init__(self) -> None:
        """Raise UsageError: settings out of range, tables not column -> number, shares that leave means nothing."""
        super().__post_init__()
        for key in ("centre", "radius", "scale"):
            object.__setattr__(self, key, check_numbers(self.name, key, getattr(self, key)))
        if self.count_share + self.variance_share >= 1:
            raise UsageError(f"{self.name}: count_share and variance_share leave nothing for the means.")

    def scales(self, public: Public) -> tuple[ColumnScale, ...]:
        """Return a tuple of `ColumnScale`s, one a column, by public facts.

        UsageError or Unsupported for unsuitable columns, and for a declared size that is not theirs.
        """
        columns = scales(self.name, public, self.columns, self.centre, self.radius, self.scale)
        check_count(self.name, self, public, columns)
        return columns


def check_count(who: str, settings: Settings, public: Public, columns: Iterable[ColumnScale]) -> None:
    """Refuse (Unsupported on `who`) settings of `count = "declared"` without a public size, or rows left out.

    Such rows are weighted by a column, or of units of several rows; such values are of columns, each a `ColumnScale`,
    that may lack them.
    """
    if settings.count == "noisy":
        return
    if public.schema.row_weight.column is not None:
        raise Unsupported(
            f"{who}: rows whose weight is missing or above the largest count less, so the declared size is not their "
            'total; use count = "noisy".'
        )
    if public.schema.most_rows > 1:
        raise Unsupported(
            f"{who}: of a person with several rows some may be left out, so the declared size is not the number of "
            'rows; use count = "noisy".'
        )
    if not public.exact:
        raise Unsupported(
            f'{who}: a group\'s size by shares of a sample or of noisy counts is not exact; use count = "noisy", or '
            "public weights."
        )
    if public.size is None:
        raise Unsupported(f'{who}: count = "declared" needs a declared size; declare one, or use count = "noisy".')
    for column in columns:
        if not column.complete:
            raise Unsupported(
                f"{who}: {column.name} may be missing or not applicable, so the declared size is not the number of "
                'its values; use count = "noisy".'
            )


def budgets(settings: Settings, whole: Payment) -> tuple[Payment, Payment, Payment]:
    """Return three `Payment`s that share out `whole`: for counts, means and squares, by settings.

    Shares that are not asked for are 0, and go to means.
    """
    counts = settings.count_share * (settings.count == "noisy")
    squares = settings.variance_share * (settings.variance == "bought")
    count, mean, square = whole.parts([counts, 1 - counts - squares, squares])
    return count, mean, square


def size_of(settings: Settings, public: Public, columns: Sequence[ColumnScale], pay: Payment) -> Program[MeanCount]:
    """Program for a `Payment` that returns the `MeanCount` of records with a value in all columns, `ColumnScale`s.

    It is noisy, or declared by public facts: the settings say which.

    A count is a clipped sum too: every value is further from the centre of this query than its clip, so that each
    record with a value contributes exactly 1. With several columns the others are too small to matter beside it.
    """
    if settings.count == "declared":
        return MeanCount(max(float(public.size or 0), 1.0))
    first, *rest = columns
    query = Columns(
        tuple(column.name for column in columns),
        (first.low - 2 * first.range, *(c.low for c in rest)),
        (first.range, *(1e12 * c.range for c in rest)),
        1.0,
        norm="l1" if pay.pure else "l2",
    )
    answer = yield from pay.ask(query)
    return MeanCount(max(float(answer.values[0]), 1.0), answer.sigma)


def sizes_of(
    settings: Settings, public: Public, groups: Sequence[Sequence[ColumnScale]], pay: Payment
) -> Program[list[MeanCount]]:
    """Program for a `Payment` that returns a list of `MeanCount`s, the numbers of records with a value.

    There is one for each of `groups`, tuples of `ColumnScale`, whose columns all have a value; groups of columns that
    no record lacks share one. Settings and public facts tell if numbers are counted or declared.
    """
    # columns without missing values have one number of records, asked once
    keys = [() if all(c.complete for c in group) else tuple(c.name for c in group) for group in groups]
    asked, found = list(dict.fromkeys(keys)), dict[tuple[str, ...], MeanCount]()
    for key, part in zip(asked, pay.parts([1.0] * len(asked)), strict=True):
        chosen = groups[keys.index(key)]
        found[key] = yield from size_of(settings, public, chosen if key else chosen[:1], part)
    return [found[key] for key in keys]


def spreads(
    columns: Sequence[ColumnScale], means: Floats, query: Columns, clip: float, size: MeanCount, pay: Payment
) -> Program[Floats]:
    """Program for a `Payment` that returns an array: columns' standard deviations, from noisy sums of squares.

    Each of `columns` is a `ColumnScale`. Squares are around the centre of `query` and cut at `clip` squared; `means`,
    an array, and the `MeanCount` are those of the columns.
    """
    squares = Columns(query.columns, query.centre, query.scale, clip**2, query.norm, square=True)
    answer = yield from pay.ask(squares)
    units, centres = np.array(query.scale), np.array(query.centre)
    # mean square around the query's centre; the variance subtracts the mean's squared distance from it
    second, noise = answer.values * units**2 / size.value, answer.sigma * units**2 / size.value
    variance = second - (means - centres) ** 2
    # a variance below its noise is set to the noise; no column varies more than its bounds allow
    most = np.array([(column.range / 2) ** 2 for column in columns])
    found: Floats = np.sqrt(np.clip(variance, np.minimum(noise, most), most))
    return found


def figures(
    columns: Sequence[ColumnScale],
    means: Floats,
    query: Columns,
    sigma: float,
    size: MeanCount,
    spread: Floats | None,
    *,
    pure: bool,
    rows: int = 1,
) -> Figures:
    """Return Figures of columns: `means`, and their errors by noise `sigma` (of their sum; `pure`: Laplace), sampling.

    Each of `columns` is a `ColumnScale`. Means are centre of `query` + sum / size, a `MeanCount`; `spread` are the
    columns' deviations, None if unknown. `rows` is the largest number of rows of one person. They may be equal, so the
    sampling variance is at most `rows` times that of single rows; also in groups that a person's rows are spread over.
    """
    number, most = len(columns), np.array([column.means[1] - column.means[0] for column in columns])
    # error of sum / size to first order: noise of the sum, and noise of the size times `pull`
    direct = np.minimum(sigma * np.array(query.scale) / size.value, most)
    pull = np.zeros(number)
    if size.noise:
        # derivative of centre + sum / size by the size
        pull = (np.array(query.centre) - means) / size.value
        pull = np.clip(pull, -most / size.noise, most / size.noise)
    means = np.array([column.within(mean) for column, mean in zip(columns, means, strict=True)])
    noise = np.hypot(direct, pull * size.noise)
    deviation = bounded(columns, means, noise) if spread is None else spread
    centre, reach = np.array(query.centre), np.array(query.scale) * query.clip
    return Figures(
        value=means,
        direct=direct,
        fourth=3.0 * pure * direct**4,
        size=np.full(number, size.value),
        size_noise=np.full(number, size.noise),
        pull=pull,
        spread=np.full(number, np.nan) if spread is None else spread,
        sampling=deviation * math.sqrt(rows / size.value),
        weighting=np.zeros(number),
        low=np.maximum(centre - reach, [column.low for column in columns]),
        high=np.minimum(centre + reach, [column.high for column in columns]),
        design=np.full(number, np.nan),
    )


def bounded(columns: Sequence[ColumnScale], means: Floats, noise: Floats) -> Floats:
    """Return an array, one a `ColumnScale`: the largest possible standard deviation, root of (high - m)(m - low).

    The mean m is where that is largest within the noise of `means`, an array, of deviations `noise`, an array too.
    """
    found = []
    for column, mean, error in zip(columns, means, noise, strict=True):
        middle = (column.low + column.high) / 2
        # Bhatia and Davis: a variance between bounds is at most (high - m)(m - low), largest for m in the middle
        m = column.within(mean + math.copysign(min(2 * error, abs(middle - mean)), middle - mean))
        found.append(math.sqrt((column.high - m) * (m - column.low)))
    return np.array(found)


def merged(schema: Schema, columns: Sequence[str], parts: Sequence[Figures], *, pure: bool, bounds: bool) -> Estimate:
    """Return one Estimate, in a schema, of the means of all `columns`, from `parts`, Figures of some columns each.

    `pure` is True for Laplace noise, `bounds` if deviations are bounds and no estimates.
    """
    keys = vars(parts[0])
    joined = Figures(**{key: np.concatenate([getattr(part, key) for part in parts]) for key in keys})
    return Estimate(schema, tuple(columns), joined, laplace=pure, conservative=bounds or schema.max_multiplicity > 1)
