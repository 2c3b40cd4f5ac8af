"""The simulated experiments: the closed form is the mechanism's own descent, and figures are of what they say."""

import numpy as np
import pandas as pd
import pytest

from benches import beside, predict
from stratsynth.errors import UsageError
from studies.regression import STUDY, digits
from studies.regression.simulate import Steps, Way, descend, make_people
from studies.regression.trials import METHODS, errors, way

SIZES = (400, 100)


def some_people(seed=0, slopes=(1.0, -1.0), spreads=(0.1, 0.5)):
    return make_people(SIZES, np.array(slopes)[:, None], spreads, np.random.default_rng(seed))


def test_without_noise_it_is_clipped_gradient_descent_by_hand():
    people, steps = some_people(), Steps(number=3, clip=0.3, rate=0.2)
    weights = np.array([0.002, 0.004])
    theta = np.zeros(2)
    for _ in range(3):
        gradient = np.zeros(2)
        for i, (x, y) in enumerate(zip(people.x, people.y, strict=True)):
            own = (x @ theta - y) * x
            gradient += weights[int(i >= 400)] * own * min(1, 0.3 / np.linalg.norm(own))
        theta = np.clip(theta - 0.2 * gradient, -5, 5)
    found = descend(people, Way(weights, np.zeros(2)), steps, 4, np.random.default_rng(0))
    assert np.allclose(found, theta)


@pytest.mark.parametrize("method", METHODS)
def test_a_methods_noise_costs_its_budget(method):
    """The rho that the noise of one step is worth, by the method's own accounting."""
    people, steps, rho = some_people(), Steps(number=10, clip=2.0), 0.5
    mode, accounting, _ = method
    found = way(people, method, rho, steps, 5, np.random.default_rng(0))
    each = (0.8 if mode == "DPSE" else 1.0) * rho / steps.number
    if accounting == "combined":
        spread = np.sqrt(((found.weights * found.sigmas) ** 2).sum(axis=-1))
        assert np.allclose((found.weights.max() * steps.clip) ** 2 / (2 * spread**2), each)
    else:
        rhos = steps.clip**2 / (2 * found.sigmas**2)
        assert np.allclose(rhos.sum(axis=1) if accounting == "paper" else rhos.max(axis=1), each)


def test_simulated_residual_errors_rank_the_groups():
    shares = errors(some_people(slopes=(1.0, 1.0), spreads=(0.1, 1.0)), 5.0, 4.0, 20, np.random.default_rng(0))
    assert shares.shape == (20, 2)
    assert (shares[:, 1] > shares[:, 0]).mean() > 0.9


@pytest.mark.slow
def test_the_command_writes_tables_pictures_and_words(tmp_path, monkeypatch, capsys):
    from studies.regression import reproduce

    monkeypatch.setattr(reproduce, "MAJORITY", 400)
    monkeypatch.setattr(reproduce, "RHOS", (0.5, 2.0))
    monkeypatch.setattr(digits, "ENLARGED", (60, 20))
    monkeypatch.setattr(digits, "STEPS", 2)
    assert STUDY.main(["--runs", "2", "--seeds", "1", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "What this run says of the smallest group" in said
    assert "What this run says of eights" in said
    names = {"regression.csv", "two_groups.png", "groups.png", "digits.csv", "digits.png"}
    assert {p.name for p in (tmp_path / "out").iterdir()} == names
    assert STUDY.main(["--runs", "2", "--out", str(tmp_path / "out")]) == 2
    assert STUDY.main(["--runs", "0"]) == 2
    assert STUDY.main(["--runs", "1", "--seeds", "-1"]) == 2


def test_the_benchmark_measures_what_it_says(monkeypatch):
    monkeypatch.setattr(predict, "RUNS", 4)
    monkeypatch.setattr(predict, "ROWS", 500)
    monkeypatch.setattr(predict, "COVERED", 2)
    assert predict._monte_carlo().value > 0
    assert [figure.unit for figure in predict._coverage()] == ["points"] * 4


def test_errors_beside_another_library_are_of_the_same_rows_and_features(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "lsat": rng.uniform(10, 48, 400),
            "ugpa": rng.uniform(1, 4, 400),
            "fam_inc": 3,
            "tier": 2,
            "race": rng.choice(["White", "Other"], 400),
            "pass_bar": rng.integers(0, 2, 400),
            "zgpa": rng.normal(size=400),
        }
    )
    frame.to_csv(tmp_path / "law.csv", index=False)
    bar, grades = beside.law(tmp_path / "law.csv")
    assert (bar.minority, bar.matrix(bar.frame).shape, grades.truth().max() <= 1) == ("Other", (400, 5), True)
    with pytest.raises(UsageError, match="scripts/bench"):
        beside.compared(bar, 2)
    monkeypatch.setattr(beside, "_theirs", lambda problem, train: np.zeros((2, 2, 400)))
    monkeypatch.setattr(beside, "EPSILONS", (1.0, 20.0))
    figures = beside.compared(bar, 2)
    assert len(figures) == 12
    judged = [figure for figure in figures if figure.reached is not None]
    assert len(judged) == 4
    assert all(figure.against.startswith("diffprivlib") for figure in judged)
    others = [f.value for f in figures if f.name.endswith("everybody, diffprivlib")]
    assert all(abs(value - frame.pass_bar.mean()) < 0.1 for value in others)


def test_digits_are_thinned_for_training_and_not_for_tests(monkeypatch):
    """Every method is fitted to the same images, and tested on images of its split alone."""
    monkeypatch.setattr(digits, "ENLARGED", (60, 20))
    seen = []

    def predicted(method, train, test, seed):
        seen.append((method, train, test))
        return test["LABEL"].to_numpy()

    monkeypatch.setattr(digits, "_predicted", predicted)
    found = digits.digits(2)
    assert (found[found.method != digits.NOT_PRIVATE].error == 0).all()
    assert len(found) == 2 * 2 * 2 * (1 + len(digits.TRIED))
    sizes = found.drop_duplicates(["set", "digit"]).set_index(["set", "digit"])["size"]
    assert sizes["enlarged"].tolist() == [60, 20]
    assert sizes["bundled", "8"] < sizes["bundled", "2"] / 4
    for _, train, test in seen:
        assert abs((test.DIGIT == "8").mean() - 0.5) < 0.15
        whole = [tuple(row) for row in test.iloc[:, :16].to_numpy()]
        assert not set(whole) & {tuple(row) for row in train.iloc[:, :16].to_numpy()}
        assert train.iloc[:, :16].to_numpy().max() <= 16


def test_a_budget_beyond_the_papers_lets_the_network_learn_the_digits(monkeypatch):
    monkeypatch.setattr(digits, "EPSILON", 25.0)
    images, labels = digits._images()
    frame = digits._frame(images, labels)
    method = digits.Method("network", "DPNoSE", "combined", "balanced")
    assert (digits._predicted(method, frame, frame, 0) == labels).mean() > 0.95
    assert (digits._plain(frame, frame, 0) == labels).all()
