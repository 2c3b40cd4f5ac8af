"""Mechanisms, one a file. Each yields questions and returns a model; none of them receives a row.

Names are imported on first use: fitting one mechanism loads that mechanism, and no other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stratsynth.adapters.aim import AIM
    from stratsynth.adapters.external import External
    from stratsynth.adapters.fair_sgd import FairSGD
    from stratsynth.adapters.fermi import DPFermi
    from stratsynth.adapters.fixed import Fixed
    from stratsynth.adapters.gem import GEM
    from stratsynth.adapters.independent import Independent
    from stratsynth.adapters.linked.mechanism import Linked
    from stratsynth.adapters.means import ClippedMean, CoinPress
    from stratsynth.adapters.mst import MST
    from stratsynth.adapters.output_perturbation import OutputPerturbation
    from stratsynth.adapters.pooled import Pooled
    from stratsynth.adapters.predictors import AdaSSP, GroupRegression
    from stratsynth.adapters.reductions import Reductions

_HOME = {
    "AIM": "aim",
    "AdaSSP": "predictors",
    "GEM": "gem",
    "MST": "mst",
    "ClippedMean": "means",
    "CoinPress": "means",
    "DPFermi": "fermi",
    "External": "external",
    "FairSGD": "fair_sgd",
    "Fixed": "fixed",
    "GroupRegression": "predictors",
    "Independent": "independent",
    "Linked": "linked.mechanism",
    "OutputPerturbation": "output_perturbation",
    "Pooled": "pooled",
    "Reductions": "reductions",
}

__all__ = [
    "AIM",
    "GEM",
    "MST",
    "AdaSSP",
    "ClippedMean",
    "CoinPress",
    "DPFermi",
    "External",
    "FairSGD",
    "Fixed",
    "GroupRegression",
    "Independent",
    "Linked",
    "OutputPerturbation",
    "Pooled",
    "Reductions",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'stratsynth.adapters' has no attribute {name!r}")
    value = getattr(import_module(f"stratsynth.adapters.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
