"""Predictions of other libraries, in an environment of their own: this file runs there by its path, without stratsynth.

    python rivals.py IN.npz OUT.npz

IN has x (features between -1 and 1), y, `train` (one row a repetition, one column a record), `epsilons`, and `link`;
for `additive` x has the columns as such, `bounds` the largest level of each, or 0 for a number, and `delta`.
OUT has `said`: what was predicted of every record, by epsilon and repetition, from the training records alone.

diffprivlib is given what our models have: features within public bounds, the largest norm of a row, bounds of y.
Its guarantee is pure epsilon, for a record exchanged; its `accountant` has no limit here. interpret is given public
bounds and levels too; what its (epsilon, delta) means is what it says.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np


def main(source: str, result: str) -> None:
    """Fit every epsilon and repetition."""
    given = np.load(source)
    fit = {"logistic": _logistic, "linear": _linear, "additive": _additive}[str(given["link"])]
    said = [[fit(given, train, float(epsilon)) for train in given["train"]] for epsilon in given["epsilons"]]
    np.savez(result, said=np.array(said))


def _logistic(given: Any, train: Any, epsilon: float) -> Any:
    from diffprivlib.models import LogisticRegression

    x = given["x"]
    model = LogisticRegression(epsilon=epsilon, data_norm=float(given["norm"]), max_iter=1_000)
    return model.fit(x[train], given["y"][train]).predict(x)


def _linear(given: Any, train: Any, epsilon: float) -> Any:
    from diffprivlib.models import LinearRegression

    x = given["x"]
    ends = (np.full(x.shape[1], -1.0), np.full(x.shape[1], 1.0))
    model = LinearRegression(epsilon=epsilon, bounds_X=ends, bounds_y=(-1.0, 1.0))
    return model.fit(x[train], given["y"][train]).predict(x)


def _additive(given: Any, train: Any, epsilon: float) -> Any:
    from interpret.privacy import DPExplainableBoostingRegressor

    x, most = given["x"], given["bounds"]
    model = DPExplainableBoostingRegressor(
        epsilon=epsilon,
        delta=float(given["delta"]),
        feature_types=["nominal" if m else "continuous" for m in most],
        privacy_bounds={i: (0, int(m)) if m else (-1, 1) for i, m in enumerate(most)},
        privacy_target_min=-1,
        privacy_target_max=1,
        n_jobs=1,
    )
    return model.fit(x[train], given["y"][train]).predict(x)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # about steps that did not converge, and bounds that are declared
    main(*sys.argv[1:])
