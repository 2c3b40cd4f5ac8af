"""`ReductionsClassifier`: `reductions` on arrays, for users of scikit-learn and of fairlearn's reductions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from stratsynth.adapters.reductions import RandomisedClassifier, Reductions
from stratsynth.adapters.reductions.goals import ObjectiveName, Versus
from stratsynth.adapters.reductions.mixing import Mixing
from stratsynth.adapters.reductions.smoothing import Kind
from stratsynth.adapters.sklearn.classified import Classified
from stratsynth.adapters.sklearn.grouped import GROUP
from stratsynth.adapters.sklearn.moments import constraints_from

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(kw_only=True, eq=False, repr=False)
class ReductionsClassifier(Classified):
    """Private classifier under constraints on groups: a randomised mixture of linear classifiers.

    Args:
        epsilon: Epsilon that each fit spends.
        delta: Delta that each fit spends.
        bounds: Public bounds of the features: a pair of numbers, or of arrays with one for each feature.
        classes: The classes, declared: two, and rates are those of predicting the second; or more.
        groups: The declared levels of the sensitive feature; None for one group of everybody.
        constraints: A table of names and bounds as for `Reductions`, one name, or a constraint object of fairlearn.
        versus: As for `Reductions`, and so are all others but the last six. fairlearn's objects
            compare with everybody: their bound b allows a gap of 2 b between two groups.
        declared_size: The number of rows if it is public.
        ledger: The file that keeps the account of these data; without one it lasts for the process.
        ledger_epsilon: The most that may ever be spent on these data.
        account: As for `GroupClassifier`, and so are `public` and `unit`.
        first: Share of the budget that the first question costs, which counts usable records and values outside; 0 for
            none.
        proceed: True to go on where it finds far fewer usable records than rows.
        random_state: The seed of predictions where `predict` is given none; `fit` draws nothing by it.
    """

    constraints: Any = None
    objective: ObjectiveName = "error"
    versus: Versus = "pairs"
    method: Literal["frank_wolfe", "sampling"] = "frank_wolfe"
    oracle: Literal["gradient", "exponential"] = "gradient"
    candidates: Literal["pool", "net", "thresholds"] = "pool"
    number: int = 200
    iterations: int = 20
    inner_steps: int = 15
    mixing: Mixing = "corrected"
    tolerance: float = 0.05
    multiplier: float | None = None
    smoothing: Kind = "moreau"
    smoothness: float = 0.02
    clip: float | None = None
    loss_clip: float = 4.0
    radius: float = 5.0
    deterministic: bool = False
    random_state: int = 0

    def _mechanism(self, features: Sequence[str]) -> Reductions:
        """Return the mechanism `reductions` for feature columns of these names; fairlearn's constraints translated."""
        constraints, versus = constraints_from(self.constraints, self.versus)
        bounds = {
            name: self._by_label(f"constraints: {name}", bound) if isinstance(bound, Mapping) else bound
            for name, bound in constraints.items()
        }
        versus = "overall" if versus == "overall" else "pairs"
        return self._settings(Reductions, features, groups=[GROUP], constraints=bounds, versus=versus)

    def _learned(self, features: int) -> None:
        """Set `weights_`, the classifiers' probabilities, and `goals_`, a list of dicts of noisy estimates.

        `features`, their number, is not used.
        """
        self.weights_ = self._fitted.weights
        self.goals_ = [dict(row) for row in self._fitted.facts["goals"]]

    @property
    def _fitted(self) -> RandomisedClassifier:
        check_is_fitted(self)
        model = self.release_.model
        assert isinstance(model, RandomisedClassifier)  # noqa: S101 - what the mechanism returns
        return model

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return an array, rows of `X` x `classes`: the exact mean over the draws of `predict`."""
        frame = self._frame(X)
        model = self._fitted
        return model.probabilities(model.shown(frame))

    def predict(self, X: Any, random_state: int | None = None) -> NDArray[Any]:
        """Return an array, one draw of the class of each row of `X`; equal for equal rows and seed.

        Args:
            X: Features, one row a record.
            random_state: The seed; that of the estimator where none is given.
        """
        frame = self._frame(X)  # refuses what was not fitted
        model = self._fitted.seeded(self.random_state if random_state is None else random_state)
        found: NDArray[Any] = self.classes_[model.predict(model.shown(frame)).astype(np.intp)]
        return found
