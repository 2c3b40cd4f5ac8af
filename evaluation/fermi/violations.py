"""Dependence of predictions on a group: the measures of paper 004, and those of fairlearn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def violations(truth: NDArray[np.intp], said: NDArray[np.intp], group: NDArray[np.intp]) -> dict[str, float]:
    """Error and violations, by name, of predictions `said`; all arguments are arrays of level numbers, one a row.

    error                          the share of rows predicted wrongly
    parity                         equation 10: max over classes c and groups of the difference of P[said = c | group]
    odds                           equation 11: likewise of P[said = c | group, truth = c] and P[said = c | group,
                                   truth != c]; for two classes the largest difference of true or false positive rates
    ermi                           sum over c and groups of P[c, group]^2 / (P[c] P[group]) - 1
    demographic_parity_difference  fairlearn's, of the last class against the others
    equalized_odds_difference      fairlearn's, likewise

    A rate over no rows is left out; a measure with fewer than two groups left is NaN.
    """
    from fairlearn.metrics import demographic_parity_difference, equalized_odds_difference

    classes = int(max(truth.max(), said.max())) + 1
    every = np.ones(len(truth), np.bool_)
    within = [part for c in range(classes) for part in ((c, truth == c), (c, truth != c))]
    one, yes = said == classes - 1, truth == classes - 1
    # fairlearn's equalized odds need both true classes in every group
    both = np.unique(yes).size > 1 and all(np.unique(yes[group == g]).size > 1 for g in np.unique(group))
    return {
        "error": float((said != truth).mean()),
        "parity": _largest([(c, every) for c in range(classes)], said, group),
        "odds": _largest(within, said, group),
        "ermi": _ermi(said, group),
        "demographic_parity_difference": float(demographic_parity_difference(yes, one, sensitive_features=group)),
        "equalized_odds_difference": float(equalized_odds_difference(yes, one, sensitive_features=group))
        if both
        else float("nan"),
    }


def gaps(truth: NDArray[np.intp], said: NDArray[np.intp], group: NDArray[np.intp]) -> list[float]:
    """List, a number for each class in `truth`: largest difference of groups' rates of predicting the last class in it.

    `said` are the predictions; all are arrays of level numbers, one a row. NaN with fewer than two groups.
    """
    classes = int(max(truth.max(), said.max())) + 1
    return [_largest([(classes - 1, truth == c)], said, group) for c in range(classes)]


def _largest(parts: list[tuple[int, NDArray[np.bool_]]], said: NDArray[np.intp], group: NDArray[np.intp]) -> float:
    """Largest difference between groups' rates of predicting c in `said` among some rows, over `parts`.

    `parts` are pairs (class c, mask of these rows), `group` has the number of each row's group; NaN with fewer than two
    groups.
    """
    found = []
    for c, here in parts:
        rates = [(said[here & (group == g)] == c).mean() for g in np.unique(group) if (here & (group == g)).any()]
        found += [max(rates) - min(rates)] if len(rates) > 1 else []
    return float(max(found)) if found else float("nan")


def _ermi(said: NDArray[np.intp], group: NDArray[np.intp]) -> float:
    """Measure `ermi`, a float, of predictions `said` in groups `group`, arrays of level numbers, one a row."""
    joint = np.zeros((group.max() + 1, said.max() + 1))
    np.add.at(joint, (group, said), 1 / len(said))
    expected = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return float((joint[expected > 0] ** 2 / expected[expected > 0]).sum() - 1)
