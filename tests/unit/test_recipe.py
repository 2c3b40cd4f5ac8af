"""Recipes: what is wrong is found and named before anything is read or spent."""

import re

import pytest

from helpers import small
from stratsynth import Groups, Stratified
from stratsynth.adapters import AIM, MST, Independent
from stratsynth.adapters.pooled import Pooled
from stratsynth.errors import RecipeError, UsageError
from stratsynth.recipes.outlook import planned
from stratsynth.recipes.recipe import Recipe

CONTRACT = """\
[data]
path = "people.csv"
schema = "schema.toml"
public = false                 # true: research on public data; nothing is charged
declared_size = 27000          # public knowledge of about how many records; never checked against the rows

[strata]
by = ["SEX", "GROUP"]

[weights]
source = "public"              # public | raked | holdout | private | invariant
path = "shares.csv"
citation = "2020 Census of Population, table P9"

[mechanism]
name = "independent"

[budget]
epsilon = 1.0
delta = 1e-9
neighbours = "add-remove"

[release]
rows = 30000
directory = "release"
"""


@pytest.fixture
def recipe(tmp_path):
    return small.write_recipe(tmp_path)


def judge(path):
    """All that is judged before a fit."""
    recipe = Recipe.read(path)
    return recipe, recipe.rows, recipe.directory, recipe.how(), recipe.table(), recipe.budget()


def test_the_recipe_of_the_contract_is_understood(recipe):
    recipe.write_text(CONTRACT, encoding="utf-8")
    _, rows, directory, how, table, budget = judge(recipe)
    assert rows == 30000
    assert directory == recipe.parent / "release"
    assert isinstance(how, Stratified)
    assert how.mechanism == Independent()
    assert how.by == ("SEX", "GROUP")
    assert how.weights.citation == "2020 Census of Population, table P9"
    assert table.declared_size == 27000
    assert (budget.epsilon, budget.delta, budget.neighbours) == (1.0, 1e-9, "add-remove")


def test_without_strata_it_is_the_vanilla_mechanism(recipe):
    text = recipe.read_text(encoding="utf-8")
    start, end = text.index("[strata]"), text.index("[mechanism]")
    recipe.write_text(text[:start] + text[end:], encoding="utf-8")
    assert judge(recipe)[3] == Independent()


def test_rows_default_to_the_declared_size(recipe):
    small.edit(recipe, "rows = 50\n", "")
    assert judge(recipe)[1] == 100


