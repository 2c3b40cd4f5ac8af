"""`exact`: noise and error under the exact curve of Gaussian noise, against zCDP, of fits that ask nothing else.

Of simulated people. Both fits of a pair see draws of one seed. Errors are the mean L1 of the model's one-way tables or
declared pairs, the mean distance of everybody's mean from that of the rows, and of a line's predictions from those of a
fit without noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import stratsynth as ss
from benches.small import table_of
from stratsynth import census
from stratsynth.accounting.public_budget import PublicBudget
from stratsynth.evaluation.scores.marginals import coded
from stratsynth.mechanisms import make
from stratsynth.noise import SeededEntropy
from studies.figures import Figure

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.release.release import Release

BUDGETS = ((1.0, 1e-9), (1.0, 1e-5), (0.1, 1e-9))
PAIRS = (("SEX", "AGEP"), ("SEX", "ESR"), ("AGEP", "MAR"), ("RAC1P", "SEX"), ("SCHL", "ESR"), ("MAR", "SEX"))
Error = Callable[["Release"], float]


def run(rows: int = 10_000, seeds: int = 20) -> list[Figure]:
    """Return figures of noise and error of four mechanisms at three budgets, over `seeds` pairs of fits each."""
    people = census.make(rows, seed=1)
    return [
        figure
        for epsilon, delta in BUDGETS
        for name, how, error in _cases(people)
        for figure in _compared(name, people, how, error, epsilon, delta, seeds)
    ]


def _cases(people: pd.DataFrame) -> Iterator[tuple[str, Any, Error]]:
    """Yield (name, mechanism, error of a release) of each mechanism."""
    codes, schema = coded(people, census.schema()), census.schema()
    ages = float(people["AGEP"].mean())

    def of_tables(cliques: Sequence[tuple[str, ...]]) -> Error:
        def error(release: Release) -> float:
            found = []
            for clique in cliques:
                place = np.ravel_multi_index([codes[column] for column in clique], schema.shape(clique))
                real = np.bincount(place, minlength=int(np.prod(schema.shape(clique)))) / len(place)
                found.append(np.abs(table_of(release.model, clique) - real).sum())
            return float(np.mean(found))

        return error

    yield "independent", make("independent", {}), of_tables(schema.oneways)
    yield "fixed", make("fixed", {"tables": [list(pair) for pair in PAIRS]}), of_tables(PAIRS)
    means = make("coinpress", {"columns": ["AGEP"], "scale": {"AGEP": 23.0}})
    yield "coinpress", means, lambda release: abs(float(release.estimates()["value"].iloc[0]) - ages)
    line = make("group_regression", {"target": "AGEP", "features": ["SEX", "MAR", "ESR"]})
    wanted = _fitted(people, line, PublicBudget(1e6, 1e-9), 0).predict(people)
    yield "group_regression", line, lambda release: float(np.abs(release.predict(people) - wanted).mean())


def _compared(
    name: str, people: pd.DataFrame, how: Any, error: Error, epsilon: float, delta: float, seeds: int
) -> Iterator[Figure]:
    """Yield two figures of a mechanism at a budget: its error when exact, and sigma, each against zCDP."""
    pairs = []
    for seed in range(seeds):
        made = [_fitted(people, how, ss.Budget(epsilon, delta, accounting=each), seed) for each in ("zcdp", "exact")]
        pairs.append([(error(release), _sigmas(release)) for release in made])
    errors = np.array([[one for one, _ in pair] for pair in pairs])
    ratios = [np.log(exact / plain).mean() for (_, plain), (_, exact) in pairs]
    what = f"{name}, epsilon {epsilon:g}, delta {delta:g}"
    yield Figure(f"{what}: noise", 100 * float(np.expm1(np.mean(ratios))), "% of sigma", seeds)
    plain, exact = errors.mean(axis=0)
    mean = f"{100 * (exact / plain - 1):+.1f} % of {plain:.4g} in zCDP"
    spread = float(np.ptp(errors[:, 1]) / 2)
    yield Figure(f"{what}: error", exact, "", seeds, spread, mean)


def _fitted(people: pd.DataFrame, how: Any, budget: ss.Budget, seed: int) -> Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = ss.open_table(people, schema=census.schema(), declared_size=len(people), public=True)
        return ss.fit(how, table, budget, seed=seed, entropy=SeededEntropy(seed), progress=False)


def _sigmas(release: Release) -> np.ndarray[Any, Any]:
    """Return the noise's standard deviations, a flat array: of each charge."""
    return np.array([charge["sigma"] for charge in release.certificate["charges"]])
