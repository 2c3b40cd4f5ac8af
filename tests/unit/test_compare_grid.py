"""The section [compare]: what it means, and what of it is refused before anything is read."""

from dataclasses import dataclass, replace

import pytest

from helpers import small
from helpers.toys import Toy
from stratsynth import Stratified, Weighted
from stratsynth.adapters import MST, Independent
from stratsynth.adapters.fermi import DPFermi
from stratsynth.adapters.pooled import Pooled
from stratsynth.errors import UsageError
from stratsynth.evaluation.comparisons.grid import Grid, GridFit
from stratsynth.recipes.recipe import Recipe
from stratsynth.strata import Stratum, crossing


@dataclass(frozen=True)
class Whatever(Toy):
    """Draws rows, and measures what it measures."""

    def steps(self, public, allot, rng):
        raise NotImplementedError


COMPARE = """
[compare]
mechanisms = ["independent", { name = "pooled", base = "mst" }]
stratifications = [[], ["SEX"], ["SEX", "GROUP"]]
epsilons = [0.5, 2]
seeds = 3
"""


@pytest.fixture
def recipe(tmp_path):
    return small.write_recipe(tmp_path)


def add(recipe, text=COMPARE):
    recipe.write_text(recipe.read_text(encoding="utf-8") + text, encoding="utf-8")
    return recipe


def grid(recipe):
    return Grid.read(Recipe.read(recipe))


def unweighted(recipe):
    text = recipe.read_text(encoding="utf-8")
    start, end = text.index("[strata]"), text.index("[mechanism]")
    recipe.write_text(text[:start] + text[end:], encoding="utf-8")


@pytest.mark.parametrize("public", [False, True])
def test_epsilons_without_end_are_for_data_declared_public(recipe, public):
    add(recipe, COMPARE.replace("epsilons = [0.5, 2]", "epsilons = [1, inf]"))
    if public:
        small.edit(recipe, "declared_size = 100", "declared_size = 100\npublic = true")
        found = grid(recipe)
        assert {found.budget(cell).epsilon for cell in found.cells()} == {1, 1e6}
    else:
        with pytest.raises(UsageError, match="data declared public alone"):
            [found.budget(cell) for found in [grid(recipe)] for cell in found.cells()]


def test_the_grid_is_every_setting_every_time_and_pooled_in_its_own_strata_only(recipe):
    found = grid(add(recipe))
    cells = list(found.cells())
    assert len(cells) == len(set(cells)) == 3 * 2 * (3 + 1)
    assert {(c.mechanism, c.stratification) for c in cells} == {
        ("independent", "vanilla"),
        ("independent", "SEX"),
        ("independent", "SEX x GROUP"),
        ("pooled (base mst)", "SEX x GROUP"),
    }
    assert {c.epsilon for c in cells} == {0.5, 2.0}
    assert [c.seed for c in cells] == sorted(c.seed for c in cells)  # an interrupted grid has some of everything


def test_each_cell_has_the_mechanism_that_it_says(recipe):
    found = grid(add(recipe))
    assert found.how(GridFit("independent", (), 1, 1)) == Independent()
    split = found.how(GridFit("independent", ("SEX",), 1, 1))
    assert isinstance(split, Stratified)
    assert (split.mechanism, split.by) == (Independent(), ("SEX",))
    pooled = found.how(GridFit("pooled (base mst)", ("SEX", "GROUP"), 1, 1))
    assert isinstance(pooled, Pooled)
    assert pooled.base == MST()
    assert found.budget(GridFit("independent", (), 0.5, 1)).epsilon == 0.5


def test_without_a_section_the_recipe_is_compared_with_its_vanilla_fit(recipe):
    found = grid(recipe)
    assert [(c.mechanism, c.stratification, c.epsilon, c.seed) for c in found.cells()][:2] == [
        ("independent", "vanilla", 1.0, 1),
        ("independent", "SEX x GROUP", 1.0, 1),
    ]
    assert found.seeds == 5
    assert "downstream" not in found.scoring.metrics


