"""GEM: what it asks and pays, what it makes of exact answers, its model, and what it refuses."""

import json
import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from helpers.byhand import LEVELS, ByHand, allotted, frame_of, paid, rows_of, schema_of
from helpers.command import stratsynth
from helpers.small import BUDGET, edit, even, write_recipe
from stratsynth import Neighbours, Release, Stratified, Weights, fit, open_table, plan
from stratsynth.adapters import GEM
from stratsynth.adapters.gem import ProductMixture
from stratsynth.adapters.gem.mechanism import FIRST, MEASURE
from stratsynth.errors import MechanismError, ReleaseError, Unsupported, UsageError
from stratsynth.mechanisms import Public, make
from stratsynth.models import files
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Choose, Counts, NoisyTable, Work
from stratsynth.schema import Rule
from stratsynth.testing.record import identical

TINY = {"components": 8, "hidden": [4], "latent": 3, "iterations": 2}
"""A network for tests of what is asked, where what comes out does not matter."""


def asked(rounds=3, size=5000, rho=0.5, n=500, **settings):
    driver = ByHand(schema_of(LEVELS), rows_of(n))
    driver.run(GEM(**{**TINY, "rounds": rounds, **settings}), rho=rho, size=size)
    return driver


# what it asks and pays


def test_a_share_measures_the_columns_and_rounds_cost_the_same():
    first, *others = paid(driver := asked(rounds=5))
    assert first == ("Counts", pytest.approx(0.5 * FIRST))
    assert driver.of(Counts)[0].cliques == tuple((name,) for name in LEVELS)
    assert [kind for kind, _ in others] == ["Choose", "Counts"] * 5
    for (_, choosing), (_, measuring) in zip(others[::2], others[1::2], strict=True):
        assert measuring / (choosing + measuring) == pytest.approx(MEASURE)
        assert choosing + measuring == pytest.approx(0.5 * (1 - FIRST) / 5)


def test_every_round_compares_all_pairs_and_triples_with_the_model_by_their_most_wrong_cell():
    driver = asked(weights={"a": 3.0})
    for done, choice in enumerate(driver.of(Choose)):
        assert {(score.norm, score.offset) for score in choice.scores} == {("largest", 0.0)}
        assert {len(score.clique) for score in choice.scores} == {2, 3}
        assert len(choice.scores) == 10 + 10 - done  # what was measured is no candidate any more
        for score in choice.scores:  # total: the tables' 500 and the declared 5,000, by their precision
            assert 499 < score.reference.sum() < 5000
            assert score.weight == (1.0 if len(score.clique) == 3 and "a" not in score.clique else 3.0)
    for choice, measured in zip(driver.of(Choose), driver.of(Counts)[1:], strict=True):
        assert measured.cliques[0] in {score.clique for score in choice.scores}


def test_a_workload_limits_what_is_measured():
    driver = asked(workload=[["b", "c", "e"]])
    assert {score.clique for score in driver.of(Choose)[0].scores} == {
        ("b", "c"),
        ("b", "e"),
        ("c", "e"),
        ("b", "c", "e"),
    }


@pytest.mark.parametrize("rho", [0.0001, 0.015, 0.3])
def test_the_number_of_rounds_follows_from_public_sizes_and_never_from_rows(rho):
    found = {n: len(asked(rounds=None, size=20_000, rho=rho, n=n).of(Choose)) for n in (0, 1, 20_000)}
    assert len(set(found.values())) == 1
    assert len(asked(rounds=None, size=2_000_000, rho=rho).of(Choose)) >= found[0]


def test_rounds_are_the_root_of_people_over_noise_for_twelve_columns():
    schema = schema_of({f"c{i}": 3 for i in range(12)})
    rounds = GEM()._rounds
    assert rounds(Public(schema, None), 0.014973, 7_161) == pytest.approx(35, abs=1)
    assert rounds(Public(schema, None), 0.014973, 1e9) == 60  # five a column at most
    assert rounds(Public(schema, None, Neighbours.REPLACE), 0.014973, 7_161) < 32
    assert rounds(Public(schema, None), 0.014973, 900) == 0
    assert rounds(Public(schema_of({"a": 2, "b": 2}), None), 10.0, 1e6) == 1  # one pair is all there is
    assert GEM(rounds=7)._rounds(Public(schema, None), 0.014973, 27_253) == 7


@pytest.mark.parametrize("rounds", [None, 5])
def test_below_the_public_threshold_only_columns_are_measured(rounds):
    sigma = 1 / math.sqrt(2 * 0.5)
    for size, less in ((math.floor(170 * sigma), True), (math.ceil(170 * sigma) + 1, False)):
        driver = asked(rounds=rounds, size=size)
        assert (not driver.of(Choose)) == less
        assert not less or paid(driver) == [("Counts", 0.5)]
        assert not less or not driver.of(Work)  # nothing is trained where there is nothing to train on


