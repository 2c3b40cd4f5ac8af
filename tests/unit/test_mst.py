"""MST: what it asks and pays, what it makes of exact answers, and what it refuses."""

import math
from fractions import Fraction
from importlib import import_module
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stratsynth.adapters.mst as mst_module
from helpers.byhand import ByHand, frame_of, schema_of
from helpers.recompute import total_rho
from helpers.small import BUDGET, even
from stratsynth import Budget, Neighbours, Release, Stratified, fit, open_table
from stratsynth.accounting.budget import PRICED, Currency
from stratsynth.accounting.charges import Charge, Spending
from stratsynth.adapters.mst import MST
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms import Public, make
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Choose, Counts, NoisyTable, Work
from stratsynth.schema import Rule


class Driver(ByHand):
    """Runs MST unless told otherwise."""

    def run(self, mechanism=None, **how):
        return super().run(mechanism or MST(), **how)


LEVELS = {"a": 3, "b": 4, "c": 2, "d": 5, "e": 3, "f": 1}
EDGES = [("a", "b"), ("b", "c"), ("b", "d"), ("a", "e")]


def tree_rows(n, seed=0):
    """Rows of a tree model: each column is a copy of its parent, mangled, except for a fifth of the rows."""
    rng = np.random.default_rng(seed)
    rows = {"a": rng.integers(3, size=n), "f": np.zeros(n, dtype=int)}
    for old, new in EDGES:
        rows[new] = np.where(rng.random(n) < 0.8, (rows[old] + 1) % LEVELS[new], rng.integers(LEVELS[new], size=n))
    return {name: rows[name] for name in LEVELS}


# what it asks and pays


def test_columns_choices_and_pairs_get_45_10_and_45_percent():
    driver = Driver(schema_of(LEVELS), tree_rows(100))
    driver.run(rho=0.6)
    ones, twos = driver.of(Counts)
    choices = driver.of(Choose)
    assert ones.cliques == tuple((name,) for name in LEVELS)
    assert len(twos.cliques) == len(choices) == len(LEVELS) - 1
    parts = ones.rho, sum(c.rho for c in choices), twos.rho
    assert parts == pytest.approx((0.27, 0.06, 0.27), rel=1e-12)


@pytest.mark.parametrize(("neighbours", "stretch"), [(Neighbours.ADD_REMOVE, 1), (Neighbours.REPLACE, math.sqrt(2))])
def test_sigma_for_rho_one_and_two_columns_follows_from_the_shares(neighbours, stretch):
    driver = Driver(schema_of({"a": 2, "b": 3}), {"a": [0], "b": [2]}, neighbours=neighbours)
    driver.run(rho=1.0)
    ones, twos = driver.of(Counts)
    assert twos.sigmas(driver.schema, neighbours) == pytest.approx([math.sqrt(1 / (2 * 0.45)) * stretch])
    assert ones.sigmas(driver.schema, neighbours) == pytest.approx([math.sqrt(2 / (2 * 0.45)) * stretch] * 2)


@given(st.integers(2, 30), st.floats(1e-6, 30))
@settings(max_examples=20)
def test_what_is_asked_costs_the_allotment_and_not_a_bit_more(columns, rho):
    schema = schema_of({f"c{i}": 1 for i in range(columns)})
    driver = Driver(schema, {name: [] for name in schema.names})
    driver.run(MST(iterations=1), rho=rho)
    asked = [q for q in driver.asked if not isinstance(q, Work)]
    spent = sum(Fraction(c.amount) for q in asked for c in q.charges(schema, (), Neighbours.ADD_REMOVE))
    assert Fraction(rho) * (1 - Fraction(1, 10**12)) <= spent <= Fraction(rho)


