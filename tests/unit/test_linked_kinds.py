"""Strata and kinds of two linked tables from the outside: schemas, plans, refusals, what is drawn, and recipes."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import stratsynth as ss
from helpers import homes
from stratsynth import cli
from stratsynth.adapters import Linked, Pooled
from stratsynth.errors import SchemaError, Unsupported, UsageError
from stratsynth.schema import Rule
from stratsynth.schema.kinds import ParentKind
from stratsynth.schema.linked_toml import parse

BUDGET = ss.Budget(6, 1e-9)
MST = Linked(base="mst")
KINDS = pd.DataFrame({"KIND": ["1", "2", "quarters"], "share": [0.6, 0.15, 0.25]})
MERGED = ss.Groups(merge={"KIND": {"quarters": ["3", "4"]}})


def public(**columns):
    return ss.Weights.public(pd.DataFrame(columns), citation="made up")


def by_kind(how=MST):
    return ss.Stratified(how, ["KIND"], ss.Weights.public(KINDS, citation="made up"), MERGED)


def by(*columns, how=MST, shares=None):
    return ss.Stratified(how, columns, shares or public(TEN=["1", "2"], share=[0.5, 0.5]))


@pytest.fixture(scope="module")
def release():
    table = ss.open_tables(*homes.tables_of_kinds(500), schema=homes.OF_KINDS, declared_size=500)
    return ss.fit(by_kind(), table, BUDGET, seed=0)


# Schemas


def test_kinds_are_kept_in_the_schemas_file():
    text = homes.OF_KINDS.to_toml()
    again = parse(text)
    assert again == homes.OF_KINDS
    assert again.kinds == homes.OF_KINDS.kinds
    assert (again.absent, again.columns_of(), again.columns_of("vacant")) == (
        ("VACS",),
        ("KIND", "TEN", "AREA"),
        ("KIND", "AREA", "VACS"),
    )
    assert "kinds" not in homes.PLAIN.to_toml()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"occupied": {}}, "kinds need occupied"),
        ({"kinds": {"second": ParentKind(levels=("2",), columns=("VACS",))}}, "rename the kind"),
        ({"kinds": {"v": ParentKind(levels=("1",), columns=("VACS",))}}, "kinds are disjoint"),
        ({"kinds": {"v": ParentKind(levels=("9",), columns=("VACS",))}}, "no level '9'"),
        ({"kinds": {"v": ParentKind(levels=("2",))}}, "nothing to fit"),
        ({"kinds": {"v": ParentKind(levels=("2",), columns=("KIND",))}}, "is not named"),
        ({"kinds": {"v": ParentKind(levels=("2",), columns=("VAC",))}}, "no column 'VAC'"),
        ({"kinds": {"v": "2"}}, "must be ParentKind"),
        ({"absent": ("KIND",)}, "a column of every counted parent"),
        ({"absent": ("VAC",)}, "no column 'VAC'"),
    ],
)
def test_kinds_that_cannot_be_meant_are_refused(more, why):
    with pytest.raises(SchemaError, match=why):
        replace(homes.OF_KINDS, **{"derived": {}, **more})


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [("person = 1", "person = 2", "or 0"), ("person = 1", 'persons = "one"', "unknown key 'persons'")],
)
def test_a_schema_file_says_which_key_of_a_kind_is_wrong(old, new, why):
    with pytest.raises(SchemaError, match=why):
        parse(homes.OF_KINDS.to_toml().replace(old, new))


def test_strata_with_other_rules_or_levels_are_no_equal_schemas():
    """Equal schemas would share what was worked out for one of them."""
    from stratsynth.strata import Stratum, within

    counted = replace(homes.OF_KINDS, rules=(Rule(when={"TEN": "1"}, never={"AREA": "n"}),)).counted
    strata = [
        Stratum.of(each) for each in ({"TEN": "1"}, {"TEN": "2"}, {"KIND": "2"}, {"KIND": ("3", "4")}, {"KIND": "3"})
    ]
    assert len({within(counted, (stratum,)).sha256 for stratum in strata}) == 5
    assert counted.restrict(counted.names).sha256 == counted.sha256
    plain = [within(homes.OF_KINDS.counted, (Stratum.of({"TEN": level}),)) for level in "12"]
    assert plain[0] == plain[1]


# What is drawn


def test_each_kind_is_drawn_in_its_own_columns_by_the_public_shares(release):
    homes_, people = release.sample_tables(400, seed=1)
    assert list(homes_.columns) == ["SERIALNO", "KIND", "TEN", "AREA", "VACS", "NP", "N18"]
    assert homes_["SERIALNO"].tolist() == list(range(1, 401))
    assert homes_["KIND"].replace({"4": "3"}).value_counts().to_dict() == {"1": 240, "3": 100, "2": 60}
    own = {kind: homes_[homes_["KIND"] == kind] for kind in "1234"}
    assert own["1"]["TEN"].notna().all()
    assert own["1"]["VACS"].isna().all()
    assert own["2"]["VACS"].notna().all()
    assert homes_[homes_["KIND"] != "1"]["TEN"].isna().all()
    sizes = people.groupby("SERIALNO").size().reindex(homes_["SERIALNO"], fill_value=0).to_numpy()
    assert (sizes == homes_["NP"].to_numpy()).all()
    assert set(sizes[homes_["KIND"].isin(["3", "4"])]) == {1}
    assert (people[people["SERIALNO"].isin(own["3"]["SERIALNO"])]["SPORDER"] == 1).all()


def test_a_release_of_kinds_is_saved_loaded_and_verified(release, tmp_path):
    folder = release.save(tmp_path / "release", rows=90, seed=5, csv=True)
    again = ss.Release.load(folder)
    for one, other in zip(release.sample_tables(80, seed=3), again.sample_tables(80, seed=3), strict=True):
        assert one.equals(other)
    assert ss.verify(folder).ok
    assert again.statement.drawn.parents == pq.read_metadata(folder / "household.parquet").num_rows == 90
    assert release.sample_tables(0, seed=1)[1].empty
    text = " ".join((folder / "report.html").read_text(encoding="utf-8").split())
    assert "a household is in one group only" in text
    assert "it is in one group or another" in text


def test_conditions_are_met_in_strata_and_queries_are_refused(release):
    parents, children = release.sample_tables(40, seed=1, where={"AREA": "n", "KIND": ["2", "3"]})
    assert set(parents["AREA"]) == {"n"}
    assert set(parents["KIND"]) == {"2", "3"}
    assert len(children) == (parents["KIND"] == "3").sum()
    with pytest.raises(Unsupported, match="count in what sample_tables draws"):
        release.query(["AREA"])


def test_the_page_of_kinds_pictures_the_counted_kind_and_sends_nobody_to_a_query(release, tmp_path):
    page = " ".join((release.save(tmp_path / "r", rows=200, seed=1) / "report.html").read_text("utf-8").split())
    parents = release.sample_tables(200, seed=1)[0]
    assert f"Pictures are of the {(parents['KIND'] == '1').sum()} households with KIND 1" in page
    assert "0 person rows</span>" not in page
    assert "stratsynth query" not in page.split("The groups")[0]
    assert "Ask and" not in page


def test_where_only_the_kind_with_child_rows_is_fitted_the_columns_of_others_are_not_missed(tmp_path):
    table = ss.open_tables(*homes.tables_of_kinds(200), schema=homes.OF_KINDS, declared_size=150)
    occupied = ss.fit(MST, table, BUDGET, seed=0)
    folder = occupied.save(tmp_path / "release", rows=20)
    assert "VACS" not in pq.read_schema(folder / "household.parquet").names
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Pictures are of" not in page
    assert "stratsynth query" in page
    with pytest.raises(UsageError, match=r"VACS is a column of other kinds of household alone.*in strata by KIND"):
        occupied.sample_tables(5, seed=1, where={"VACS": "rent"})


def test_a_registry_record_is_of_pairs_of_tables_and_sample_names_the_way(release, tmp_path, capsys):
    folder = release.save(tmp_path / "r", rows=20)
    person = ("--name", "x", "--slug", "x-1", "--curator", "x", "--use", "x", "--region", "x", "--author", "x")
    assert command("certificate", folder, "--registry", "--published", "2026-01-01", *person) == 0
    assert "Two pairs of tables are adjacent if one household" in capsys.readouterr().out
    with pytest.raises(UsageError, match="draws two linked tables and not one: see `sample_tables`"):
        release.sample(3)


def test_strata_by_a_column_of_the_reference_person_keep_its_level_and_merged_ones():
    shares = public(R_SEX=["1", "2"], share=[0.3, 0.7])
    table = ss.open_tables(*homes.tables(300), schema=homes.SCHEMA, declared_size=300)
    parents, children = ss.fit(by("R_SEX", shares=shares), table, BUDGET, seed=0).sample_tables(200, seed=1)
    assert children[children["SPORDER"] == 1]["SEX"].value_counts().to_dict() == {"2": 140, "1": 60}
    assert (children.groupby("SERIALNO")["PINCP"].sum().to_numpy() == parents["HINCP"].to_numpy()).all()
    ages = homes.PERSON.levels("AGEP")
    merged = ss.Groups(merge={"R_AGEP": {"young": ages[:3], "old": ages[3:]}})
    how = ss.Stratified(MST, ["R_AGEP"], public(R_AGEP=["young", "old"], share=[0.25, 0.75]), merged)
    _, children = ss.fit(how, table, BUDGET, seed=0).sample_tables(200, seed=1)
    assert (children[children["SPORDER"] == 1]["AGEP"] < 30).sum() == 50


def test_structural_rules_hold_in_strata():
    rule = Rule(when={"TEN": "1"}, never={"R_SEX": "2"})
    later = Rule(when={"rest.TEN": "2"}, never={"rest.SEX": "1"})
    schema = replace(homes.SCHEMA, rules=(rule, later))
    table = ss.open_tables(*homes.tables(300), schema=schema, declared_size=300)
    release = ss.fit(by("TEN", how=replace(MST, children="independent")), table, BUDGET, seed=0)
    parents, children = release.sample_tables(300, seed=1)
    both = children.merge(parents, on="SERIALNO")
    first = both[both["SPORDER"] == 1]
    assert set(first[first["TEN"] == "1"]["SEX"]) == {"1"}
    assert set(both[(both["TEN"] == "2") & (both["SPORDER"] > 1)]["SEX"]) == {"2"}


def test_required_tables_name_columns_of_the_strata_too():
    how = replace(MST, required=[["TEN", "R_SEX", "N18"], ["rest.TEN", "rest.SEX", "rest.AGEP"]])
    table = ss.open_tables(*homes.tables(300), schema=homes.SCHEMA, declared_size=300)
    release = ss.fit(by("TEN", how=how), table, BUDGET, seed=0)
    assert {"parent.N18,parent.R_SEX", "rest.AGEP,rest.SEX"} <= set(release.measurements["clique"].to_pylist())


def test_scores_are_of_parents_with_child_rows_in_the_columns_that_they_have(release):
    from stratsynth.evaluation import LinkedColumns, linked_errors

    columns = LinkedColumns.of(homes.OF_KINDS)
    assert columns.parent.names == ("TEN", "AREA")
    real = homes.tables_of_kinds(500)
    errors = linked_errors(real, release.sample_tables(500, seed=1), columns, kinds=("H", "W"))
    own = linked_errors(tuple(real), real, columns, kinds=("H", "W"))
    assert (errors["value"] > 0).any()
    assert (own["value"] == 0).all()


# Plans


def test_a_plan_has_a_row_for_each_counted_table_of_each_stratum():
    plan = ss.plan(by_kind(), homes.OF_KINDS, BUDGET, declared_size=1_000)
    found = {each.stratum: each.size for each in plan.strata}
    assert found == {"1: parent": 600, "1: rest": 420, "quarters: quarters": 250, "2: vacant": 150}
    assert all(each.sigma < 20 for each in plan.strata)
    assert "its group changes" in str(plan)
    shares = public(TEN=["1", "2"], share=[0.99, 0.01])
    mixed = ss.plan(by("TEN", shares=shares), homes.SCHEMA, BUDGET, declared_size=20_000)
    assert [each.stratum for each in mixed.strata] == ["1: parent", "1: second", "1: others", "2: parent", "2: rest"]
    said = " ".join(str(mixed).split())
    assert "In 2, each person row but the first is drawn by itself" in said
    assert "In 1, person rows are drawn one after another" in said
    assert "Of half as many" not in said
    near = " ".join(str(ss.plan(MST, homes.SCHEMA, BUDGET, declared_size=3_000)).split())
    assert "Of half as many households a fit would draw each by itself" in near


def test_without_strata_no_step_tells_a_group_from_other_values(tmp_path):
    plan = " ".join(str(ss.plan(MST, homes.SCHEMA, BUDGET, declared_size=1_000)).split())
    assert "everything about it changes" in plan
    assert "its group changes" not in plan
    assert "its other values change" not in plan
    table = ss.open_tables(*homes.tables(100), schema=homes.PLAIN, declared_size=100)
    folder = ss.fit(MST, table, BUDGET, seed=0).save(tmp_path / "release", rows=5)
    assert "it is in one group or another" not in (folder / "report.html").read_text(encoding="utf-8")


# Refusals: nothing is charged


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (by("parent.TEN", shares=public(**{"parent.TEN": ["1", "2"]}, share=[0.5, 0.5])), "by itself: TEN, not"),
        (by("NP", shares=public(NP=[*"12345", "6+"], share=[0.5] + [0.1] * 5)), "NP is made of child rows"),
        (
            by("SEX", shares=public(SEX=["1", "2"], share=[0.5, 0.5])),
            "no column 'SEX' of a household; that of its first person is R_SEX",
        ),
        (by("TEN", shares=ss.Weights.private(share=0.1)), "private weights are counts of one table"),
        (by("TEN", how="mst"), "take the mechanism linked"),
    ],
)
def test_strata_that_cannot_be_are_refused(how, why):
    table = ss.open_tables(*homes.tables(20), schema=homes.SCHEMA, declared_size=20)
    with pytest.raises(UsageError, match=why):
        ss.fit(how, table, BUDGET)
    assert table.ledger.reserved == ()


@pytest.mark.parametrize(
    ("columns", "merge", "why"),
    [
        (["KIND"], {"KIND": {"some": ["1", "2"]}}, "a stratum is of one kind"),
        (["KIND", "TEN"], {}, "TEN is none that all of theirs have"),
        (["KIND", "AREA", "VACS"], {}, "VACS is none that all of theirs have"),
    ],
)
def test_strata_across_kinds_are_refused(columns, merge, why):
    table = ss.open_tables(*homes.tables_of_kinds(20), schema=homes.OF_KINDS, declared_size=20)
    strata = [homes.OF_KINDS.counted.levels(name) for name in columns]
    merged = ss.Groups(merge=merge)
    made = ss.strata.crossing(homes.OF_KINDS.counted, columns, merged.together(homes.OF_KINDS.counted, columns))
    shares = pd.DataFrame([dict(zip(columns, each.names, strict=True)) for each in made]).assign(share=1 / len(made))
    with pytest.raises(UsageError, match=why):
        ss.fit(ss.Stratified(MST, columns, ss.Weights.public(shares, citation="made up"), merged), table, BUDGET)
    assert table.ledger.reserved == ()
    assert strata


def test_measured_sizes_and_shares_without_strata_are_refused():
    table = ss.open_tables(*homes.tables(20), schema=homes.SCHEMA, declared_size=20)
    with pytest.raises(UsageError, match="drawn by their public shares"):
        ss.fit(by("TEN"), table, BUDGET, groups="measured")
    with pytest.raises(UsageError, match="linked"):
        ss.fit(MST, table, BUDGET, weights=public(TEN=["1", "2"], share=[0.5, 0.5]))
    assert table.ledger.reserved == ()


def test_no_model_of_everybody_is_moved_in_strata_of_two_tables():
    with pytest.raises(Unsupported, match="in strata, each fitted by itself"):
        Pooled(base=MST, by=["TEN"], weights=public(TEN=["1", "2"], share=[0.5, 0.5]))


# Recipes and commands

RECIPE = """[data]
parent = "households.csv"
child = "persons.csv"
schema = "homes.toml"
declared_size = 300

