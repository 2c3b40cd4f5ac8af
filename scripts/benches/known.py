"""`known`: fits with public shares or published tables, beside fits without.

Scores are those of `prior`, on the same tables: with `--acs FILE --prior FILE` one file of NIST's excerpt, whose shares
and tables are counted in the other; without files the built-in census of 2019, and its year 2018. The published tables
are SEX x RAC1P and the next four pairs of columns, of everybody in that file, with the standard errors of a sample; for
what fits groups apart (`pooled`, and `strata`, MST in each), the next four columns by SEX x RAC1P. The wrong ones hold
the same figures in the reverse order of their cells. An earlier release is AIM's, of the other file at epsilon 1. Every
seed fits with and without, and differences are paired by seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benches.fit import BY
from benches.prior import COSTS, GROUPED, SCORES, Case, _census, _files, _paired, _shown
from stratsynth.evaluation.scores.marginals import coded
from studies.figures import Figure

if TYPE_CHECKING:
    import stratsynth as ss

KINDS = ("independent", "mst", "aim", "gem", *GROUPED)
PAIRS = 4
"""Number of pairs of columns that are published beside the groups, or of columns by groups."""
CITATION = "for a benchmark"


def run(
    acs: str | None = None,
    prior: str | None = None,
    *,
    base: str = "mst",
    epsilons: Sequence[float] = (0.1, 1.0),
    seeds: int = 5,
    rows: int | None = None,
) -> list[Figure]:
    """Compare no public tables, shares, tables, and wrong tables; `base` is a mechanism, or `all` for each of them."""
    case = _files(acs, prior, None) if acs is not None and prior is not None else _census(rows or 10_000)
    other = next(iter(case.good.values()))
    with TemporaryDirectory() as folder:
        release, figures = _release(case, other, Path(folder) / "earlier"), []
        for kind in KINDS if base == "all" else (base,):
            cliques, apart = _cliques(case, kind), kind in GROUPED
            known: dict[str, dict[str, Any]] = {
                **({} if apart else {"shares of groups": {"weights": _weights(case, other)}}),
                "tables": {"prior": _tables(case, other, cliques, reverse=False)},
                "wrong tables": {"prior": _tables(case, other, cliques, reverse=True)},
                **release,
            }
            how = _grouped(case, kind) if apart else kind
            for epsilon in epsilons:
                figures += _compared(case, kind, how, known, epsilon, seeds)
    return figures


def _compared(
    case: Case, kind: str, how: Any, known: Mapping[str, Mapping[str, Any]], epsilon: float, seeds: int
) -> list[Figure]:
    """Compare a mechanism without public tables and with each kind of them."""
    plain = [_fitted(case, how, epsilon, seed) for seed in range(seeds)]
    figures = _shown(f"{kind}, epsilon {epsilon:g}, nothing known", plain, [""] * 3, [None] * 3)
    mean = np.mean([found for found, _ in plain], axis=0)
    for name, given in known.items():
        runs = [_fitted(case, how, epsilon, seed, **given) for seed in range(seeds)]
        ratios = np.mean([found for found, _ in runs], axis=0) / mean
        against = [f"{r:.2f} of nothing known, {_paired(runs, plain, i)}" for i, r in enumerate(ratios)]
        most: Sequence[float | None] = list(COSTS * mean) if name == "wrong tables" else [None] * len(SCORES)
        figures += _shown(f"{kind}, epsilon {epsilon:g}, {name}", runs, against, most)
    return figures


def _grouped(case: Case, kind: str) -> Any:
    """Return a mechanism that fits groups apart, by the table's own shares of them."""
    import stratsynth as ss
    from stratsynth.mechanisms import make

    weights = _weights(case, case.frame)
    if kind == "strata":
        return ss.Stratified(make("mst", {}), list(BY), weights)
    return make(kind, {"by": list(BY), "weights": weights})


def _release(case: Case, frame: pd.DataFrame, folder: Path) -> dict[str, dict[str, Any]]:
    """AIM's release of the other file at epsilon 1, with its noisy tables and without."""
    import stratsynth as ss

    table = ss.open_table(frame.copy(), schema=case.schema, declared_size=len(frame))
    ss.fit("aim", table, ss.Budget(epsilon=1, delta=1e-9), seed=0).save(folder, rows=len(frame), seed=0)
    prior = ss.Prior.release(folder, unknown="drop")
    rows = replace(prior, behind=None)
    return {"an earlier release": {"prior": prior}, "an earlier release's rows alone": {"prior": rows}}


def _cliques(case: Case, kind: str) -> list[tuple[str, ...]]:
    rest = [name for name in case.schema.names if name not in BY]
    if kind in GROUPED:
        return [(*BY, name) for name in rest[:PAIRS]]
    return [tuple(BY), *((rest[2 * i], rest[2 * i + 1]) for i in range(PAIRS) if 2 * i + 1 < len(rest))]


def _counted(case: Case, frame: pd.DataFrame, clique: Sequence[str]) -> pd.DataFrame:
    """Every cell with its count; rows with levels that the schema does not know are left out."""
    schema, codes = case.schema, coded(frame, case.schema)
    sizes = schema.shape(clique)
    inside = np.all([codes[name] >= 0 for name in clique], axis=0)
    place = np.ravel_multi_index([codes[name][inside].astype(np.intp) for name in clique], sizes)
    counts = np.bincount(place, minlength=int(np.prod(sizes)))
    levels = [list(schema.levels(name)) for name in clique]
    cells: pd.DataFrame = pd.MultiIndex.from_product(levels, names=list(clique)).to_frame(index=False)
    return cells.assign(count=counts)


def _weights(case: Case, frame: pd.DataFrame) -> ss.Weights:
    import stratsynth as ss

    return ss.Weights.public(_counted(case, frame, BY), citation=CITATION)


def _tables(case: Case, frame: pd.DataFrame, cliques: Sequence[tuple[str, ...]], *, reverse: bool) -> ss.Prior:
    import stratsynth as ss

    tables = []
    for clique in cliques:
        counted = _counted(case, frame, clique)
        figures = counted["count"].to_numpy()[:: -1 if reverse else 1]
        share = figures / figures.sum()
        error = np.sqrt(share * (1 - share) / figures.sum())
        tables.append(ss.PublishedTable(counted.drop(columns="count").assign(share=share, error=error), CITATION))
    return ss.Prior.tables(tables)


def _fitted(case: Case, how: Any, epsilon: float, seed: int, **given: Any) -> tuple[tuple[float, ...], float]:
    """The scores of one fit's sample."""
    import stratsynth as ss

    table = ss.open_table(case.frame, schema=case.schema, declared_size=len(case.frame), public=True)
    release = ss.fit(how, table, ss.Budget(epsilon=epsilon, delta=1e-9), seed=seed, **given)
    return case.scores(coded(release.sample(len(case.frame), seed=seed), case.schema)), 0.0
