"""`small`: columns alone, a tree and rounds at small budgets, and the effect of each part of MST's rule for them.

Of simulated people, 2,000 and 20,000, and of every file that is given, whole and 3,000 of its rows. All ways see the
noise of the same seeds and are scored on the model's own tables, without sampling: mean L1 of 100 triples. The
differences from the paper are taken back one at a time: a third of the budget for each step, columns with their noise
or all without it, no pull to independent columns, and pairs that are measured however much noise they have.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

import stratsynth as ss
from benches.ordered import as_drafted
from stratsynth import census
from stratsynth.evaluation.scores.marginals import coded, some_cliques
from stratsynth.mechanisms import make
from stratsynth.noise import SeededEntropy
from studies.figures import Figure

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

DELTA, TRIPLES, FEW, PAPER = 1e-9, 100, 3_000, 1 / 3
Back = Mapping[str, Mapping[str, Any]]
BACK: Mapping[str, Back] = {
    "mst": {},
    "  shares of a third": {
        "mst": dict.fromkeys(("COLUMNS", "CHOICES"), PAPER),
        "shared.few": {"PAIRS": PAPER},
    },
    "  columns with their noise": {"shared.denoised": {"MUCH": np.inf}},
    "  every column denoised": {"shared.denoised": {"MUCH": 0.0}},
    "  pairs in any case": {"mst": {"only_columns": lambda *_: False}},
}
"""Names of the ways, with the constants and functions of the adapters' modules that each replaces."""


def run(tables: Sequence[str] = (), epsilons: Sequence[float] = (0.03, 0.1, 0.3, 1.0), seeds: int = 5) -> list[Figure]:
    """Return figures of every way for the built-in census and each file, CSV or Parquet, over `seeds` fits each."""
    cases = [(f"{n:,} simulated people", census.make(n, seed=1), census.schema()) for n in (2_000, 20_000)]
    for path in tables:
        name, frame, schema = as_drafted(Path(path))
        cases += [(f"{name}, {len(frame):,} rows", frame, schema)]
        cases += [(f"{name}, {FEW:,} rows", frame.sample(FEW, random_state=1).reset_index(drop=True), schema)]
    return [figure for case in cases for epsilon in epsilons for figure in _compared(*case, epsilon, seeds)]


def _compared(name: str, frame: pd.DataFrame, schema: Schema, epsilon: float, seeds: int) -> list[Figure]:
    """Compare all ways of one case at one epsilon; changes are against MST as it is, paired by seed."""
    ways: list[tuple[str, str, Back]] = [
        *((way, "mst", back) for way, back in BACK.items()),
        ("  no pull to independent columns", "mst", {}),
        *((kind, kind, {}) for kind in ("independent", "aim")),
    ]
    found = {
        way: np.array([_error(frame, schema, _made(way, kind), epsilon, seed, back) for seed in range(seeds)])
        for way, kind, back in ways
    }
    figures = []
    for way, errors in found.items():
        change = 100 * np.mean(np.log(errors / found["mst"]))
        against = "" if way == "mst" else f"{change:+.1f} % of mst as it is"
        text = f"{name}, epsilon {epsilon:g}: {way}"
        figures.append(Figure(text, errors.mean(), "of 2", seeds, np.ptp(errors) / 2, against))
    return figures


def _made(way: str, kind: str) -> Any:
    return make(kind, {"prior": 0.0} if "no pull" in way else {})


@contextmanager
def replaced(back: Back) -> Iterator[None]:
    """Replace constants and functions of modules of adapters, which are loaded, for the time of a fit."""
    new = {(name, key): value for name, some in back.items() for key, value in some.items()}
    before = {(name, key): getattr(_module(name), key) for name, key in new}
    try:
        for (name, key), value in new.items():
            setattr(_module(name), key, value)
        yield
    finally:
        for (name, key), value in before.items():
            setattr(_module(name), key, value)


def _module(name: str) -> ModuleType:
    return sys.modules[f"stratsynth.adapters.{name}"]


def _error(frame: pd.DataFrame, schema: Schema, mechanism: Any, epsilon: float, seed: int, back: Back) -> float:
    """Return the mean L1, 0 to 2, of the model's triples of one fit against the rows."""
    with warnings.catch_warnings(), replaced(back):
        warnings.simplefilter("ignore")
        table = ss.open_table(frame, schema=schema, declared_size=len(frame), public=True)
        budget = ss.Budget(epsilon=epsilon, delta=DELTA)
        model = ss.fit(mechanism, table, budget, entropy=SeededEntropy(seed), progress=False).model
    codes, errors = coded(frame, schema), []
    for clique in some_cliques(schema.names, 3, TRIPLES):
        place = np.ravel_multi_index([codes[column] for column in clique], schema.shape(clique))
        real = np.bincount(place, minlength=int(np.prod(schema.shape(clique)))) / len(place)
        errors.append(np.abs(table_of(model, clique) - real).sum())
    return float(np.mean(errors))


def table_of(model: Any, clique: Sequence[str]) -> Any:
    """Return the flat array of a clique's cell probabilities under a model, graphical or of independent columns."""
    if hasattr(model, "marginal"):
        return model.marginal(tuple(clique)).ravel()
    found = np.ones(1)
    for column in clique:
        found = np.multiply.outer(found, model.probabilities[column]).ravel()
    return found
