"""Private means with their errors: the model of mechanisms that release numbers, not rows.

An estimate has one mean for each of some numeric columns, on the scale that the column declares. The weighted mean of
strata's estimates is an estimate too, and keeps its parts: with parts from COINPRESS and exact public weights, that is
STRATCOINPRESS.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from stratsynth.errors import ReleaseError, UsageError
from stratsynth.models.base import Model, Returns, State
from stratsynth.models.intervals import half_width
from stratsynth.models.mixture import opened, stored
from stratsynth.schema import Numeric, Schema
from stratsynth.strata import Stratum, StratumPath

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.models.mixture import Mixture
    from stratsynth.report.page import Section
    from stratsynth.weights import Resolved

SURE = 3.0
"""Noise standard deviations that a group's size must exceed 0 by; below, its means are not estimable."""


@dataclass(frozen=True)
class Figures:
    """Means with their error terms: arrays with one entry per column, on the column's scale."""

    value: NDArray[np.float64]
    direct: NDArray[np.float64]
    """Standard deviation of the noise added to the sum, as it appears in the mean."""
    fourth: NDArray[np.float64]
    """Fourth cumulant of that noise: 0 for Gaussian noise, 3 direct^4 for Laplace noise."""
    size: NDArray[np.float64]
    """Number of records in the mean: public, or noisy."""
    size_noise: NDArray[np.float64]
    """Standard deviation of the noise in `size`, in records; 0 for a public size."""
    pull: NDArray[np.float64]
    """Change of the mean per record that noise adds to `size`."""
    spread: NDArray[np.float64]
    """Standard deviation of one record's value, from a noisy sum of squares; NaN if that was not measured."""
    sampling: NDArray[np.float64]
    """Standard deviation of the sampling error: mean of the records minus mean of their population."""
    weighting: NDArray[np.float64]
    """Standard deviation due to uncertain weights; 0 within a group, and for exact weights."""
    low: NDArray[np.float64]
    """Lower clipping bound: smaller values count as this one. No interval includes the effect on the mean."""
    high: NDArray[np.float64]
    """Upper clipping bound: larger values count as this one."""
    design: NDArray[np.float64]
    """Standard deviation due to the design of the survey that public shares were counted in, by its replicate weights;
    NaN where no such shares are in the mean, or their error is not known."""

    def check(self, number: int) -> None:
        """Raise ReleaseError unless these arrays have `number` finite floats each, in the range of their field."""
        for f in fields(self):
            array = getattr(self, f.name)
            sound = array.dtype == np.float64 and array.shape == (number,)
            if sound and f.name in {"value", "pull", "low", "high"}:
                sound = bool(np.isfinite(array).all())
            elif sound:
                sound = bool(((array >= 0) | (np.isnan(array) & (f.name in {"spread", "design"}))).all())
            if not sound:
                raise ReleaseError(f"model: the estimates' {f.name} is damaged.")