@pytest.mark.parametrize("neighbours", PRICED)
@pytest.mark.parametrize("by", [[], ["c", "e"]], ids=["vanilla", "stratified"])
def test_a_release_is_charged_its_budget(by, neighbours):
    schema, budget = schema_of(LEVELS), Budget(1, 1e-9, neighbours)
    table = open_table(frame_of(tree_rows(300)), schema=schema, declared_size=300)
    record = fit(Stratified(MST(), by, even(schema, *by)) if by else MST(), table, budget).certificate
    charges = [Charge.from_dict(charge, Currency.ZCDP) for charge in record["charges"]]
    reserved, spent = Fraction(record["guarantee"]["rho"]), Spending(neighbours, charges).spent()
    assert reserved == Fraction(budget.zcdp().rho)
    assert spent <= reserved
    if not by or neighbours == Neighbours.ADD_REMOVE:
        assert spent == total_rho(record["charges"]) >= reserved * (1 - Fraction(1, 10**12))


@pytest.mark.parametrize("rng", [None, np.random.default_rng(0)], ids=["exact", "noisy"])
def test_few_rows_or_many_are_asked_the_same(rng):
    asked = []
    for n in (0, 1, 500):
        driver = Driver(schema_of(LEVELS), tree_rows(n), rng=rng)
        driver.run(MST(iterations=20), rho=0.01)
        asked.append(
            [(type(q).__name__, getattr(q, "rho", None), len(getattr(q, "cliques", ()))) for q in driver.asked]
        )
    assert asked[0] == asked[1] == asked[2]
    assert [kind for kind, _, _ in asked[0]] == ["Counts", *["Choose"] * 5, "Counts", "Work"]


def test_candidates_join_parts_that_are_not_joined_yet_and_the_result_is_a_tree():
    driver = Driver(schema_of(LEVELS), tree_rows(0), rng=np.random.default_rng(3))
    driver.run(MST(iterations=1))
    _, twos = driver.of(Counts)
    part = {name: {name} for name in LEVELS}
    for question, edge in zip(driver.of(Choose), twos.cliques, strict=True):
        apart = {pair for pair in combinations(LEVELS, 2) if part[pair[0]] is not part[pair[1]]}
        assert {score.clique for score in question.scores} == apart
        assert edge in apart
        joined = part[edge[0]] | part[edge[1]]
        part.update(dict.fromkeys(joined, joined))
    assert all(whole == set(LEVELS) for whole in part.values())


def test_pairs_are_compared_with_independent_columns_in_records():
    driver = Driver(schema_of({"a": 2, "b": 2}), {"a": [0] * 60 + [1] * 40, "b": [0] * 60 + [1] * 40})
    driver.run(rho=1.0)
    (question,) = driver.of(Choose)
    np.testing.assert_allclose(next(iter(question.scores)).reference, [[36, 24], [24, 16]])


@pytest.mark.parametrize(("noisy", "share"), [([-30, 10, 30], [0, 0.25, 0.75]), ([-1, -5, -2], [1 / 3] * 3)])
def test_counts_below_zero_are_no_rows_and_no_counts_at_all_are_even(noisy, share):
    driver = Driver(schema_of({"a": 3, "b": 1}), {"a": [], "b": []})
    driver.noisy = lambda c, sigma: NoisyTable(c, np.array({"a": noisy, "b": [40]}.get("".join(c), [[9]] * 3)), sigma)
    driver.run()
    reference = next(iter(driver.of(Choose)[0].scores)).reference
    np.testing.assert_allclose(reference[:, 0] / reference.sum(), share)


# exact answers


def test_two_columns_without_noise_reproduce_the_table_exactly():
    rng = np.random.default_rng(0)
    rows = {"a": rng.integers(3, size=2000), "b": rng.integers(4, size=2000)}
    rows["b"][rows["a"] == 1] = 2  # cells of zero, too
    driver = Driver(schema_of({"a": 3, "b": 4}), rows)
    model = driver.run(MST(iterations=20_000), rho=1e4)
    np.testing.assert_allclose(model.marginal(("a", "b")) * model.total, driver.table(("a", "b")), atol=0.05)


