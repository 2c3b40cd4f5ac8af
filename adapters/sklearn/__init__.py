"""Estimators for scikit-learn: `group_regression`, `reductions`, `fermi`, `fair_sgd`, `output_perturbation` on arrays.

What scikit-learn would read from the data is a parameter here, since it would be learned for free: the bounds of
features and target, the classes, the levels of the sensitive feature. Rows with another class or level are left out
silently, and numbers beyond their bounds are taken for these. Every `fit` spends `epsilon` and `delta`; so does every
fold of a cross-validation and every candidate of a search, whose total is said before the first fit. What is chosen by
scores of private rows is as private as they are: `NoisyScore` pays for them, `PublicScore` takes public rows, and on
data that were not declared public nothing else is taken. The noise cannot be seeded, so two fits never agree.
"""

from __future__ import annotations

from stratsynth.adapters.sklearn.estimators import GroupClassifier, GroupRegressor
from stratsynth.adapters.sklearn.fair import FairSGDClassifier
from stratsynth.adapters.sklearn.fermi import FermiClassifier
from stratsynth.adapters.sklearn.folds import cross_validate
from stratsynth.adapters.sklearn.perturbed import OutputPerturbationClassifier
from stratsynth.adapters.sklearn.reductions import ReductionsClassifier
from stratsynth.adapters.sklearn.scores import NoisyScore, PublicScore
from stratsynth.adapters.sklearn.searches import EveryFoldSpends, Folds

__all__ = [
    "EveryFoldSpends",
    "FairSGDClassifier",
    "FermiClassifier",
    "Folds",
    "GroupClassifier",
    "GroupRegressor",
    "NoisyScore",
    "OutputPerturbationClassifier",
    "PublicScore",
    "ReductionsClassifier",
    "cross_validate",
]