def test_without_a_declared_size_the_columns_tables_say_whether_there_are_rounds():
    assert len(asked(size=None, n=5000).of(Choose)) == 3
    small = asked(size=None, n=20)
    assert not small.of(Choose)
    assert [q.cliques for q in small.of(Counts)] == [tuple((name,) for name in LEVELS)] * 2


@pytest.mark.parametrize("size", [100, 5000])
def test_a_plan_goes_by_the_questions_of_a_fit(size):
    schema = schema_of(LEVELS)
    program = GEM(rounds=4).rehearsal(Public(schema, size), allotted(0.5), np.random.default_rng(0))
    driver = ByHand(schema, rows_of(10))
    question = next(program)
    while question is not None:
        try:
            question = program.send(driver.answer(question))
        except StopIteration:
            question = None
    assert paid(driver) == paid(asked(rounds=4, size=size))


def test_a_plan_says_which_strata_measure_their_columns_alone():
    schema = schema_of({"g": 2, **LEVELS})
    shares = pd.DataFrame({"g": ["0", "1"], "share": [0.99, 0.01]})
    how = Stratified(GEM(), ["g"], Weights.public(shares, citation="made up"))
    large, small = plan(how, schema, BUDGET, declared_size=20_000).strata
    assert large.rounds > 0
    assert "columns alone" not in large.verdict
    assert small.rounds == 0
    assert small.tables == len(LEVELS)
    assert "columns alone" in small.verdict


# what it makes of the answers


@pytest.mark.parametrize("generator", ["network", "table"])
@pytest.mark.parametrize("levels", [{"a": 2, "b": 2}, {"a": 2, "b": 3, "c": 2}], ids=len)
def test_without_noise_and_with_every_clique_measured_a_small_table_is_reproduced(generator, levels):
    schema, rng = schema_of(levels), np.random.default_rng(3)
    cells = rng.multinomial(10_000, rng.dirichlet(np.full(schema.cells(levels), 0.7)))
    cells[1] = 0
    codes = np.unravel_index(np.repeat(np.arange(cells.size), cells), schema.shape(levels))
    driver = ByHand(schema, dict(zip(levels, codes, strict=True)))
    gem = GEM(workload=[list(levels)], generator=generator, components=256)
    model = driver.run(gem, rho=1e6, size=int(cells.sum()))
    every = {clique for k in range(2, len(levels) + 1) for clique in combinations(levels, k)}
    assert {clique for q in driver.of(Counts)[1:] for clique in q.cliques} == every
    truth = cells.reshape(schema.shape(levels)) / cells.sum()
    assert np.abs(model.marginal(tuple(levels)) - truth).max() < 1e-3


@pytest.mark.parametrize("generator", ["network", "table"])
def test_it_learns_what_no_pair_shows(generator):
    n = 20_000
    driver = ByHand(schema_of(LEVELS), rows_of(n))
    rng = np.random.default_rng(1)
    driver.noisy = lambda c, sigma: NoisyTable(
        c, driver.table(c) + np.rint(rng.normal(0, sigma, driver.table(c).shape)).astype(int), sigma
    )
    model = driver.run(GEM(generator=generator, components=128, rounds=6), rho=0.015, size=n)
    for clique in (("b", "c", "e"), ("a", "d")):
        assert np.abs(model.marginal(clique) - driver.table(clique) / n).sum() < 0.06
    independent = np.einsum("i,j,k->ijk", *(driver.table((c,)) / n for c in "bce"))
    assert np.abs(independent - driver.table(("b", "c", "e")) / n).sum() > 0.8


def test_cells_fit_the_one_most_wrong_cell_of_a_table():
    driver = asked(measure="cells", rounds=4)
    last = driver.of(Work)[-1].problem
    wide = [table for table in last.tables if len(table.clique) > 1]
    assert len(wide) == 4
    for table, choice in zip(wide, driver.of(Choose), strict=True):
        (guess,) = (s.reference for s in choice.scores if s.clique == table.clique)
        away = np.abs(table.values - guess)
        assert table.counted.sum() == 1
        assert away[table.counted] == away.max()


def test_the_same_answers_and_seed_give_the_same_model_bit_for_bit():
    one, other = (ByHand(schema_of(LEVELS), rows_of(500)).run(GEM(components=16), size=500) for _ in range(2))
    assert identical(one.state(), other.state())


def test_strata_are_trained_as_they_would_be_alone_and_in_processes():
    schema = schema_of({"g": 3, "a": 2, "b": 3, "c": 2})
    rng = np.random.default_rng(0)
    table = frame_of({c: rng.integers(schema.size(c), size=3000) for c in schema.names})
    how = Stratified(GEM(**{**TINY, "components": 32}), ["g"], even(schema, "g"))

    def model(**settings):
        opened = open_table(table, schema=schema, declared_size=3000)
        return fit(how, opened, BUDGET, seed=1, entropy=SeededEntropy(0), **settings).model

    assert identical(model().state(), model(workers=2).state())