def test_a_table_that_is_a_tree_model_is_found_and_reproduced():
    driver = Driver(schema_of(LEVELS), tree_rows(20_000))
    model = driver.run(MST(iterations=5000), rho=100.0)
    _, twos = driver.of(Counts)
    assert {frozenset(c) for c in EDGES} <= {frozenset(c) for c in twos.cliques}
    for clique in combinations(LEVELS, 2):  # those that were not measured follow from the tree
        assert np.abs(model.marginal(clique) * 20_000 - driver.table(clique)).sum() < 0.03 * 20_000
    for clique in EDGES:
        np.testing.assert_allclose(model.marginal(clique) * 20_000, driver.table(clique), atol=2)


def test_rare_levels_keep_the_columns_own_distributions():
    """A level that noise may have made is not fitted to the noise of its cells."""
    rows = {"a": [0] * 500 + [1] * 500 + [2], "b": [0] * 500 + [1] * 500 + [1]}
    noise = {("a", "b"): [[0, 0], [0, 0], [-4, 4]], ("b",): [0, -1], ("a",): [0, 0, 0]}
    found = {}
    for rare in (0, 3):
        driver = Driver(schema_of({"a": 3, "b": 2}), rows)
        driver.noisy = lambda c, sigma, d=driver: NoisyTable(c, d.table(c) + np.array(noise[c]), sigma)
        found[rare] = driver.run(MST(rare=rare)).marginal(("a", "b")) * 1001
    assert found[0][2, 1] > 5 * found[0][2, 0]
    np.testing.assert_allclose(found[3][2], found[3][2].sum() / 2, rtol=0.2)
    for table in found.values():
        np.testing.assert_allclose(table[:2], [[500, 0], [0, 500]], atol=2)


@pytest.mark.parametrize(("rare", "counted"), [(0, 1.0), (3, 0.25)])
def test_with_rare_zero_every_cell_of_a_pair_counts_also_where_noise_is_below_zero(rare, counted):
    driver = Driver(schema_of({"a": 2, "b": 2}), {"a": [0] * 90, "b": [1] * 90})
    driver.noisy = lambda c, sigma: NoisyTable(c, driver.table(c) - 5, sigma)
    driver.run(MST(rare=rare))
    (question,) = driver.of(Work)
    (pair,) = (t for t in question.problem.tables if len(t.clique) == 2)
    assert (1.0 if pair.counted is None else pair.counted.mean()) == counted


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("size", [None, 0, 1, 10**9])
def test_hardly_any_rows_give_a_model(n, size):
    driver = Driver(schema_of(LEVELS), tree_rows(n), rng=np.random.default_rng(n))
    model = driver.run(rho=0.001, size=size)
    rows = model.sample(100, np.random.default_rng(0))
    assert {len(codes) for codes in rows.values()} == {100}
    assert model.total >= 1


def test_a_public_size_helps_where_noise_drowns_the_tables_and_not_where_they_are_good():
    rows = tree_rows(1000)
    drowned = Driver(schema_of(LEVELS), rows, rng=np.random.default_rng(0)).run(rho=1e-6, size=900).total
    clear = Driver(schema_of(LEVELS), rows).run(rho=1.0, size=300).total
    assert drowned == pytest.approx(900, rel=0.2)
    assert clear == pytest.approx(1000, rel=0.01)


# releases


def test_strata_without_rows_and_columns_of_every_size(tmp_path):
    """Most strata are empty; there are a column of 400 levels, one of one level, and one that nothing depends on."""
    rng = np.random.default_rng(0)
    rows = {"g": rng.integers(2, size=400), "wide": rng.integers(400, size=400), "lone": rng.integers(3, size=400)}
    rows |= {"one": np.zeros(400, dtype=int), "tied": rows["g"]}
    schema = schema_of({"g": 9, "wide": 400, "lone": 3, "one": 1, "tied": 9})
    table = open_table(frame_of(rows), schema=schema, declared_size=400)
    release = fit(Stratified(MST(), ["g"], even(schema, "g")), table, BUDGET, seed=1)
    people = release.sample(900, seed=2)
    assert (people["g"].value_counts() == 100).all()
    release.save(tmp_path / "release", rows=5)
    pd.testing.assert_frame_equal(Release.load(tmp_path / "release").sample(900, seed=2), people)
    assert not people.equals(release.sample(900, seed=3))


