"""Estimators whose classes, groups or targets are none of those declared: refused by type, or stopped."""

import numpy as np
import pytest

from stratsynth.adapters.sklearn import FairSGDClassifier, FermiClassifier, GroupClassifier, ReductionsClassifier
from stratsynth.errors import NoticeWarning, Stopped, UsageError

SPEND = {"epsilon": 4.0, "delta": 1e-6, "bounds": (-10, 10)}
QUICK = {"iterations": 3}
ROWS = 30_000
TEXTS, LEVELS = ["no", "yes"], ["f", "m"]
KINDS = {
    "group": (GroupClassifier, QUICK),
    "reductions": (ReductionsClassifier, {**QUICK, "inner_steps": 2}),
    "fermi": (FermiClassifier, {**QUICK, "penalty": 1.0, "sampling": 0.01}),
    "fair sgd": (FairSGDClassifier, {**QUICK, "sampling": 0.01}),
}


def made(kind, **more):
    cls, settings = KINDS[kind]
    return cls(**SPEND, classes=TEXTS, groups=LEVELS, **settings, **more)


def data(rows=ROWS):
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (rows, 2)), rng.integers(0, 2, rows), rng.integers(0, 2, rows)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_where_texts_are_declared_are_refused_by_their_type(kind, tmp_path):
    x, y, group = data(50)
    named = np.array(TEXTS, object)[y]
    for target, sensitive, what in (
        (y, np.array(LEVELS)[group], "y"),
        (named, group, "sensitive_features"),
    ):
        with pytest.raises(UsageError, match=rf"{what} holds numbers \(dtype int64\), and the declared .* are texts"):
            made(kind, ledger=tmp_path / "a.ledger").fit(x, target, sensitive_features=sensitive)
    assert not (tmp_path / "a.ledger").exists()


@pytest.mark.parametrize("kind", ["group", "reductions"])
@pytest.mark.parametrize("wrong", ["classes", "groups"])
def test_spellings_that_are_not_declared_stop_the_fit(kind, wrong):
    x, y, group = data()
    classes = ["No", "Yes"] if wrong == "classes" else TEXTS
    levels = ["F", "M"] if wrong == "groups" else LEVELS
    column = "target" if wrong == "classes" else "group"
    with pytest.raises(Stopped, match=rf"are in {column} \(.*Here target is y"):
        made(kind).fit(x, np.array(classes, object)[y], sensitive_features=np.array(levels, object)[group])


@pytest.mark.parametrize("kind", ["fermi", "fair sgd"])
def test_steps_on_samples_stop_too(kind):
    x, y, group = data()
    with pytest.raises(Stopped, match=r"are in group \("):
        made(kind).fit(x, np.array(TEXTS, object)[y], sensitive_features=np.array(["F", "M"], object)[group])


def test_told_to_proceed_it_warns_of_what_the_certificate_says():
    x, y, group = data()
    wrong = np.array(["F", "M"], object)[group]
    with pytest.warns(NoticeWarning, match=r"first question: .*are in group \("):
        found = made("group", proceed=True).fit(x, np.array(TEXTS, object)[y], sensitive_features=wrong)
    assert found.certificate_["first_question"]["too_few"]


def test_what_is_spelt_as_declared_is_fitted():
    x, y, group = data()
    found = made("group").fit(x, np.array(TEXTS)[y], sensitive_features=np.array(LEVELS)[group])
    assert not found.certificate_["first_question"]["too_few"]
    off = made("group", first=0).fit(x, np.array(TEXTS)[y], sensitive_features=np.array(LEVELS)[group])
    assert not off.certificate_["first_question"]["asked"]
