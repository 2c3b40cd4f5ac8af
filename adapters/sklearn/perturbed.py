"""`OutputPerturbationClassifier`: a penalised regression whose coefficients get noise once, on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stratsynth.adapters.output_perturbation import OutputPerturbation
from stratsynth.adapters.sklearn.classified import Classified
from stratsynth.adapters.sklearn.grouped import GROUP


@dataclass(kw_only=True, eq=False, repr=False)
class OutputPerturbationClassifier(Classified):
    """Private classifier by output perturbation: a logistic or softmax regression with `coef_` and `intercept_`.

    Args:
        epsilon: Epsilon that each fit spends.
        delta: Delta that each fit spends.
        bounds: Public bounds of the features: a pair of numbers, or of arrays with one for each feature.
        classes: The classes, declared; two of them make a logistic model, whose coefficients are of the second.
        groups: The declared levels of the sensitive feature; None only with `objective` "pooled".
        objective: As for `OutputPerturbation`, and so are the next ones.
        declared_size: The number of rows if it is public; needed where no `strength` is given.
        ledger: The file that keeps the account of these data; without one it lasts for the process.
        ledger_epsilon: The most that may ever be spent on these data.
        account: As for `GroupClassifier`, and so are `public` and `unit`.
        first: Share of the budget that the first question costs, which counts usable records and values outside; 0 for
            none.
        proceed: True to go on where it finds far fewer usable records than rows.
    """

    objective: Literal["pooled", "balanced"] = "pooled"
    count_share: float = 0.02
    strength: float | None = None
    clip: float | None = None

    def _mechanism(self, features: Sequence[str]) -> OutputPerturbation:
        """Return an `OutputPerturbation` for feature columns of these names, with the estimator's settings."""
        return self._settings(OutputPerturbation, features, groups=[] if self.groups is None else [GROUP])
