"""Pooled on GEM: what both stages ask and pay, what strata keep and move, and what is refused."""

import json
from fractions import Fraction

import numpy as np
import pytest

import stratsynth as ss
from helpers import recompute, small
from helpers.byhand import frame_of, schema_of
from stratsynth import Budget, Groups, Release, Weights, cli
from stratsynth.adapters import GEM, Pooled
from stratsynth.adapters.gem import ProductMixture
from stratsynth.adapters.shared.learner import MOST_CELLS
from stratsynth.errors import Unsupported
from stratsynth.mechanisms import Public, make
from stratsynth.noise import SeededEntropy

TINY = {"components": 16, "hidden": [8], "latent": 4, "iterations": 5, "rounds": 2, "least": 20}
LEVELS = {"g": 4, "a": 3, "b": 2, "c": 4}
SHARES = (0.6, 0.3995, 0.0005, 0.0)
ROWS = 4_000
BUDGET = Budget(1, 1e-9, first=0)


@pytest.fixture(scope="module")
def schema():
    return schema_of(LEVELS)


@pytest.fixture(scope="module")
def people():
    """a and c go together for everybody; b differs between the first group and the second."""
    rng = np.random.default_rng(0)
    g = np.repeat(range(4), [round(ROWS * share) for share in SHARES])
    a = rng.integers(3, size=ROWS)
    c = np.where(rng.random(ROWS) < 0.8, a, rng.integers(4, size=ROWS))
    b = (rng.random(ROWS) < np.array([0.9, 0.1, 0.5, 0.5])[g]).astype(int)
    return frame_of({"g": g, "a": a, "b": b, "c": c})


@pytest.fixture(scope="module")
def weights(people):
    shares = people.groupby("g").size().reindex([str(i) for i in range(4)], fill_value=0) / ROWS
    return Weights.public(shares.rename("share").reset_index(), citation="made up for testing")


def pooled(weights, *, gem=(), **settings):
    return Pooled(base=GEM(**{**TINY, **dict(gem)}), by=["g"], weights=weights, **settings)


def fitted(how, people, schema, seed=1, **settings):
    table = ss.open_table(people, schema=schema, declared_size=ROWS)
    return ss.fit(how, table, BUDGET, seed=seed, entropy=SeededEntropy(seed), **settings)


def part_of(release, level):
    (found,) = (part for stratum, part in release.model.parts.items() if stratum.label == level)
    return found


@pytest.mark.parametrize("share", ["auto", 0.25])
def test_both_stages_cost_what_they_were_given(people, schema, weights, share):
    how = pooled(weights, share=share)
    record = fitted(how, people, schema).certificate
    recompute.check(record)
    rho = Fraction(record["guarantee"]["rho"])
    spent = {}
    for charge in record["charges"]:
        label = charge["path"][0]["g"] if charge["path"] else "everybody"
        spent[label] = spent.get(label, Fraction(0)) + Fraction(charge["rho"])
    assert set(spent) == {"everybody", "0", "1"}  # the others are too small, which is decided before asking
    everybody = spent.pop("everybody")
    part = how.part(Public(schema, ROWS), float(rho), BUDGET)
    assert float(everybody) == pytest.approx(part * float(rho), rel=1e-9)
    for own in spent.values():
        assert everybody + own <= rho
        assert float(everybody + own) == pytest.approx(float(rho), rel=1e-9)


def test_everybody_is_asked_without_the_strata_s_columns(people, schema, weights):
    found = fitted(pooled(weights), people, schema).measurements.to_pandas()
    everybody, strata = found[found["stratum"] == ""], found[found["stratum"] != ""]
    assert {c for clique in everybody["clique"] for c in clique.split(",")} == {"a", "b", "c"}
    assert set(everybody["clique"]) >= {"a", "b", "c"}
    assert {c for clique in strata["clique"] for c in clique.split(",")} <= {"a", "b", "c"}


def test_below_the_public_threshold_strata_measure_columns_alone(people, schema, weights):
    found = fitted(pooled(weights, gem={"least": 400.0}, share=0.6), people, schema).measurements.to_pandas()
    asked = found[found["stratum"] != ""].groupby("stratum")["clique"].unique()
    assert set(asked.index) == {"0", "1"}
    assert all("," not in clique for cliques in asked for clique in cliques)


def test_tiny_strata_keep_the_pooled_distribution_exactly_and_others_move(people, schema, weights):
    release = fitted(pooled(weights), people, schema)
    tiny, none, large = (part_of(release, level) for level in "230")
    for name in ("a", "b", "c"):
        np.testing.assert_array_equal(tiny.tables[name], none.tables[name])
    assert np.abs(large.marginal(("b",)) - tiny.marginal(("b",))).sum() > 0.05


def test_strata_learn_where_they_differ_and_keep_what_everybody_taught(people, schema, weights):
    gem = {"components": 64, "iterations": 100, "rounds": 6, "rate": 0.01}
    release = fitted(pooled(weights, gem=gem), people, schema)
    for level, share in (("0", 0.9), ("1", 0.1)):
        part = part_of(release, level)
        assert part.marginal(("b",))[1] == pytest.approx(share, abs=0.08)
        assert np.trace(part.marginal(("a", "c"))) == pytest.approx(0.85, abs=0.08)


def test_share_0_is_gem_plainly_stratified(people, schema, weights):
    one, other = (
        fitted(how, people, schema) for how in (pooled(weights, share=0), ss.Stratified(GEM(**TINY), ["g"], weights))
    )
    assert one.sample(500, seed=2).equals(other.sample(500, seed=2))
    assert one.measurements.equals(other.measurements)


