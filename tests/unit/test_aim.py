"""AIM: what it asks and pays, what it makes of exact answers, and what it refuses."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import stratsynth.adapters.shared.graphical as graphical_module
from helpers import small
from helpers.byhand import LEVELS, ByHand, allotted, frame_of, paid, rows_of, schema_of
from helpers.small import BUDGET, even
from stratsynth import Budget, Neighbours, Release, Stratified, fit, open_table, plan
from stratsynth.adapters import AIM
from stratsynth.adapters.aim import FIRST
from stratsynth.adapters.engine import solve
from stratsynth.adapters.shared.rounds import MEASURE, NOISE_SIZE, usual_rounds
from stratsynth.digest import digest
from stratsynth.errors import UsageError
from stratsynth.mechanisms import Public, make
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Choose, Counts, Solver, Work
from stratsynth.recipes.recipe import Recipe
from stratsynth.schema import Rule


def grid(levels):
    """Every row that there is, a hundred times."""
    cells = np.indices(tuple(levels.values())).reshape(len(levels), -1)
    return {name: np.tile(codes, 100) for name, codes in zip(levels, cells, strict=True)}


def rounds(driver):
    """The price of every round: its choice and its table."""
    prices = [rho for _, rho in paid(driver)[1:]]
    return [a + b for a, b in zip(prices[::2], prices[1::2], strict=True)]


# what it asks and pays


def test_a_share_measures_the_columns_and_a_tenth_of_every_round_chooses():
    driver = ByHand(schema_of(LEVELS), rows_of(5000))
    driver.run(AIM(rounds=10), rho=0.5, size=5000)
    first, *others = paid(driver)
    assert first == ("Counts", pytest.approx(0.5 * FIRST))
    assert driver.of(Counts)[0].cliques == tuple((name,) for name in LEVELS)
    assert [kind for kind, _ in others] == ["Choose", "Counts"] * (len(others) // 2)
    for (_, choosing), (_, measuring) in zip(others[::2], others[1::2], strict=True):
        assert measuring / (choosing + measuring) == pytest.approx(MEASURE)


def test_rounds_that_teach_nothing_are_followed_by_dearer_ones():
    """Even rows are what the first model says already: 1, 4, 16, and the rest, of 64 equal parts."""
    levels = {"a": 2, "b": 2, "c": 2}
    driver = ByHand(schema_of(levels), grid(levels))
    driver.run(AIM(rounds=64), rho=1.0, size=800)
    part = (1 - FIRST) / 64
    assert rounds(driver) == pytest.approx([part, 4 * part, 16 * part, 43 * part])


def test_rounds_that_teach_more_than_their_noise_cost_the_same():
    driver = ByHand(schema_of(LEVELS), rows_of(50_000))
    driver.run(AIM(rounds=4, workload=[["b", "c", "e"], ["a", "d"]]), rho=20.0, size=50_000)
    first, second, *_ = rounds(driver)
    assert first == pytest.approx(20 * (1 - FIRST) / 4)
    assert second == first
    assert {t.cliques for t in driver.of(Counts)[1:3]} == {(("b", "c", "e"),), (("a", "d"),)}


@pytest.mark.parametrize("most", [1, 2, 7])
def test_there_are_no_more_rounds_than_allowed(most):
    driver = ByHand(schema_of(LEVELS), rows_of(5000), rng=np.random.default_rng(most))
    driver.run(AIM(rounds=most), rho=0.5, size=5000)
    assert 1 <= len(driver.of(Choose)) <= most


def test_more_to_learn_is_more_rounds():
    assert usual_rounds(20, 27_253, 0.0117) == pytest.approx(48, abs=4)
    assert usual_rounds(3, 1, 1e-6) == 1
    assert usual_rounds(2, 1e12, 100) == 32  # 16 a column at most


def test_candidates_are_compared_with_the_model_in_records_less_what_noise_would_add():
    driver = ByHand(schema_of(LEVELS), rows_of(5000))
    driver.run(AIM(rounds=4, weights={"a": 3.0}), rho=1.0, size=5000)
    choice, measured = driver.of(Choose)[0], driver.of(Counts)[1]
    (sigma,) = measured.sigmas(driver.schema, Neighbours.ADD_REMOVE)
    for score in choice.scores:
        assert score.reference.sum() == pytest.approx(5000, rel=0.05)
        assert score.offset == pytest.approx(NOISE_SIZE * sigma * score.reference.size)
        # all but the triples without a are a part of one with it
        assert score.weight == (1.0 if len(score.clique) == 3 and "a" not in score.clique else 3.0)
    every = [c for k in (1, 2, 3) for c in combinations(LEVELS, k)]
    assert {score.clique for score in choice.scores} <= set(every)


@pytest.mark.parametrize("rows", [0, 5000])
def test_small_strata_measure_their_columns_once_and_that_is_decided_before_anything_is_asked(rows):
    driver = ByHand(schema_of(LEVELS), rows_of(rows), rng=np.random.default_rng(0))
    driver.run(AIM(), rho=0.01, size=10)
    assert paid(driver) == [("Counts", 0.01)]
    assert len(driver.of(Work)) == 1


def test_the_same_answers_are_followed_by_the_same_questions():
    """Whatever the rows are: one table's answers are given for three."""
    asked, answers = [], ByHand(schema_of(LEVELS), rows_of(3000))
    for rows in (rows_of(3000), rows_of(0), rows_of(999, seed=4)):
        driver = ByHand(schema_of(LEVELS), rows, rng=np.random.default_rng(7))
        driver.noisy = answers.noisy
        driver.run(AIM(rounds=6), rho=1.0, size=3000)
        asked.append([digest(q) for q in driver.asked if not isinstance(q, Work)])
    assert asked[0] == asked[1] == asked[2]


