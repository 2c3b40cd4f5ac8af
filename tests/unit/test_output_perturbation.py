"""Output perturbation: the coefficients that are released, defaults, weights of groups, strata and refusals."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import stratsynth as ss
from helpers.regressing import SCHEMA, people
from helpers.small import even
from stratsynth import Budget, Numeric, Schema, Stratified, fit, open_table, plan, verify
from stratsynth.adapters import OutputPerturbation
from stratsynth.adapters.output_perturbation import FACTOR, LEAST_PART, balanced
from stratsynth.adapters.sklearn import OutputPerturbationClassifier
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms import Public

BUDGET = Budget(1, 1e-6)
PLENTY = Budget(20, 1e-6)


def released(how, rows=4000, budget=PLENTY, **more):
    frame = people(rows)
    return fit(how, open_table(frame, schema=SCHEMA, declared_size=rows, **more), budget, progress=False), frame


def test_coefficients_are_those_of_scikit_learn_and_noise():
    how = OutputPerturbation(target="D", features=["X", "Z"], strength=50.0)
    release, frame = released(how)
    x = np.rint(np.column_stack([np.ones(len(frame)), frame.X, frame.Z / 5 - 1]) * 4096) / 4096
    plain = LogisticRegression(C=1 / 50, fit_intercept=False, tol=1e-10).fit(x, frame.D)
    noise = release.model.facts["noise"]
    assert np.abs(release.model.theta - plain.coef_[0]).max() < 7 * noise + 0.01
    assert noise < 0.02
    assert (release.predict(frame) == frame.D).mean() > 0.7


@pytest.mark.parametrize("settings", [{"model": "linear", "target": "Y"}, {"target": "C"}, {"target": "D"}])
def test_every_model_predicts_and_its_release_verifies(settings, tmp_path):
    release, frame = released(OutputPerturbation(**settings), rows=500, budget=BUDGET)
    assert len(release.predict(frame)) == 500
    release.save(tmp_path / "release")
    found = verify(tmp_path / "release")
    assert found.ok, found.findings
    assert not any("other packages" in each for each in found.unchecked)
    again = ss.Release.load(tmp_path / "release")
    assert np.array_equal(again.model.theta, release.model.theta)


def test_the_default_strength_follows_from_public_numbers():
    how, rho = OutputPerturbation(target="D", features=["X", "Z"]), 0.02
    asked = how.question(Public(SCHEMA, 8000), rho)
    assert asked.clip == pytest.approx(np.sqrt(3))
    assert asked.strength == pytest.approx(FACTOR * (8000 * 3**2 / (2 * rho)) ** (1 / 3), rel=1e-5)
    softmax = OutputPerturbation(target="C", features=["X", "Z"]).question(Public(SCHEMA, 8000), rho)
    assert softmax.strength == pytest.approx(asked.strength * 2 ** (1 / 3), rel=1e-5)


def test_the_default_strength_is_one_that_is_accepted_however_many_features_there_are():
    names = [f"N{i}" for i in range(600)]
    schema = Schema({**{n: Numeric(lower=0, upper=1, bins=2) for n in names}, "D": SCHEMA.column("D")})
    asked = OutputPerturbation(target="D", features=names).question(Public(schema, 100), 0.5)
    asked.check(schema)
    assert asked.strength > 2 * FACTOR * (100 * 601**2) ** (1 / 3)


def test_groups_that_are_balanced_count_alike():
    assert balanced(np.array([200, 100, 1000])) == pytest.approx([0.5, 1.0, 0.1])
    assert balanced(np.array([-5, 1000])) == pytest.approx([1.0, LEAST_PART])
    frame = people(4000)  # a fifth of them in b
    rng = np.random.default_rng(3)
    frame["D"] = np.where((frame.G == "b") == (rng.random(4000) < 0.9), "yes", "no")
    table = {"features": ["X"], "target": "D", "strength": 30.0, "groups": ["G"]}
    one, other = (
        fit(OutputPerturbation(**table, objective=how), open_table(frame, schema=SCHEMA, declared_size=4000), PLENTY)
        for how in ("balanced", "pooled")
    )
    assert abs(one.model.theta[0]) < 0.3  # nine tenths of b and a tenth of a say yes
    assert other.model.theta[0] < -0.7
    assert [charge["kind"] for charge in one.certificate["charges"]] == ["usable", "counts", "minimiser"]


def test_in_strata_each_has_a_regression_of_its_own():
    release, frame = released(Stratified(OutputPerturbation(target="D", features=["X"]), ["G"], even(SCHEMA, "G")))
    assert (release.predict(frame) == frame.D).mean() > 0.8  # slopes of opposite signs: one line is right on neither
    assert sum(charge["kind"] == "minimiser" for charge in release.certificate["charges"]) == 2


def test_a_plan_foresees_it_without_rows():
    foreseen = plan(OutputPerturbation(target="D"), SCHEMA, BUDGET, declared_size=5000)
    assert "penalty of strength" in str(foreseen.to_dict())


@pytest.mark.parametrize(
    ("settings", "size", "words"),
    [
        ({"target": "D"}, None, "declare a size"),
        ({"target": "D", "objective": "balanced"}, 100, "needs groups"),
        ({"target": "Y"}, 100, "must be a categorical column"),
        ({"target": "D", "model": "linear"}, 100, "must be a numeric column"),
        ({"target": "D", "groups": ["NONE"]}, 100, "'NONE' is not in the schema"),
    ],
)
def test_refused_before_anything_is_read(settings, size, words):
    table = open_table(people(20), schema=SCHEMA, declared_size=size)
    with pytest.raises(Unsupported, match=words):
        fit(OutputPerturbation(**settings), table, BUDGET)


def test_refused_when_it_is_made():
    with pytest.raises(UsageError, match="the target is one column"):
        OutputPerturbation(target="D", groups=["D"])
    with pytest.raises(UsageError, match="objective"):
        OutputPerturbation(objective="maximum")


def test_rows_that_are_kept_on_disk_are_refused(tmp_path):
    people(20).to_parquet(tmp_path / "people.parquet")
    table = open_table(tmp_path / "people.parquet", schema=SCHEMA, declared_size=20, engine="stream")
    with pytest.raises(Unsupported, match='"memory"'):
        fit(OutputPerturbation(target="D"), table, BUDGET)


def test_an_estimator_of_scikit_learn_fits_and_predicts():
    frame = people(2000)
    x, spend = frame[["X", "Z"]].to_numpy(), {"epsilon": 5, "delta": 1e-6}
    model = OutputPerturbationClassifier(
        **spend,
        bounds=([-1, 0], [1, 10]),
        classes=["no", "yes"],
        groups=["a", "b"],
        objective="balanced",
        declared_size=2000,
    )
    model.fit(x, frame["D"], sensitive_features=frame["G"])
    assert model.coef_.shape == (1, 2)
    assert set(model.predict(x)) <= {"no", "yes"}
    assert model.certificate_["mechanism"]["name"] == "output_perturbation"
    alone = OutputPerturbationClassifier(**spend, bounds=([-1, 0], [1, 10]), classes=["no", "yes"], strength=20.0)
    assert (alone.fit(x, frame["D"]).predict(x) == frame["D"]).mean() > 0.7
