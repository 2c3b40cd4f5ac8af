"""`intervals`: coverage and half widths of quantiles, means, and rates where small strata lack a table.

Counts and clipped sums of a population are exact, and each of `seeds` simulated fits adds fresh noise by the library's
sampler. Truth is computed from the numbers themselves, not from bins: a quantile is the smallest number that at least
this part of the rows does not exceed; a measured mean is that of min(x, clip), and what lies above the clip is judged
by itself. Ten whole fits of `independent` and `fixed` follow. Without `--acs` the people are those of the built-in
census; with it, a state's person records (Parquet).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np

import stratsynth as ss
from stratsynth import census
from stratsynth.answers import Query
from stratsynth.answers.ask import answers
from stratsynth.answers.assumed import assumed
from stratsynth.answers.clipped import ClippedSum
from stratsynth.answers.squares import Squares
from stratsynth.answers.tables import Leaf, Noisy, Tables
from stratsynth.evaluation.scores.marginals import coded
from stratsynth.mechanisms import make
from stratsynth.noise.entropy import SYSTEM, Entropy
from stratsynth.noise.gaussian import sample
from stratsynth.strata import crossing
from studies.figures import Figure

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.answers.intervals import Answer
    from stratsynth.schema import Numeric

    Floats = NDArray[np.float64]

BY = ("SEX", "RAC1P")
COLUMNS = ("SEX", "RAC1P", "AGEP", "MAR", "PINCP")
LEVEL = 0.95
WITHIN = 0.02
"""Largest allowed distance of a measured mean's coverage from its level."""
SIGMA = 45.0
"""Standard deviation of noise in a count: a column among twenty at epsilon 1 and delta 1e-9, half of it for groups."""
RHO = 0.05 * 0.015 / 2
"""Price of a sum: half of 5 % of what epsilon 1 and delta 1e-9 come to."""
LARGE, TABLED = 1_500, 500
"""Smallest strata that have a sum of their own, and a table of MAR, in people."""
EDGES = (0, 1, 5001, 10001, 15001, 20001, 25001, 30001, 40001, 50001, 60001, 75001, 100001, 150001, 200001, 300001)
"""Inner ends of the bins of incomes."""
FITS = 10
"""Number of whole fits of each mechanism."""
FEW = 100
"""Smallest number of fits, and of intervals, with a verdict."""
NAMELESS = 1e6
"""Half width, in percent, above which the value is 0 and there is none."""
GROUPS: Mapping[str, tuple[str, ...]] = {"everybody": (), "by SEX": ("SEX",), "by RAC1P": ("RAC1P",)}
PARTS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)


def kinds() -> dict[str, tuple[Query, ...]]:
    """Questions, for everybody and by groups."""
    asked: dict[str, tuple[Query, ...]] = {}
    for name, by in GROUPS.items():
        some = tuple(Query(["PINCP"], by=by, statistic="quantile", quantile=q) for q in PARTS)
        asked |= {
            f"quantiles of incomes, {name}": some,
            f"means of incomes, {name}": (Query(["PINCP"], by=by, statistic="mean"),),
            f"medians of ages, {name}": (Query(["AGEP"], by=by, statistic="quantile"),),
            f"means of ages, {name}": (Query(["AGEP"], by=by, statistic="mean"),),
            f"means of ages in bands, {name}": (Query(["BAND"], by=by, statistic="mean"),),
        }
    versus = Query(["PINCP"], by=["SEX"], statistic="mean", versus={"SEX": "1"})
    rates = Query(["MAR"], by=["SEX"], statistic="rate")
    return {**asked, "differences of mean incomes, by SEX": (versus,), "rates of MAR, by SEX": (rates,)}


