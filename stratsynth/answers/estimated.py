"""Queries of means that a release has estimated itself: a group's mean, with the intervals of that estimate.

A group is asked by the levels that `by` and `where` leave; the answer exists if the release has a mean of that group,
or of all records. The latter weighs groups by the release's shares if it was made of groups.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stratsynth.answers.query import Query
from stratsynth.errors import UsageError
from stratsynth.models.estimate import Estimate
from stratsynth.models.intervals import half_width
from stratsynth.schema import Numeric
from stratsynth.schema.where import level_of, levels_of

if TYPE_CHECKING:
    from stratsynth.models import Model
    from stratsynth.schema import Schema

Group = Mapping[str, frozenset[str]]
"""Column -> levels that a group has."""
HIDDEN = "noise hides how many such rows there are, or makes the interval half as wide as all that can be"
WEIGHED = "the groups' means by the release's shares"
DESIGN = ("design_low", "design_high")
"""Columns of the design-based interval, the last of a result."""


@dataclass(frozen=True)
class Mean:
    """One mean with the variance and fourth cumulant of its error: of noise alone, and of noise and sampling.

    Sampling is simple random sampling in each group, with the design error of public shares where that is known.
    """

    value: float
    noise: tuple[float, float]
    both: tuple[float, float]
    note: str
    design: float = math.nan
    """Standard deviation of the design error of the public shares that the mean is weighted by; NaN where there are
    none, or it is not known."""

    def less(self, other: Mean) -> Mean:
        """Return this Mean minus the Mean `other` of a disjoint group with independent noise; variances add up."""
        noise, both = (
            (one[0] + two[0], one[1] + two[1]) for one, two in ((self.noise, other.noise), (self.both, other.both))
        )
        said = "; ".join(dict.fromkeys(filter(None, (self.note, other.note))))
        # shares may be of one survey: deviations add up at most, whatever their correlation
        return Mean(self.value - other.value, noise, both, said, self.design + other.design)


def estimated(model: Model, query: Query) -> dict[str, list[Any]]:
    """Return a dict from each of `FIGURES`, `DESIGN` to a list, one entry a cell of the query, from a model of means.

    Raises:
        UsageError: A release without means, or a query for another statistic than the mean of one of its columns.
    """
    if not isinstance(model, Estimate):
        raise UsageError("query: this release has no noisy tables to answer from, and holds no means.")
    means = " or ".join(model.columns)
    if query.statistic != "mean":
        raise UsageError(f'query: this release holds means alone; ask for the statistic "mean" of {means}.')
    query.check(model.schema)
    if query.columns[0] not in model.columns:
        raise UsageError(f"query: this release has no mean of {query.columns[0]}; it has those of {means}.")
    cells = list(itertools.product(*(model.schema.levels(name) for name in query.by)))
    found = [_compared(model, query, dict(zip(query.by, cell, strict=True))) for cell in cells]
    rows = [{**_row(model, query, mean), **_based(model, query, mean)} for mean in found]
    return {name: [row[name] for row in rows] for name in (*_KEYS, *DESIGN)}


def _compared(model: Estimate, query: Query, cell: Mapping[str, str]) -> Mean | str:
    """Return the `Mean` that a model of means has in a `cell` of a query, less that of the cell it is compared with.

    Or a text: why there is none. The cell maps columns to levels.
    """
    mean = _mean(model, query, cell)
    if query.versus and isinstance(mean, Mean):
        versus = {name: level_of(model.schema, name, level) for name, level in query.versus.items()}
        other = _mean(model, query, {**cell, **versus})
        same = all(cell[name] == level for name, level in versus.items())
        if isinstance(other, Mean):
            other = Mean(mean.value, (-mean.noise[0], 0.0), (-mean.both[0], 0.0), "", -mean.design) if same else other
            mean = mean.less(other)
        else:
            mean = other
    return mean


def _based(model: Estimate, query: Query, mean: Mean | str) -> dict[str, float]:
    """Return a mapping from each of `DESIGN` to an end of the mean's design-based interval, for a query; NaN if none.

    The model of means has the columns' bounds.
    """
    if isinstance(mean, str) or math.isnan(mean.design):
        return dict.fromkeys(DESIGN, math.nan)
    half = half_width(mean.noise[0] + mean.design**2, mean.noise[1], query.level)
    ends = [mean.value - half, mean.value + half]
    if not query.versus:
        column = cast("Numeric", model.schema.column(query.columns[0]))
        ends = [min(max(end, column.lower), column.upper) for end in ends]
    return dict(zip(DESIGN, ends, strict=True))


def _row(model: Estimate, query: Query, mean: Mean | str) -> dict[str, Any]:
    """Return a dict, figure -> value, of a cell of a query to a model of means: of its Mean, or a text why none."""
    if isinstance(mean, str):
        return dict(zip(_KEYS, (*[np.nan] * 6, "not_estimable", np.nan, np.nan, mean), strict=True))
    inner, outer = (half_width(*error, query.level) for error in (mean.noise, mean.both))
    ends = [mean.value - inner, mean.value + inner, mean.value - outer, mean.value + outer]
    if not query.versus:
        column = cast("Numeric", model.schema.column(query.columns[0]))
        ends = [min(max(end, column.lower), column.upper) for end in ends]
    return dict(zip(_KEYS, (mean.value, mean.noise[0] ** 0.5, *ends, "ok", np.nan, np.nan, mean.note), strict=True))


_KEYS = ("estimate", "noise_sd", "noise_low", "noise_high", "low", "high", "status", "above", "model", "note")


def _mean(model: Estimate, query: Query, cell: Mapping[str, str]) -> Mean | str:
    """Return the `Mean` that a model of means has in one cell (column -> level) of a query.

    Or a sentence: why there is none.
    """
    schema, (name,) = model.schema, query.columns
    column = cast("Numeric", schema.column(name))
    if column.transform:
        return f"measured was the mean of {name} on its scale, {column.transform}; see the release's estimates"
    part = _groups(model).get(_key(schema, _asked(schema, query, cell)))
    if part is None:
        names = " and ".join(sorted({c for key in _groups(model) for c, _ in key}))
        return f"there are means of everybody{f' and of groups by {names}' if names else ''} alone"
    i, figures = model.columns.index(name), part.figures
    if part.status()[i] == "not_estimable":
        return HIDDEN
    noise = float(part.noise[i] ** 2 + figures.weighting[i] ** 2)
    design = float(figures.design[i])
    both = noise + float(figures.sampling[i] ** 2) + (0.0 if math.isnan(design) else design**2)
    said = [WEIGHED] if part.parts else []
    said += [] if math.isnan(design) else [f"design_low to design_high is design-based, by {part.design_by}"]
    if figures.low[i] > column.lower or figures.high[i] < column.upper:
        said.append(f"values beyond {figures.low[i]:.6g} to {figures.high[i]:.6g} were taken for these ends")
    return Mean(
        float(figures.value[i]), (noise, float(part.fourth[i])), (both, float(part.fourth[i])), "; ".join(said), design
    )


def _asked(schema: Schema, query: Query, cell: Mapping[str, str]) -> Group:
    """Return a mapping, column -> set of the schema's levels, that a `cell` (column -> level) and a query allow."""
    found = {name: frozenset({level}) for name, level in cell.items()}
    for name, levels in query.where.items():
        several = frozenset(levels_of(schema, name, levels))
        found[name] = found[name] & several if name in found else several
    return found


def _groups(model: Estimate) -> dict[frozenset[tuple[str, frozenset[str]]], Estimate]:
    """Return a mapping from each group's key (`_key`) to its `Estimate`, of all groups of a model of means.

    Where strata are split again, the innermost ones have an entry.
    """
    found = {}
    for path, part in model.walk():
        levels: dict[str, Sequence[str]] = {name: some for stratum in path for name, some in stratum.items}
        found[_key(model.schema, {name: frozenset(some) for name, some in levels.items()})] = part
    return found


def _key(schema: Schema, group: Group) -> frozenset[tuple[str, frozenset[str]]]:
    """Return a group, column -> set of levels, as a hashable set of pairs, without those of all levels in a schema."""
    return frozenset((name, some) for name, some in group.items() if some != frozenset(schema.levels(name)))
