"""`census --only numbers`: incomes of a synthetic state, as readers compute them: means, medians, deciles, groups.

Subsamples of several sizes of a file of person records are fitted by sex and race, once with each record counting 1 and
once as its PWGTP up to 500; shares are those of the file itself, for a benchmark. Errors are `number_errors`: real rows
are those that were fitted, and count as their weights up to 1,024. Multiples of 100 are shares of the numbers that are
not 0. Without a file, simulated people of the built-in census take its place, which have neither wages nor weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import stratsynth as ss
from stratsynth.evaluation import number_errors
from stratsynth.evaluation.tables.numbers import RawNumbers
from stratsynth.mechanisms import make
from stratsynth.schema.weight import RowWeight
from stratsynth.strata.groups import Groups
from stratsynth.stratified import stratify
from studies.figures import Figure, limited

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

YEAR, BY, DELTA = 2024, ("SEX", "RAC1P"), 1e-9
COLUMNS = (
    *("AGEP", "SEX", "RAC1P", "HISP", "CIT", "NATIVITY", "MAR", "SCHL", "ENG", "ESR", "COW", "MIL", "DIS"),
    *("HICOV", "WKHP", "JWMNP", "POVPIP", "PINCP", "WAGP"),
)
INCOME, WAGES, WEIGHT, CAP, UNCUT = "PINCP", "WAGP", "PWGTP", 500, 1_024
SIZES = (20_000, 40_000)
"""Sizes of subsamples, besides the file itself."""
LARGE, MIDDLE = 40_000, 150_000
"""Sizes from which means, and from which medians and deciles, are to be as good as stated."""
GROUP = 10_000
"""Smallest number of incomes of a group whose mean is to be as good as stated."""
SHOWN = {"mean": "mean", "median": "median", "deciles": "deciles, mean of nine sizes", "P90": "P90", "P99": "P99"}
MOST = {"mean": 4.0, "median": 4.0, "deciles": 3.0}
"""Largest error in per cent, from `LARGE` or `MIDDLE` people on."""
MOST_RMS, MOST_WEIGHTED, MOST_GROUP, MOST_MULTIPLES = 2.0, 12.0, 10.0, 3.0
THRESHOLDS = {INCOME: (100_000.0, 200_000.0)}


@dataclass
class Population:
    """Person records with their schema, and the shares of their groups."""

    name: str
    frame: pd.DataFrame
    schema: Schema
    shares: dict[bool, pd.DataFrame]
    """Shares of the groups, of people if True, of records if False."""
    weights: Any = field(default=None)
    """Weight of each record; None if they have none."""


def run(
    acs: str | None = None, sizes: Sequence[int] | None = None, seeds: int = 1, epsilons: Sequence[float] = (1.0,)
) -> list[Figure]:
    """Figures for every size and epsilon, over `seeds` subsamples and fits each."""
    people = of_file(acs) if acs is not None else built_in()
    rows = len(people.frame)
    figures: list[Figure] = []
    for size in sorted({min(size, rows) for size in sizes or (*SIZES, rows)}):
        for epsilon in epsilons:
            for weighed in (False, True) if people.weights is not None else (False,):
                found = [measured(people, size, epsilon, seed, weighed=weighed) for seed in range(1, seeds + 1)]
                head = f"{people.name}, {size:,} records{', weighted' if weighed else ''}, epsilon {epsilon:g}"
                figures += shown(head, found, size, weighed=weighed)
    return figures


def of_file(path: str) -> Population:
    """Person records of one state, with shares of their groups by records."""
    import pandas as pd

    from benches.census import data
    from stratsynth.census import acs

    schema, frame = data(path)
    columns = [name for name in COLUMNS if name in frame]
    whole = pd.read_parquet(path) if path.endswith(".parquet") else pd.read_csv(path)
    weights = whole[WEIGHT].to_numpy(np.int64) if WEIGHT in whole else None
    own = {True: WEIGHT} if weights is not None else {}
    shares = {kind: acs.shares(path, BY, year=YEAR, weight=name).frame for kind, name in {False: None, **own}.items()}
    return Population("the file", frame[columns], schema.restrict(columns), shares, weights)


def built_in(rows: int = 40_000) -> Population:
    """Simulated people of the built-in census, said to be such in every figure's name."""
    from stratsynth import census

    columns = [name for name in COLUMNS if name in census.schema().names]
    shares = {False: census.shares(BY)}
    return Population(
        "built-in census (no --acs)", census.make(rows)[columns], census.schema().restrict(columns), shares
    )


