"""Other private classifiers on the axes of `fermi`'s trade-off curves, at equal epsilon, delta, rows and features.

Of paper 004's baselines: Tran, Fioretto and Van Hentenryck (2021b) is `studies.fermi.lagrangian`; Tran, Dinh and
Fioretto (2021a), paper 001, is `fair_sgd` with its penalty made private; Jagielski et al. (2019) is the post-processing
of the curve, and as an oracle learner belongs to paper 002. Beside them stands `reductions`. Single fits, by the
mechanisms themselves; rows are public, and NOT PRIVATE.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import stratsynth as ss
from stratsynth.errors import NoticeWarning
from stratsynth.evaluation.fermi.columns import CurveFit
from stratsynth.evaluation.fermi.curve import CurveRows
from stratsynth.mechanisms import make
from studies.fermi.lagrangian import dual_fits

if TYPE_CHECKING:
    import pandas as pd

    from studies.data import Problem

DUAL = "Lagrangian dual"
STEPS_UP = (0.003, 0.01, 0.03, 0.1)
"""Steps of the multipliers of the Lagrangian dual approach."""
GAMMAS = (0.0, 1.0)
"""Weights of both penalties of `fair_sgd`; 0 is no mitigation."""
BOUNDS = (0.02, 0.05, 0.1, 0.2)
"""Largest differences of rates that `reductions` and `fermi` with a gap are asked for."""
GOALS: Mapping[str, str] = {"parity": "demographic_parity", "odds": "equalized_odds"}


def rivals(
    problem: Problem,
    train: pd.DataFrame,
    test: pd.DataFrame,
    criterion: str,
    epsilons: Sequence[float],
    *,
    delta: float,
    seeds: int,
    iterations: int | None,
) -> pd.DataFrame:
    """Frame of errors and violations on test rows, a line a fit, in the columns of `tradeoff`.

    `penalty` is the step of the multipliers, the gammas, or the largest difference that is asked for.
    """
    import pandas as pd

    seen = CurveRows.of(test, problem.schema, problem.target, [problem.group])
    lines = []
    columns = [CurveFit(up, e, s) for up, e, s in product(STEPS_UP, epsilons, range(seeds))]
    common: dict[str, Any] = {"target": problem.target, "groups": [problem.group]}
    duals = dual_fits(
        train,
        problem.schema,
        columns,
        delta=delta,
        settings={**common, "criterion": criterion, "iterations": iterations},
    )
    for column, model in zip(columns, duals, strict=True):
        lines.append({**_named(DUAL, criterion, column), **seen.measured(seen.predictions(model))})
    features = [name for name in problem.features if name != problem.group]
    for name, settings in _single(criterion).items():
        for (at, own), epsilon, seed in product(settings.items(), epsilons, range(seeds)):
            how = make(name.split(",")[0], {**common, "features": features, **own})
            said = _predicted(how, problem, train, test, epsilon, delta, seed)
            number = np.searchsorted(np.array(problem.schema.levels(problem.target)), said.astype(str))
            lines.append({**_named(name, criterion, CurveFit(at, epsilon, seed)), **seen.measured(number)})
    return pd.DataFrame(lines)


def _single(criterion: str) -> Mapping[str, Mapping[float, dict[str, Any]]]:
    """Return settings by mechanism and by the number that they are shown with."""
    return {
        "fermi, gap": {b: {"gap": b, "criterion": criterion} for b in BOUNDS},
        "fair_sgd": {
            g: {"mitigation": "surrogate", "gamma1": g, "gamma2": g} if g else {"mitigation": "none"} for g in GAMMAS
        },
        "reductions": {b: {"constraints": {GOALS[criterion]: b}} for b in BOUNDS},
    }


def _predicted(
    how: Any, problem: Problem, train: pd.DataFrame, test: pd.DataFrame, epsilon: float, delta: float, seed: int
) -> Any:
    table = ss.open_table(train, schema=problem.schema, declared_size=len(train))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoticeWarning)
        release = ss.fit(how, table, ss.Budget(epsilon=epsilon, delta=delta), progress=False, seed=seed)
    return np.asarray(release.predictions(test, seed=seed).column("prediction").to_pylist())


def _named(method: str, criterion: str, column: CurveFit) -> dict[str, Any]:
    return {
        "method": method,
        "criterion": criterion,
        "epsilon": column.epsilon,
        "penalty": column.penalty,
        "seed": column.seed,
    }