def test_one_column_is_measured_again_and_again_and_the_estimate_is_the_inverse_variance_mean():
    driver = ByHand(
        schema_of({"a": 4}), {"a": [0] * 500 + [1] * 300 + [2] * 150 + [3] * 50}, rng=np.random.default_rng(1)
    )
    answers, noisy = [], driver.noisy
    driver.noisy = lambda c, sigma: answers.append(noisy(c, sigma)) or answers[-1]
    model = driver.run(AIM(workload=[["a"]], rounds=8, prior=0.0, iterations=20_000), rho=0.5)
    assert len(answers) >= 3
    assert {t.clique for t in answers} == {("a",)} == {s.clique for q in driver.of(Choose) for s in q.scores}
    weights = [t.sigma**-2 for t in answers]
    mean = sum(w * t.values for w, t in zip(weights, answers, strict=True)) / sum(weights)
    np.testing.assert_allclose(model.marginal(("a",)) * model.total, mean, rtol=1e-3)
    assert model.total == pytest.approx(mean.sum(), rel=1e-9)


# exact answers


def test_what_only_three_columns_together_show_is_found_and_reproduced():
    driver = ByHand(schema_of(LEVELS), rows_of(20_000))
    model = driver.run(AIM(rounds=12, iterations=5000), rho=100.0, size=20_000)
    measured = {clique for q in driver.of(Counts) for clique in q.cliques}
    assert ("b", "c", "e") in measured
    for clique in combinations(LEVELS, 3):
        assert np.abs(model.marginal(clique) * 20_000 - driver.table(clique)).sum() < 0.05 * 20_000


def test_weights_say_which_of_two_errors_is_seen_to_first():
    rng = np.random.default_rng(0)
    rows = {"a": rng.integers(2, size=4000), "c": rng.integers(2, size=4000)}
    rows |= {"b": rows["a"], "d": rows["c"]}
    schema = schema_of(dict.fromkeys("abcd", 2))
    for heavy, pair in (("a", ("a", "b")), ("c,d", ("c", "d"))):
        driver = ByHand(schema, rows)
        driver.run(AIM(workload=[["a", "b"], ["c", "d"]], weights={heavy: 4.0}, rounds=6), rho=1.0, size=4000)
        assert driver.of(Counts)[1].cliques == (pair,)


@pytest.mark.parametrize("seed", range(3))
def test_no_round_makes_the_model_larger_than_allowed(seed):
    schema, most = schema_of(LEVELS), 30
    driver = ByHand(schema, rows_of(5000), rng=np.random.default_rng(seed))
    driver.run(AIM(model_cells=most, rounds=12), rho=10.0, size=5000)
    cells = [q.problem.tree().cells for q in driver.of(Work)]
    assert len(cells) > 3
    assert cells[0] < max(cells) <= most