def measured(people: Population, size: int, epsilon: float, seed: int, *, weighed: bool) -> dict[str, Any]:
    """Fit a subsample once; errors of its incomes, of everybody and of large groups, and shares of multiples of 100."""
    kept = np.sort(np.random.default_rng(seed).permutation(len(people.frame))[:size])
    frame, schema = people.frame.iloc[kept].reset_index(drop=True), people.schema
    true, declared = schema, size
    if weighed:
        frame[WEIGHT] = people.weights[kept]
        declared = round(float(people.weights.mean()) * size)
        schema = replace(schema, row_weight=RowWeight(CAP, WEIGHT, mean=float(people.weights.mean())))
        true = replace(schema, row_weight=RowWeight(UNCUT, WEIGHT))
    weights = ss.Weights.public(people.shares[weighed], citation="the file itself, for a benchmark of numbers, 2026")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = ss.open_table(frame, schema=schema, declared_size=declared, public=True)
        how = stratify("pooled", {"base": make("mst", {})}, BY, weights, Groups())
        release = ss.fit(how, table, ss.Budget(epsilon=epsilon, delta=DELTA))
        made = release.sample(size, seed=seed)
    wanted = [name for name in (INCOME, WAGES) if name in frame]
    found: dict[str, Any] = {"groups": {}, "multiples": {}}
    for by in ((), *((name,) for name in BY), BY):
        errors = number_errors(frame, made, true, list(by), columns=wanted, thresholds=THRESHOLDS)
        if not by:
            found["errors"] = {(row["variable"], row["statistic"]): row for row in errors.to_dict("records")}
            continue
        for row in errors[(errors["statistic"] == "mean") & (errors["scope"] == "group")].to_dict("records"):
            if row["variable"] == INCOME and row["n"] >= GROUP:
                found["groups"][" ".join(f"{name} {row[name]}" for name in by)] = row["value"]
    for name in wanted:
        found["multiples"][name] = [multiples(data, schema, name) for data in (frame, made)]
    return found


def multiples(data: Any, schema: Schema, name: str, of: int = 100) -> float:
    """Share, in per cent, of a column's numbers but 0 that are divisible by `of`; rows count 1 each."""
    numbers, _ = RawNumbers.read(data, schema, [name]).of_group(name)
    numbers = numbers[numbers != 0]
    return float(100 * (numbers % of == 0).mean()) if len(numbers) else np.nan


def shown(head: str, found: Sequence[dict[str, Any]], size: int, *, weighed: bool) -> Iterator[Figure]:
    """Yield figures: the size of each error as the root of the mean square over repetitions, the mean in brackets."""
    first = found[0]["errors"]
    for variable in dict.fromkeys(variable for variable, _ in first):
        for statistic, words in SHOWN.items():
            values = np.array([one["errors"][variable, statistic]["value"] for one in found])
            most = None
            if variable == INCOME and statistic in MOST and size >= (LARGE if statistic == "mean" else MIDDLE):
                most = MOST_WEIGHTED if weighed else MOST[statistic]
            yield _error(f"{head}: {variable}, {words}", values, most)
            if variable == INCOME and statistic == "mean" and len(values) > 1 and most is not None and not weighed:
                yield limited(f"{head}: {variable}, mean, rms", _rms(values), MOST_RMS, "%", len(values))
    for variable, statistic in first:
        if statistic.startswith(("above", "no number")):
            values = np.array([one["errors"][variable, statistic]["value"] for one in found])
            yield _error(f"{head}: {variable}, share {statistic}", values, None, "points")
    for group in found[0]["groups"]:
        values = np.array([one["groups"][group] for one in found if group in one["groups"]])
        yield _error(f"{head}: {INCOME}, mean of {group}", values, None if weighed else MOST_GROUP)
    for variable, pairs in ((name, [one["multiples"][name] for one in found]) for name in found[0]["multiples"]):
        real, made = np.array(pairs).T
        most = MOST_MULTIPLES if variable == WAGES else None
        name = f"{head}: {variable}, multiples of 100, real {real.mean():.1f} %, synthetic {made.mean():.1f} %"
        yield limited(name, float(np.abs(made - real).max()), most, "points", len(found))


def _error(name: str, values: Any, most: float | None, unit: str = "%") -> Figure:
    """Figure of signed errors: their mean, half their range, and the target that the largest size is to keep."""
    value, largest = float(values.mean()), float(np.abs(values).max())
    spread = (values.max() - values.min()) / 2 if len(values) > 1 else None
    against = f"size at most {most:g}" if most is not None else f"rms {_rms(values):.3g}" if len(values) > 1 else ""
    return Figure(name, value, unit, len(values), spread, against, None if most is None else bool(largest <= most))


def _rms(values: Any) -> float:
    return float(np.sqrt((np.asarray(values) ** 2).mean()))