def test_paths_are_relative_to_the_recipe(recipe, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    judge(recipe)


BAD = {
    "no data section": ("[data]", "[date]", "did you mean 'data'"),
    "an unknown section": ("[release]", "[relase]", "did you mean 'release'"),
    "an unknown key": ("declared_size", "declared_sise", "did you mean 'declared_size'"),
    "no path": ('path = "people.csv"\n', "", "path"),
    "no schema": ('schema = "schema.toml"\n', "", "schema"),
    "a path that is a number": ('"people.csv"', "3", "path must be a text"),
    "a size that is a text": ("declared_size = 100", 'declared_size = "100"', "declared_size"),
    "a size that is true": ("declared_size = 100", "declared_size = true", "declared_size"),
    "a size of 0": ("declared_size = 100", "declared_size = 0", "declared_size"),
    "missing data": ('"people.csv"', '"nobody.csv"', "nobody.csv"),
    "data of an unknown kind": ('"people.csv"', '"people.sav"', "people.sav"),
    "a missing schema": ('"schema.toml"', '"other.toml"', "other.toml"),
    "strata that are a text": ('["SEX", "GROUP"]', '"SEX"', "a list"),
    "missing shares": ('"shares.csv"', '"other.csv"', "other.csv"),
    "a source of weights that is unknown": ('"public"', '"hearsay"', "hearsay"),
    "no source of weights": ('source = "public"\n', "", "source"),
    "no citation": ('citation = "made up for testing"\n', "", "citation"),
    "no mechanism": ('name = "independent"\n', "", "name"),
    "an unknown mechanism": ('"independent"', '"independant"', "did you mean 'independent'"),
    "a setting it does not have": ('"independent"', '"independent"\nengine = "x"', "engine"),
    "no epsilon": ("epsilon = 1.0\n", "", "epsilon"),
    "no delta": ("delta = 1e-9\n", "", "delta"),
    "epsilon 0": ("epsilon = 1.0", "epsilon = 0", "epsilon"),
    "epsilon below 0": ("epsilon = 1.0", "epsilon = -1", "epsilon"),
    "epsilon NaN": ("epsilon = 1.0", "epsilon = nan", "epsilon"),
    "epsilon infinite": ("epsilon = 1.0", "epsilon = inf", "epsilon"),
    "epsilon without end": ("epsilon = 1.0", f"epsilon = 1{400 * '0'}", "epsilon"),
    "epsilon a text": ("epsilon = 1.0", 'epsilon = "1"', "epsilon"),
    "epsilon true": ("epsilon = 1.0", "epsilon = true", "epsilon"),
    "delta below 0": ("delta = 1e-9", "delta = -1e-9", "delta"),
    "delta NaN": ("delta = 1e-9", "delta = nan", "delta"),
    "delta 1": ("delta = 1e-9", "delta = 1", "delta"),
    "unknown neighbours": ("delta = 1e-9", 'delta = 1e-9\nneighbours = "others"', "neighbours"),
    "rows below 0": ("rows = 50", "rows = -1", "rows"),
    "rows that are a text": ("rows = 50", 'rows = "50"', "rows"),
    "rows that are true": ("rows = 50", "rows = true", "whole number"),
    "a seed below 0": ("seed = 7", "seed = -7", "seed"),
    "no TOML": ("[data]", "[data", "TOML"),
    "a key twice": ("rows = 50", "rows = 50\nrows = 60", "TOML"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_refused_and_named(case, recipe):
    old, new, match = BAD[case]
    small.edit(recipe, old, new)
    with pytest.raises(UsageError, match=match) as refused:
        judge(recipe)
    assert str(refused.value).count("\n") <= 1


def test_a_delta_of_0_is_refused_of_a_mechanism_that_spends_rho(recipe):
    small.edit(recipe, "delta = 1e-9", "delta = 0")
    with pytest.raises(UsageError, match="delta = 0 is for fits that spend pure epsilon"):
        planned(Recipe.read(recipe))


def test_no_rows_and_no_size_is_refused(recipe):
    small.edit(recipe, "rows = 50\n", "")
    small.edit(recipe, "declared_size = 100\n", "")
    with pytest.raises(UsageError, match="how many rows"):
        judge(recipe)


def test_a_section_that_is_a_value_is_refused(recipe):
    recipe.write_text("data = 3\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"\[data\]"):
        Recipe.read(recipe)


@pytest.mark.parametrize("content", [b"\xff\xfe[", b"[" * 100_000, b"#" * (2 << 20)], ids=["bytes", "deep", "large"])
def test_what_is_no_recipe_is_refused(content, recipe):
    recipe.write_bytes(content)
    with pytest.raises(UsageError, match=r"recipe\.toml"):
        Recipe.read(recipe)


@pytest.mark.parametrize(
    ("number", "right"),
    [("210,000", "210_000"), ("1,0", "1.0"), ("1,234,567", "1_234_567"), ("0,5  # half", "0.5")],
)
def test_a_comma_in_a_number_is_pointed_at(number, right, recipe):
    small.edit(recipe, "declared_size = 100", f"declared_size = {number}")
    with pytest.raises(RecipeError, match=rf"Numbers have no comma: write {re.escape(right)} for"):
        Recipe.read(recipe)


def test_other_faults_have_no_word_of_commas(recipe):
    small.edit(recipe, "declared_size = 100", "declared_size = [1, 2")
    with pytest.raises(RecipeError, match="not TOML") as refused:
        Recipe.read(recipe)
    assert "comma:" not in str(refused.value)


def test_a_plan_says_that_the_data_are_not_there(recipe):
    assert "there is no" not in " ".join(planned(Recipe.read(recipe)).warnings)
    (recipe.parent / "people.csv").unlink()
    assert "people.csv, so a fit would be refused." in " ".join(planned(Recipe.read(recipe)).warnings)


def test_a_missing_recipe_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"nothing\.toml"):
        Recipe.read(tmp_path / "nothing.toml")


def test_a_table_that_lacks_a_column_is_refused_by_its_header(recipe):
    small.people().drop(columns="AGE").to_csv(recipe.parent / "people.csv", index=False)
    with pytest.raises(UsageError, match="AGE"):
        judge(recipe)


POOLED = {
    "by name": ('"pooled"\nbase = "mst"', MST()),
    "by table": ('"pooled"\nbase = { name = "aim", model_cells = 4096 }', AIM(model_cells=4096)),
}


@pytest.mark.parametrize("case", POOLED)
def test_a_mechanism_that_makes_strata_is_handed_them(case, recipe):
    text, base = POOLED[case]
    small.edit(recipe, '"independent"', text)
    small.edit(recipe, 'by = ["SEX", "GROUP"]', 'by = ["SEX", "GROUP"]\nmerge = { GROUP = { both = ["a", "b"] } }')
    how = judge(recipe)[3]
    assert isinstance(how, Pooled)
    assert how.base == base
    assert how.by == ("SEX", "GROUP")
    assert how.weights.citation == "made up for testing"
    assert how.groups == Groups(merge={"GROUP": {"both": ["a", "b"]}})


NOT_POOLED = {
    "strata of its own": ('by = ["SEX"]', "by"),
    "weights of its own": ('weights = "shares.csv"', "weights"),
    "no such base": ('base = "mts"', "did you mean 'mst'"),
    "a base that it cannot have": ('base = "independent"', "AIM, MST or GEM"),
}


@pytest.mark.parametrize("case", NOT_POOLED)
def test_what_a_mechanism_that_makes_strata_cannot_have_is_named(case, recipe):
    setting, match = NOT_POOLED[case]
    small.edit(recipe, '"independent"', f'"pooled"\n{setting}')
    with pytest.raises(UsageError, match=match):
        judge(recipe)


def test_a_mechanism_that_makes_strata_needs_them(recipe):
    text = recipe.read_text(encoding="utf-8")
    start, end = text.index("[strata]"), text.index("[mechanism]")
    recipe.write_text((text[:start] + text[end:]).replace('"independent"', '"pooled"'), encoding="utf-8")
    with pytest.raises(UsageError, match=r"\[strata\] and \[weights\]"):
        judge(recipe)


def test_budgets_of_strata_are_refused_by_a_mechanism_that_cannot_have_them(recipe):
    (recipe.parent / "budgets.csv").write_text("SEX,GROUP,factor\n1,a,0.5\n", encoding="utf-8")
    small.edit(recipe, '"independent"', '"pooled"')
    small.edit(recipe, "delta = 1e-9", 'delta = 1e-9\nstrata = "budgets.csv"')
    with pytest.raises(UsageError, match="everybody pays"):
        judge(recipe)


def test_a_fit_takes_no_notice_of_what_a_comparison_varies(recipe):
    before = judge(recipe)[3]
    recipe.write_text(recipe.read_text(encoding="utf-8") + "\n[compare]\nseeds = 3\n", encoding="utf-8")
    assert judge(recipe)[3].by == before.by
    assert Recipe.read(recipe).compare == {"seeds": 3}


def test_the_tables_of_weights_are_read_once(recipe):
    read = Recipe.read(recipe)
    first = read.how()
    (recipe.parent / "shares.csv").unlink()
    assert read.how() is first


def test_sections_have_types(recipe):
    read = Recipe.read(recipe)
    assert read.data.path == recipe.parent / "people.csv"
    assert (read.data.declared_size, read.data.public) == (100, False)
    assert list(read.strata.by) == ["SEX", "GROUP"]
    assert (read.mechanism.name, read.mechanism.settings) == ("independent", {})
    assert (read.spend.epsilon, read.spend.ledger) == (1.0, None)
    assert (read.release.rows, read.release.csv) == (50, False)


def test_a_key_of_another_section_is_refused_with_those_that_there_are(recipe):
    small.edit(recipe, 'by = ["SEX", "GROUP"]', 'by = ["SEX", "GROUP"]\nrows = 3')
    with pytest.raises(UsageError, match=r"recipe\.toml: \[strata\] has no key 'rows'\. It has: by, merge, bands, "):
        Recipe.read(recipe)
