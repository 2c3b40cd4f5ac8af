"""The simulated experiments: the closed form is the mechanism's own descent, and figures are of what they say."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benches import beside, predict
from stratsynth.errors import UsageError
from studies.regression import STUDY, claims, digits, experiments, real, reproduce, theory
from studies.regression.simulate import Bound, Steps, Way, descend, make_people, spread
from studies.regression.trials import METHODS, Trial, errors, outcomes, way

SIZES = (400, 100)


def some_people(seed=0, slopes=(1.0, -1.0), spreads=(0.1, 0.5)):
    return make_people(SIZES, np.array(slopes)[:, None], spreads, np.random.default_rng(seed))


def test_without_noise_it_is_clipped_gradient_descent_by_hand():
    people, steps = some_people(), Steps(number=3, clip=0.3, rate=0.2)
    slopes, weights = np.array([0.8, 0.4]), np.array([0.002, 0.004])
    theta = np.zeros(2)
    for _ in range(3):
        gradient = np.zeros(2)
        for i, (x, y) in enumerate(zip(people.x, people.y, strict=True)):
            own = 2 * (x @ theta - y) * x
            gradient += weights[int(i >= 400)] * own * min(1, 0.3 / np.linalg.norm(own))
        theta = np.clip(theta - 0.2 * gradient, -5, 5)
    found = descend(people, Way(slopes, np.zeros((1, 2)), 1.0), steps, 4, np.random.default_rng(0))
    assert np.allclose(found, theta)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bound", [None, Bound(1.0)])
def test_a_methods_noise_costs_its_budget(method, bound):
    """The rho that the noise of one step is worth, by the method's own accounting."""
    people, steps, rho = some_people(), Steps(number=10), 0.5
    mode, accounting, _ = method
    trial = Trial("one", "", people, people, rho, steps, bound=bound)
    found = way(trial, method, 5, np.random.default_rng(0))
    each = (0.8 if mode == "DPSE" else 1.0) * rho / steps.number
    if bound is not None:
        losses = bound.clip**2 / (2 * found.losses**2)
        assert np.allclose(losses.sum(axis=1) if accounting == "paper" else losses.max(axis=1), each / 2)
        each /= 2
    if accounting == "combined":
        v = (found.slopes / people.sizes)[:, None]
        assert np.allclose((v.max() * steps.clip) ** 2 / (2 * spread(found, v, steps.clip) ** 2), each)
    else:
        rhos = steps.clip**2 / (2 * found.sigmas**2)
        assert np.allclose(rhos.sum(axis=1) if accounting == "paper" else rhos.max(axis=1), each)


@pytest.mark.parametrize("accounting", ["paper", "parallel"])
def test_simulated_residual_errors_rank_the_groups(accounting):
    people = some_people(slopes=(1.0, 1.0), spreads=(0.1, 1.0))
    shares, starts = errors(people, 5.0, accounting, 20, np.random.default_rng(0))
    assert (shares.shape, starts.shape) == ((20, 2), (20, 2))
    assert (shares[:, 1] > shares[:, 0]).mean() > 0.9


def test_a_bound_brings_the_smaller_group_to_it():
    people, rng = some_people(spreads=(0.1, 0.1)), np.random.default_rng(0)
    bound, steps = Bound(most=0.5), Steps(number=300)
    free, held = (
        people.errors(descend(people, Way(np.array([0.8, 0.2]), np.zeros((1, 2)), 1.0, losses), steps, 1, rng, given))
        for given, losses in ((None, None), (bound, np.zeros((1, 2))))
    )
    assert free[0, 1] > 1.5 * bound.most
    assert held[0, 1] == pytest.approx(bound.most, abs=0.03)
    assert held[0, 0] > free[0, 0]