def test_without_strata_there_is_vanilla_only_and_no_parity(recipe):
    unweighted(recipe)
    found = grid(recipe)
    assert {c.stratification for c in found.cells()} == {"vanilla"}
    assert not [m for m in found.scoring.metrics if m.startswith("parity")]


def test_weights_are_summed_over_the_columns_that_are_left_out(recipe):
    found = grid(recipe)
    strata = crossing(small.SCHEMA, ["GROUP"])
    shares = found.weights(["GROUP"]).resolve(strata, small.SCHEMA).shares
    assert shares[Stratum.of({"GROUP": "a"})] == pytest.approx(0.9)
    assert shares[Stratum.of({"GROUP": "b"})] == pytest.approx(0.1)
    assert "summed over SEX" in found.weights(["GROUP"]).citation
    assert found.weights(["GROUP"]).source == "public"
    assert found.weights(["SEX", "GROUP"]).citation == "made up for testing"


def test_weights_of_merged_groups_are_summed_too(recipe):
    small.edit(recipe, 'by = ["SEX", "GROUP"]', 'by = ["SEX", "GROUP"]\nmerge = { GROUP = { both = ["a", "b"] } }')
    shares = "SEX,GROUP,share\n1,both,0.3\n2,both,0.7\n"
    (recipe.parent / "shares.csv").write_text(shares, encoding="utf-8")
    found = grid(recipe)
    how = found.how(GridFit("independent", ("SEX",), 1, 1))
    layout = how.weights.resolve(crossing(small.SCHEMA, ["SEX"]), small.SCHEMA).shares
    assert sorted(layout.values()) == pytest.approx([0.3, 0.7])
    assert not how.groups.merge  # GROUP is no column of these strata


def test_weights_that_were_not_public_stay_so(recipe):
    small.edit(recipe, 'source = "public"', 'source = "invariant"')
    weights = grid(recipe).weights(["SEX"])
    assert weights.source == "invariant"
    assert weights.unprotected == ("group_counts",)


def test_a_column_that_the_shares_lack_is_refused_with_the_remedy(recipe):
    found = grid(recipe)
    with pytest.raises(UsageError, match="no column WORK; add it to the table"):
        found.weights(["WORK"])
    with pytest.raises(UsageError, match="WROK"):
        found.weights(["WROK"])


def test_settings_of_one_mechanism_are_told_apart_by_label(recipe):
    text = """[compare]
mechanisms = ["mst", { name = "mst", prior = 0.0 }, { name = "mst", prior = 0.0, label = "plain" }]
"""
    assert list(grid(add(recipe, text)).mechanisms) == ["mst", "mst (prior 0.0)", "plain"]


