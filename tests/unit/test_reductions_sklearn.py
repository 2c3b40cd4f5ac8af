"""The estimator as users of scikit-learn and of fairlearn expect it, with named exceptions."""

import contextlib
import warnings

import fairlearn.reductions as fair
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from stratsynth.adapters.sklearn import EveryFoldSpends, PublicScore, ReductionsClassifier, cross_validate
from stratsynth.adapters.sklearn.moments import constraints_from
from stratsynth.errors import UsageError

pytestmark = pytest.mark.usefixtures("seeded_noise")

SPEND = {"epsilon": 3.0, "delta": 1e-6}
SHORT = {"iterations": 2, "inner_steps": 2}
NOISE = "two fits never agree: the noise is fresh each time"
CHANCE = "a prediction is a draw for the row's place among the rows; without chance, see the second estimator"
EXCEPTIONS = {
    "check_fit_idempotent": NOISE,
    "check_classifier_data_not_an_array": NOISE,
    "check_supervised_y_2d": NOISE,
    "check_classifiers_classes": "classes are declared, and this check uses others",
    "check_classifiers_one_label": "ten rows of one class give a model of noise",
    "check_classifier_not_supporting_multiclass": "classes are declared, and rows of others left out: a refusal would "
    "tell that there are some",
}
BY_CHANCE = {
    "check_methods_subset_invariance": CHANCE,
    "check_methods_sample_order_invariance": CHANCE,
    "check_classifiers_train": "the likelier class need not be the one drawn",
}
MADE = {**SPEND, **SHORT, "bounds": (-10, 10), "classes": (0, 1)}


@parametrize_with_checks([ReductionsClassifier(**MADE), ReductionsClassifier(**MADE, deterministic=True)])
def test_check_estimator(estimator, check):
    name = check.func.__name__
    excepted = EXCEPTIONS if estimator.deterministic else EXCEPTIONS | BY_CHANCE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in excepted:
            with contextlib.suppress(AssertionError, UsageError):
                check(estimator)
        else:
            check(estimator)


def data(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.choice(["m", "f"], n, p=[0.7, 0.3])
    x = np.column_stack([rng.normal(np.where(group == "m", 1.0, -1.0), 2.0), (group == "m") * 1.0])
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-x[:, 0] * 1.5)), "high", "low")
    return np.clip(x, -6, 6), y, group


def classifier(**settings):
    bounds = (np.array([-6.0, 0.0]), np.array([6.0, 1.0]))
    return ReductionsClassifier(
        **{**SPEND, "bounds": bounds, "classes": ["low", "high"], "groups": ["m", "f"], **settings}
    )


def gap(model, x, y, group):
    """The largest difference of true or false positive rates, by exact chances."""
    p = model.predict_proba(x)[:, 1]
    return max(abs(p[(y == k) & (group == "m")].mean() - p[(y == k) & (group == "f")].mean()) for k in ("low", "high"))


def test_a_constraint_of_fairlearn_is_one_line():
    x, y, group = data()
    plain = classifier().fit(x, y, sensitive_features=group)
    model = classifier(constraints=fair.EqualizedOdds(difference_bound=0.01)).fit(x, y, sensitive_features=group)
    assert gap(plain, x, y, group) > 0.2
    assert gap(model, x, y, group) < 0.1
    settings = model.certificate_["mechanism"]["settings"]
    assert (settings["constraints"], settings["versus"]) == ({"equalized_odds": 0.01}, "overall")
    assert [row["name"] for row in model.goals_] == ["error", "equalized_odds"]
    assert (model.predict(x) == y).mean() > 0.6


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (fair.DemographicParity(difference_bound=0.03), {"demographic_parity": 0.03}),
        (fair.TruePositiveRateParity(), {"true_positive_parity": 0.01}),
        (fair.FalsePositiveRateParity(difference_bound=0.1), {"false_positive_parity": 0.1}),
        (fair.ErrorRateParity(difference_bound=0.1), {"error_parity": 0.1}),
        (fair.BoundedGroupLoss(fair.ZeroOneLoss(), upper_bound=0.2), {"bounded_loss": 0.2}),
    ],
)
def test_what_fairlearn_means_is_held(given, found):
    assert constraints_from(given, "pairs") == (found, "overall")


@pytest.mark.parametrize(
    "given",
    [
        fair.EqualizedOdds(ratio_bound=0.8),
        fair.BoundedGroupLoss(fair.SquareLoss(0, 1), upper_bound=0.2),
        fair.BoundedGroupLoss(fair.ZeroOneLoss()),
        fair.ErrorRate(),
        3,
    ],
)
def test_what_has_no_equal_is_refused_before_any_charge(given):
    x, y, group = data(30)
    with pytest.raises(UsageError, match="constraints"):
        classifier(constraints=given).fit(x, y, sensitive_features=group)


def test_predictions_are_draws_by_a_seed_and_their_mean_is_predict_proba():
    x, y, group = data(2000)
    model = classifier(constraints="equalized_odds", **SHORT).fit(x, y, sensitive_features=group)
    assert (model.predict(x, random_state=1) == model.predict(x, random_state=1)).all()
    assert (model.predict(x) == model.predict(x, random_state=0)).all()
    drawn = np.mean([model.predict(x, random_state=i) == "high" for i in range(60)], axis=0)
    assert np.abs(drawn - model.predict_proba(x)[:, 1]).max() < 0.4
    assert abs((drawn - model.predict_proba(x)[:, 1]).mean()) < 0.01
    assert model.weights_.sum() == pytest.approx(1)


def test_bounds_by_group_are_named_by_its_level():
    x, y, group = data(300)
    model = classifier(constraints={"bounded_loss": {"f": 0.3}}, **SHORT).fit(x, y, sensitive_features=group)
    assert model.certificate_["mechanism"]["settings"]["constraints"] == {"bounded_loss": {"1": 0.3}}
    with pytest.raises(UsageError, match="'x', which is not"):
        classifier(constraints={"bounded_loss": {"x": 0.3}}).fit(x, y, sensitive_features=group)


def test_groups_are_declared_and_given_together():
    x, y, _ = data(100)
    with pytest.raises(UsageError, match="go together"):
        classifier(**SHORT).fit(x, y)
    with pytest.raises(UsageError, match="at least two"):
        classifier(groups=None, constraints={"equalized_odds": 0.1}).fit(x, y)


def test_it_is_cloned_and_cross_validated_and_refuses_before_fitting():
    x, y, _ = data(300)
    model = classifier(groups=None, **SHORT)
    with pytest.raises(NotFittedError):
        model.predict(x)
    assert clone(model).get_params()["inner_steps"] == 2
    assert len(cross_val_score(clone(model).set_params(public=True), x, y, cv=2)) == 2
    with pytest.warns(EveryFoldSpends, match="epsilon 6"):
        cross_validate(model, x, y, folds=2, scoring=PublicScore(x[:50], y[:50]))
