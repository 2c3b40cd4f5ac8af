"""Parameters of the estimators: their mechanisms' settings, with the same defaults, handed on under the same names."""

import inspect
from dataclasses import MISSING, fields

import pytest
from sklearn.base import clone

from stratsynth.adapters.fair_sgd import FairSGD
from stratsynth.adapters.fermi import DPFermi
from stratsynth.adapters.output_perturbation import OutputPerturbation
from stratsynth.adapters.predictors import GroupRegression
from stratsynth.adapters.reductions import Reductions
from stratsynth.adapters.sklearn import (
    FairSGDClassifier,
    FermiClassifier,
    GroupClassifier,
    GroupRegressor,
    OutputPerturbationClassifier,
    ReductionsClassifier,
)
from stratsynth.settings import resolved

PAIRS = [
    (GroupRegressor, GroupRegression),
    (GroupClassifier, GroupRegression),
    (FermiClassifier, DPFermi),
    (FairSGDClassifier, FairSGD),
    (OutputPerturbationClassifier, OutputPerturbation),
    (ReductionsClassifier, Reductions),
]
OWN = {"groups", "image", "loss_bounds", "constraints"}
"""Settings that estimators are given in another form than their mechanism."""
LEFT_OUT = {
    GroupRegression: "model hidden group_weights sharpness multiplier sizes sizes_citation count_share loss_clip "
    "region reference interactions",
    DPFermi: "thresholds sizes sizes_citation region adversary_radius reference interactions",
    FairSGD: "region reference interactions",
    OutputPerturbation: "model reference interactions",
    Reductions: "spread start_steps start_share loss_share floor sizes sizes_citation count_share least rate momentum "
    "reference",
}
"""Settings of a mechanism that its estimators do not have, or take from arrays."""


@pytest.mark.parametrize(("estimator", "mechanism"), PAIRS)
def test_defaults_are_those_of_the_mechanism(estimator, mechanism):
    parameters = inspect.signature(estimator).parameters
    shared = [field for field in fields(mechanism) if field.name in parameters.keys() - OWN]
    assert len(shared) > (10 if mechanism is not OutputPerturbation else 3)
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())
    for field in shared:
        assert field.default is not MISSING
        assert parameters[field.name].default == field.default, field.name


@pytest.mark.parametrize(("estimator", "mechanism"), PAIRS)
def test_parameters_are_the_settings_of_the_mechanism_with_their_types(estimator, mechanism):
    """They are written down twice, so that type checkers and editors see them: here they are compared."""
    parameters = inspect.signature(estimator).parameters.keys()
    settings = {field.name for field in fields(mechanism)} - {"target", "features"}
    assert settings - parameters == set(LEFT_OUT[mechanism].split())
    for name in settings & parameters - OWN:
        assert resolved(estimator, name) == resolved(mechanism, name), name


def test_every_setting_reaches_the_mechanism():
    given = {"clip": 2.0, "gamma1": 3.0, "model": "network", "hidden": 5, "sampling": 0.25}
    model = FairSGDClassifier(epsilon=1, delta=1e-6, bounds=(0, 1), classes=[0, 1], groups=["a", "b"], **given)
    how = clone(model).set_params(tail=0.25)._mechanism(["x0", "x1"])
    assert {key: getattr(how, key) for key in given} == given
    assert (how.tail, how.target, how.features, how.groups) == (0.25, "target", ("x0", "x1"), ("group",))