def test_lemma_3_1_is_the_mean_loss_of_the_drawn_predictor():
    rng, c = np.random.default_rng(0), 0.7
    x = tuple(rng.uniform(-1, 1, (n, 2)) for n in (30, 20))
    betas, spreads = (np.array([1.0, 0.0]), np.array([-1.0, 2.0])), (0.5, 1.5)
    losses = []
    for _ in range(4000):
        chosen = betas[int(rng.random() > c)]
        y = [rows @ beta + s * rng.normal(size=len(rows)) for rows, beta, s in zip(x, betas, spreads, strict=True)]
        losses.append(sum(((rows @ chosen - own) ** 2).sum() for rows, own in zip(x, y, strict=True)))
    expected = theory.randomised_loss(x, betas, spreads, c)
    assert expected == pytest.approx(np.mean(losses), abs=4 * np.std(losses) / 4000**0.5)
    assert theory.fixed_loss(x, betas, spreads, c * betas[0] + (1 - c) * betas[1]) < expected
    assert theory.fixed_loss(x, betas, spreads, betas[0]) == theory.randomised_loss(x, betas, spreads, 1.0)


def students(path, races):
    rng = np.random.default_rng(0)
    size = len(races)
    frame = pd.DataFrame({"lsat": rng.uniform(10, 48, size), "ugpa": rng.uniform(1, 4, size), "fam_inc": 3, "tier": 2})
    frame.assign(race=races, zgpa=rng.normal(size=size)).to_csv(path, index=False)
    return path


def test_the_law_school_is_white_against_black_where_the_file_tells_them(tmp_path):
    path = students(tmp_path / "law.csv", ["White"] * 60 + ["Black"] * 20 + ["Asian"] * 20)
    name, train, test = real.law(path, np.random.default_rng(0))
    assert name == "law school, White and Black"
    assert (train.sizes + test.sizes).tolist() == [60, 20]
    path = students(tmp_path / "two.csv", ["White"] * 60 + ["Non-White"] * 20)
    name, train, test = real.law(path, np.random.default_rng(0))
    assert "all others (the file has no Black)" in name
    assert (train.sizes + test.sizes).tolist() == [60, 20]
    with pytest.raises(UsageError, match="from no others"):
        real.law(students(tmp_path / "one.csv", ["White"] * 9), np.random.default_rng(0))


def credits_of(path, rows=200):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: rng.uniform(*ends, rows) for name, ends in real.CREDIT.items()})
    frame.assign(SEX=np.where(rng.random(rows) < 0.3, 1, 2), LIMIT_BAL=rng.uniform(1e4, 1e6, rows)).to_csv(path)
    return path


def test_credit_limits_are_of_the_larger_sex_first_within_their_bounds(tmp_path):
    _, train, test = real.credit(credits_of(tmp_path / "c.csv"), np.random.default_rng(0))
    assert (train.sizes + test.sizes).sum() == 200
    assert train.sizes[0] > train.sizes[1]
    assert train.x.shape[1] == 1 + len(real.CREDIT)
    assert np.abs(np.column_stack([train.x, train.y])).max() <= 1
    for text, words in (("a,b\n1,2\n", "it lacks LIMIT_BAL, SEX"), ("", "is not the credit data")):
        (tmp_path / "x.csv").write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=words):
            real.credit(tmp_path / "x.csv", np.random.default_rng(0))


@pytest.fixture
def small(monkeypatch):
    """All experiments on few people, with few values of what they vary."""
    for name, value in {
        "MAJORITY": 400,
        "TESTED": 200,
        "RHOS": (0.005, 0.5),
        "FEW": (0.005, 0.5),
        "RATIOS": (5, 20),
        "SLOPES": ((-1.0, 1.0),),
        "SMALL": ((200, 20), (100, 20)),
        "NUMBERS": (1, 6),
        "SPLITS": (0.2, 0.8),
    }.items():
        monkeypatch.setattr(experiments, name, value)

    def shortened(trial, runs, rng):
        return outcomes(replace(trial, steps=replace(trial.steps, number=5)), runs, rng)

    monkeypatch.setattr(reproduce, "outcomes", shortened)


