"""The estimators as scikit-learn's users expect them, with named exceptions."""

import contextlib
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from stratsynth.adapters.sklearn import (
    EveryFoldSpends,
    GroupClassifier,
    GroupRegressor,
    PublicScore,
    cross_validate,
    grouped,
)
from stratsynth.errors import BudgetRefused, NotPrivateWarning, UsageError
from stratsynth.schema import Numeric

pytestmark = pytest.mark.usefixtures("seeded_noise")

SPEND = {"epsilon": 3.0, "delta": 1e-6}
NOISE = "two fits never agree: the noise is fresh each time"
EXCEPTIONS = {
    "check_fit_idempotent": NOISE,
    "check_regressor_data_not_an_array": NOISE,
    "check_regressors_int": NOISE,
    "check_supervised_y_2d": NOISE,
    "check_classifier_data_not_an_array": NOISE,
    "check_classifiers_classes": "classes are declared, and this check uses others",
    "check_classifiers_one_label": "ten rows of one class give a model of noise",
    "check_classifier_not_supporting_multiclass": "classes are declared, and rows of others left out: a refusal would "
    "tell that there are some",
}


@parametrize_with_checks(
    [
        GroupRegressor(**SPEND, bounds=(-10, 10), target_bounds=(-100, 100), iterations=3),
        GroupClassifier(**SPEND, bounds=(-10, 10), classes=(0, 1), iterations=3),
    ]
)
def test_check_estimator(estimator, check):
    name = check.func.__name__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in EXCEPTIONS:
            with contextlib.suppress(AssertionError, UsageError):
                check(estimator)
        else:
            check(estimator)