class People:
    """Rows, with exact counts and sums of their strata."""

    def __init__(self, frame: pd.DataFrame, clip: int, upper: int) -> None:
        """Keep rows with the columns of `schema()`; incomes are missing (N) of whom the question does not concern."""
        self.schema = schema(clip, upper)
        self.frame = frame.assign(BAND=frame["AGEP"])
        self.clip = clip
        self._true: dict[tuple[object, ...], Floats] = {}
        strata = crossing(self.schema, BY)
        codes = coded(self.frame, self.schema)
        self.cells = codes["SEX"].astype(np.int64) * self.schema.size("RAC1P") + codes["RAC1P"]
        self.labels = [stratum.label for stratum in strata]
        self.levels = [stratum.codes(self.schema) for stratum in strata]
        self.sizes = np.bincount(self.cells, minlength=len(strata))
        self.counts = {
            name: np.bincount(
                self.cells * self.schema.size(name) + codes[name], minlength=len(strata) * self.schema.size(name)
            ).reshape(len(strata), -1)
            for name in ("AGEP", "BAND", "MAR", "PINCP")
        }

    @cached_property
    def numbers(self) -> dict[str, Floats]:
        """Numbers of each column, within its bounds; NaN for none."""
        import pandas as pd

        found = {}
        for name in ("AGEP", "BAND", "PINCP"):
            column = self._column(name)
            values = pd.to_numeric(self.frame[name], errors="coerce").to_numpy(np.float64)
            found[name] = np.clip(values, column.lower, column.upper)
        return found

    def _column(self, name: str) -> Numeric:
        return cast("Numeric", self.schema.column(name))

    def true(self, query: Query, *, clip: float = math.inf) -> Floats:
        """Return the values of a query's cells, computed once; of numbers above `clip` as that."""
        key = (*query.kind, clip)
        if key not in self._true:
            self._true[key] = self._values(query, clip)
        return self._true[key]

    def _values(self, query: Query, clip: float) -> Floats:
        (name,) = query.columns
        if query.statistic == "rate":
            index = [self.frame[c].map(self.schema.column(c).codes.__getitem__).to_numpy() for c in query.cells]
            shape = self.schema.shape(query.cells)
            counts = np.bincount(np.ravel_multi_index(index, shape), minlength=int(np.prod(shape))).reshape(shape)
            return np.asarray((counts / counts.sum(axis=-1, keepdims=True)).ravel())
        numbers, groups = np.minimum(self.numbers[name], clip), [np.ones(len(self.frame), dtype=bool)]
        if query.by:
            groups = [(self.frame[query.by[0]] == level).to_numpy() for level in self.schema.levels(query.by[0])]
        own = [numbers[inside & np.isfinite(numbers)] for inside in groups]
        if query.statistic == "mean":
            found = np.array([part.mean() if len(part) else math.nan for part in own])
            return found - found[0] if query.versus else found
        parts = [np.quantile(part, query.order, method="inverted_cdf") if len(part) else math.nan for part in own]
        return np.array(parts)

    def simulated(self, entropy: Entropy) -> Squares:
        """Return least squares of one simulated fit: tables of each stratum, sums of large ones and of everybody."""
        leaves = []
        for i, (label, levels) in enumerate(zip(self.labels, self.levels, strict=True)):
            tables = [
                Noisy((name,), counts[i] + sample(SIGMA, counts.shape[1:], entropy), SIGMA**2)
                for name, counts in self.counts.items()
                if name != "MAR" or self.sizes[i] >= TABLED
            ]
            leaves.append(Leaf(label, levels, tables))
        return Squares(Tables(self.schema, frozenset(BY), tuple(leaves), (), tuple(self._sums(entropy))))

    def _sums(self, entropy: Entropy) -> Iterator[ClippedSum]:
        """Yield noisy sums of everybody and of large strata."""
        column = self._column("PINCP")
        centre, half = (column.lower + self.clip) / 2, (self.clip - column.lower) / 2
        off = np.nan_to_num(np.minimum(self.numbers["PINCP"], self.clip) - centre)
        exact = np.bincount(self.cells, weights=off, minlength=len(self.labels))
        sigma = half / math.sqrt(2 * RHO)
        noisy = [("", exact.sum()), *((self.labels[i], exact[i]) for i in np.flatnonzero(self.sizes >= LARGE))]
        for label, value in noisy:
            yield ClippedSum(label, "PINCP", centre, value + float(sample(sigma, (), entropy)), sigma)


def schema(clip: int, upper: int) -> ss.Schema:
    """Schema of people by sex and race: ages in single years and in bands, marital status, incomes with a clip."""
    made = census.schema()
    income = ss.Numeric(
        lower=-20_000,
        upper=upper,
        edges=(-20_000, *EDGES, upper + 1),
        spikes=(0,),
        integer=True,
        shape="pareto",
        transform_unit=1_000,
        clip=clip,
        not_applicable="N",
    )
    ages = ss.Numeric(lower=0, upper=99, integer=True)
    bands = ss.Numeric(lower=0, upper=99, bins=20, integer=True)
    columns = {"SEX": made.column("SEX"), "RAC1P": made.column("RAC1P"), "AGEP": ages, "BAND": bands}
    return ss.Schema({**columns, "MAR": made.column("MAR"), "PINCP": income})


def people(acs: str | None, rows: int = 100_000) -> People:
    """Return simulated people, or a state's person records."""
    if acs is None:
        frame = census.make(rows)[list(COLUMNS)]
        return People(frame.assign(PINCP=frame["PINCP"].astype("string").fillna("N")), 300_000, 1_000_000)
    import pandas as pd

    frame = pd.read_parquet(acs, columns=list(COLUMNS))
    texts = {
        name: frame[name].astype("Int64").astype("string").fillna("N") for name in ("SEX", "RAC1P", "MAR", "PINCP")
    }
    return People(frame.assign(AGEP=frame["AGEP"].astype(np.int64), **texts), 1_000_000, 5_000_000)


