"""Sensitivity of a stratified release's overall results to its weights, and the shares at which they tip.

Needs a release's model and weights only: nothing private is read, and nothing is spent. Results within groups do
not depend on the weights at all. The groups' own figures are exact, from their models' marginals; only if a group's
model ignores the schema's rules, so that rows are drawn again, are they those of a large sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.answers.tables import label_of
from stratsynth.checks import is_texts, number, quoted_value
from stratsynth.errors import UsageError, WeightsError
from stratsynth.files.outside import level, records
from stratsynth.models.rules import draw_allowed, forbidden
from stratsynth.release.reweigh import RatioOfShares, extreme, root, spread, together
from stratsynth.schema import Numeric
from stratsynth.schema.inside import Inside, middles
from stratsynth.schema.typed import figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stratsynth.certificate import ComparisonStated
    from stratsynth.models import Codes, Mixture
    from stratsynth.release.release import Release
    from stratsynth.strata import Stratum

    Floats = NDArray[np.float64]

DRAWN = 20_000
"""Number of rows drawn of a group whose model's marginals are not those of its samples."""
LEAST_FORBIDDEN = 1e-6
"""Mass on forbidden rows below which no figure that is shown changes."""


@dataclass(frozen=True)
class Tip:
    """Shares of one group at which a result tips, if the other groups keep their proportions."""

    stratum: str
    """Levels of the group joined by `|`."""
    share: float
    inside: float | None
    """Result within the group; None if nobody there has a number."""
    below: float | None
    """Share below which the result has moved; None if even 0 does not move it."""
    above: float | None
    """Share above which the result has moved; None if even 1 does not move it."""
    off: float | None
    """Smaller of the two distances, as a part of the share; None if it tips nowhere, or the share is 0."""
    difference: float | None = None
    """Measured / declared - 1 of the group, as the certificate has it; None where it has none."""
    verdict: str = ""
    """The certificate's verdict on the group's share; empty where it has none."""


@dataclass(frozen=True)
class Result:
    """One overall result: the mean of a numeric column, or the share of a level."""

    column: str
    level: str | None
    """Level whose share it is; None for a mean over the rows that have a number."""
    value: float
    moved: float
    """Difference from `value` that counts as moved: threshold times the mean, or the threshold for a share."""
    low: float | None
    """Smallest value over the intervals; None without intervals."""
    high: float | None
    together: float | None
    """Relative error of all shares at once from which it can move; None if 100 % is not enough."""
    tips: tuple[Tip, ...]
    """Every group, the one that tips first at the head."""
    measured: float | None = None
    """The result with the groups' measured sizes for shares; None where they were not measured."""

    @property
    def first(self) -> float:
        """Relative error of the share of the most delicate group; infinite if none tips."""
        off = self.tips[0].off if self.tips else None
        return math.inf if off is None else off


@dataclass(frozen=True)
class WeightSensitivity:
    """All results asked for, as functions of the weights."""

    threshold: float
    intervals: str
    """Description of the bands; empty without bands."""
    results: tuple[Result, ...]
    drawn: tuple[str, ...]
    """Groups whose figures come from `DRAWN` rows each, since rules reject many of their model's rows."""
    follow: str = "declared"
    """Sizes of the groups among the rows: "declared" shares, or "measured" sizes."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON values: `threshold`, `intervals`, `results` (a list of dicts), `drawn`, `follow`."""
        return asdict(self)