@pytest.mark.parametrize("by", [["a"], ["a", "c"]])
def test_strata_may_leave_one_column_or_none(by):
    """Groups that are defined by every column have nothing left to learn; rows come by the public shares."""
    schema = schema_of({"a": 3, "c": 2})
    table = open_table(frame_of({"a": [0, 1, 2, 2], "c": [0, 1, 1, 0]}), schema=schema, declared_size=4)
    people = fit(Stratified(MST(), by, even(schema, *by)), table, BUDGET).sample(60)
    assert (people.groupby(by).size() == 60 // math.prod(schema.shape(by))).all()


RULES = (
    Rule(when={"a": "0"}, never={"b": ("2", "3"), "d": ("0", "1", "2", "3")}),
    Rule(when={"b": "0", "c": "1"}, never={"e": "2"}),
    Rule(when={"d": "4"}, never={"c": "0"}),
)


def broken(people):
    return (
        ((people.a == "0") & (people.b.isin(["2", "3"]) | (people.d != "4")))
        | ((people.b == "0") & (people.c == "1") & (people.e == "2"))
        | ((people.d == "4") & (people.c == "0"))
    )


@pytest.mark.parametrize("by", [[], ["f"], ["a"], ["c", "e"]], ids=lambda by: " ".join(by) or "vanilla")
@pytest.mark.parametrize("epsilon", [0.01, 10])
def test_structural_zeros_never_occur(by, epsilon):
    """Also where the rows, against the schema, hold them; and in strata that fix a part of a rule."""
    schema = schema_of(LEVELS, RULES)
    table = open_table(frame_of(tree_rows(2000)), schema=schema, declared_size=2000)
    mechanism = Stratified(MST(), by, even(schema, *by)) if by else MST()
    release = fit(mechanism, table, Budget(epsilon, 1e-9), entropy=SeededEntropy(1))
    assert not broken(release.sample(50_000, seed=0)).any()
    for where in ({"a": "0"}, {"b": "0"}, {"d": ["3", "4"], "e": "2"}):
        codes = {column: frozenset(map(int, levels)) for column, levels in where.items()}
        if release.model.mass(codes) == 0:  # noise may leave a level without weight
            continue
        people = release.sample(2000, seed=0, where=where)
        assert not broken(people).any()
        assert len(people) == 2000


def test_a_condition_that_the_rules_allow_in_some_strata_draws_from_those():
    """Nobody in stratum 0 has b = 0: whoever asks for b = 0 gets people of the other stratum, not an error."""
    schema = schema_of({"g": 2, "b": 2, "c": 2}, (Rule(when={"g": "0"}, never={"b": "0"}),))
    rows = {"g": [0, 0, 1, 1] * 200, "b": [1, 1, 0, 1] * 200, "c": [0, 1] * 400}
    table = open_table(frame_of(rows), schema=schema, declared_size=800)
    release = fit(Stratified(MST(), ["g"], even(schema, "g")), table, BUDGET, entropy=SeededEntropy(0))
    assert set(release.sample(500, seed=0, where={"b": "0"})["g"]) == {"1"}


def test_rules_leave_the_shares_of_nested_strata_as_they_are():
    schema = schema_of({"g": 2, "h": 2, "b": 2}, (Rule(when={"g": "0"}, never={"b": "0"}),))
    rng = np.random.default_rng(0)
    table = open_table(frame_of({c: rng.integers(2, size=800) for c in schema.names}), schema=schema, declared_size=800)
    inner = Stratified(MST(), ["h"], even(schema.without(["g"]), "h"))
    release = fit(Stratified(inner, ["g"], even(schema, "g")), table, BUDGET, entropy=SeededEntropy(0))
    assert (release.sample(4000, seed=0).groupby(["g", "h"]).size() == 1000).all()


def test_structural_zeros_never_occur_in_strata_that_are_nothing_but_noise():
    """A hundred empty strata: fits that end in a corner, where steps must not run over what is forbidden."""
    rule = Rule(when={"a": "0"}, never={"b": ("0", "1")})
    schema = schema_of({"g": 100, "a": 2, "b": 3, "c": 2}, (rule,))
    table = open_table(frame_of({c: [] for c in schema.names}), schema=schema)
    release = fit(Stratified(MST(), ["g"], even(schema, "g")), table, Budget(1, 1e-9), entropy=SeededEntropy(0))
    for part in release.model.parts.values():
        assert not part.marginal(("a", "b"))[0, :2].any()
    people = release.sample(100_000, seed=0)
    assert not ((people.a == "0") & people.b.isin(["0", "1"])).any()


@pytest.mark.reference
def test_the_reference_engine_gives_a_release_too():
    """By default: with rules, a prior and rare levels."""
    schema = schema_of(LEVELS, RULES)
    table = open_table(frame_of(tree_rows(500)), schema=schema, declared_size=500)
    theirs, ours = (fit(MST(engine=by), table, BUDGET, entropy=SeededEntropy(0)) for by in ("mbi", "numpy"))
    assert not broken(theirs.sample(5000, seed=0)).any()
    for clique in EDGES:
        assert np.abs(theirs.model.marginal(clique) - ours.model.marginal(clique)).sum() < 0.02


# what it refuses

SETTINGS = [
    {"engine": "torch"},
    {"iterations": 0},
    {"iterations": 2.5},
    {"iterations": True},
    {"rare": -1},
    {"rare": math.nan},
    {"rare": math.inf},
    {"rare": "3"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(UsageError, match=f"mst: {next(iter(settings))} must be"):
        make("mst", settings)


def refused_before_anything_is_spent(mechanism, schema, match):
    table = open_table(frame_of({c: ["0"] for c in schema.names}), schema=schema, declared_size=100)
    with pytest.raises(Unsupported, match=match):
        fit(mechanism, table, BUDGET)
    assert table.ledger.reserved == ()


def test_pairs_too_large_for_a_model_are_refused_before_anything_is_spent():
    refused_before_anything_is_spent(MST(), schema_of({"a": 5000, "b": 5000}), "fewer bins")
    inside = schema_of({"g": 2, "a": 5000, "b": 5000})
    refused_before_anything_is_spent(Stratified(MST(), ["g"], even(inside, "g")), inside, "fewer bins")


def test_more_pairs_than_can_be_asked_about_are_refused_before_anything_is_spent():
    """Nineteen pairs would fit into memory; the hundred and ninety to choose from would not."""
    refused_before_anything_is_spent(MST(), schema_of({f"c{i}": 900 for i in range(20)}), "fewer bins")


@given(st.data())
def test_what_was_not_refused_at_first_is_never_refused_later(data):
    """Whatever is chosen and whatever the rules: a fit must not fail for want of memory once it has been paid."""
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 3, 12]), min_size=2, max_size=7))
    levels = {f"c{i}": size for i, size in enumerate(sizes)}
    rules = []
    for _ in range(data.draw(st.integers(0, 4))):
        names = data.draw(st.lists(st.sampled_from(sorted(levels)), min_size=2, max_size=3, unique=True))
        rules.append(Rule(when=dict.fromkeys(names[:-1], "0"), never={names[-1]: "0"}))
    schema, rng = schema_of(levels, tuple(rules)), np.random.default_rng(data.draw(st.integers(0, 2**32)))
    pairs = sorted((schema.cells(pair) for pair in combinations(schema.names, 2)), reverse=True)
    cap = sum(pairs[: len(levels) - 1])
    with pytest.MonkeyPatch.context() as patch:
        for module in (mst_module, import_module("stratsynth.adapters.engine.solve")):
            patch.setattr(module, "MOST_CELLS", cap)
        patch.setattr(import_module("stratsynth.adapters.engine.structure"), "MOST_WITH_RULES", 1)
        MST().price(Public(schema, 10), BUDGET)
        Driver(schema, {name: [] for name in levels}, rng=rng).run(MST(iterations=1))