@dataclass(frozen=True)
class Estimate(Model):
    """Means of some columns over all records that the schema describes."""

    kind: ClassVar[str] = "estimate"
    returns: ClassVar[Returns] = Returns.ESTIMATES
    schema: Schema
    columns: tuple[str, ...]
    figures: Figures
    laplace: bool = False
    """True if sizes have Laplace noise (pure epsilon), False for Gaussian noise."""
    conservative: bool = False
    """True if `sampling` is an upper bound from public information, not an estimate."""
    parts: Mapping[Stratum, Estimate] = field(default_factory=dict)
    """Estimates of the groups that this one combines; empty for a single group."""
    shares: Mapping[Stratum, float] = field(default_factory=dict)
    """Weights of the groups."""
    design_by: str = ""
    """Method and source of `design`, such as "80 replicate weights of U.S. Census Bureau, ..."; empty without one."""

    @property
    def noise(self) -> NDArray[np.float64]:
        """Array by column: standard deviation of the privacy noise in each mean, on the column's scale."""
        f = self.figures
        # noise in the sum, and noise in the size it is divided by
        return np.hypot(f.direct, f.pull * f.size_noise)

    @property
    def fourth(self) -> NDArray[np.float64]:
        """Array by column: fourth cumulant of the privacy noise in each mean, on its scale; 0 for Gaussian noise."""
        f = self.figures
        # a Laplace variable of variance v has the fourth cumulant 3 v^2
        return f.fourth + 3.0 * self.laplace * (f.pull * f.size_noise) ** 4

    def interval(self, level: float = 0.95, *, sampling: bool = True) -> tuple[Any, Any]:
        """Return (lower ends, upper ends) at `level`, arrays by column on its scale, for noise, weights and sampling.

        Sampling is taken for simple random sampling in each group; shares whose design error is not known are taken for
        exact. The interval is for the mean of values clipped at `low` and `high`: if many people lie beyond, widen
        scale or radius. Without `sampling` it is for the mean of the very records that were summed.
        """
        f = self.figures
        more = f.sampling**2 + np.nan_to_num(f.design) ** 2 if sampling else 0.0
        return self._ends(self.noise**2 + f.weighting**2 + more, level)

    def design_interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Return (lower ends, upper ends), arrays by column on its scale, for noise and the shares' design error.

        The interval, of confidence `level`, is for the groups' own records, weighted by the true shares of the
        population that the survey behind the shares was drawn from. How the private records were drawn is not in it:
        their replicate weights are not asked. NaN where `design` is.
        """
        return self._ends(self.noise**2 + self.figures.weighting**2 + self.figures.design**2, level)

    def _ends(self, variance: NDArray[np.float64], level: float) -> tuple[Any, Any]:
        """Return (lower ends, upper ends), arrays by column, at `level`, for errors of `variance`; NaN where it is."""
        width = np.array(
            [math.nan if math.isnan(v) else half_width(v, k, level) for v, k in zip(variance, self.fourth, strict=True)]
        )
        return self.figures.value - width, self.figures.value + width

    def status(self) -> list[str]:
        """Return a list with `ok`, `small` or `not_estimable` for each column's mean.

        `small`: the noise exceeds the sampling error. `not_estimable`: the group may be empty given the noise in its
        size, or noise alone makes the interval at least half as wide as the column's public bounds.
        """
        from stratsynth.schema.transforms import bounds

        f, found = self.figures, []
        for i, name in enumerate(self.columns):
            low, high = bounds(cast("Numeric", self.schema.column(name)))
            nobody = f.size[i] <= max(SURE * f.size_noise[i], 1.0)
            # 4 half widths at least the range: the interval is at least half as wide
            if nobody or 4 * half_width(self.noise[i] ** 2, self.fourth[i], 0.95) >= high - low:
                found.append("not_estimable")
            else:
                found.append("small" if self.noise[i] > f.sampling[i] else "ok")
        return found

    def estimates(self, level: float = 0.95) -> pd.DataFrame:
        """Return a frame with a row for each column, of all records and each group, in the data's unit, at `level`.

        The interval of a mean that is not estimable is the whole range between the public bounds.

        `value`, `lower` and `upper` are transformed back from the column's scale, and kept within its bounds. On a
        nonlinear scale, `value` is the number whose transform is the mean of the transforms; `bias` is `value` minus
        the mean of the numbers if their transforms are normal, NaN if the spread was not measured. If `clipped`, values
        beyond `clip_low` and `clip_high` counted as these, which no interval includes; else these are the column's
        bounds. The other columns are on the column's scale.

        `lower` and `upper` are for a population of which each group's records would be a simple random sample: noise,
        uncertain weights, sampling. `design_lower` and `design_upper` are design-based, by what `design_by` names:
        noise, and the design error of the public shares that the groups' means are weighted by (`design`, its standard
        deviation); not how the private records were drawn. NaN for a group, in whose mean is no share, and for shares
        whose design error is not known.
        """
        import pandas as pd

        return pd.DataFrame([row for path, part in self.walk() for row in part._rows(path, level)])  # noqa: SLF001

    def walk(self, path: tuple[Stratum, ...] = ()) -> Iterator[tuple[tuple[Stratum, ...], Estimate]]:
        """Yield (path, `Estimate`) pairs, paths tuples of strata: this one, at `path`, then all below it."""
        yield path, self
        for stratum, part in self.parts.items():
            yield from part.walk((*path, stratum))

    def _rows(self, path: tuple[Stratum, ...], level: float) -> Iterator[dict[str, Any]]:
        """Yield a dict for each column's mean at `level`, a row of `estimates`, in the strata of `path`."""
        from stratsynth.schema.transforms import backward, mean_back
        from stratsynth.strata import label

        f, status = self.figures, self.status()
        (lower, upper), design = self.interval(level), self.design_interval(level)
        for i, name in enumerate(self.columns):
            column = cast("Numeric", self.schema.column(name))
            ends = backward(column, np.array([f.value[i], lower[i], upper[i], f.low[i], f.high[i]]))
            value, low, high, clip_low, clip_high = np.clip(ends, column.lower, column.upper)
            based = np.clip(backward(column, np.array([end[i] for end in design])), column.lower, column.upper)
            if status[i] == "not_estimable":  # only the public bounds are known
                low, high = column.lower, column.upper
                based = np.where(np.isnan(based), np.nan, [low, high])
            yield {
                "stratum": label(path),
                "column": name,
                "value": value,
                "lower": float(low),
                "upper": float(high),
                "status": status[i],
                "noise": self.noise[i],
                "sampling": f.sampling[i],
                "weighting": f.weighting[i],
                "conservative": self.conservative,
                "size": f.size[i],
                "size_noise": f.size_noise[i],
                "spread": f.spread[i],
                "scale": column.transform or "",
                "clip_low": clip_low,
                "clip_high": clip_high,
                "clipped": bool(clip_low > column.lower or clip_high < column.upper),
                "bias": value - mean_back(column, f.value[i], f.spread[i]) if column.transform else 0.0,
                "design": f.design[i],
                "design_lower": float(based[0]),
                "design_upper": float(based[1]),
                "design_by": "" if math.isnan(f.design[i]) else self.design_by,
            }

    @classmethod
    def combined(cls, schema: Schema, parts: Mapping[Stratum, Any], weights: Resolved) -> Estimate:
        """Return the estimate, in a schema, of all records: the strata's means in `parts`, by `Resolved` shares.

        The shares' covariance, or the design error of public ones, enters the errors. A column that may lack a number
        is weighted by the strata's estimated sizes instead.
        """
        from stratsynth.models.weighted import weighted

        return weighted(
            schema, parts, weights.shares, weights.covariance, of_rows=weights.of_rows, design=weights.design
        )

    def product(self, rows: pa.Table | None) -> Mapping[str, pa.Table]:
        """Return {"estimates": table of means with intervals of 95 %}; `rows` is not used."""
        import pyarrow as pa

        return {"estimates": pa.Table.from_pandas(self.estimates(), preserve_index=False).replace_schema_metadata()}

    def mixture(self) -> Mixture:
        """Raise a UsageError, no `Mixture`: weights cannot be varied, as their effect is part of the intervals."""
        raise UsageError(
            "weights: this release holds estimates, whose intervals allow for their weights where these are of a "
            "sample, noisy, or state their own error; to see others, take the weighted mean of the groups' rows of "
            "`estimates()`."
        )

    def sections(self, named: Callable[[str], str]) -> Sequence[Section]:
        """Return a list of one Section with the means of all records and each group; `named` gives a label's name."""
        from stratsynth.models.means_section import means_section

        return [means_section(self.estimates(), named)]

    def foretell(self, path: StratumPath) -> str:
        """Return a line of text with the standard deviation of the noise in each mean of the group at `path`."""
        part = dict(self.walk())[path]
        found = zip(part.columns, part.noise, part.status(), strict=True)
        return "noise in means: " + ", ".join(
            f"{name} {'not estimable' if status == 'not_estimable' else f'{noise:.2g}'}"
            for name, noise, status in found
        )

    def state(self) -> State:
        """Return a `State`: figures, columns and law of the noise, then the parts' states, each with its share."""
        arrays = {f.name: getattr(self.figures, f.name) for f in fields(self.figures)}
        own = {"columns": list(self.columns), "laplace": self.laplace, "conservative": self.conservative}
        own |= {"design_by": self.design_by} if self.design_by else {}
        inner = stored(self.parts, lambda stratum: {"names": list(stratum.names), "share": self.shares[stratum]})
        return State({**own, **inner.facts}, {**arrays, **inner.arrays})

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Estimate:
        """Return the `Estimate` that a `State` holds, of numeric columns of a schema; ReleaseError if damaged."""
        facts = state.facts
        columns = tuple(facts["columns"])
        if not columns or not all(isinstance(schema.column(name), Numeric) for name in columns):
            raise ReleaseError("model: estimates are of numeric columns.")
        unknown = {"design": np.full(len(columns), np.nan)}  # versions up to 0.3.0 did not state it
        figures = Figures(**{f.name: np.asarray({**unknown, **state.arrays}[f.name]) for f in fields(Figures)})
        figures.check(len(columns))
        parts, shares = {}, {}
        for stratum, (part, inside, own) in opened(schema, state).items():
            parts[stratum], shares[stratum] = cls.from_state(inside, own), float(part["share"])
            if not math.isfinite(shares[stratum]) or parts[stratum].columns != columns:
                raise ReleaseError("model: a group's estimates are damaged.")
        by = facts.get("design_by", "")
        if not isinstance(by, str):
            raise ReleaseError("model: the design of the estimates is damaged.")
        return cls(schema, columns, figures, facts["laplace"] is True, facts["conservative"] is True, parts, shares, by)