def weight_sensitivity(
    release: Release,
    *,
    threshold: float = 0.02,
    columns: Sequence[str] | None = None,
    off: float | None = None,
    intervals: Any = None,
) -> WeightSensitivity:
    """Return a `WeightSensitivity`: how overall results change with the strata's weights, and errors that move them.

    Shares add up to one throughout.

    Args:
        release: A stratified release of rows.
        threshold: The difference that counts as moved: relative for a mean, in points for a level's share
            (0.02 is 2 %, or 2 points).
        columns: The columns of the results; all but those that define the strata by default.
        off: The relative error of every share for which bands are computed.
        intervals: Intervals of shares for which bands are computed: a CSV file or frame with the strata's columns,
            `low` and `high`. A group that is not named keeps its share.

    Returns:
        Each result with its band, and for each group the shares at which the result has moved.

    Raises:
        UsageError: A release without strata or without rows, or an invalid argument.
        WeightsError: Intervals of unknown groups, or in which no shares add up to 1.
    """
    if not hasattr(release, "model"):
        raise UsageError(f"weights: give a release, not {quoted_value(release)}; Release.load reads a folder.")
    if release.certificate.get("benchmark"):
        raise UsageError(
            "weights: the rows of this release follow published totals, not its shares alone. Study the release as it "
            "was before its benchmark."
        )
    model = release.model.mixture()
    number("weights: the threshold", threshold, above=0, hint=", such as 0.02 for two percent")
    number("weights: off", off, least=0, optional=True, hint=", such as 0.1 for a tenth of each share")
    if off is not None and intervals is not None:
        raise UsageError("weights: give off or intervals, not both.")
    if columns is not None and not is_texts(columns):
        listed = f'; write ["{columns}"]' if isinstance(columns, str) else ""
        raise UsageError(f"weights: columns is a list of names{listed}.")
    strata = list(model.parts)
    shares = np.array([model.weights[stratum] for stratum in strata])
    box, said = None, ""
    if off is not None:
        box, said = spread(shares, off), f"every share off by up to {100 * off:g} %, adding up to 1"
    elif intervals is not None:
        box, said = _intervals(intervals, strata, shares), "the intervals given, adding up to 1"
    own = strata[0].columns  # what the strata are made of: its overall results are the weights themselves
    wanted = [name for name in model.schema.names if name not in own] if columns is None else columns
    samples = {s: _sample(model, s) for s in strata if forbidden(model.parts[s]) > LEAST_FORBIDDEN}
    sizes = GroupSizes.of(release, strata)
    results = [
        _result(column, name, quotient, strata, shares, threshold, box, sizes)
        for column in wanted
        for name, quotient in _quotients(model, column, samples, release.inside.get(column))
    ]
    drawn = tuple(stratum.label for stratum in samples)
    kept = tuple(r for r in results if r is not None)
    follow = release.certificate.get("weights", {}).get("groups", "declared")
    return WeightSensitivity(float(threshold), said, kept, drawn, follow)


@dataclass(frozen=True, eq=False)
class GroupSizes:
    """Measured sizes of a release's groups, and the certificate's verdicts on their shares."""

    shares: Floats | None
    """Shares by measured sizes, in the order of the strata; None where no sizes were measured."""
    stated: Mapping[str, ComparisonStated]
    """Comparison of each group by its label; empty where the certificate has none."""

    @classmethod
    def of(cls, release: Release, strata: Sequence[Stratum]) -> GroupSizes:
        """Return the `GroupSizes` of the groups `strata`, by the release's certificate; empty if it compares none."""
        from stratsynth.release.grouping import measured_rows

        if not release.certificate.get("agreement"):  # an older certificate, or none
            return cls(None, {})
        rows = measured_rows(release)
        labels = [label_of(stratum, release.statement) for stratum in strata]
        known = {c.stratum: c for c in release.statement.declared_and_measured if c.share is not None}
        shares = None if rows is None else np.array([rows[label] for label in labels])
        named = {stratum.label: label for stratum, label in zip(strata, labels, strict=True)}
        return cls(shares, {label: known[name] for label, name in named.items() if name in known})


def _sample(model: Mixture, stratum: Stratum) -> Codes:
    """Return DRAWN rows of the part of a mixture `model` for `stratum`, {column: array of level numbers}.

    They break no rule; the seed is 0.
    """
    part, rng = model.parts[stratum], np.random.default_rng(0)
    return draw_allowed(part.schema, DRAWN, rng, lambda number, moved: part.counted(number, rng, {}, moved))


def _quotients(
    model: Mixture, column: str, samples: Mapping[Stratum, Codes], law: Inside | None
) -> Iterator[tuple[str | None, RatioOfShares]]:
    """Yield (None, mean) of a numeric `column`, by the means of its bins; else (level, share) for each level.

    Means and shares are `RatioOfShares` of the mixture's groups, its strata; `samples` maps strata whose models know no
    rules to rows, {column: array}; `law` is the `Inside` of numbers within bins, None for the schema's.
    """
    kind = model.schema.column(column)
    tables = np.array(
        [
            np.bincount(samples[stratum][column], minlength=kind.size) / DRAWN
            if column in samples.get(stratum, ())
            else model.inside(stratum, column)
            for stratum in model.parts
        ]
    )
    if isinstance(kind, Numeric):
        means = np.array(middles(kind, law))
        real = tables[:, : len(means)]
        yield None, RatioOfShares(real @ means, real.sum(axis=1))
    else:
        for code, name in enumerate(kind.all_levels):
            yield name, RatioOfShares(tables[:, code], np.ones(len(tables)))


