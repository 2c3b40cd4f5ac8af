"""`FairSGDClassifier`: noisy gradient descent with a mitigation of unequal excessive risk, on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stratsynth.adapters.fair_sgd import FairSGD
from stratsynth.adapters.sklearn.classified import Classified
from stratsynth.adapters.sklearn.grouped import GROUP


@dataclass(kw_only=True, eq=False, repr=False)
class FairSGDClassifier(Classified):
    """Private classifier that penalises unequal effects of clipping and noise on groups.

    A logistic or softmax regression has `coef_` and `intercept_`. A network has, as those of scikit-learn, `coefs_` and
    `intercepts_` of its two layers: a feature a row and a unit a column, and a unit a row and a logit a column.

    Args:
        epsilon: Epsilon that each fit spends.
        delta: Delta that each fit spends.
        bounds: Public bounds of the features: a pair of numbers, or of arrays with one for each feature.
        classes: The classes, declared; two of them make a logistic model, whose coefficients are of the second.
        groups: The declared levels of the sensitive feature; None only with `mitigation` "none" or "global_adapt".
        model: "logistic", or "network" of one hidden layer.
        hidden: The number of its units.
        mitigation: As for `FairSGD`, and so are the next ones.
        declared_size: The number of rows if it is public; otherwise it is learned from the noisy sums.
        ledger: The file that keeps the account of these data; without one it lasts for the process.
        ledger_epsilon: The most that may ever be spent on these data.
        account: As for `GroupClassifier`, and so are `public` and `unit`.
        first: Share of the budget that the first question costs, which counts usable records and values outside; 0 for
            none.
        proceed: True to go on where it finds far fewer usable records than rows.
    """

    model: Literal["logistic", "network"] = "logistic"
    hidden: int = 16
    mitigation: Literal["surrogate", "group_clip", "global_adapt", "none"] = "none"
    gamma1: float = 1.0
    gamma2: float = 1.0
    scaling: Literal["bounds"] = "bounds"
    iterations: int | None = None
    batch: float | None = None
    sampling: float | None = None
    rate: float | None = None
    momentum: float | None = None
    clip: float | None = None
    clip_rate: float = 0.1
    most_clip: float = 10.0
    statistics_share: float = 0.2
    memory: float = 0.95
    most_weight: float = 5.0
    radius: float = 10.0
    tail: float = 0.5

    def _mechanism(self, features: Sequence[str]) -> FairSGD:
        """Return a `FairSGD` for feature columns of these names, with the estimator's settings."""
        return self._settings(FairSGD, features, groups=[] if self.groups is None else [GROUP])