def test_on_small_tables_tailoring_and_balanced_weights_harm_where_rho_is_small():
    """The conclusions that the guide draws, on fewer runs: small budgets turn both against the smallest group too."""
    rng, found = np.random.default_rng(5), []
    people = experiments.two_groups((1_000, 100), (-1.0, 1.0), 1.0, rng, 12)
    for rho in (0.005, 0.05, 8.0):
        found += outcomes(Trial("one", f"{rho:g}", *people, rho), 30, rng)
    ends = claims.ends(pd.DataFrame(found))
    for rows in ends.values():
        paper, parallel = (
            claims.ratios(rows, *two).to_numpy() for two in (("tailored", "alike"), ("side", "together"))
        )
        assert paper[1] > 1.05
        assert parallel[0] > 1.3
        assert abs(paper[2] - 1) < 0.05
    smallest, largest = (claims.ratios(ends[who], "even", "pooled").to_numpy() for who in ("smallest", "largest"))
    assert smallest[0] > 1.5
    assert smallest[2] < 0.8
    assert (largest > 1.2).all()


def test_words_follow_from_the_figures():
    frame = pd.DataFrame(
        [
            {
                "experiment": experiments.SMALL_TABLES,
                "varied": "one",
                "rho": rho,
                "mode": mode,
                "accounting": accounting,
                "weighting": weighting,
                "group": group,
                "error": (3.0 if rho < 0.1 else 1.0) if mode == "DPSE" and group == 2 else 1.0,
            }
            for rho in (0.005, 0.5)
            for mode, accounting, weighting in METHODS
            for group in (1, 2)
        ]
    )
    said = claims.words(frame)
    at = said.index("- Tailored budgets beside equal ones, as the paper counts, groups alike:")
    small, large = said[at + 1 : at + 3]
    assert small == (
        "  - rho up to 0.05, small tables: smallest group less error in 0 of 1 settings, more in 1, median ratio 3; "
        "largest group less error in 0 of 1 settings, more in 0, median ratio 1."
    )
    assert large.startswith("  - rho above 0.05, small tables: smallest group less error in 0 of 1 settings, more in 0")


@pytest.fixture
def files(tmp_path):
    """Arguments that name a law school and credit data."""
    law = students(tmp_path / "l.csv", ["White", "White", "Black"] * 40)
    return ["--law", str(law), "--credit", str(credits_of(tmp_path / "c.csv"))]


def test_the_command_says_what_came_out(small, files, capsys):
    assert STUDY.main(["--runs", "2", "--seeds", "0", *files]) == 0
    said = capsys.readouterr().out
    assert "What this run says, by the size of the budget" in said
    assert "Under bounded group loss, weights groups alike, tailored" in said
    assert "least with tau " in said
    assert "  - real people: smallest group" in said
    assert "Lemma 3.1, corrected" in said
    assert STUDY.main(["--runs", "0"]) == 2
    assert STUDY.main(["--runs", "1", "--seeds", "-1"]) == 2


@pytest.mark.slow
def test_the_command_writes_tables_pictures_and_words(tmp_path, small, files, monkeypatch, capsys):
    monkeypatch.setattr(digits, "ENLARGED", (60, 20))
    monkeypatch.setattr(digits, "STEPS", 2)
    assert STUDY.main(["--runs", "2", "--seeds", "1", *files, "--out", str(tmp_path / "out")]) == 0
    assert "What this run says of eights" in capsys.readouterr().out
    pictures = {"two_groups", "small_tables", "groups", "bounded_group_loss", "split_of_the_budget", "digits"}
    pictures |= {"law_school,_White_and_Black", "credit_limits,_women_and_men"}
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "regression.csv",
        "digits.csv",
        *(f"{name}.png" for name in pictures),
    }
    assert set(pd.read_csv(tmp_path / "out" / "regression.csv")["rho"]) >= {0.005, 0.5}
    assert STUDY.main(["--runs", "2", "--out", str(tmp_path / "out")]) == 2


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