def _result(
    column: str,
    name: str | None,
    quotient: RatioOfShares,
    strata: Sequence[Stratum],
    shares: Floats,
    threshold: float,
    box: tuple[Floats, Floats] | None,
    sizes: GroupSizes,
) -> Result | None:
    """Return the Result of `column`, or its level `name`: a `RatioOfShares` at `shares`, an array by group, and Tips.

    None if it has no value, or is a mean of 0. `strata` are the groups, `threshold` is what counts as moved, `box` two
    arrays, lower and upper bounds of the shares, or None, `sizes` a `GroupSizes` with the measured ones.
    """
    value = quotient.at(shares)
    if math.isnan(value):
        return None
    moved = threshold * abs(value) if name is None else threshold
    if moved == 0:  # a mean of exactly 0 has no percent of itself
        return None
    tips = [_tip(quotient, strata, shares, i, value, moved, sizes) for i in range(len(strata))]
    measured = None if sizes.shares is None else quotient.at(sizes.shares)
    tips.sort(key=lambda tip: math.inf if tip.off is None else tip.off)
    low, high = (extreme(quotient, shares, *box, sign) for sign in (-1, 1)) if box is not None else (None, None)
    measured = None if measured is None or math.isnan(measured) else measured
    return Result(column, name, value, moved, low, high, together(quotient, shares, moved), tuple(tips), measured)


def _tip(
    quotient: RatioOfShares,
    strata: Sequence[Stratum],
    shares: Floats,
    i: int,
    value: float,
    moved: float,
    sizes: GroupSizes,
) -> Tip:
    """Return the `Tip` of group number `i` of `strata`: its shares at which a `RatioOfShares` is moved from `value`.

    `moved` is by how much. `shares` is an array of all groups' shares, `sizes` a `GroupSizes` with the verdicts on
    them.
    """
    share = float(shares[i])
    found = [root(quotient, shares, i, value + sign * moved) for sign in (1, -1)]
    below = max((s for s in found if s is not None and s < share), default=None)
    above = min((s for s in found if s is not None and s > share), default=None)
    gaps = [abs(s - share) / share for s in (below, above) if s is not None and share > 0]
    mean = float(quotient.a[i] / quotient.b[i]) if quotient.b[i] > 0 else None
    stated = sizes.stated.get(strata[i].label)
    said = (None, "") if stated is None else (stated.difference, stated.verdict)
    return Tip(strata[i].label, share, mean, below, above, min(gaps, default=None), *said)


def _intervals(given: Any, strata: Sequence[Stratum], shares: Floats) -> tuple[Floats, Floats]:
    """Return two arrays, lower and upper ends of the shares of `strata`, by a file or frame `given`.

    Groups not in it keep their entry of the array `shares`. WeightsError for other columns, groups that are no stratum
    or named twice, ends not in order in 0 to 1, and no shares of sum 1.
    """
    low, high = shares.copy(), shares.copy()
    places = {frozenset(zip(stratum.columns, stratum.names, strict=True)): i for i, stratum in enumerate(strata)}
    seen: set[int] = set()
    for line in records("weights", given):
        if not {"low", "high"} <= line.keys():
            raise WeightsError("weights: intervals have the strata's columns, `low` and `high`.")
        items = frozenset((c, level(v)) for c, v in line.items() if c not in ("low", "high"))
        name = " ".join(f"{column}={value}" for column, value in sorted(items))
        place = places.get(items)
        if place is None or place in seen:
            raise WeightsError(f"weights: {name} {'has two intervals' if place is not None else 'is no stratum'}.")
        seen.add(place)
        low[place], high[place] = figure(line["low"]), figure(line["high"])
        if np.isnan(low[place]) or np.isnan(high[place]):
            raise WeightsError(f"weights: the interval of {name} is not two numbers.")
        if not 0 <= low[place] <= high[place] <= 1:
            raise WeightsError(f"weights: the interval of {name} must be 0 <= low <= high <= 1.")
    if not low.sum() <= 1 + 1e-9 or not high.sum() >= 1 - 1e-9:
        raise WeightsError(
            f"weights: no shares within these intervals add up to 1: they add up to {low.sum():.4g} to "
            f"{high.sum():.4g}. Give intervals for more groups, or wider ones."
        )
    return low, high
