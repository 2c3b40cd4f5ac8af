"""`FermiClassifier` as scikit-learn's users expect it, with named exceptions."""

import contextlib
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from stratsynth.adapters.sklearn import EveryFoldSpends, FermiClassifier, PublicScore, cross_validate
from stratsynth.errors import Unsupported, UsageError

pytestmark = pytest.mark.usefixtures("seeded_noise")

SPEND = {"epsilon": 3.0, "delta": 1e-6}
NOISE = "two fits never agree: the noise is fresh each time"
EXCEPTIONS = {
    "check_fit_idempotent": NOISE,
    "check_supervised_y_2d": NOISE,
    "check_classifier_data_not_an_array": NOISE,
    "check_classifiers_classes": "classes are declared, and this check uses others",
    "check_classifiers_train": "classes are declared, and this check uses others",
}
FAST = {"iterations": 30, "sampling": 0.5}


@parametrize_with_checks([FermiClassifier(**SPEND, bounds=(-10, 10), classes=(0, 1, 2), penalty=0, **FAST)])
def test_check_estimator(estimator, check):
    name = check.func.__name__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in EXCEPTIONS:
            with contextlib.suppress(AssertionError, UsageError):
                check(estimator)
        else:
            check(estimator)


def data(n=4000, classes=2, seed=0):
    """The group moves the first feature, and the first feature the class."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["m", "f"], n)
    x = rng.uniform(-1, 1, (n, 2)) + np.where(group == "m", 0.5, -0.5)[:, None] * [1, 0]
    score = 2 * x[:, 0] + 2 * x[:, 1] + 0.3 * rng.normal(size=n)
    label = np.array(["low", "middle", "high"] if classes == 3 else ["low", "high"])
    return x, label[np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)], group


def made(**settings):
    usual = {**SPEND, "bounds": (-1.5, 1.5), "classes": ["low", "high"], "groups": ["m", "f"], "penalty": 1.0, **FAST}
    return FermiClassifier(**{**usual, **settings})


def gap(model, x, group, what="high"):
    rates = [(model.predict(x)[group == level] == what).mean() for level in ("m", "f")]
    return abs(rates[0] - rates[1])


@pytest.mark.parametrize("declared", [None, 4000])
def test_a_penalty_evens_out_what_it_is_told_to(declared):
    x, y, group = data()
    plain = made(penalty=0.0, declared_size=declared).fit(x, y, sensitive_features=group)
    fair = made(penalty=5.0, declared_size=declared).fit(x, y, sensitive_features=group)
    assert (plain.predict(x) == y).mean() > 0.9
    assert gap(fair, x, group) < 0.6 * gap(plain, x, group)
    assert fair.certificate_["guarantee"]["epsilon"] == SPEND["epsilon"]


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NoticeWarning")
@pytest.mark.parametrize("criterion", ["parity", "odds"])
def test_a_wanted_gap_is_measured_and_stated(criterion):
    x, y, group = data()
    fair = made(gap=0.1, penalty=None, sampling=None, iterations=100, criterion=criterion)
    fair.fit(x, y, sensitive_features=group)
    assert fair.gap_ == fair.certificate_["gaps"][0]["measured"]
    assert fair.multiplier_.shape == (2 if criterion == "odds" else 1,)
    assert fair.gap_status_ in {"met", "missed", "not to be told"}
    if criterion == "parity":
        assert abs(gap(fair, x, group) - fair.gap_) < 6 * fair.gap_noise_ + 0.01
    assert not hasattr(made(penalty=0.0).fit(x, y, sensitive_features=group), "gap_")
    for neither in ({"penalty": None}, {"penalty": None, "groups": None}):
        with pytest.raises(UsageError, match=r"gap = 0\.05.*penalty = 0"):
            made(**neither).fit(x, y, **({} if "groups" in neither else {"sensitive_features": group}))


def test_coefficients_are_in_the_unit_of_the_data():
    x, y, group = data()
    model = made(penalty=0.5).fit(x, y, sensitive_features=group)
    logit = x @ model.coef_[0] + model.intercept_[0]
    assert np.allclose(model.predict_proba(x)[:, 1], 1 / (1 + np.exp(-logit)))


def test_several_classes_are_a_softmax():
    x, y, group = data(classes=3)
    model = made(classes=["low", "middle", "high"], penalty=0.2).fit(x, y, sensitive_features=group)
    assert model.coef_.shape == (3, 2)
    assert (model.predict(x) == y).mean() > 0.6
    power = np.exp(x @ model.coef_.T + model.intercept_)
    assert np.allclose(model.predict_proba(x), power / power.sum(axis=1, keepdims=True))


def test_public_shares_are_by_level_and_for_odds_by_class_too():
    x, y, group = data(500)
    cited = {"shares_citation": "made up"}
    made(shares={"m": 0.5, "f": 0.5}, **cited).fit(x, y, sensitive_features=group)
    pairs = {(g, c): 1.0 for g in "mf" for c in ("low", "high")}
    made(criterion="odds", shares=pairs, **cited).fit(x, y, sensitive_features=group)
    for wrong in ({"m": 0.5, "x": 0.5}, {"m": 1.0}):
        with pytest.raises(UsageError, match=r"shares:|sizes lacks"):
            made(shares=wrong, **cited).fit(x, y, sensitive_features=group)
    with pytest.raises(UsageError, match="pair"):
        made(criterion="odds", shares={"m": 1.0, "f": 1.0}, **cited).fit(x, y, sensitive_features=group)
    with pytest.raises(UsageError, match="citation"):
        made(shares={"m": 0.5, "f": 0.5}).fit(x, y, sensitive_features=group)


def test_what_is_not_offered_is_refused_with_the_remedy():
    x, y, group = data(50)
    with pytest.raises(UsageError, match="protect"):
        made(protect="some").fit(x, y, sensitive_features=group)
    with pytest.raises(Unsupported, match="needs a penalty"):
        made(protect="sensitive", penalty=0.0).fit(x, y, sensitive_features=group)
    with pytest.raises(Unsupported, match="penalty = 0"):
        made(groups=None).fit(x, y)
    with pytest.raises(UsageError, match="go together"):
        made().fit(x, y)
    with pytest.raises(ValueError, match="classes"):
        made(classes=["low"]).fit(x, y, sensitive_features=group)


def test_cloned_and_cross_validated():
    x, y, group = data(400)
    model = clone(made(criterion="odds"))
    with pytest.warns(EveryFoldSpends, match="epsilon 9 and delta 3e-06"):
        found = cross_validate(model, x, y, sensitive_features=group, folds=3, scoring=PublicScore(x[:9], y[:9]))
    assert len(found["test_score"]) == 3