[mechanism]
name = "linked"
base = "mst"

[strata]
by = ["KIND"]
merge = { KIND = { quarters = ["3", "4"] } }

[weights]
source = "public"
path = "shares.csv"
citation = "made up"

[budget]
epsilon = 4
delta = 1e-9
ledger = "homes.ledger"

[release]
rows = 60
seed = 1
"""


@pytest.fixture
def place(tmp_path):
    parents, persons = homes.tables_of_kinds(300)
    parents.to_csv(tmp_path / "households.csv", index=False)
    persons.to_csv(tmp_path / "persons.csv", index=False)
    KINDS.to_csv(tmp_path / "shares.csv", index=False)
    (tmp_path / "homes.toml").write_text(homes.OF_KINDS.to_toml(), encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


def command(*words):
    return cli.run([str(word) for word in words])


def test_a_recipe_in_strata_of_kinds_from_check_to_verify(place, capsys):
    recipe, release = place / "recipe.toml", place / "release"
    assert command("check", recipe) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "300 declared; there are 300 of all kinds" in said
    assert "shares of 3 groups, public" in said
    assert command("fit", recipe) == 0
    assert command("verify", release, "--ledger", place / "homes.ledger") == 0
    assert pq.read_metadata(release / "household.parquet").num_rows == 60


def test_schema_check_shows_the_headers_of_tables_that_lack_a_column(place, capsys):
    words = ("--schema", place / "homes.toml")
    assert command("schema", "check", place / "persons.csv", "--child", place / "households.csv", *words) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert "household: Not in the data, or more than once: KIND, TEN, AREA, VACS." in said
    assert "person: The data's header: SERIALNO, TEN, KIND" in said
    assert "The files are in the wrong order: that of household comes first." in said
    again = place / "households.csv"
    assert command("schema", "check", again, "--child", again, *words, "--json") == 2
    found = json.loads(capsys.readouterr().out)
    assert [*found["tables"]] == ["person"]
    assert found["INTERNAL"]
    assert "SPORDER" in found["tables"]["person"]["absent"]


def test_a_recipe_without_a_source_of_weights_is_told_what_is_missing(place, capsys):
    (place / "recipe.toml").write_text(RECIPE.replace('source = "public"\n', ""), encoding="utf-8")
    assert command("plan", place / "recipe.toml") == 2
    assert "[weights] source is missing; it is one of public" in " ".join(capsys.readouterr().err.split())


def test_check_says_so_if_no_household_is_of_the_counted_kind(place, capsys):
    parents, _ = homes.tables_of_kinds(300)
    parents.assign(KIND=np.where(parents["KIND"] == 1, 7, parents["KIND"])).to_csv(
        place / "households.csv", index=False
    )
    words = ("schema", "check", place / "households.csv", "--child", place / "persons.csv", "--schema")
    assert command(*words, place / "homes.toml", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["counted"]) == (False, 0)
    assert found["kinds"]["vacant"] + found["kinds"]["quarters"] == (parents["KIND"] != 1).sum()
    assert command(*words, place / "homes.toml") == 1
    assert "No household row is counted: is KIND 1 the kind with person rows?" in " ".join(
        capsys.readouterr().out.split()
    )
