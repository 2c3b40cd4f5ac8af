"""Coverage of published intervals over many fits of new people: cells and classes of groups fixed before any fit.

Every fit has new people of the built-in census, so that one fit serves both intervals: the one for noise is to hold
what these very people say, the one for noise and sampling what the population says. Of a cell that a fit did not
measure, that fit counts neither way, and the part of such cells is printed.

Intervals of one fit share its noise, so that the Monte Carlo error of a coverage is worked out from fits, not from
intervals. Means and quantiles have a bench of their own (`intervals`). A coverage is judged where this error is at most
`KNOWN` of what is allowed, or where it is off by more than what is allowed and twice the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import stratsynth as ss
from stratsynth import census
from stratsynth.answers import Query
from stratsynth.answers.ask import answers
from stratsynth.digest import digest
from stratsynth.errors import UsageError
from stratsynth.evaluation.scores.coverage import real_values
from stratsynth.evaluation.scores.marginals import coded
from stratsynth.mechanisms import make
from studies.figures import Figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.mechanisms import Mechanism
    from stratsynth.schema import Schema

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

COLUMNS = ("AGEP", "SEX", "RAC1P", "HISP", "TEN", "MAR", "ESR", "PUBCOV")
ROWS = 5_000
POPULATION = 2_000_000
"""Size of the simulated population; its sampling error is a twentieth of that of a fit's rows."""
LEVELS = (0.9, 0.95)
WITHIN = {"noise": 0.02, "noise and sampling": 0.03}
"""Largest allowed distance of a coverage from its level."""
FEW = 100
"""Smallest number of intervals with a verdict."""
KNOWN = 0.6
"""Largest Monte Carlo error with which every coverage is judged, as a fraction of the allowed distance."""
GROUP = "RAC1P"
SIZES = {"under 100": 0.0, "100 to 999": 100.0, "1,000 and more": 1_000.0}
"""Classes of groups by their expected number of people."""
QUESTIONS = {
    "counts": [Query(["MAR"], by=[GROUP]), Query(["PUBCOV"], by=[GROUP], where={"SEX": "2"})],
    "rates": [Query(["MAR"], by=[GROUP], statistic="rate"), Query(["ESR"], by=[GROUP], statistic="rate")],
    "differences of rates": [Query(["PUBCOV"], by=[GROUP], statistic="rate", versus={GROUP: "1"})],
    "counts of everybody": [Query(["MAR"]), Query(["SEX", "ESR"]), Query(["HISP"], where={"SEX": "1"})],
    "shares of everybody": [Query(["TEN"], statistic="share"), Query(["AGEP"], statistic="share")],
}
"""Queries by kind."""
QUERIES = [query for some in QUESTIONS.values() for query in some]
FIXED = (("MAR",), ("ESR",), ("SEX", "PUBCOV"), ("AGEP",), ("TEN",), ("SEX", "ESR"), ("SEX", "HISP"))
"""The tables that `fixed` is asked to measure."""
CHUNK = 25
"""Fits whose results are written at once."""


def mechanisms() -> dict[str, Callable[[], Mechanism[Any]]]:
    """Compared mechanisms, by name: in strata where groups are to be estimated."""
    weights = census.weights([GROUP])
    mst = {"name": "mst", "iterations": 1}  # the last fit has no part in answers
    return {
        "independent": lambda: ss.Stratified(make("independent", {}), [GROUP], weights),
        "mst": lambda: make("mst", {"iterations": 1}),
        "aim": lambda: make("aim", {"model_cells": 2**12, "iterations": 30}),
        "pooled": lambda: make("pooled", {"base": mst, "by": [GROUP], "weights": weights}),
        "fixed": lambda: ss.Stratified(make("fixed", {"tables": FIXED}), [GROUP], weights),
    }


@dataclass(frozen=True, eq=False)
class Truth:
    """Values in the population."""

    values: Sequence[Floats]
    """An array for each query, with an entry a cell; counts are those of as many people as a fit has."""
    expected: Floats
    """The expected number of people in each group."""

    @classmethod
    def of(cls, schema: Schema) -> Truth:
        """Compute the values from a large sample."""
        population = coded(census.make(POPULATION, seed=1)[list(COLUMNS)], schema)
        found = real_values(population, schema, QUERIES)
        part = ROWS / POPULATION
        values = [v * part if query.statistic == "count" else v for query, v in zip(QUERIES, found, strict=True)]
        return cls(values, np.bincount(population[GROUP], minlength=schema.size(GROUP)).astype(np.float64) * part)


def coverage(names: Sequence[str], fits: int, *, jobs: int = 1, folder: Path | None = None) -> list[Figure]:
    """Return the coverage of each mechanism, by kind of question, size of group, level, and interval.

    Args:
        names: Keys of `mechanisms()`.
        fits: How many fits of each.
        jobs: How many processes fit at the same time.
        folder: Where results are kept as they come, to go on from after an interruption; None to keep none.
    """
    from joblib import Parallel, delayed

    schema = census.schema().restrict(COLUMNS)
    truth = Truth.of(schema)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    starts = [(name, start) for name in names for start in range(0, fits, CHUNK)]
    tasks = (delayed(chunk)(name, start, min(CHUNK, fits - start), truth, folder) for name, start in starts)
    done = Parallel(n_jobs=jobs)(tasks)
    figures: list[Figure] = []
    for name in names:
        parts = [hits for (one, _), hits in zip(starts, done, strict=True) if one == name]
        figures += judged(name, np.concatenate(parts), schema, truth.expected)
    return figures