BAD = {
    "an unknown key": ("seeds", "sedes", "did you mean 'seeds'"),
    "no seeds": ("seeds = 3", "seeds = 0", "seeds"),
    "seeds that are true": ("seeds = 3", "seeds = true", "seeds"),
    "a list of seeds": ("seeds = 3", "seeds = [1, 2]", "how often"),
    "an unknown mechanism": ('"independent", {', '"independant", {', "did you mean 'independent'"),
    "no mechanism": ('["independent", { name = "pooled", base = "mst" }]', "[]", "empty"),
    "a mechanism twice": ('"independent", {', '"independent", "independent", {', "twice"),
    "a mechanism that is a number": ('"independent", {', "3, {", "list of names"),
    "a label like a baseline's": ('base = "mst"', 'label = "(subsample)"', "bracket"),
    "strata that are a text": ('["SEX"], ["SEX", "GROUP"]', '"SEX"', "list of lists"),
    "strata twice": ('["SEX"], ["SEX", "GROUP"]', '["SEX"], ["SEX"]', "twice"),
    "no strata": ('[[], ["SEX"], ["SEX", "GROUP"]]', "[]", "empty"),
    "no epsilons": ("[0.5, 2]", "[]", "empty"),
    "an epsilon twice": ("[0.5, 2]", "[2, 2.0]", "twice"),
    "an epsilon that is a text": ("[0.5, 2]", '["1"]', "epsilons"),
    "an unknown metric": ("seeds = 3", 'seeds = 3\nmetrics = ["workload_eror"]', "did you mean 'workload_error'"),
    "no metrics": ("seeds = 3", "seeds = 3\nmetrics = []", "metrics"),
    "a target without a hold-out": ("seeds = 3", 'seeds = 3\ntarget = "WORK"', "holdout"),
    "a hold-out without a target": ("seeds = 3", 'seeds = 3\nholdout = "people.csv"', "target"),
    "downstream without both": ("seeds = 3", 'seeds = 3\nmetrics = ["downstream"]', "target"),
    "positive without a target": ("seeds = 3", 'seeds = 3\npositive = ["yes"]', "target"),
    "an unknown target": ("seeds = 3", 'seeds = 3\ntarget = "WROK"\nholdout = "others.csv"', "WROK"),
    "no workers": ("seeds = 3", "seeds = 3\nworkers = 0", "workers"),
    "budgets of strata": ("delta = 1e-9", 'delta = 1e-9\nstrata = "budgets.csv"', "leave [budget] strata out"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_refused_and_named(case, recipe):
    old, new, match = BAD[case]
    add(recipe)
    small.edit(recipe, old, new)
    with pytest.raises(UsageError) as refused:
        grid(recipe)
    assert match in str(refused.value)
    assert str(refused.value).count("\n") <= 1


def test_strata_without_weights_are_refused_with_the_remedy(recipe):
    unweighted(recipe)
    add(recipe, '[compare]\nstratifications = [[], ["SEX"]]\n')
    with pytest.raises(UsageError, match=r"needs a section \[weights\]"):
        grid(recipe).how(GridFit("independent", ("SEX",), 1, 1))


def test_pooled_without_strata_is_refused_with_the_remedy(recipe):
    unweighted(recipe)
    add(recipe, '[compare]\nmechanisms = ["pooled"]\n')
    found = grid(recipe)
    with pytest.raises(UsageError, match=r"add the sections \[strata\]"):
        found.how(next(found.cells()))


@pytest.mark.parametrize("name", ["coinpress", "clipped_mean"])
def test_what_draws_no_rows_is_not_compared(recipe, name):
    found = grid(add(recipe, f'\n[compare]\nmechanisms = ["{name}"]\n'))
    for cell in found.cells():
        with pytest.raises(UsageError, match="no rows to score"):
            found.how(cell)


def test_weights_without_strata_go_to_what_takes_them_and_others_are_fitted_without(recipe):
    """Without: predictors, what measures whatever is known, and an object that has shares of its own."""
    small.edit(recipe, '[strata]\nby = ["SEX", "GROUP"]', "")
    others = [Weighted(MST(), small.even(small.SCHEMA, "SEX")), DPFermi(target="WORK", groups=["SEX"]), Whatever()]
    given = {"independent": {"name": "independent"}, **{str(number): how for number, how in enumerate(others)}}
    found = replace(grid(recipe), mechanisms=given)
    hows = [found.how(cell) for cell in found.cells() if cell.seed == 1]
    assert isinstance(hows[0], Weighted)
    assert hows[0].mechanism == Independent()
    assert hows[1:] == others


def test_rows_of_settings_with_strata_follow_what_the_release_would(recipe):
    """Without strata, or for a predictor, there are no groups whose rows could follow measured sizes."""
    assert {grid(recipe).options(cell).groups for cell in grid(recipe).cells()} == {"declared"}
    small.edit(recipe, "seed = 7", 'seed = 7\ngroups = "measured"')
    split = Stratified(Independent(), ["SEX"], small.even(small.SCHEMA, "SEX"))
    own = {"own": split, "fermi": DPFermi(target="WORK", groups=["SEX"])}
    found = replace(grid(recipe), mechanisms={**grid(recipe).mechanisms, **own})
    assert {(cell.mechanism, cell.stratification, found.options(cell).groups) for cell in found.cells()} == {
        ("independent", "vanilla", "declared"),
        ("independent", "SEX x GROUP", "measured"),
        ("own", "SEX", "measured"),
        ("fermi", "direct", "declared"),
    }
