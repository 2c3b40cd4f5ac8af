"""`prior --only ladder`: what a prior gains or costs, beside fits without it and beside the prior alone.

Each rung is a private table and public rows: pairs of files of codes (`--tables PRIVATE PUBLIC ...`, such as those of
JAM-PGM, where the public sample is small and biased), and a year and the year before of NIST's excerpt (`--acs`,
`--prior`). Without files, 10,000 people of the built-in census, and a tenth of another such draw, drawn evenly or with
a bias by age, race and income.

The error is the mean L1 of up to 500 three-way marginals of a release of as many rows as the table. With a prior it is
to be at most 1.03 of the smaller of the error without it and that of the public rows as they are, and at most .9 of it
where these two are within a factor of two. Seeds are paired.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benches.fit import BY
from stratsynth.models.intervals import NORMAL_95
from studies.figures import Figure

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
KINDS = ("aim", "mst", "pooled")
TABLES = 500
"""Largest number of three-way marginals, evenly spaced among all."""
COST, GAIN, NEAR = 1.03, 0.9, 2.0
"""Largest ratio of the error to the smaller of the other two, in any cell, and where these are within a factor `NEAR`.
"""
ROWS, PUBLIC = 10_000, 0.1
BIASES = (0.0, 2.0, 4.0)
"""Factors of the log odds of being in the public sample: on each of three columns' levels, from 0 to 1."""
BIASED = ("AGEP", "RAC1P", "PINCP")


@dataclass(frozen=True, eq=False)
class Rung:
    """A private table, and public rows that are its prior."""

    name: str
    frame: pd.DataFrame
    public: pd.DataFrame
    schema: Schema
    by: tuple[str, ...] = ()
    """Columns by which `pooled` splits; it is left out without them."""

    @cached_property
    def cliques(self) -> list[tuple[str, ...]]:
        """Sets of three columns."""
        every = list(combinations(self.schema.names, 3))
        return [every[i] for i in np.unique(np.linspace(0, len(every) - 1, min(TABLES, len(every))).astype(int))]

    def _shares(self, rows: Any) -> Iterator[np.ndarray[Any, Any]]:
        for clique in self.cliques:
            place = np.ravel_multi_index([np.asarray(rows[n], np.int64) for n in clique], self.schema.shape(clique))
            yield np.bincount(place, minlength=self.schema.cells(clique)) / len(place)

    @cached_property
    def _real(self) -> list[np.ndarray[Any, Any]]:
        return list(self._shares(self.coded(self.frame)))

    def coded(self, frame: pd.DataFrame) -> Any:
        """Rows of a frame as level numbers, by column."""
        from stratsynth.evaluation.scores.marginals import coded

        return coded(frame, self.schema)

    def error(self, frame: pd.DataFrame) -> float:
        """Mean L1 distance of the marginals of a frame from those of the private table."""
        pairs = zip(self._real, self._shares(self.coded(frame)), strict=True)
        return float(np.mean([np.abs(real - other).sum() for real, other in pairs]))

    def fitted(self, kind: str, epsilon: float, seed: int, *, prior: bool) -> float:
        """Error of a fit's sample, with the prior or without."""
        import stratsynth as ss
        from benches.prior import weights_of
        from stratsynth.mechanisms import make

        known = ss.Prior.public(self.public, citation="a public sample, for a benchmark", unknown="drop")
        how = make(
            kind,
            {"by": self.by, "weights": weights_of(self.frame, self.schema, self.by)}
            if self.by and kind == "pooled"
            else {},
        )
        table = ss.open_table(self.frame, schema=self.schema, declared_size=len(self.frame), public=True)
        given = known if prior else None
        release = ss.fit(how, table, ss.Budget(epsilon=epsilon, delta=1e-9), seed=seed, prior=given)
        return self.error(release.sample(len(self.frame), seed=seed))


def run(
    tables: Sequence[str] = (),
    acs: str | None = None,
    prior: str | None = None,
    *,
    base: str = "all",
    epsilons: Sequence[float] = EPSILONS,
    seeds: int = 5,
) -> list[Figure]:
    """Figures of every rung, mechanism and epsilon; `base` is a mechanism, or `all` of `KINDS`."""
    rungs = [*_pairs(tables), *_years(acs, prior)]
    figures = []
    for rung in rungs or _census():
        alone = rung.error(rung.public)
        for kind in KINDS if base == "all" else (base,):
            if kind == "pooled" and not rung.by:
                continue
            for epsilon in epsilons:
                figures += compared(rung, kind, epsilon, seeds, alone)
    return figures


def compared(rung: Rung, kind: str, epsilon: float, seeds: int, alone: float) -> list[Figure]:
    """Two figures: the error without the prior, and with it beside the error of the public rows, `alone`."""
    fits = [[rung.fitted(kind, epsilon, seed, prior=given) for given in (False, True)] for seed in range(seeds)]
    plain, with_it = np.array(fits).T
    none, best = float(plain.mean()), min(float(plain.mean()), alone)
    most = (GAIN if max(none, alone) <= NEAR * best else COST) * best
    what, off = f"{rung.name}, {kind}, epsilon {epsilon:g}", with_it - plain
    half = NORMAL_95 * float(np.std(off, ddof=1)) / seeds**0.5 if seeds > 1 else float("nan")
    against = (
        f"at most {most:.3g}; {with_it.mean() / best:.2f} of the better, prior alone {alone:.3g}, "
        f"difference to none {off.mean():+.4f} +- {half:.4f}"
    )
    reached = bool(with_it.mean() <= most)
    return [
        Figure(f"{what}: no prior", none, "", seeds),
        Figure(f"{what}: prior", float(with_it.mean()), "", seeds, None, against, reached),
    ]


def _pairs(tables: Sequence[str]) -> list[Rung]:
    """Return rungs of pairs of files: private and public rows of codes, whose columns have equal names."""
    import pandas as pd

    from stratsynth.schema import Categorical, Schema

    def read(path: str) -> pd.DataFrame:
        frame = pd.read_parquet(path) if path.endswith(".parquet") else pd.read_csv(path)
        return frame.astype(str)

    rungs = []
    for private, public in zip(tables[::2], tables[1::2], strict=True):
        frame, known = read(private), read(public)
        levels = {name: sorted({*frame[name], *known[name]}, key=lambda text: (len(text), text)) for name in frame}
        schema = Schema({str(name): Categorical(levels=tuple(some)) for name, some in levels.items()})
        by = tuple(name for name in ("sex", "race") if name in levels)
        rungs.append(Rung(Path(public).stem, frame, known, schema, by))
    return rungs


def _years(acs: str | None, prior: str | None) -> list[Rung]:
    if acs is None or prior is None:
        return []
    from benches.prior import _files

    case = _files(acs, prior, None)
    return [Rung("the year before", case.frame, case.good["the other file"], case.schema, BY)]


def _census() -> Iterator[Rung]:
    """Yield rungs of the built-in census: public samples of a tenth, from even to strongly biased."""
    from stratsynth import census

    schema = replace(census.schema(), rules=())
    frame, people = census.make(ROWS), census.make(ROWS, seed=1)
    codes = {name: np.asarray(code) for name, code in Rung("", people, people, schema).coded(people).items()}
    odds = np.sum([codes[name] / max(1, schema.size(name) - 1) for name in BIASED if name in codes], axis=0)
    rng = np.random.default_rng(0)
    for bias in BIASES:
        weights = np.exp(bias * odds)
        rows = rng.choice(ROWS, int(PUBLIC * ROWS), replace=False, p=weights / weights.sum())
        yield Rung(f"census, bias {bias:g}", frame, people.iloc[rows], schema, BY)