def test_share_1_is_gem_conditioned_on_the_groups_which_are_not_measured(people, schema, weights):
    release, vanilla = (
        fitted(how, people, schema) for how in (pooled(weights, share=1), ss.Weighted(GEM(**TINY), weights))
    )
    assert release.measurements.equals(vanilla.measurements)
    assert "g" not in release.measurements.column("clique").to_pylist()
    assert release.certificate["charges"] == vanilla.certificate["charges"]
    for level in range(4):
        mine, same = (part_of(one, str(level)).marginal(("a", "b", "c")) for one in (release, vanilla))
        np.testing.assert_array_equal(mine, same)
    groups = release.sample(2_000, seed=1).groupby("g").size() / 2_000
    for level, share in enumerate(SHARES):
        assert groups.get(str(level), 0) == pytest.approx(share, abs=1e-3)


FEW = Groups(merge={"g": {"few": ["2", "1"]}})


def test_merges_are_conditioned_on_with_share_1(people, schema, weights):
    release = fitted(pooled(weights, share=1, groups=FEW), people, schema)
    whole = fitted(GEM(**TINY), people, schema).model.marginal(("g", "a"))
    (merged,) = (part for part in release.model.parts.values() if "g" in part.schema.names)
    levels = [schema.index("g", level) for level in merged.schema.levels("g")]
    np.testing.assert_allclose(merged.marginal(("g", "a")), whole[levels] / whole[levels].sum(), rtol=1e-9)
    assert set(release.sample(2000, seed=1)["g"]) <= {"0", "1", "2"}


def test_merges_are_refused_in_between_before_anything_is_spent(people, schema, weights):
    table = ss.open_table(people, schema=schema, declared_size=ROWS)
    with pytest.raises(Unsupported, match="aim or mst as the base, or share = 0 or 1"):
        ss.fit(pooled(weights, groups=FEW), table, BUDGET)
    release = ss.fit(pooled(weights, groups=FEW, share=0), table, BUDGET)
    assert release.certificate["ledger"]["releases"] == 1


def test_a_condition_that_no_row_meets_leaves_the_others_as_they_are():
    schema = schema_of({"g": 2, "a": 2})
    tables = {"g": np.array([[1.0, 0.0], [1.0, 0.0]]), "a": np.array([[0.2, 0.8], [0.6, 0.4]])}
    model = ProductMixture(schema, np.array([0.25, 0.75]), tables)
    inside = schema_of({"a": 2})
    np.testing.assert_allclose(model.conditioned(inside, {"g": [1]}).marginal(("a",)), [0.5, 0.5])
    both = model.conditioned(schema, {"g": [1, 0]})
    np.testing.assert_allclose(both.marginal(("g",)), [0, 1])


def test_one_column_beside_the_groups_is_learned_although_gem_has_no_rounds_there(people, schema, weights):
    release = fitted(pooled(weights), people[["g", "b"]], schema.restrict(["g", "b"]))
    (one, other) = (part_of(release, level).marginal(("b",))[1] for level in "01")
    assert one > other + 0.05


def test_the_same_seed_gives_the_same_release_in_processes_too(people, schema, weights):
    one, other = (fitted(pooled(weights), people, schema, workers=workers) for workers in (1, 2))
    assert one.sample(500, seed=2).equals(other.sample(500, seed=2))


def test_a_plan_foresees_both_stages(schema, weights):
    foreseen = ss.plan(pooled(weights, gem={"rounds": None}), schema, BUDGET, declared_size=100_000)
    assert foreseen.adaptive
    assert foreseen.spent == pytest.approx(foreseen.reserved, rel=1e-9)
    largest, smallest = (f(foreseen.strata, key=lambda s: s.size) for f in (max, min))
    assert largest.rounds > smallest.rounds


def test_large_tables_are_not_measured_in_strata(weights):
    schema = schema_of({"g": 4, "a": 70, "b": 70})
    assert schema.cells(("a", "b")) > MOST_CELLS
    foreseen = ss.plan(pooled(weights), schema, BUDGET, declared_size=10**8)
    assert max(s.rounds for s in foreseen.strata) > 0


def test_its_name_says_what_it_is(weights):
    assert pooled(weights).title == "pooled gem by g"
    made = make("pooled", {"base": {"name": "gem", "components": 64}, "by": ["g"], "weights": weights})
    assert made.inner == GEM(components=64)


def test_a_recipe_fits_pooled_on_gem_and_its_release_comes_back(tmp_path, monkeypatch, capsys):
    recipe = small.write_recipe(tmp_path)
    base = '{ name = "gem", components = 8, hidden = [4], iterations = 2, least = 0 }'
    small.edit(recipe, '"independent"', f'"pooled"\nbase = {base}')
    monkeypatch.chdir(tmp_path)
    assert cli.run(["plan", "recipe.toml"]) == 0
    assert cli.run(["fit", "recipe.toml"]) == 0
    said = json.loads((tmp_path / "release" / "certificate.json").read_text(encoding="utf-8"))
    assert said["mechanism"]["settings"]["base"]["name"] == "gem"
    assert cli.run(["sample", "release", "-n", "20", "-o", "more.csv"]) == 0
    assert len(Release.load(tmp_path / "release").sample(30)) == 30
    small.edit(recipe, base, '"gem"')
    assert cli.run(["plan", "recipe.toml"]) == 0
    small.edit(recipe, 'base = "gem"', 'base = { name = "gem", least = -1 }')
    assert cli.run(["plan", "recipe.toml"]) == 2
    assert "gem: least" in capsys.readouterr().err
