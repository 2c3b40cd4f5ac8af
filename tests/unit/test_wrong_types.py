"""Objects of a wrong class are refused in one line that names the remedy, before anything is read."""

import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tomli_w

import stratsynth as ss
from helpers import small
from stratsynth.adapters import AIM, MST, CoinPress, DPFermi, External, Pooled
from stratsynth.errors import StratsynthError
from stratsynth.evaluation import workload_error
from stratsynth.evaluation.comparisons.grid import Grid
from stratsynth.priors.tables import mapped_table

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
    "a class that is pooled": (lambda: Pooled(base=MST, by=["SEX"], weights=WEIGHTS), "the base is AIM, MST or GEM"),
    "an array as a network": (
        lambda: DPFermi(target="WORK", groups=["SEX"], network=np.array(["mlp", "conv"])),
        'network is "mlp" or "conv"',
    ),
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
    "a condition as a text": (lambda: small.small_release().sample(5, where="SEX=2"), "{'SEX': '1'}"),
}


@pytest.mark.parametrize(("ask", "remedy"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_type_is_refused_in_a_line_with_the_remedy(ask, remedy):
    with pytest.raises(StratsynthError) as refused:
        ask()
    assert remedy in str(refused.value)
    assert "\n" not in str(refused.value)


ODD = {
    "an array": np.array([1, 2]),
    "a frame": pd.DataFrame({"A": [1, 2]}),
    "pandas' null": pd.NA,
    "an object": object(),
    "an int": 7,
    "a null character": "x\0y",
    "a long text": "a" * 5_000,
    "a list of nulls": [None],
}
RELEASE = small.small_release()
CHANGED: dict[str, Callable[[object], object]] = {
    "levels' dtype": lambda odd: ss.Categorical(levels=("1", "2"), dtype=odd),
    "not_applicable": lambda odd: ss.Categorical(levels=("1", "2"), not_applicable=odd),
    "outside": lambda odd: ss.Categorical(levels=("1", "2"), outside=odd),
    "numbers' outside": lambda odd: ss.Numeric(lower=0, upper=1, outside=odd),
    "spikes": lambda odd: ss.Numeric(lower=0, upper=1, spikes=odd),
    "spacing": lambda odd: ss.Numeric(lower=0, upper=1, spacing=odd),
    "stored": lambda odd: ss.Numeric(lower=0, upper=1, stored=odd),
    "kind": lambda odd: ss.Temporal(lower="2020-01-01", upper="2021-01-01", kind=odd),
    "unit of time": lambda odd: ss.Temporal(lower="2020-01-01", upper="2021-01-01", unit=odd),
    "dtype of time": lambda odd: ss.Temporal(lower="2020-01-01", upper="2021-01-01", dtype=odd),
    "measure": lambda odd: ss.Nested(levels=("1", "2"), measure=odd),
    "origin": lambda odd: ss.Schema(small.SCHEMA.columns, origin=odd),
    "unit": lambda odd: ss.Schema(small.SCHEMA.columns, unit=odd),
    "rules": lambda odd: ss.Schema(small.SCHEMA.columns, rules=odd),
    "frame": lambda odd: ss.Schema(small.SCHEMA.columns, frame=odd),
    "names": small.SCHEMA.restrict,
    "a schema's text": ss.Schema.from_toml_text,
    "a domain": ss.Schema.from_domain_json,
    "a schema's file": small.SCHEMA.write_toml,
    "a ledger": lambda odd: ss.fit("independent", _table(ledger=odd), small.BUDGET),
    "an engine": lambda odd: _table(engine=odd),
    "strata": lambda odd: ss.Stratified(MST(), odd, WEIGHTS),
    "columns to balance": lambda odd: RELEASE.sample(3, balance=odd),
    "a condition": lambda odd: RELEASE.sample(3, where=odd),
    "a level": lambda odd: RELEASE.sample(3, where={"SEX": odd}),
    "a query's condition": lambda odd: RELEASE.query(["WORK"], where=odd),
    "a query's groups": lambda odd: RELEASE.query(["WORK"], by=odd),
    "a query's reference": lambda odd: RELEASE.query(["WORK"], by=["SEX"], versus={"SEX": odd}),
    "pictures": lambda odd: RELEASE.plot(columns=odd),
    "a picture's file": RELEASE.plot,
    "a bibliography": RELEASE.cite,
    "a prior to verify": lambda odd: ss.verify("nowhere", prior=odd),
    "a published table": lambda odd: mapped_table(ss.PublishedTable(odd, "made up"), (), small.SCHEMA),
    "a workload": lambda odd: AIM(workload=odd),
    "the noise": lambda odd: ss.fit("independent", _table(), small.BUDGET, entropy=odd),
    "progress": lambda odd: ss.fit("independent", _table(), small.BUDGET, progress=odd),
    "public": lambda odd: ss.synthesize(PEOPLE, epsilon=1, schema=small.SCHEMA, public=odd),
    "a size": lambda odd: ss.synthesize(PEOPLE, epsilon=1, schema=small.SCHEMA, declared_size=_no_size(odd)),
    "weights' sensitivity": ss.weight_sensitivity,
    "a plan's mechanism": lambda odd: ss.plan(odd, small.SCHEMA, small.BUDGET, declared_size=9),
    "a plan's size": lambda odd: ss.plan("mst", small.SCHEMA, small.BUDGET, declared_size=_no_size(odd)),
}


def _no_size(odd: object) -> Any:
    return str(odd) if isinstance(odd, int) else odd


def _table(**settings: Any) -> object:
    return ss.open_table(small.people(), schema=small.SCHEMA, declared_size=100, **settings)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("what", CHANGED)
def test_values_that_compare_to_no_truth_are_refused_by_their_name(what, odd, tmp_path, monkeypatch):
    """attack3, 6: an array, a frame and pandas' null where a text is compared, and other objects."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StratsynthError) as refused:
        CHANGED[what](ODD[odd])
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_release_can_be_pickled_after_a_query():
    """users3, A.10."""
    release = small.small_release()
    answered = release.query(["WORK"])
    again = pickle.loads(pickle.dumps(release))  # noqa: S301 - just pickled
    assert again.query(["WORK"]).equals(answered)
    assert again.sample(5, seed=1).equals(release.sample(5, seed=1))


def test_bounds_and_levels_may_come_first():
    """users3, A.10."""
    assert ss.Numeric(0, 100) == ss.Numeric(lower=0, upper=100)
    assert ss.Categorical(["a", "b"]) == ss.Categorical(levels=("a", "b"))
    assert ss.Nested(["a"]) == ss.Nested(levels=("a",))
    days = ss.Temporal("2024-01-01", "2024-12-31", kind="date")
    assert days == ss.Temporal(lower="2024-01-01", upper="2024-12-31")
    with pytest.raises(TypeError):
        ss.Numeric(0, 100, 5)  # type: ignore[misc]


def test_numbers_of_numpy_are_numbers():
    release = ss.fit("independent", _table(), ss.Budget(np.float64(1), np.float64(1e-9)))
    assert release.statement.guarantee.epsilon == 1


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
