"""Objects of a wrong class are refused in one line that names the remedy, before anything is read."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w

import stratsynth as ss
from helpers import small
from stratsynth.adapters import AIM, MST, CoinPress, External, Pooled
from stratsynth.errors import StratsynthError
from stratsynth.evaluation import workload_error
from stratsynth.evaluation.comparisons.grid import Grid

PEOPLE = small.people()
WEIGHTS = small.even(small.SCHEMA, "SEX")


WIDE = ss.Schema({f"c{i}": ss.Numeric(lower=0, upper=1, bins=50) for i in range(700)})


def _grid(section: dict[str, object]) -> Grid:
    with tempfile.TemporaryDirectory() as folder:
        recipe = small.write_recipe(Path(folder))
        text = recipe.read_text(encoding="utf-8") + f"\n[compare]\n{tomli_w.dumps(section)}"
        recipe.write_text(text, encoding="utf-8")
        return Grid.read(ss.Recipe.read(recipe))


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a class": (lambda: ss.fit(MST, small.table(), small.BUDGET), "write MST()"),
    "a class that is no mechanism": (lambda: ss.fit(ss.Schema, small.table(), small.BUDGET), "a mechanism is wanted"),
    "no mechanism": (lambda: ss.fit(None, small.table(), small.BUDGET), "such as 'mst'"),
    "a misspelt name": (lambda: ss.fit("mts", small.table(), small.BUDGET), "did you mean 'mst'"),
    "a budget as a number": (lambda: ss.fit("mst", small.table(), 1.0), "Budget(epsilon=1, delta=1e-9)"),
    "a budget as a text": (lambda: ss.fit("mst", small.table(), "2"), "Budget(epsilon=1, delta=1e-9)"),
    "a frame as a table": (lambda: ss.fit("mst", PEOPLE, small.BUDGET), "open_table(data, schema=...)"),
    "a path as a table": (lambda: ss.fit("mst", "p.csv", small.BUDGET), "open_table('p.csv', schema=...)"),
    "exchanged arguments": (lambda: ss.fit(small.table(), MST(), small.BUDGET), "open_table"),
    "a plan's budget": (lambda: ss.plan("mst", small.SCHEMA, 2, declared_size=9), "Budget(epsilon=2, delta=1e-9)"),
    "a plan's table": (lambda: ss.plan("mst", small.table(), small.BUDGET, declared_size=9), "table.schema"),
    "a plan's path": (lambda: ss.plan("mst", "s.toml", small.BUDGET, declared_size=9), "Schema.load"),
    "a class in strata": (lambda: ss.Stratified(MST, ["SEX"], WEIGHTS), "write MST()"),
    "a class of means in strata": (lambda: ss.Stratified(CoinPress, ["SEX"], WEIGHTS), "write CoinPress()"),
    "a class that is pooled": (lambda: Pooled(base=MST, by=["SEX"], weights=WEIGHTS), "the base is AIM or MST"),
    "no schema": (lambda: ss.open_table(PEOPLE, schema=None), "Schema.draft(data)"),
    "a table of levels": (lambda: ss.open_table(PEOPLE, schema={"SEX": ["1"]}), "Schema.draft(data)"),
    "a table of columns": (lambda: ss.open_table({"SEX": ["1"]}, schema=small.SCHEMA), "pandas.DataFrame(data)"),
    "a table that is open": (lambda: ss.open_table(small.table(), schema=small.SCHEMA), "open already"),
    "levels as a column": (lambda: ss.Schema({"A": ("1", "2")}), "Categorical(levels=[...])"),
    "a class as a column": (lambda: ss.Schema({"A": ss.Numeric}), "Numeric(lower=..., upper=...)"),
    "a schema's text": (lambda: ss.Schema.from_toml("format = 1\n[columns]"), "text of several lines"),
    "no schema's path": (lambda: ss.Schema.load(None), "must be a path"),
    "a recipe's text": (lambda: ss.Recipe.read("[data]\npath = 'x'"), "text of several lines"),
    "no recipe": (lambda: ss.Recipe.read(None), "must be a path"),
    "a recipe that is not there": (lambda: ss.Recipe.read("cmp.toml"), "there is no recipe cmp.toml"),
    "no release": (lambda: ss.Release.load(None), "must be a path"),
    "no release to verify": (lambda: ss.verify(None), "must be a path"),
    "a release as data": (lambda: workload_error(PEOPLE, small.small_release(), small.SCHEMA), "release.sample(n)"),
    "a file as a release": (lambda: ss.Release.load(__file__), "is a file; a release is the folder that holds"),
    "a claim of nobody": (lambda: External(len), "External.plain(function)"),
    "a grid without mechanisms": (lambda: _grid({"mechanisms": []}), "or give compare(..., mechanisms={...})"),
    "a table too wide for mst": (lambda: ss.plan(MST(), WIDE, small.BUDGET, declared_size=99), "leave columns out"),
    "a table too wide for aim": (
        lambda: ss.plan(AIM(), WIDE.restrict([f"c{i}" for i in range(60)]), small.BUDGET, declared_size=99),
        "leave columns out, use fewer bins, clique_cells",
    ),
    "bounds by their place": (lambda: ss.Numeric(0, 100), "by name: Numeric(lower=..., upper=...)"),
    "levels by their place": (lambda: ss.Categorical(["a", "b"]), "by name: Categorical(levels=[...])"),
    "codes by their place": (lambda: ss.Nested(["a"]), "by name: Nested(levels=[...])"),
    "dates by their place": (
        lambda: ss.Temporal("2024-01-01", "2024-12-31"),
        "Temporal(lower=..., upper=...)",
    ),
    "a misspelt key": (lambda: ss.Numeric(low=0, upper=1), "Numeric has no key 'low'; did you mean 'lower'"),
    "no levels": (lambda: ss.Categorical(dtype="bool"), "Categorical needs levels"),
    "no bounds": (lambda: ss.Numeric(upper=1), "Numeric needs lower"),
    "a condition as a text": (lambda: small.small_release().sample(5, where="SEX=2"), "{'SEX': '1'}"),
}


@pytest.mark.parametrize(("ask", "remedy"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_type_is_refused_in_a_line_with_the_remedy(ask, remedy):
    with pytest.raises(StratsynthError) as refused:
        ask()
    assert remedy in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_that_exists_is_refused_in_pythons_terms(tmp_path: Path):
    with pytest.raises(StratsynthError, match=r"exists already.* Name another folder"):
        small.small_release().save(tmp_path)


def test_mechanisms_go_by_name_wherever_an_object_is_taken():
    assert ss.Stratified("mst", ["SEX"], WEIGHTS) == ss.Stratified(MST(), ["SEX"], WEIGHTS)
    assert ss.plan("mst", small.SCHEMA, small.BUDGET, declared_size=100) == ss.plan(
        MST(), small.SCHEMA, small.BUDGET, declared_size=100
    )
    release = ss.fit("independent", small.table(), small.BUDGET)
    assert release.certificate["mechanism"]["name"] == "independent"


def test_a_recipe_is_read_by_its_path_as_a_text(tmp_path: Path):
    small.write_recipe(tmp_path)
    assert ss.Recipe.read(str(tmp_path / "recipe.toml")).mechanism.name == "independent"