def chunk(name: str, start: int, fits: int, truth: Truth, folder: Path | None = None) -> NDArray[np.int8]:
    """Return `held` of some fits of one mechanism, from the folder where it has them."""
    file = None if folder is None else folder / f"{name}-{start}-{fits}.npz"
    about = digest(QUERIES, LEVELS, ROWS, mechanisms()[name](), ss.__version__)
    if file is not None and file.exists():
        with np.load(file) as kept:
            if str(kept["about"]) != about:
                raise UsageError(f"{file} is of other questions or another version; name another folder.")
            found: NDArray[np.int8] = kept["hits"]
            return found
    hits = np.stack([held(name, fit, truth) for fit in range(start, start + fits)])
    if file is not None:
        partial = file.with_suffix(".part.npz")
        np.savez(partial, hits=hits, about=np.array(about))
        partial.rename(file)
    return hits


def held(name: str, fit: int, truth: Truth) -> NDArray[np.int8]:
    """Fit once: for each level and interval and every cell of every query 1 where it holds, 0 where not, -1 if none."""
    schema = census.schema().restrict(COLUMNS)
    people = census.make(ROWS, seed=2, offset=fit * ROWS)[list(COLUMNS)]
    own = real_values(coded(people, schema), schema, QUERIES)
    table = ss.open_table(people, schema=schema, declared_size=ROWS, public=True)
    release = ss.fit(mechanisms()[name](), table, ss.Budget(epsilon=1, delta=1e-9))
    found: list[list[NDArray[np.int8]]] = []
    for level in LEVELS:
        told = answers(release.answers.squares, [replace(query, level=level) for query in QUERIES])
        found.append([_hits(a.noise_low, true, a.noise_high) for a, true in zip(told, own, strict=True)])
        found.append([_hits(a.low, true, a.high) for a, true in zip(told, truth.values, strict=True)])
    return np.stack([np.concatenate(each) for each in found])


def _hits(low: Floats, true: Floats, high: Floats) -> NDArray[np.int8]:
    known = np.isfinite(low) & np.isfinite(high) & np.isfinite(true)
    return np.where(known, (low <= true) & (true <= high), -1).astype(np.int8)


def judged(name: str, hits: NDArray[np.int8], schema: Schema, expected: Floats) -> Iterator[Figure]:
    """The figures of one mechanism, from `held` of each fit."""
    places = dict(_places(schema, expected))
    asked = [(level, interval) for level in LEVELS for interval in WITHIN]
    for (kind, label), inside in places.items():
        for each, (level, interval) in enumerate(asked):
            what = f"{name}: coverage at {100 * level:g} % of {interval}, {kind}{label}"
            if (figure := _figure(what, hits[:, each, inside], level, WITHIN[interval])) is not None:
                yield figure
        unknown = float((hits[:, 0, inside] < 0).mean())
        if unknown:
            yield Figure(f"{name}: not estimable, {kind}{label}", 100 * unknown, "%", len(hits))


def _figure(what: str, hits: NDArray[np.int8], level: float, within: float) -> Figure | None:
    """Return one coverage, with its Monte Carlo error over fits."""
    known, number = hits >= 0, int((hits >= 0).sum())
    if not number:
        return None
    value = float((hits == 1).sum() / number)
    each = np.where(known, hits - value, 0.0).sum(axis=1)
    # of fewer than ten fits the spread is not known; no coverage of a few intervals is better known than of a sample
    error = max(float(np.sqrt((each**2).sum())) / number, float(np.sqrt(level * (1 - level) / number)))
    away, fits = abs(value - level), int(known.any(axis=1).sum())
    clear = error <= KNOWN * within or away > max(within, 2 * error)
    said = f"{100 * level:g} within {100 * within:g} points; {number:,} intervals of {fits:,} fits"
    verdict = away <= within if clear and number >= FEW else None
    more = "; too few to judge" if verdict is None else ""
    return Figure(
        what, 100 * value, "%", len(hits), None, f"{said}, Monte Carlo error {100 * error:.2f}{more}", verdict
    )


def _places(schema: Schema, expected: Floats) -> Iterator[tuple[tuple[str, str], Bools]]:
    """The cells of each kind of question and size of group, among those of all queries one after the other."""
    kinds = [kind for kind, some in QUESTIONS.items() for _ in some]
    found: dict[tuple[str, str], list[Bools]] = {}
    cells = [schema.cells(query.cells) for query in QUERIES]
    for i, (kind, query) in enumerate(zip(kinds, QUERIES, strict=True)):
        for label, inside in _sizes(query, schema, expected).items():
            parts = found.setdefault((kind, label), [np.zeros(number, dtype=bool) for number in cells])
            parts[i] = inside
    for key, parts in found.items():
        if (inside := np.concatenate(parts)).any():
            yield key, inside


def _sizes(query: Query, schema: Schema, expected: Floats) -> Mapping[str, Bools]:
    """Return masks of the cells by size of their group; a cell compared with itself belongs to none."""
    shape = schema.shape(query.cells)
    number = int(np.prod(shape, dtype=int))
    if GROUP not in query.by:
        return {"": np.ones(number, dtype=bool)}
    code = np.unravel_index(np.arange(number), shape)[query.cells.index(GROUP)]
    compared = np.array([schema.levels(GROUP)[i] == query.versus.get(GROUP) for i in code])
    ends = [*SIZES.values(), np.inf]
    return {
        f", groups of {label}": (expected[code] >= low) & (expected[code] < high) & ~compared
        for (label, low), high in zip(SIZES.items(), ends[1:], strict=True)
    }