def test_no_marginal_is_larger_than_allowed_but_columns_are_measured_anyway():
    driver = ByHand(schema_of(LEVELS), rows_of(5000), rng=np.random.default_rng(0))
    driver.run(AIM(clique_cells=4, rounds=12), rho=10.0, size=5000)
    sizes = {math.prod(LEVELS[c] for c in s.clique) for q in driver.of(Choose) for s in q.scores}
    assert max(sizes) == 4
    driver = ByHand(schema_of(LEVELS), rows_of(500))
    driver.run(AIM(clique_cells=1), rho=10.0)
    assert paid(driver) == [("Counts", 10.0)]  # nothing else can be measured


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("size", [None, 0, 1, 10**9])
def test_hardly_any_rows_give_a_model(n, size):
    driver = ByHand(schema_of(LEVELS), rows_of(n), rng=np.random.default_rng(n))
    model = driver.run(AIM(rounds=4), rho=0.001, size=size)
    assert {len(codes) for codes in model.sample(100, np.random.default_rng(0)).values()} == {100}


# releases


def test_a_recipe_may_say_what_matters(tmp_path):
    recipe = small.write_recipe(tmp_path)
    lines = ['name = "aim"', 'workload = [["AGE", "WORK"], ["SEX", "AGE"]]', 'weights = { "AGE,WORK" = 2.5 }']
    small.edit(recipe, 'name = "independent"', "\n".join(lines))
    how = Recipe.read(recipe).how()
    assert how.mechanism == AIM(workload=[["AGE", "WORK"], ["SEX", "AGE"]], weights={"AGE,WORK": 2.5})
    release = fit(how, small.table(), BUDGET)
    release.save(tmp_path / "out", rows=5)
    assert len(Release.load(tmp_path / "out").sample(30)) == 30


def test_a_workload_may_name_what_the_strata_are_made_of():
    """Inside a stratum of b, the table of a and b is the table of a."""
    schema = schema_of(LEVELS)
    table = open_table(frame_of(rows_of(3000)), schema=schema, declared_size=3000)
    how = Stratified(AIM(workload=[["a", "b"], ["b"]], weights={"b": 2}), ["b"], even(schema, "b"))
    found = fit(how, table, Budget(10, 1e-9)).measurements.to_pandas()
    # columns, and never two of them together
    assert set(found["clique"]) == set(LEVELS) - {"b"}


@pytest.mark.parametrize("by", [[], ["a"], ["b", "c", "e"], list(LEVELS)], ids=len)
def test_strata_of_any_columns(by):
    schema = schema_of(LEVELS)
    table = open_table(frame_of(rows_of(500)), schema=schema, declared_size=500)
    people = fit(Stratified(AIM(), by, even(schema, *by)) if by else AIM(), table, BUDGET).sample(960)
    assert len(people) == 960
    if by:
        assert people.groupby(by).size().nunique() == 1


RULES = (
    Rule(when={"a": "0"}, never={"d": ("2", "3")}),
    Rule(when={"b": "0", "c": "1"}, never={"e": "0"}),
)


@pytest.mark.parametrize("by", [[], ["a"], ["b"]], ids=lambda by: " ".join(by) or "vanilla")
@pytest.mark.parametrize("epsilon", [0.01, 10])
def test_structural_zeros_never_occur(by, epsilon):
    schema = schema_of(LEVELS, RULES)
    table = open_table(frame_of(rows_of(2000)), schema=schema, declared_size=2000)  # which break the rules
    how = Stratified(AIM(), by, even(schema, *by)) if by else AIM()
    release = fit(how, table, Budget(epsilon, 1e-9), entropy=SeededEntropy(1))
    people = release.sample(20_000, seed=0)
    assert not ((people.a == "0") & people.d.isin(["2", "3"])).any()
    assert not ((people.b == "0") & (people.c == "1") & (people.e == "0")).any()
    if not by:
        assert not release.model.marginal(("a", "d"))[0, 2:].any()
        assert not release.model.marginal(("b", "c", "e"))[0, 1, 0].any()


def test_models_of_all_strata_are_fitted_at_once(monkeypatch):
    calls = []

    def counted(problems):
        calls.append(len(problems))
        return solve(problems)

    monkeypatch.setattr(graphical_module, "engine", lambda name: Solver(counted))
    schema = schema_of({"g": 4, **LEVELS})
    rows = {name: np.tile(codes, 4) for name, codes in rows_of(3000).items()} | {"g": np.repeat(range(4), 3000)}
    table = open_table(frame_of(rows), schema=schema, declared_size=12_000)
    release = fit(Stratified(AIM(rounds=3), ["g"], even(schema, "g")), table, BUDGET, entropy=SeededEntropy(0))
    rounds_of = [
        sum(c["kind"] == "choose" for c in release.certificate["charges"] if c["path"] == p)
        for p in {str(c["path"]): c["path"] for c in release.certificate["charges"] if c["path"]}.values()
    ]
    assert len(rounds_of) == 4
    # a fit of the columns, one after every round: moments, not strata, are what the solver is called for
    assert len(calls) == max(rounds_of) + 1
    assert sum(calls) == sum(rounds_of) + 4
    assert calls[0] == 4