@dataclass(eq=False)
class Tally:
    """Intervals of one kind, over all fits."""

    bounds: bool
    """True if they are to hold at least as often as their level says, not just as often."""
    held: list[bool] = field(default_factory=list)
    half: list[float] = field(default_factory=list)
    """Half widths, in percent of the true value."""
    beyond: list[bool] = field(default_factory=list)
    """Of means up to a clip: true where the interval with what may lie above it holds the mean itself."""


Tallies = dict[str, Tally]


def judge(people: People, squares: Squares, found: Tallies) -> None:
    """Hold the intervals of one fit against the truth."""
    for name, queries in kinds().items():
        for query in queries:
            (answer,) = answers(squares, [query])
            if query.statistic == "rate" and not np.isfinite(answer.estimate).all():
                answer = assumed(squares, query) or answer
            _held(name, answer, people, query, found)


def _held(name: str, answer: Answer, people: People, query: Query, found: Tallies) -> None:
    """Add the intervals of one answer to the tallies: measured ones, bounds, and cells without."""
    clipped = np.isfinite(answer.above)
    whole, size = people.true(query), people.true(replace(query, versus={}))
    true = np.where(clipped, people.true(query, clip=people.clip), whole) if clipped.any() else whole
    known, there = np.isfinite(answer.estimate), np.isfinite(true)
    if query.versus:
        there[0] = False
    below = answer.above * bool(query.versus)
    for bounded in (False, True):
        some = known & there & (answer.bounded == bounded)
        tally = found.setdefault(f"{name}: {'bounds' if bounded else 'measured'}", Tally(bounded))
        tally.bounds |= query.statistic == "quantile"  # of whole numbers, too
        low, high = answer.noise_low[some], answer.noise_high[some]
        tally.held += ((low <= true[some]) & (true[some] <= high)).tolist()
        tally.half += [float(h) for h in 50 * (high - low) / np.maximum(np.abs(size[some]), 1e-9) if h < NAMELESS]
        cut = clipped[some]
        inside = (low - below[some] <= whole[some]) & (whole[some] <= high + answer.above[some])
        tally.beyond += inside[cut].tolist()
    found.setdefault(f"{name}: not estimable", Tally(bounds=True)).held += (~known)[there].tolist()


def run(*, seeds: int = 300, acs: str | None = None) -> list[Figure]:
    """Coverage and half widths over simulated fits, then over whole fits."""
    world = people(acs)
    return [*simulations(world, seeds), *fits(world)]


def simulations(world: People, seeds: int, entropy: Entropy = SYSTEM) -> list[Figure]:
    """Return the figures of simulated fits."""
    found: Tallies = {}
    for _ in range(seeds):
        judge(world, world.simulated(entropy), found)
    return list(_figures("simulated", found, seeds))


def fits(world: People, names: Sequence[str] = ("independent", "fixed")) -> Iterator[Figure]:
    """Yield the figures of whole fits, in strata, at epsilon 1."""
    shares = census.weights(BY)
    for name in names:
        found: Tallies = {}
        for _ in range(FITS):
            table = ss.open_table(world.frame, schema=world.schema, declared_size=len(world.frame), public=True)
            how = ss.Stratified(make(name, {}), BY, shares)
            judge(world, ss.fit(how, table, ss.Budget(epsilon=1, delta=1e-9)).answers.squares, found)
        yield from _figures(name, found, FITS)


def _figures(of: str, found: Tallies, fits: int) -> Iterator[Figure]:
    for name, tally in found.items():
        if name.endswith("not estimable"):
            if any(tally.held):
                yield Figure(f"{of}: {name}", 100 * float(np.mean(tally.held)), "%", fits)
            continue
        if tally.held:
            yield _coverage(f"{of}: {name}", tally.held, fits, bounds=tally.bounds)
        if tally.half:
            middle = f"{of}: {name}: half width, median of {len(tally.half):,}"
            yield Figure(middle, float(np.median(tally.half)), "% of the value", fits)
        if tally.beyond:
            yield _coverage(f"{of}: {name}, with what is above the clip", tally.beyond, fits, bounds=True)


def _coverage(name: str, held: Sequence[bool], fits: int, *, bounds: bool) -> Figure:
    """Return a coverage; judged over enough fits, as the intervals of one share its noise."""
    value, error = float(np.mean(held)), math.sqrt(LEVEL * (1 - LEVEL) / fits)
    aim = f"at least {100 * LEVEL:g}" if bounds else f"{100 * LEVEL:g} within {100 * WITHIN:g} points"
    off = LEVEL - value if bounds else abs(value - LEVEL)
    reached = off <= max(0.0 if bounds else WITHIN, 2 * error)
    said = f"{aim}; {len(held):,} intervals, Monte Carlo error {100 * error:.2f}"
    known = min(fits, len(held)) >= FEW
    return Figure(f"{name}: coverage", 100 * value, "%", fits, None, said, reached if known else None)
