"""`FermiClassifier`: DP-FERMI on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from stratsynth.adapters.fermi import DPFermi
from stratsynth.adapters.networks.blueprint import Network
from stratsynth.adapters.sklearn.classified import Classified
from stratsynth.adapters.sklearn.grouped import GROUP
from stratsynth.errors import UsageError


@dataclass(kw_only=True, eq=False, repr=False)
class FermiClassifier(Classified):
    """Private classifier with a penalty on the dependence of predictions on the sensitive feature.

    Logistic or softmax regression, with `coef_` and `intercept_`; or with `network` one by PyTorch, without.

    Args:
        epsilon: Epsilon that each fit spends.
        delta: Delta that each fit spends.
        bounds: Public bounds of the features: a pair of numbers, or of arrays with one for each feature.
        classes: The classes, declared; two of them make a logistic model, whose coefficients are of the second.
        groups: The declared levels of the sensitive feature; None only with `penalty = 0`.
        gap: Largest wanted gap between two groups' rates of predictions of the second class; `gap_`, `gap_noise_`,
            `multiplier_` and `gap_status_` are set by a fit that is given one.
        penalty: lambda, how much ERMI counts beside the mean log loss, in place of `gap`; 0 for the loss alone. One of
            the two has to be given.
        criterion: `parity` (demographic parity) or `odds` (equalized odds).
        odds_weights: How much each class counts in the penalty of `odds`: `alike`, or by its share of the rows, as in
            the paper (`shares`).
        protect: `all` protects whole records. `sensitive` protects the sensitive feature alone: features and classes
            are taken as they are, and the certificate says so first. A row whose sensitive feature is no declared
            level then counts as of the first.
        shares: Public sizes or shares of the groups, by level; for `odds` by pairs (level, class). By default they are
            learned from the fit's own noisy sums.
        shares_citation: Where these were published.
        iterations: As for `DPFermi`, and so are the next ones.
        network: None; or `mlp`, `conv`, or a function of the numbers of features and classes that returns a
            `torch.nn.Module`: see `DPFermi`.
        hidden: Units of each hidden layer of `mlp`, channels of each convolution of `conv`.
        image: For `conv`: height and width, or channels, height and width, of the image that a row of X is.
        declared_size: The number of rows if it is public; otherwise it is learned from the noisy sums.
        ledger: The file that keeps the account of these data; without one it lasts for the process.
        ledger_epsilon: The most that may ever be spent on these data.
        account: As for `GroupClassifier`, and so are `public` and `unit`.
        first: Share of the budget that the first question costs, which counts usable records and values outside; 0 for
            none.
        proceed: True to go on where it finds far fewer usable records than rows.
    """

    gap: float | None = None
    penalty: float | None = None
    criterion: Literal["parity", "odds"] = "parity"
    odds_weights: Literal["alike", "shares"] = "alike"
    protect: Literal["all", "sensitive"] = "all"
    shares: Mapping[Any, float] | None = None
    shares_citation: str = ""
    iterations: int | None = None
    batch: float | None = None
    sampling: float | None = None
    rate: float | None = None
    momentum: float | None = None
    ascent: float = 0.1
    clip: float | None = None
    adversary_share: float = 0.2
    warm_up: float = 0.1
    radius: float = 10.0
    tail: float = 0.5
    network: Network | None = None
    hidden: Sequence[int] = (8, 16)
    image: Sequence[int] | None = None

    def _mechanism(self, features: Sequence[str]) -> DPFermi:
        """Return a `DPFermi` for feature columns of these names, with the estimator's settings."""
        return self._settings(
            DPFermi,
            features,
            groups=[] if self.groups is None else [GROUP],
            sizes=self._sizes(self._declared()),
            sizes_citation=self.shares_citation,
            image=() if self.image is None else self.image,
        )

    def _learned(self, features: int) -> None:
        """Set what `Classified` sets of `features`, a number; of a wanted gap the measured one, noise, multiplier.

        `gap_` and `gap_noise_` are NaN where no group's count is clear of its noise. `multiplier_` is an array, one a
        true class and contrast of the groups.
        """
        super()._learned(features)
        for found in self.release_.statement.gaps:
            self.gap_ = np.nan if found.measured is None else found.measured
            self.gap_noise_ = np.nan if found.noise is None else found.noise
            self.gap_status_, self.multiplier_ = found.status, np.array(found.multipliers)

    def _sizes(self, classes: Sequence[Any]) -> dict[str, float]:
        """Return a dict of the estimator's `shares`, numbers, by the mechanism's label of group, or group and class.

        `classes` is the list of declared ones. UsageError for undeclared keys.
        """
        levels = {level: str(i) for i, level in enumerate(self._levels())}
        numbers = {level: str(i) for i, level in enumerate(classes)}
        found = {}
        for key, share in (self.shares or {}).items():
            try:
                label = f"{levels[key[0]]}|{numbers[key[1]]}" if self.criterion == "odds" else levels[key]
            except (KeyError, TypeError, IndexError):
                what = "a pair (level, class)" if self.criterion == "odds" else "a level"
                raise UsageError(f"shares: a key is {what} that is declared; {key!r} is not.") from None
            found[label] = share
        return found
