"""Fits of two linked tables from the outside: what is refused, what comes out, and the commands."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import stratsynth as ss
from helpers import homes, small
from stratsynth import cli
from stratsynth.adapters import Linked
from stratsynth.errors import RecipeError, StratsynthError, Unsupported, UsageError

BUDGET = ss.Budget(4, 1e-9)
MST = Linked(base="mst")


def opened(n=400, **more):
    return ss.open_tables(*homes.tables(n), schema=homes.SCHEMA, declared_size=n, **more)


@pytest.fixture(scope="module")
def release():
    return ss.fit(Linked(base="mst", children="chain"), opened(), BUDGET, seed=0)


def test_counts_and_sums_of_what_is_drawn_are_exact(release):
    parents, children = release.sample_tables(300, seed=1)
    assert list(parents.columns) == ["SERIALNO", "TEN", "HINCP", "KIND", "NP", "N18"]
    assert list(children.columns) == ["SERIALNO", "SPORDER", "AGEP", "SEX", "PINCP"]
    by = children.groupby("SERIALNO")
    assert len(parents) == 300
    assert parents["SERIALNO"].is_unique
    assert (by.size().to_numpy() == parents["NP"].to_numpy()).all()
    assert (by["PINCP"].sum().to_numpy() == parents["HINCP"].to_numpy()).all()
    young = children[(children["AGEP"] < 18) & (children["SPORDER"] > 1)].groupby("SERIALNO").size()
    assert (young.reindex(parents["SERIALNO"], fill_value=0).to_numpy() == parents["N18"].to_numpy()).all()
    assert by["SPORDER"].apply(lambda places: list(places) == list(range(1, len(places) + 1))).all()
    assert set(parents["KIND"]) == {"1"}


def test_a_seed_gives_the_same_rows_and_the_key_is_invented(release):
    for one, other in zip(release.sample_tables(50, seed=3), release.sample_tables(50, seed=3), strict=True):
        assert one.equals(other)
    assert release.sample_tables(50, seed=4)[0]["SERIALNO"].tolist() == list(range(1, 51))


def test_a_release_is_saved_loaded_and_verified(release, tmp_path):
    folder = release.save(tmp_path / "release", rows=80, seed=5, csv=True)
    again = ss.Release.load(folder)
    for one, other in zip(release.sample_tables(60, seed=3), again.sample_tables(60, seed=3), strict=True):
        assert one.equals(other)
    assert pq.read_metadata(folder / "household.parquet").num_rows == 80
    assert (folder / "person.csv").is_file()
    assert ss.verify(folder).ok
    stated = again.statement.drawn
    assert stated is not None
    assert (stated.parents, stated.rows) == (80, pq.read_metadata(folder / "person.parquet").num_rows)
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "household with all its person rows" in text
    assert f"an epsilon of {release.statement.prices['replace']:.4g}" in text


def test_few_households_are_drawn_by_the_simple_model_and_the_plan_says_so():
    few, many = (ss.plan(MST, homes.SCHEMA, BUDGET, declared_size=n) for n in (1_000, 100_000))
    assert [each.stratum for each in few.strata] == ["parent", "rest"]
    assert [each.stratum for each in many.strata] == ["parent", "second", "others"]
    assert "given up" in str(few).replace("\n", " ")
    assert "one after another" in " ".join(str(many).split())
    asked = ss.plan(replace(MST, children="chain"), homes.SCHEMA, BUDGET, declared_size=1_000)
    assert [each.stratum for each in asked.strata] == ["parent", "second", "others"]
    assert many.strata[0].size == 100_000
    assert many.strata[0].sigma < few.strata[0].size


def test_the_least_schema_is_fitted_and_drawn():
    table = ss.open_tables(*homes.tables(200), schema=homes.PLAIN, declared_size=200)
    parents, children = ss.fit(MST, table, BUDGET).sample_tables(100, seed=1)
    assert list(parents.columns) == ["SERIALNO", "TEN"]
    assert list(children.columns) == ["SERIALNO", "SPORDER", "SEX"]
    assert children["SPORDER"].max() <= homes.PLAIN.most


def test_without_a_declared_size_the_measured_one_is_drawn():
    table = ss.open_tables(*homes.tables(400), schema=homes.PLAIN)
    release = ss.fit(replace(MST, children="chain"), table, BUDGET, seed=0)
    assert abs(len(release.sample_tables(seed=0)[0]) - 400) < 200


def test_aim_fits_and_the_budget_is_used_up():
    release = ss.fit(Linked(base={"name": "aim", "rounds": 3}, children="independent"), opened(), BUDGET, seed=0)
    guarantee = release.statement.guarantee
    spent = sum(charge["rho"] for charge in release.certificate["charges"])
    assert guarantee.rho * 0.999 < spent <= guarantee.rho
    assert len(release.sample_tables(20, seed=0)[0]) == 20


def test_required_tables_are_measured_first_and_kept():
    wanted = [["R_SEX", "TEN", "N18"], ["rest.SEX", "rest.AGEP"]]
    how = Linked(base="mst", children="independent", required=wanted)
    release = ss.fit(how, opened(), BUDGET, seed=0)
    cliques = set(release.measurements["clique"].to_pylist())
    assert {"parent.TEN,parent.N18,parent.R_SEX", "rest.AGEP,rest.SEX"} <= cliques
    parent = release.model.parts["parent"]
    assert any({"parent.TEN", "parent.N18", "parent.R_SEX"} <= set(clique) for clique in parent.tree.cliques)
    assert ss.plan(how, homes.SCHEMA, BUDGET, declared_size=400).strata[0].tables > 0
    with pytest.raises(UsageError, match=r"no column 'parent\.SEX'"):
        ss.plan(Linked(base="mst", required=[["SEX"]]), homes.SCHEMA, BUDGET, declared_size=400)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"required": ["SEX"]}, "lists of counted columns"),
        ({"base": "gem"}, "base is aim or mst"),
        ({"base": {"name": "aim", "weights": {"SEX": 2.0}}}, "weights of marginals"),
        ({"split": {"parent": 1.0}}, "give the parts"),
        ({"split": {"parent": 0.5, "second": 0.5, "others": 0.5}}, "add up to 1"),
        ({"children": "twins"}, "children"),
        ({"conditions": {"third": ["SEX"]}}, "conditions"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings, why):
    with pytest.raises(UsageError, match=why):
        Linked(**settings)


@pytest.mark.parametrize("step", ["rest", "second"])  # of few households `second` is not fitted
def test_a_column_that_is_not_there_is_no_condition(step):
    with pytest.raises(UsageError, match="no column 'AGE'"):
        ss.plan(Linked(base="mst", conditions={step: ["AGE"]}), homes.SCHEMA, BUDGET, declared_size=100)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (["TEN", "second.SEX"], "columns of parent and second"),
        (["rest.SEX", "second.SEX"], "columns of rest and second"),
        (["second.NONE"], r"no column 'second\.NONE'"),
    ],
)
def test_a_required_table_that_no_step_could_measure_is_refused(asked, why):
    with pytest.raises(UsageError, match=why):
        ss.plan(Linked(base="mst", required=[asked]), homes.SCHEMA, BUDGET, declared_size=100)


def test_what_is_not_protected_speaks_of_the_unit(release, tmp_path):
    said = " ".join(release.statement.not_protected)
    assert "One household is protected with all its person rows" in said
    assert "a record or a person" not in said
    assert "one record is protected" not in said
    one = ss.fit("independent", small.table(), ss.Budget(1, 1e-9))
    assert "a record or a person" in " ".join(one.statement.not_protected)


def test_what_does_not_go_with_two_tables_is_refused_before_anything_is_charged():
    table = opened()
    with pytest.raises(Unsupported, match="take the mechanism linked"):
        ss.fit("mst", table, BUDGET)
    with pytest.raises(Unsupported, match="this is one"):
        ss.fit(MST, small.table(), BUDGET)
    with pytest.raises(UsageError, match='groups = "measured"'):
        ss.fit(MST, table, BUDGET, groups="measured")
    assert table.ledger.reserved == ()


def test_a_release_of_two_tables_has_no_single_one(release):
    with pytest.raises(UsageError, match="`sample_tables`"):
        release.sample(3)
    one = ss.fit("independent", small.table(), ss.Budget(1, 1e-9))
    with pytest.raises(UsageError, match="no linked tables"):
        one.sample_tables(3)


def test_a_table_is_shown_by_the_columns_of_its_files():
    said = repr(opened(5))
    assert "household: TEN, HINCP, KIND; person: AGEP, SEX, PINCP" in said
    assert "second." not in said
    assert repr(homes.SCHEMA.counted).endswith("52 counted columns)")


def test_tables_in_the_wrong_order_are_named():
    parents, persons = homes.tables(5)
    with pytest.raises(ss.StratsynthError, match=r"household: column TEN .* the household table comes first"):
        ss.open_tables(persons, parents, schema=homes.SCHEMA)
    with pytest.raises(ss.StratsynthError, match=r"^person: column SEX .* shows the header$"):
        ss.open_tables(parents, persons.drop(columns="SEX"), schema=homes.SCHEMA)


def test_a_fit_of_the_persons_alone_needs_an_account_of_its_own():
    parents, persons = homes.tables(30)
    ss.fit(MST, ss.open_tables(parents, persons, schema=homes.SCHEMA, declared_size=30), BUDGET, seed=0)
    table = ss.open_table(persons, schema=homes.PERSON, declared_size=70)
    with pytest.raises(UsageError, match=r"for different units .* the unit .* account of its own"):
        ss.fit("independent", table, BUDGET)


@pytest.mark.parametrize("missing", ["SERIALNO", "SPORDER", "AGEP", "TEN"])
def test_a_column_that_the_data_lack_is_refused_from_the_header(missing):
    frames = [frame.drop(columns=missing, errors="ignore") for frame in homes.tables(5)]
    with pytest.raises(ss.StratsynthError, match=missing):
        ss.open_tables(*frames, schema=homes.SCHEMA)


# Recipes and commands


@pytest.fixture
def place(tmp_path):
    parents, persons = homes.tables(300)
    parents.to_csv(tmp_path / "households.csv", index=False)
    persons.to_csv(tmp_path / "persons.csv", index=False)
    (tmp_path / "homes.toml").write_text(homes.SCHEMA.to_toml(), encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(homes.RECIPE, encoding="utf-8")
    return tmp_path


def command(*words):
    """Run a command in this process; return its exit code."""
    return cli.run([str(word) for word in words])


def test_a_recipe_of_two_files_from_check_to_sample(place, capsys):
    recipe, release, drawn = place / "recipe.toml", place / "release", place / "drawn"
    assert command("check", recipe) == 0
    assert command("plan", recipe) == 0
    assert command("fit", recipe) == 0
    assert "one household with all its person rows" in " ".join(capsys.readouterr().out.split())
    assert pq.read_metadata(release / "household.parquet").num_rows == 70
    assert command("sample", release, "-n", 40, "-o", drawn, "--seed", 1) == 0
    persons = pq.read_metadata(drawn / "person.parquet").num_rows
    assert f"household.parquet 40, person.parquet {persons}" in capsys.readouterr().out
    assert command("sample", release, "-n", 40, "-o", place / "drawn.csv") == 2
    assert "written to a folder" in " ".join(capsys.readouterr().err.split())
    assert command("schema", "check", place / "households.csv", "--schema", place / "homes.toml") == 2
    assert "--child" in capsys.readouterr().err
    assert sorted(file.name for file in drawn.iterdir()) == ["household.parquet", "person.parquet"]
    assert command("verify", release, "--ledger", place / "homes.ledger") == 0
    assert command("sample", release, "-n", 40, "-o", place / "other", "--where", "TEN=1") == 0
    assert command("sample", release, "-n", 40, "-o", place / "more", "--by-group", place / "homes.toml") == 2
    assert command("fit", recipe, "-o", place / "again") == 2  # done, and charged once


def test_check_counts_what_a_fit_settles_in_silence(place, capsys):
    parents, persons = homes.tables(300)
    parents = parents.assign(
        KIND=np.where(parents.index == 3, 2, 1), TEN=np.where(parents.index == 4, 9, parents["TEN"])
    )
    parents.loc[5, "SERIALNO"] = 6
    persons = persons.assign(SPORDER=np.where(persons["SERIALNO"] == 7, 1, persons["SPORDER"]))
    parents.to_csv(place / "households.csv", index=False)
    persons[persons["SERIALNO"] != 8].to_csv(place / "persons.csv", index=False)
    words = ("schema", "check", place / "households.csv", "--child", place / "persons.csv", "--schema")
    code = command(*words, place / "homes.toml", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["INTERNAL"]
    assert (found["other_kinds"], found["unknown_parents"], found["duplicates"], found["childless"]) == (1, 1, 2, 1)
    assert found["orphans"] == (persons["SERIALNO"] == 5).sum()
    assert found["ties"] == (persons["SERIALNO"] == 7).sum() * ((persons["SERIALNO"] == 7).sum() > 1)
    assert found["counted"] == 300 - 5
    assert code == (not found["ok"])
    assert command(*words, place / "homes.toml") == code
    assert "INTERNAL" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('child = "persons.csv"\n', "", "parent and child"),
        ('child = "persons.csv"', 'child = "persons.csv"\nengine = "stream"', "without path and engine"),
        ('child = "persons.csv"', 'child = "persons.csv"\ntable = "p"', "leave table and query out"),
    ],
)
def test_sections_that_cannot_be_meant_are_refused(old, new, why, place):
    (place / "recipe.toml").write_text(homes.RECIPE.replace(old, new), encoding="utf-8")
    with pytest.raises(RecipeError, match=why):
        ss.Recipe.read(place / "recipe.toml")


def test_a_schema_of_one_table_is_refused_for_two(place):
    (place / "homes.toml").write_text(homes.PERSON.to_toml(), encoding="utf-8")
    with pytest.raises(StratsynthError, match="two linked tables"):
        ss.Recipe.read(place / "recipe.toml").table()
