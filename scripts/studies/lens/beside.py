"""INTERNAL. Output perturbation as it is released, beside descents on noisy gradients, at the true budget.

All take their defaults, which follow from public numbers. Figures are of rows that no fit has seen.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from stratsynth.accounting.budget import Budget
from stratsynth.data.table import open_table
from stratsynth.errors import NoticeWarning
from stratsynth.evaluation.tables import FEW, EncodedRows
from stratsynth.fitting import fit
from stratsynth.mechanisms import make
from stratsynth.questions import Coded
from stratsynth.questions.sums.design import features
from stratsynth.schema.rows import CodedRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    from studies.lens.cases import Case

EPSILONS = (0.5, 1.0, 3.0)
DELTA = 1e-6
FITTED = 0.75
"""Part of the rows that is fitted."""
METHODS: Mapping[str, Mapping[str, Any]] = {
    "output_perturbation": {},
    "group_regression": {"model": "logistic"},
    "fermi": {"penalty": 0.0},
}
PLAIN = "without privacy"


def accuracies(cases: Sequence[Case], repeats: int, rng: Generator) -> pd.DataFrame:
    """Return each fit's accuracy on rows not fitted, everybody's and that of the group for which it is least."""
    found = []
    for case in cases:
        names = [name for name in case.schema.names if name not in (case.target, case.group)]
        for repeat in range(repeats):
            chosen = rng.random(len(case.frame)) < FITTED
            train, test = (case.frame[rows].reset_index(drop=True) for rows in (chosen, ~chosen))
            plain = LogisticRegression(max_iter=500).fit(_matrix(case, names, train), train[case.target].astype(str))
            said = {(PLAIN, np.inf): plain.predict(_matrix(case, names, test))}
            for method, settings in METHODS.items():
                for epsilon in EPSILONS:
                    groups = {"groups": [case.group]} if method == "fermi" else {}
                    how = make(method, {"target": case.target, "features": names, **groups, **settings})
                    table = open_table(train, schema=case.schema, declared_size=len(train))
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", NoticeWarning)
                        release = fit(how, table, Budget(epsilon, DELTA), progress=False)
                    said[method, epsilon] = np.asarray(release.predict(test))
            for (method, epsilon), predicted in said.items():
                right = predicted == test[case.target].astype(str).to_numpy()
                row = {"world": case.name, "method": method, "epsilon": epsilon, "repeat": repeat, "n": len(train)}
                found.append({**row, "accuracy": right.mean(), "worst": _worst(right, test[case.group].to_numpy())})
    return pd.DataFrame(found)


def lost(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the mean accuracy of each method, and the mean loss against the plain model of the same rows."""
    plain = frame[frame["method"] == PLAIN].set_index(["world", "repeat"])["accuracy"]
    own = frame[frame["method"] != PLAIN].set_index(["world", "repeat"])
    own = own.assign(lost=plain.reindex(own.index) - own["accuracy"]).reset_index()
    each = own.groupby(["world", "method", "epsilon"], sort=False)
    found: pd.DataFrame = each[["accuracy", "lost", "worst"]].mean()
    return found


def words(frame: pd.DataFrame) -> str:
    """Return a sentence on the accuracy that output perturbation loses beside the best descent's."""
    mean = lost(frame).reset_index().pivot_table(index=["world", "epsilon"], columns="method", values="lost")
    own, other = mean["output_perturbation"], mean.drop(columns="output_perturbation").min(axis=1)
    return (
        f"Released with its defaults, output perturbation loses {own.mean():.4f} of accuracy in the mean case against "
        f"a model without privacy ({own.min():.4f} to {own.max():.4f}), the better descent {other.mean():.4f}; it "
        f"loses less than the descent in {int((own < other).sum())} of {len(own)}."
    )


def _matrix(case: Case, names: Sequence[str], frame: pd.DataFrame) -> NDArray[np.float64]:
    rows = EncodedRows.read(frame, case.schema)
    return features(Coded(tuple(names)), CodedRows(case.schema, rows.codes, dict(rows.numbers), rows.rows)).T


def _worst(right: NDArray[np.bool_], group: NDArray[Any]) -> float:
    """The least accuracy of a group that is not tiny."""
    return float(min(right[group == g].mean() for g in np.unique(group) if (group == g).sum() >= FEW))
