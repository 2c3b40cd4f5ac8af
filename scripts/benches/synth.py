"""`synth`: the graphical synthesizers, each fit in a fresh process.

With `--acs FILE` on NIST's excerpt of the American Community Survey, as the figures of other libraries were
taken; without it on simulated people.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benches.figures import Timing, fresh, seconds, timed
from studies.figures import Figure, limited

PLAIN = {"mechanism": "mst", "settings": {}, "stratified": False, "epsilon": 1.0, "seeded": False}


def run(acs: str | None = None, only: str | None = None) -> list[Figure]:
    """MST: time, memory, error; against mbi; stratified; and by number of rows. Then AIM and GEM."""
    from benches import aim, gem

    parts: dict[str, Callable[[], list[Figure]]] = {
        "mst": lambda: [*vanilla(acs), *against_mbi(acs), *stratified(acs), *sampling(acs), *growing()],
        "aim": lambda: aim.run(acs),
        "gem": lambda: gem.run(acs),
    }
    return [figure for name, part in parts.items() if only in (None, name) for figure in part()]


def fitted(acs: str | None, **wanted: Any) -> dict[str, Any]:
    """Fit once in a process of its own; return its figures with the seconds from the process's start to its end."""
    wanted = {**PLAIN, "acs": acs, **wanted}
    start = time.perf_counter()
    return {**fresh("fit", wanted), "process": time.perf_counter() - start}


def several(number: int, acs: str | None, **wanted: Any) -> tuple[list[dict[str, Any]], Timing]:
    """Several such fits, each with noise of its own, and their times."""
    found = [fitted(acs, **wanted) for _ in range(number)]
    return found, Timing(tuple(f["fit"] for f in found))


def mean(found: list[dict[str, Any]], key: str) -> float:
    """Return the mean of one figure of several fits."""
    return float(np.mean([f[key] for f in found]))


def vanilla(acs: str | None) -> list[Figure]:
    """One model for everybody."""
    found, timing = several(3, acs)
    return [
        seconds("MST vanilla, epsilon 1: fit in a cold process", timing, at_most=1.5),
        Figure("  the whole process, loading and scoring too", mean(found, "process"), "s", 3),
        limited("  peak memory after the fit", max(f["peak"] for f in found), 500, "MB", 3),
        limited("  mean L1 of 64 three-way marginals", mean(found, "error"), 0.26, "of 2", 3),
    ]


def against_mbi(acs: str | None) -> list[Figure]:
    """MST fitted by both engines, rules and prior included; noise is seeded."""
    ours, timing = several(3, acs, seeded=True)
    theirs = fitted(acs, settings={"engine": "mbi"}, seeded=True)
    ratio = theirs["fit"] / timing.median
    apart = theirs["error"] / mean(ours, "error")
    return [
        seconds("MST vanilla, engine numpy", timing),
        Figure("  objective", mean(ours, "objective"), "", 3),
        Figure("  steps", mean(ours, "steps"), "", 3),
        Figure("MST vanilla, engine mbi", theirs["fit"], "s"),
        Figure("  objective", theirs["objective"], ""),
        Figure("  steps", theirs["steps"], ""),
        limited("  mean L1 of 64 three-way marginals, times that of numpy", apart, 1.02, "x"),
        Figure("speed against mbi", ratio, "x", 1, None, "at least 30", ratio >= 30),
    ]


def stratified(acs: str | None) -> list[Figure]:
    """SEX x RAC1P: 18 models, most of them of few people."""
    found, timing = several(3, acs, stratified=True)
    return [
        seconds("MST stratified by SEX x RAC1P, epsilon 1: fit", timing, at_most=4),
        Figure("  peak memory after the fit", max(f["peak"] for f in found), "MB", 3),
        Figure("  mean L1 of 64 three-way marginals", mean(found, "error"), "of 2", 3),
    ]


def sampling(acs: str | None) -> list[Figure]:
    """A million rows from a fitted model, decoded."""
    import stratsynth as ss
    from benches.fit import data
    from stratsynth.mechanisms import make

    frame, schema, _ = data(acs, None)
    table = ss.open_table(frame, schema=schema, declared_size=len(frame), public=True)
    release = ss.fit(make("mst", {}), table, ss.Budget(epsilon=1, delta=1e-9))
    rng = np.random.default_rng(0)
    model = timed(lambda: release.table_model.sample(1_000_000, rng), 3)
    whole = timed(lambda: release.sample_arrow(1_000_000, seed=1), 3)
    return [
        seconds(f"sample a million rows of {len(schema.names)} columns, as level numbers", model, at_most=3),
        seconds("  as an Arrow table with labels and numbers", whole),
        *near(release.table_model, len(frame)),
    ]


def near(model: Any, n: int, times: int = 8) -> list[Figure]:
    """Distance of n drawn rows from their model, and with the steps of each draw in random order instead."""
    from stratsynth.evaluation.scores.marginals import some_cliques

    draws = sys.modules["stratsynth.adapters.engine.drawing"].Draws
    lattice = draws.draw
    tables = {clique: model.marginal(clique).ravel() for clique in some_cliques(model.schema.names, 3, 64)}

    def shuffled(self: Any, weights: Any, given: Any = None) -> Any:
        self._order = self._rng.permutation(len(self._order))
        return lattice(self, weights, given)

    def distance(seed: int) -> float:
        rows, found = model.sample(n, np.random.default_rng(seed)), []
        for clique, table in tables.items():
            place = np.ravel_multi_index([rows[column] for column in clique], model.schema.shape(clique))
            found.append(np.abs(np.bincount(place, minlength=table.size) / n - table).sum())
        return float(np.mean(found))

    figures = []
    for name, way in (("from their model, mean L1 of 64 triples", lattice), ("with steps in random order", shuffled)):
        try:
            draws.draw = way
            mean = float(np.mean([distance(seed) for seed in range(times)]))
            figures.append(Figure(f"  {n:,} rows {name}", mean, "of 2", times))
        finally:
            draws.draw = lattice
    return figures


def growing() -> list[Figure]:
    """The built-in census at several sizes: counting grows with the rows, fitting does not."""
    figures = []
    for rows in (10_000, 100_000, 1_000_000, 10_000_000):
        found = fitted(None, rows=rows)
        figures.append(Figure(f"MST vanilla on {rows:,} simulated people: fit", found["fit"], "s"))
        figures.append(Figure("  peak memory, the frame included", found["peak"], "MB"))
    return figures