def test_columns_alone_are_kept_as_far_as_they_stand_out_from_noise():
    schema = schema_of({"a": 3, "b": 2})
    ones = (NoisyTable(("a",), np.array([90, 14, -4]), 1.0), NoisyTable(("b",), np.array([3, -3]), 30.0))
    model = ProductMixture.independent(schema, ones, 100.0)
    np.testing.assert_allclose(model.marginal(("a",)), [0.9 - 0.0133, 0.14 - 0.0133, 0], atol=0.02)
    np.testing.assert_allclose(model.marginal(("b",)), [0.5, 0.5])


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("size", [None, 0, 1, 10**9])
def test_hardly_any_rows_give_a_model(n, size):
    driver = ByHand(schema_of(LEVELS), rows_of(n), rng=np.random.default_rng(n))
    model = driver.run(GEM(**TINY, rounds=3), rho=0.001, size=size)
    assert {len(codes) for codes in model.sample(100, np.random.default_rng(0)).values()} == {100}


@pytest.mark.parametrize("by", [["a"], ["a", "c"]])
def test_strata_may_leave_one_column_or_none(by):
    schema = schema_of({"a": 3, "c": 2})
    table = open_table(frame_of({"a": [0, 1, 2, 2], "c": [0, 1, 1, 0]}), schema=schema, declared_size=4)
    people = fit(Stratified(GEM(**TINY, least=0), by, even(schema, *by)), table, BUDGET).sample(60)
    assert (people.groupby(by).size() == 60 // math.prod(schema.shape(by))).all()


# releases


def test_a_release_is_saved_sampled_and_sampled_under_conditions(tmp_path):
    rule = Rule(when={"b": "0"}, never={"e": "1"})
    schema = schema_of(LEVELS, (rule,))
    table = open_table(frame_of(rows_of(5000)), schema=schema, declared_size=5000)
    release = fit(GEM(**{**TINY, "components": 64}), table, BUDGET, seed=1)
    people = release.sample(900, seed=2)
    assert not ((people.b == "0") & (people.e == "1")).any()
    release.save(tmp_path / "release", rows=5)
    again = Release.load(tmp_path / "release")
    pd.testing.assert_frame_equal(again.sample(900, seed=2), people)
    some = again.sample(500, seed=2, where={"a": ["0", "2"], "d": "3"})
    assert len(some) == 500
    assert set(some.a) <= {"0", "2"}
    assert set(some.d) == {"3"}


def test_the_command_line_fits_and_draws(tmp_path):
    recipe = write_recipe(tmp_path)
    edit(recipe, 'name = "independent"', 'name = "gem"\ncomponents = 8\nhidden = [4]\nleast = 0')
    planned = stratsynth("plan", str(recipe), "--json", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert all(s["rounds"] > 0 for s in json.loads(planned.stdout)["strata"])
    done = stratsynth("fit", str(recipe), "-o", str(tmp_path / "out"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    drawn = stratsynth(
        "sample", str(tmp_path / "out"), "-n", "20", "--where", "SEX=2", "-o", str(tmp_path / "more.csv"), cwd=tmp_path
    )
    assert drawn.returncode == 0, drawn.stderr
    assert (pd.read_csv(tmp_path / "more.csv", dtype=str)["SEX"] == "2").all()
    edit(recipe, "least = 0", "least = -1")
    refused = stratsynth("plan", str(recipe), cwd=tmp_path)
    assert refused.returncode == 2
    assert "gem: least" in refused.stderr


# the model


def mixture(components=5, seed=0):
    schema, rng = schema_of(LEVELS), np.random.default_rng(seed)
    tables = {name: rng.dirichlet(np.full(k, 0.5), size=components) for name, k in LEVELS.items()}
    return ProductMixture(schema, rng.dirichlet(np.ones(components)), tables, 100.0)


def whole(model):
    """Every row's probability."""
    return np.einsum("k,ka,kb,kc,kd,ke->abcde", model.weights, *(model.tables[name] for name in LEVELS))


WHERE = [{}, {"a": {1}}, {"a": {0, 2}, "d": {3}}, {"b": {0, 1}}, {"b": set()}]


@pytest.mark.parametrize("where", WHERE, ids=str)
def test_the_mass_of_a_condition_is_that_of_its_rows(where):
    model = mixture()
    allowed = np.ix_(*(sorted(where.get(name, range(k))) for name, k in LEVELS.items()))
    condition = {column: frozenset(levels) for column, levels in where.items()}
    assert model.mass(condition) == pytest.approx(whole(model)[allowed].sum())


@pytest.mark.parametrize("where", WHERE[:-1], ids=str)
def test_rows_follow_the_model_under_a_condition(where):
    model, n = mixture(), 200_000
    condition = {column: frozenset(levels) for column, levels in where.items()}
    rows = model.sample(n, np.random.default_rng(1), condition)
    expected = np.zeros_like(whole(model))
    allowed = np.ix_(*(sorted(where.get(name, range(k))) for name, k in LEVELS.items()))
    expected[allowed] = whole(model)[allowed]
    expected /= expected.sum()
    counted = np.zeros_like(expected)
    np.add.at(counted, tuple(rows.values()), 1)
    assert not counted[expected == 0].any()
    assert (np.abs(counted - n * expected) <= 6 * np.sqrt(n * expected) + 6).all()


def test_no_rows_and_rows_that_cannot_be():
    model = mixture()
    assert {len(codes) for codes in model.sample(0, np.random.default_rng(0)).values()} == {0}
    with pytest.raises(MechanismError, match="mass"):
        model.sample(1, np.random.default_rng(0), {"b": frozenset()})


def test_a_model_comes_back_equal(tmp_path):
    model = mixture()
    files.save(model, tmp_path / "model")
    assert identical(files.load(tmp_path / "model").state(), model.state())


DAMAGE = {
    "no weights": lambda state: state.arrays.pop("weights"),
    "weights that do not add up": lambda state: state.arrays.update(weights=state.arrays["weights"] * 2),
    "a component too few": lambda state: state.arrays.update(weights=np.ones(1)),
    "no components": lambda state: state.arrays.update(weights=np.zeros(0)),
    "a column too few": lambda state: state.arrays.pop("column a"),
    "a level too few": lambda state: state.arrays.update({"column a": state.arrays["column b"]}),
    "a probability that is NaN": lambda state: state.arrays["column a"].fill(math.nan),
    "a probability below zero": lambda state: state.arrays.update({"column b": np.tile([2.0, -1.0], (5, 1))}),
    "single precision": lambda state: state.arrays.update({"column a": state.arrays["column a"].astype("f4")}),
    "no total": lambda state: state.facts.pop("total"),
    "an infinite total": lambda state: state.facts.update(total=math.inf),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_states_are_release_errors(case):
    state = mixture().state()
    DAMAGE[case](state)
    with pytest.raises(ReleaseError):
        files.restore("product_mixture", schema_of(LEVELS), state)


# what it refuses

SETTINGS = [
    {"generator": "torch"},
    {"measure": "queries"},
    {"rounds": 0},
    {"rounds": True},
    {"components": 0},
    {"components": 2.5},
    {"latent": "3"},
    {"iterations": 0},
    {"hidden": []},
    {"hidden": [0]},
    {"hidden": 3},
    {"hidden": "64"},
    {"least": -1},
    {"least": math.nan},
    {"least": math.inf},
    {"rate": 0},
    {"rate": math.nan},
    {"rate": True},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(UsageError, match=f"gem: {next(iter(settings))} must be"):
        make("gem", settings)


def refused_before_anything_is_spent(mechanism, schema, error, match):
    table = open_table(frame_of({c: ["0"] for c in schema.names}), schema=schema, declared_size=100)
    with pytest.raises(error, match=match):
        fit(mechanism, table, BUDGET)
    assert table.ledger.reserved == ()


def test_what_is_too_large_or_unknown_is_refused_before_anything_is_spent():
    refused_before_anything_is_spent(GEM(), schema_of({f"c{i}": 90 for i in range(20)}), Unsupported, "fewer bins")
    refused_before_anything_is_spent(GEM(components=4096), schema_of({"a": 5000}), Unsupported, "fewer components")
    refused_before_anything_is_spent(GEM(workload=[["z"]]), schema_of({"a": 2}), UsageError, "'z'")


def test_tables_too_large_to_be_fitted_are_no_candidates():
    schema = schema_of({"a": 200, "b": 200, "c": 2})
    candidates = {score.clique for score in _first_choice(schema).scores}
    assert candidates == {("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")}
    candidates = {score.clique for score in _first_choice(schema, components=30_000).scores}
    assert candidates == {("a", "b"), ("a", "c"), ("b", "c")}


def _first_choice(schema, **settings):
    public = Public(schema, 10**6)
    program = GEM(rounds=1, **settings).rehearsal(public, allotted(1.0), np.random.default_rng(0))
    next(program)
    return program.send(())


def test_a_table_of_more_than_a_million_cells_is_no_candidate():
    every = GEM().candidate_weights(Public(schema_of({"a": 1025, "b": 1025, "c": 2}), 10**6))
    assert set(every) == {("a", "c"), ("b", "c")}
