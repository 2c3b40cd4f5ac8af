"""Folds, searches and scores of private rows: one account, priced before the first fit, and nothing chosen for free."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - what it is imported for
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

import stratsynth as ss
from stratsynth.accounting.history import read_ledger
from stratsynth.adapters.sklearn import (
    EveryFoldSpends,
    FairSGDClassifier,
    FermiClassifier,
    Folds,
    GroupClassifier,
    GroupRegressor,
    NoisyScore,
    PublicScore,
    ReductionsClassifier,
    cross_validate,
)
from stratsynth.errors import BudgetRefused, NotPrivateWarning, UsageError

pytestmark = pytest.mark.usefixtures("seeded_noise")

SPEND = {"epsilon": 3.0, "delta": 1e-6, "bounds": (-1, 1), "iterations": 3}
PAID = NoisyScore(epsilon=0.5)


def data(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 2))
    return x, (x[:, 0] + 0.1 * rng.normal(size=n) > 0).astype(int)


X, Y = data()
OPEN = data(200, 1)


def classifier(**settings):
    return GroupClassifier(**{**SPEND, "classes": [0, 1], **settings})


def named(tmp_path, cap=None, **settings):
    return classifier(ledger=tmp_path / "cv.ledger", ledger_epsilon=cap, account="persons 2024", **settings)


@pytest.mark.filterwarnings("ignore::stratsynth.adapters.sklearn.EveryFoldSpends")
def test_folds_of_one_table_are_versions_of_one_account(tmp_path):
    """users3, A.2."""
    found = cross_validate(named(tmp_path), X, Y, folds=3, scoring=PublicScore(*OPEN))
    assert len(found["test_score"]) == 3
    account = read_ledger(tmp_path / "cv.ledger")
    assert (account["account"], account["versions"], len(account["fits"])) == ("persons 2024", 3, 3)


@pytest.mark.filterwarnings("ignore::stratsynth.adapters.sklearn.EveryFoldSpends")
def test_a_ledger_without_a_name_is_refused_before_the_first_fold(tmp_path):
    model = classifier(ledger=tmp_path / "cv.ledger")
    with pytest.raises(UsageError, match='account="persons 2024"'):
        cross_validate(model, X, Y, scoring=PublicScore(*OPEN))
    assert not (tmp_path / "cv.ledger").exists()


def test_all_folds_are_refused_before_the_first_where_the_cap_is_too_small(tmp_path):
    model = named(tmp_path, cap=5.0)
    with pytest.raises(BudgetRefused):
        cross_validate(model, X, Y, folds=3, scoring=PublicScore(*OPEN))
    search = GridSearchCV(model, {"clip": [0.5, 1.0]}, scoring=PublicScore(*OPEN), cv=Folds(2))
    with pytest.raises(BudgetRefused):
        search.fit(X, Y)
    assert not (tmp_path / "cv.ledger").exists()


def test_a_search_says_what_it_costs_before_its_first_fit_and_its_scores_are_paid(tmp_path):
    search = GridSearchCV(named(tmp_path), {"clip": [0.5, 1.0]}, scoring=PAID, cv=Folds(2))
    with pytest.warns(EveryFoldSpends, match="5 fits and 4 noisy scores .* epsilon 17 and delta 9e-06") as said:
        search.fit(X, Y)
    assert len([one for one in said if one.category is EveryFoldSpends]) == 1
    assert said[0].filename == __file__
    fits = read_ledger(tmp_path / "cv.ledger")["fits"]
    assert [fit["mechanism"] for fit in fits].count("independent") == 4
    assert len(fits) == 9
    assert 0 <= search.best_score_ <= 1


def test_a_search_over_epsilon_is_priced_by_its_candidates():
    search = GridSearchCV(
        make_pipeline(FunctionTransformer(), classifier()),
        {"groupclassifier__epsilon": [1.0, 2.0]},
        scoring=PublicScore(*OPEN),
        cv=Folds(2),
        refit=False,
    )
    with pytest.warns(EveryFoldSpends, match="4 fits on private rows.* epsilon 6 "):
        search.fit(X, Y)


SEARCHES = {
    "a grid by its own score": lambda model: GridSearchCV(model, {"clip": [0.5, 1.0]}, cv=Folds(2)),
    "by accuracy": lambda model: GridSearchCV(model, {"clip": [1.0]}, scoring="accuracy", cv=Folds(2)),
    "a random one": lambda model: RandomizedSearchCV(model, {"clip": [0.5, 1.0]}, n_iter=2, cv=Folds(2)),
    "several scores": lambda model: GridSearchCV(
        model, {"clip": [1.0]}, scoring={"a": PAID, "b": "accuracy"}, refit="a", cv=Folds(2)
    ),
    "in a pipeline": lambda model: GridSearchCV(make_pipeline(FunctionTransformer(), model), {}, cv=Folds(2)),
}


@pytest.mark.parametrize("made", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.parametrize("jobs", [None, 2])
def test_no_search_chooses_by_scores_of_private_rows_that_nobody_paid_for(made, jobs, tmp_path):
    search = made(named(tmp_path)).set_params(n_jobs=jobs)
    with pytest.raises(UsageError, match=r"would choose by scores .*NoisyScore.*PublicScore.*public=True"):
        search.fit(X, Y)
    assert not (tmp_path / "cv.ledger").exists()


def test_folds_that_one_record_moves_and_searches_of_unknown_length_are_refused():
    with pytest.raises(UsageError, match=r"cv=Folds\(5\)"):
        GridSearchCV(classifier(), {"clip": [1.0]}, scoring=PAID, cv=5).fit(X, Y)
    with pytest.raises(UsageError, match="before its first fit"):
        HalvingGridSearchCV(classifier(), {"clip": [1.0]}, scoring=PAID, cv=Folds(2)).fit(X, Y)


def test_an_estimator_among_the_candidates_is_refused_with_nothing_spent(tmp_path):
    """It is cloned when the search has begun, and was priced by nobody."""
    steps = Pipeline([("last", LogisticRegression())])
    with pytest.raises(UsageError, match="among the values of a search's grid"):
        GridSearchCV(steps, {"last": [named(tmp_path)]}, cv=Folds(2)).fit(X, Y)
    assert not (tmp_path / "cv.ledger").exists()


def test_scikit_learn_s_own_cross_validation_is_refused_with_ours_as_the_remedy():
    with pytest.raises(UsageError, match=r"stratsynth\.adapters\.sklearn\.cross_validate"):
        cross_val_score(classifier(), X, Y, cv=2)


def test_public_data_are_searched_and_scored_as_anybody_s():
    model = classifier(public=True)
    search = GridSearchCV(model, {"clip": [0.5, 1.0]}, cv=3).fit(X, Y)
    assert search.best_estimator_.score(X, Y) > 0.5
    assert search.best_estimator_.certificate_["private"] is False
    assert len(cross_validate(clone(model), X, Y, cv=3)["test_score"]) == 3
    with pytest.raises(UsageError, match="not charged"):
        classifier(public=True, ledger="x.ledger").fit(X, Y)


def test_a_score_of_an_estimator_warns():
    with pytest.warns(NotPrivateWarning, match=r"INTERNAL.*NoisyScore.*PublicScore") as said:
        classifier().fit(X, Y).score(X, Y)
    assert said[-1].filename == __file__


def test_only_the_sensitive_feature_is_private_so_scores_are_not():
    model = FermiClassifier(**SPEND, classes=[0, 1], groups=["f", "m"], penalty=1, protect="sensitive")
    assert model.scores_are_open
    assert not clone(model).set_params(protect="all").scores_are_open


def test_cross_validation_takes_cv_and_refuses_scores_for_nothing():
    with pytest.warns(EveryFoldSpends):
        assert len(cross_validate(classifier(), X, Y, cv=3, scoring=PublicScore(*OPEN))["test_score"]) == 3
    with pytest.raises(UsageError, match="NoisyScore"):
        cross_validate(classifier(), X, Y)
    with pytest.raises(UsageError, match="cv is the number of folds"):
        cross_validate(classifier(), X, Y, cv=Folds(2), scoring=PAID)
    with pytest.raises(UsageError, match="number of folds"):
        cross_validate(classifier(), X, Y, cv=2.5, scoring=PAID)


def test_pipelines_are_cross_validated_by_their_last_step():
    group = np.where(X[:, 1] > 0, "f", "m")
    scaled = FrozenEstimator(StandardScaler().fit(OPEN[0]))
    model = make_pipeline(scaled, Normalizer(), "passthrough", classifier(groups=["f", "m"]))
    with pytest.warns(EveryFoldSpends, match="epsilon 6"):
        found = cross_validate(model, X, Y, sensitive_features=group, folds=2, scoring=PublicScore(*OPEN))
    assert len(found["test_score"]) == 2


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((StandardScaler(), classifier()), "'standardscaler', StandardScaler, learns from private rows"),
        ((FunctionTransformer(), make_pipeline(StandardScaler(), classifier())), "learns from private rows"),
        ((make_pipeline(StandardScaler()), classifier()), "learns from private rows"),
        ((FunctionTransformer(), LogisticRegression()), "or a pipeline that ends with one, not LogisticRegression"),
    ],
)
def test_a_step_that_learns_from_private_rows_is_refused(steps, words):
    with pytest.raises(UsageError, match=words):
        cross_validate(make_pipeline(*steps), X, Y, scoring=PAID)
    if isinstance(steps[-1], GroupClassifier):
        with pytest.raises(UsageError, match=words):
            GridSearchCV(make_pipeline(*steps), {}, scoring=PAID, cv=Folds(2)).fit(X, Y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            public = clone(make_pipeline(*steps)).set_params(groupclassifier__public=True)
        assert len(cross_validate(public, X, Y)["test_score"]) == 5


def test_noisy_scores_are_near_the_true_ones():
    model = GroupClassifier(epsilon=20, delta=1e-6, bounds=(-1, 1), classes=["no", "yes"])
    label = np.where(Y, "yes", "no")
    model.fit(X, label)
    right = (model.predict(X) == label).mean()
    assert NoisyScore(epsilon=20)(model, X, label) == pytest.approx(right, abs=0.05)
    number = GroupRegressor(epsilon=20, delta=1e-6, bounds=(-1, 1), target_bounds=(-2, 2)).fit(X, X[:, 0])
    error = -((number.predict(X) - X[:, 0]) ** 2).mean()
    assert NoisyScore(epsilon=20)(number, X, X[:, 0]) == pytest.approx(error, abs=0.1)
    with pytest.raises(UsageError, match="epsilon"):
        NoisyScore(epsilon=0)


def test_a_noisy_score_is_no_exact_one():
    model = classifier().fit(X, Y)
    exact = (model.predict(X) == Y).mean()
    assert NoisyScore(epsilon=0.01)(model, X, Y) != pytest.approx(exact, abs=1e-9)


def test_each_row_has_a_fold_by_a_draw_of_its_own():
    """One record more moves no other one: with equal folds the boundaries would move."""
    folds = Folds(3)
    parts = [test for _, test in folds.split(X)]
    assert sorted(np.concatenate(parts)) == list(range(len(X)))
    drawn = list(folds.drawn(60))
    assert drawn != sorted(drawn), "else they follow from the place of a row"
    assert drawn != list(folds.drawn(60))
    fold = folds.drawn(6, ["a", "b", "a", "b", "c", "a"])
    assert fold[0] == fold[2] == fold[5]
    assert fold[1] == fold[3]
    with pytest.raises(UsageError, match="2 folds"):
        Folds(1)


def people(n=400):
    return pd.DataFrame(X[:n], columns=["a", "b"]).assign(subject=[f"P{i % 100}" for i in range(n)])


SUBJECT = ss.schema.Unit(column="subject", max_rows=4)


def test_a_unit_of_several_rows_is_protected(tmp_path):
    """users3, A.3."""
    model = named(tmp_path, unit=SUBJECT).fit(people(), Y)
    assert model.certificate_["unit"] == {"column": "subject", "max_rows": 4}
    assert list(model.feature_names_in_) == ["a", "b"]
    assert np.array_equal(model.predict(people()), model.predict(people().drop(columns="subject")))
    with pytest.warns(EveryFoldSpends):
        cross_validate(named(tmp_path, unit=SUBJECT), people(), Y, folds=2, scoring=PAID)
    assert len(read_ledger(tmp_path / "cv.ledger")["fits"]) == 5
    for wrong, words in (
        (SUBJECT, "with the column 'subject'"),
        ({"column": "subject", "max_rows": 4}, "must be Unit"),
    ):
        with pytest.raises(UsageError, match=words):
            classifier(unit=wrong).fit(X, Y)


MADE = {
    "group": classifier(),
    "fermi": FermiClassifier(**SPEND, classes=[0, 1], penalty=0),
    "fair": FairSGDClassifier(**SPEND, classes=[0, 1], mitigation="none"),
    "reductions": ReductionsClassifier(**SPEND, classes=[0, 1]),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize(
    ("y", "classes", "words"),
    [
        (Y, ["no", "yes"], "y holds numbers .dtype int64., and the declared classes are texts, such as 'no'"),
        (Y > 0, ["f", "m"], "dtype bool"),
        (pd.Series(Y, dtype="category"), ["no", "yes"], "y holds numbers"),
        (np.where(Y, "yes", "no"), [0, 1], "y holds texts"),
        (pd.Series(np.where(Y, "yes", "no"), dtype="str"), [0, 1], "y holds texts"),
    ],
    ids=str,
)
def test_numbers_where_classes_are_texts_are_refused_by_their_type_alone(made, y, classes, words):
    """users3, A.1: what is left out silently costs the whole budget; no value is read for this."""
    with pytest.raises(UsageError, match=words):
        clone(made).set_params(classes=classes).fit(X, y)


def test_so_are_groups_and_objects_tell_nothing():
    with pytest.raises(UsageError, match=r"sensitive_features holds numbers .*, and the declared groups are texts"):
        classifier(groups=["f", "m"]).fit(X, Y, sensitive_features=X[:, 1] > 0)
    model = classifier(classes=["0", "1"], groups=["f", "m"])
    group = np.where(X[:, 1] > 0, "f", "m").astype(object)
    group[0] = 3
    model.fit(X, Y.astype(str), sensitive_features=group)
    classifier(classes=[False, True]).fit(X, Y)


REFUSED = {
    "groups": ({"groups": 0}, "groups must be a list of levels"),
    "groups as a text": ({"groups": "fm"}, "groups must be a list of levels"),
    "bounds of losses": ({"loss_bounds": 1}, "loss_bounds must be a table"),
    "classes": ({"classes": [[1], [2]]}, "classes must be a list"),
    "a unit": ({"unit": "subject"}, "unit must be Unit"),
}


@pytest.mark.parametrize(("settings", "words"), REFUSED.values(), ids=REFUSED)
def test_parameters_of_odd_types_are_refused(settings, words):
    with pytest.raises((UsageError, ValueError), match=words):
        classifier(**settings).fit(X, Y, sensitive_features=Y if "groups" in settings else None)
    with pytest.raises(ValueError, match="target_bounds must be a pair"):
        GroupRegressor(**SPEND, target_bounds=3).fit(X, Y)


def test_numbers_of_numpy_as_a_search_has_them_cost_no_fit():
    """A number of numpy among the settings made a certificate that could not be written, after the charge."""
    grid = {"clip": np.linspace(0.5, 1.0, 2)}
    search = GridSearchCV(classifier(epsilon=np.float64(1)), grid, scoring=PublicScore(*OPEN), cv=Folds(2))
    with pytest.warns(EveryFoldSpends):
        assert search.fit(X, Y).best_params_["clip"] in (0.5, 1.0)