@pytest.mark.parametrize("size", [None, 10, 5000])
def test_a_plan_asks_no_more_than_a_fit_may(size):
    schema = schema_of(LEVELS)
    program = AIM().rehearsal(Public(schema, size), allotted(0.5), np.random.default_rng(0))
    answer, spent = None, Fraction(0)
    driver = ByHand(schema, rows_of(100))
    try:
        while True:
            question = program.send(answer)
            answer, spent = driver.answer(question), spent + Fraction(getattr(question, "rho", 0))
    except StopIteration:
        pass
    assert Fraction(0.5) * (1 - Fraction(1, 10**12)) <= spent <= Fraction(0.5)
    assert [s.stratum for s in plan(AIM(), schema, BUDGET, declared_size=size or 100).strata]


@pytest.mark.reference
def test_the_reference_engine_gives_a_release_too():
    """By default, with rules and a prior: every round is fitted by it."""
    levels = {"b": 2, "c": 2, "e": 2}
    rule = Rule(when={"b": "1"}, never={"c": "1"})
    rows = {name: codes for name, codes in rows_of(2000).items() if name in levels}
    table = open_table(frame_of(rows), schema=schema_of(levels, (rule,)), declared_size=2000)
    both = [
        fit(AIM(rounds=2, engine=engine), table, Budget(10, 1e-9), entropy=SeededEntropy(0)).model
        for engine in ("numpy", "mbi")
    ]
    assert not both[1].marginal(("b", "c"))[1, 1]
    difference = both[0].marginal(("b", "c", "e")) - both[1].marginal(("b", "c", "e"))
    assert np.abs(difference).sum() < 0.02


@pytest.mark.reference
def test_all_rounds_are_fitted_by_the_chosen_engine(monkeypatch):
    asked = []
    monkeypatch.setattr(graphical_module, "engine", lambda name: asked.append(name) or Solver(solve))
    table = open_table(frame_of(rows_of(500)), schema=schema_of(LEVELS), declared_size=500)
    fit(AIM(rounds=3, engine="mbi"), table, Budget(10, 1e-9), entropy=SeededEntropy(0))
    assert len(asked) > 2
    assert set(asked) == {"mbi"}


# what it refuses

WHOLE = "must be a whole number from 1"
WRONG = [
    ({"engine": "torch"}, 'engine must be "numpy" or "mbi"'),
    ({"rounds": 0}, WHOLE),
    ({"rounds": 2.5}, WHOLE),
    ({"model_cells": None}, WHOLE),
    ({"model_cells": 2**40}, WHOLE),
    ({"clique_cells": True}, WHOLE),
    ({"iterations": "9"}, WHOLE),
    ({"prior": -1}, "prior must be a number"),
    ({"prior": math.nan}, "prior must be"),
    ({"prior": True}, "prior must be"),
    ({"workload": "all"}, "all 3-way"),
    ({"workload": ["a", "b"]}, "list of lists"),
    ({"weights": {"a": 0}}, "the weight of a"),
]


@pytest.mark.parametrize(("wrong", "match"), WRONG, ids=str)
def test_settings_that_make_no_sense_are_refused(wrong, match):
    with pytest.raises(UsageError, match=match):
        make("aim", wrong)


REFUSED = {
    "an unknown column": (AIM(workload=[["a", "zz"]]), {"a": 2, "b": 2}, "no column 'zz'"),
    "an unknown column's weight": (AIM(weights={"zz": 2}), {"a": 2, "b": 2}, "no column 'zz'"),
    "too many cells to choose from": (AIM(), {f"c{i}": 60 for i in range(14)}, "fewer bins"),
    "columns that fill the model": (AIM(model_cells=100), {"a": 60, "b": 60}, "model_cells is 100"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("strata", [False, True], ids=["vanilla", "stratified"])
def test_what_cannot_be_done_is_refused_before_anything_is_spent(case, strata):
    mechanism, levels, match = REFUSED[case]
    schema = schema_of({**levels, "g": 2})
    table = open_table(frame_of({c: ["0"] for c in schema.names}), schema=schema, declared_size=100)
    with pytest.raises(UsageError, match=match):
        fit(Stratified(mechanism, ["g"], even(schema, "g")) if strata else mechanism, table, BUDGET)
    assert table.ledger.reserved == ()