def data(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform([0, -2], [10, 2], (n, 2))
    group = rng.choice(["m", "f"], n, p=[0.8, 0.2])
    y = 3 * x[:, 0] - 5 * x[:, 1] + rng.normal(size=n)
    return x, y, group


BOUNDS = (np.array([0.0, -2.0]), np.array([10.0, 2.0]))


def regressor(**settings):
    return GroupRegressor(**{**SPEND, "bounds": BOUNDS, "target_bounds": (-20, 50), **settings})


def test_a_regressor_finds_the_coefficients_in_the_unit_of_the_data():
    x, y, _ = data()
    model = regressor().fit(x, y)
    assert model.coef_ == pytest.approx([3, -5], abs=0.5)
    with pytest.warns(NotPrivateWarning, match="INTERNAL"):
        assert model.score(x, y) > 0.95
    inside = x @ model.coef_ + model.intercept_
    assert np.allclose(model.predict(x), np.clip(inside, -20, 50))


def test_a_classifier_predicts_declared_classes_of_any_kind():
    x, y, _ = data()
    label = np.where(y > np.median(y), "high", "low")
    model = GroupClassifier(**SPEND, bounds=BOUNDS, classes=["low", "high"]).fit(x, label)
    assert model.classes_.tolist() == ["low", "high"]
    assert (model.predict(x) == label).mean() > 0.9
    assert np.allclose(model.predict_proba(x).sum(axis=1), 1)
    logit = x @ model.coef_[0] + model.intercept_[0]
    assert np.allclose(model.predict_proba(x)[:, 1], 1 / (1 + np.exp(-logit)))


def test_a_classifier_of_three_classes_has_coefficients_for_each():
    x, y, _ = data()
    label = np.digitize(y, np.quantile(y, [0.33, 0.67]))
    model = GroupClassifier(**SPEND, bounds=BOUNDS, classes=np.unique(label)).fit(x, label)
    assert (model.predict(x) == label).mean() > 0.6
    assert model.coef_.shape == (3, 2)
    logits = np.exp(x @ model.coef_.T + model.intercept_)
    assert np.allclose(model.predict_proba(x), logits / logits.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("classes", [["no"], ["no", "no"], "no", 2])
def test_classes_are_a_list_of_different_ones(classes):
    x, y, _ = data(20)
    with pytest.raises(ValueError, match="two different ones"):
        GroupClassifier(**SPEND, bounds=BOUNDS, classes=classes).fit(x, y > 0)


def test_groups_are_declared_and_given_together():
    x, y, group = data()
    model = regressor(groups=["m", "f"], objective="balanced", mode="DPSE", accounting="parallel")
    model.fit(x, y, sensitive_features=group)
    assert [g["group"] for g in model.release_.model.facts["groups"]] == ["0", "1"]
    for wrong in (lambda: model.fit(x, y), lambda: regressor().fit(x, y, sensitive_features=group)):
        with pytest.raises(UsageError, match="go together"):
            wrong()


def test_rows_of_no_declared_group_or_class_are_left_out_silently():
    x, y, group = data()
    regressor(groups=["m"], iterations=3).fit(x, y, sensitive_features=group)
    label = np.where(y > 0, "yes", "no").astype(object)
    label[:10] = "zebra"
    GroupClassifier(**SPEND, bounds=BOUNDS, classes=["no", "yes"], iterations=3).fit(x, label)


@pytest.mark.parametrize("strange", ["x", 0.5, None, [1, 2], float("nan")])
def test_what_one_record_says_changes_no_other_ones_group(strange, monkeypatch):
    """In an array of one type a text among numbers makes all of them texts, and every record would lose its group."""
    frames = []
    monkeypatch.setattr(grouped, "open_table", lambda frame, **_: frames.append(frame))
    number = Numeric(lower=-20, upper=50, bins=1)
    for last in (2, strange):
        regressor(groups=[1, 2])._table(np.zeros((4, 2)), np.zeros(4), number, [1, 2, 1, last])
    one, other = (list(frame[grouped.GROUP]) for frame in frames)
    assert one == ["0", "1", "0", "1"]
    assert other == [*one[:3], grouped.OTHER]


def test_nor_does_it_change_any_other_ones_class():
    model = GroupClassifier(**SPEND, bounds=BOUNDS, classes=[0, 1])
    _, y = model._checked(np.zeros((4, 2)), [0, 1, 0, "x"])
    assert list(grouped.numbered(y, [0, 1])) == ["0", "1", "0", grouped.OTHER]


@pytest.mark.parametrize("bounds", [3, (1,), (1, 0), (0, np.inf), ([0, 0, 0], [1, 1, 1]), ("a", "b")])
def test_unsound_bounds_are_refused(bounds):
    x, y, _ = data(20)
    with pytest.raises(ValueError, match="bounds"):
        regressor(bounds=bounds).fit(x, y)


def test_bounds_and_budget_are_required():
    for missing in ("epsilon", "delta", "bounds", "target_bounds"):
        settings = {**SPEND, "bounds": BOUNDS, "target_bounds": (0, 1)}
        del settings[missing]
        with pytest.raises(TypeError, match=missing):
            GroupRegressor(**settings)


def test_the_certificate_is_there_after_the_fit():
    x, y, _ = data(50)
    model = regressor(iterations=2)
    with pytest.raises(NotFittedError):
        _ = model.certificate_
    assert model.fit(x, y).certificate_["guarantee"]["epsilon"] == SPEND["epsilon"]


def test_a_ledger_counts_fits_of_the_same_rows(tmp_path):
    x, y, _ = data(50)
    model = regressor(iterations=2, ledger=tmp_path / "x.ledger", ledger_epsilon=4.0).fit(x, y)
    with pytest.raises(BudgetRefused):
        clone(model).set_params(iterations=3).fit(x, y)


def test_in_a_pipeline_and_cloned():
    x, y, _ = data(500)
    pipeline = make_pipeline(FunctionTransformer(), regressor(iterations=20))
    assert clone(pipeline).fit(x, y).predict(x).shape == (500,)
    assert len(cross_val_score(regressor(iterations=5, public=True), x, y, cv=2)) == 2


def test_a_cross_validation_says_what_it_costs_before_it_starts():
    x, y, group = data(500)
    model = regressor(groups=["m", "f"], iterations=3)
    with pytest.warns(EveryFoldSpends, match="in 2 of 3 folds.* epsilon 9 and delta 3e-06"):
        found = cross_validate(model, x, y, sensitive_features=group, folds=3, scoring=PublicScore(x[:50], y[:50]))
    assert len(found["test_score"]) == 3
    with pytest.raises(UsageError, match="2 folds"):
        cross_validate(model, x, y, folds=1)
