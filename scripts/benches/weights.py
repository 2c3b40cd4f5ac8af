"""`weights`: releases of weighted rows against the population that the rows stand for.

Simulated people of the built-in census are drawn into samples with chances that depend on sex, age and whether they are
employed; a row's weight is one over its chance. Each sample is fitted with its weights and without, at epsilon 1:

- noisy tables of the weighted fit are unbiased for the population's counts: over samples, their means miss them by
  chance alone;
- so are the released rows for the share employed, while the unweighted release is off by what the design is off.

With `--acs FILE`, person records with their PWGTP: the share employed among weighted rows, and in releases with several
largest weights and without weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import stratsynth as ss
from stratsynth import census
from stratsynth.schema import Schema
from stratsynth.schema.weight import RowWeight
from studies.acs import pums
from studies.data import texts
from studies.figures import Figure

if TYPE_CHECKING:
    import pandas as pd

EPSILON, DELTA = 1.0, 1e-9
PEOPLE = 200_000
"""The simulated population."""
COLUMNS = ("SEX", "AGEP", "RAC1P", "SCHL", "ESR")
MOST = 40
"""Largest weight of the simulated design."""
CHANCE = 0.001
"""Probability that some standardised difference passes its limit where nothing is biased (Bonferroni)."""
LARGEST = (100, 300, 1000)
"""Largest weights that are tried on a real file."""


@dataclass(frozen=True)
class Design:
    """Sampling design: each person's chance to be in a sample, and the weight of its row."""

    people: pd.DataFrame
    """The population."""
    weights: np.ndarray[Any, np.dtype[np.int64]]
    """Weight of each person: one over the chance of being in a sample."""

    @classmethod
    def made(cls, people: int = PEOPLE) -> Design:
        """Weights of 5, 10, 20 and 40: men, the young and the employed are rarer in samples."""
        frame = census.make(people).loc[:, list(COLUMNS)]
        doubled = [frame["SEX"] == "1", frame["AGEP"] < 40, frame["ESR"].isin(["1", "2"])]
        return cls(frame, 5 * 2 ** np.sum(doubled, axis=0))

    def sample(self, rng: np.random.Generator) -> pd.DataFrame:
        """Rows by coins of their own, with their weights."""
        drawn = rng.random(len(self.people)) < 1 / self.weights
        return self.people[drawn].assign(W=self.weights[drawn]).reset_index(drop=True)


def schemas(mean: float | None = None) -> tuple[Schema, Schema]:
    """Return schemas of the simulated columns, with weights and without."""
    plain = census.schema().restrict(COLUMNS)
    return replace(plain, row_weight=RowWeight(MOST, "W", mean=mean)), plain


def fitted(frame: pd.DataFrame, schema: Schema, size: int, how: str) -> Any:
    """Return one private release. Every sample is of other people."""
    return ss.fit(how, ss.open_table(frame, schema=schema, declared_size=size), ss.Budget(EPSILON, DELTA))


def employed(frame: pd.DataFrame, weights: Any = None) -> float:
    """Return the share employed, among everybody."""
    return float(np.average(frame["ESR"].astype("string").isin(["1", "2"]).to_numpy(), weights=weights))


def simulated(samples: int, people: int = PEOPLE) -> list[Figure]:
    """The figures of the simulated design."""
    design, rng = Design.made(people), np.random.default_rng(7)
    heavy, plain = schemas()
    truth = np.concatenate([_counts(design.people, plain, name) for name in COLUMNS])
    totals, shares = [], []
    for _ in range(samples):
        frame = design.sample(rng)
        totals.append(_measured(fitted(frame, heavy, people, "independent"), plain))
        shares.append(
            [
                employed(fitted(frame, schema, size, "mst").sample(50_000, seed=0))
                for schema, size in ((heavy, people), (plain, len(frame)))
            ]
        )
    return list(_figures(design, truth, np.array(totals), np.array(shares)))


def _figures(design: Design, truth: Any, totals: Any, shares: Any) -> Iterator[Figure]:
    from scipy.stats import t

    samples, levels = totals.shape
    away = totals.mean(axis=0) - truth
    error = totals.std(axis=0, ddof=1) / np.sqrt(samples)
    z = np.abs(away / error)
    limit = float(t.isf(CHANCE / 2 / levels, samples - 1))
    yield Figure(
        f"largest standardised difference of {levels} weighted one-way counts from the population's",
        float(z.max()),
        "standard errors",
        samples,
        against=f"at most {limit:.2f} by chance",
        reached=bool(z.max() <= limit),
    )
    yield Figure(
        "weighted total over the population", float(totals[:, :2].sum(axis=1).mean() / len(design.people)), "", samples
    )
    population, size = employed(design.people), len(design.people)
    yield Figure(f"share employed of {size:,} simulated people", 100 * population, "%")
    names = ("weighted release", "unweighted release")
    for name, found in zip(names, 100 * shares.T, strict=True):
        off, se = float(found.mean() - 100 * population), float(found.std(ddof=1) / np.sqrt(samples))
        weighted = name == names[0]
        most = float(t.isf(CHANCE / 2, samples - 1)) * se
        yield Figure(
            f"{name}: share employed less the population's",
            off,
            "points",
            samples,
            spread=se,
            against=f"within {most:.2f}, chance alone" if weighted else "",
            reached=abs(off) <= most if weighted else None,
        )


def _counts(frame: pd.DataFrame, schema: Schema, name: str) -> Any:
    """Return the number of rows with each level."""
    from stratsynth.data.sources import open_source
    from stratsynth.schema.encoding import encode

    alone = schema.restrict([name])
    return np.bincount(encode(alone, open_source(frame).read([name])).codes[name], minlength=schema.size(name))


def _measured(release: Any, schema: Schema) -> Any:
    """The noisy one-way tables side by side, in the order of the columns."""
    found = release.measurements.to_pandas()
    parts = [found[found["clique"] == name].sort_values("cell")["value"].to_numpy() for name in COLUMNS]
    assert sum(map(len, parts)) == sum(schema.size(name) for name in COLUMNS)  # noqa: S101 - one table a column
    return np.concatenate(parts)


def of_file(path: str) -> Iterator[Figure]:
    """The share employed in releases of person records with PWGTP, at several largest weights and without."""
    frame = texts(Path(path), [*pums().names, "PWGTP"])
    weights = frame["PWGTP"].to_numpy(float)
    frame["PWGTP"] = weights
    truth, size = 100 * employed(frame, weights), int(weights.sum())
    yield Figure(f"share employed of {len(frame):,} records, weighted by PWGTP: the truth", truth, "%")
    yield Figure("share employed of the records, each counted once", 100 * employed(frame), "%")
    plain = pums()
    for most in (*LARGEST, None):
        schema = plain if most is None else replace(plain, row_weight=RowWeight(most, "PWGTP"))
        release = fitted(frame, schema, len(frame) if most is None else size, "mst")
        name = "unweighted release" if most is None else f"weighted release, max {most}"
        cut = "" if most is None else f"; {100 * np.minimum(weights, most).sum() / size:.1f} % of the weight is left"
        found = 100 * employed(release.sample(200_000, seed=0))
        yield Figure(f"{name}: share employed", found, "%", against=f"{found - truth:+.2f} points from the truth{cut}")


def run(samples: int = 20, acs: str | None = None) -> list[Figure]:
    """The simulated design; then a file of person records, where there is one."""
    return [*simulated(samples), *(of_file(acs) if acs is not None else ())]
