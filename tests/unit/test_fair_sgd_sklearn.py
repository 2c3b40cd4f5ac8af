"""`FairSGDClassifier` as scikit-learn's users expect it, with named exceptions."""

import contextlib
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from stratsynth.adapters.sklearn import FairSGDClassifier
from stratsynth.errors import Unsupported, UsageError

pytestmark = pytest.mark.usefixtures("seeded_noise")

SPEND = {"epsilon": 3.0, "delta": 1e-6}
FAST = {"iterations": 30, "sampling": 0.5}
NOISE = "two fits never agree: the noise is fresh each time"
EXCEPTIONS = {
    "check_fit_idempotent": NOISE,
    "check_supervised_y_2d": NOISE,
    "check_classifier_data_not_an_array": NOISE,
    "check_classifiers_classes": "classes are declared, and this check uses others",
    "check_classifiers_one_label": "ten rows of one class give a model of noise",
    "check_classifiers_train": "classes are declared, and this check uses others",
    "check_classifiers_regression_target": "classes are declared, and rows of others left out silently",
}


@parametrize_with_checks([FairSGDClassifier(**SPEND, bounds=(-10, 10), classes=(0, 1, 2), mitigation="none", **FAST)])
def test_check_estimator(estimator, check):
    name = check.func.__name__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in EXCEPTIONS:
            with contextlib.suppress(AssertionError, ValueError, UsageError):
                check(estimator)
        else:
            check(estimator)


def data(n=4000, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.choice(["m", "f"], n, p=[0.8, 0.2])
    x = rng.uniform([-1, 0], [1, 10], (n, 2))
    score = 2 * x[:, 0] + 0.2 * x[:, 1] + 0.3 * rng.normal(size=n)
    label = np.array(["low", "middle", "high"] if classes == 3 else ["low", "high"])
    return x, label[np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)], group


def made(**settings):
    bounds = (np.array([-1.0, 0.0]), np.array([1.0, 10.0]))
    return FairSGDClassifier(
        **{**SPEND, "bounds": bounds, "classes": ["low", "high"], "groups": ["m", "f"], **FAST, **settings}
    )


@pytest.mark.parametrize("settings", [{}, {"declared_size": 4000}, {"mitigation": "group_clip"}])
def test_it_learns(settings):
    x, y, group = data()
    model = made(**settings).fit(x, y, sensitive_features=group)
    assert (model.predict(x) == y).mean() > 0.8
    assert model.predict_proba(x).sum(axis=1) == pytest.approx(np.ones(len(x)))
    decision = x @ model.coef_[0] + model.intercept_[0]
    assert ((decision > 0) == (model.predict(x) == "high")).all()
    assert model.certificate_["mechanism"]["name"] == "fair_sgd"
    assert model.certificate_["guarantee"]["epsilon"] == 3.0


def test_three_classes():
    x, y, group = data(classes=3)
    model = made(classes=["low", "middle", "high"]).fit(x, y, sensitive_features=group)
    assert (model.predict(x) == y).mean() > 0.5
    assert model.coef_.shape == (3, 2)


@pytest.mark.parametrize("classes", [["low", "high"], ["low", "middle", "high"]])
def test_a_network_has_layers_in_the_unit_of_the_features(classes):
    x, y, group = data(classes=len(classes))
    model = made(classes=classes, model="network", hidden=4, iterations=60, gamma1=0.0)
    model.fit(x, y, sensitive_features=group)
    assert (model.predict(x) == y).mean() > 0.45
    assert [layer.shape for layer in model.coefs_] == [(2, 4), (4, 1 if len(classes) == 2 else 3)]
    z = np.tanh(x @ model.coefs_[0] + model.intercepts_[0]) @ model.coefs_[1] + model.intercepts_[1]
    z = np.column_stack([0 * z, z]) if len(classes) == 2 else z
    power = np.exp(z)
    assert np.allclose(power / power.sum(axis=1, keepdims=True), model.predict_proba(x))


def test_what_the_paper_prints_is_refused_before_anything_is_spent():
    x, y, group = data(200)
    with pytest.raises(Unsupported, match="averages over groups"):
        made(mitigation="paper").fit(x, y, sensitive_features=group)
    with pytest.raises(UsageError, match="go together"):
        made().fit(x, y)
    with pytest.raises(Unsupported, match="needs groups"):
        made(groups=None, mitigation="surrogate").fit(x, y)
    assert clone(made()).get_params()["gamma1"] == 1.0
