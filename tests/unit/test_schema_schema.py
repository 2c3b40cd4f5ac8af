"""Schemas and their files: what they answer, what is refused, and how the refusal reads."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from stratsynth.errors import SchemaError, UsageError
from stratsynth.schema import Categorical, Numeric, Rule, Schema, Unit

SEX = Categorical(levels=("1", "2"), labels={"1": "Male"})
MSP = Categorical(levels=("N", "1", "2"), not_applicable="N", outside="missing")
AGE = Numeric(lower=0, upper=95, integer=True, edges=(0, 5, 15, 65, 96), missing=True)
CHILD = Rule(when={"AGE": "< 15"}, never={"MSP": ["1", "2"]})
PEOPLE = Schema({"SEX": SEX, "MSP": MSP, "AGE": AGE}, rules=(CHILD,))

HEAD = 'format = "stratsynth-schema/1"\n'
A = '[columns.A]\nkind = "categorical"\nlevels = ["x", "y"]\n'


def test_a_schema_answers_for_its_columns():
    assert PEOPLE.names == ("SEX", "MSP", "AGE")
    assert PEOPLE.oneways == (("SEX",), ("MSP",), ("AGE",))
    assert PEOPLE.shape(("AGE", "SEX")) == (5, 2)
    assert PEOPLE.cells(("AGE", "SEX")) == 10
    assert PEOPLE.cells(()) == 1
    assert PEOPLE.levels("MSP") == ("N", "1", "2", "missing")
    assert PEOPLE.index("AGE", "15-64") == 2


def test_a_wrong_name_gets_the_nearest_right_one():
    with pytest.raises(SchemaError, match="SEX"):
        PEOPLE.size("SEXX")
    with pytest.raises(SchemaError, match="missing"):
        PEOPLE.index("MSP", "misssing")


def test_restricting_drops_rules_that_lost_a_column():
    assert PEOPLE.without(["SEX"]).rules == (CHILD,)
    assert PEOPLE.without(["SEX"]).names == ("MSP", "AGE")
    assert PEOPLE.restrict(["AGE", "SEX"]).names == ("SEX", "AGE")
    assert PEOPLE.restrict(["AGE", "SEX"]).rules == ()
    with pytest.raises(SchemaError, match="column"):
        PEOPLE.without(["NOPE"])
    assert PEOPLE.restrict([]).names == ()  # a stratum that is defined by all columns


@pytest.mark.parametrize("name", ["", "a,b", "a|b", "a=b", "a\n", "=x", "@x", 3])
def test_a_name_that_would_break_a_released_file_is_refused(name):
    with pytest.raises(SchemaError, match="column name"):
        Schema({name: SEX})


def test_the_hash_knows_the_order_of_columns_and_not_of_labels():
    a = Categorical(levels=("1", "2"), labels={"1": "Male", "2": "Female"})
    b = Categorical(levels=("1", "2"), labels={"2": "Female", "1": "Male"})
    assert Schema({"A": a}).sha256 == Schema({"A": b}).sha256
    assert Schema({"A": a, "B": SEX}) != Schema({"B": SEX, "A": a})
    assert Schema({"A": a}) != Schema({"A": SEX})
    assert len({PEOPLE, Schema.from_toml_text(PEOPLE.to_toml())}) == 1


def test_the_hash_is_the_same_in_every_release():
    assert Schema({"SEX": SEX}).sha256 == "657b407979029393513710a691bb7abf2726a8e661b2cf8179f9bf808ec27ab7"


def test_a_draft_is_refused_until_a_person_has_reviewed_it():
    PEOPLE.ready()
    with pytest.raises(SchemaError, match="reviewed_by"):
        Schema({"SEX": SEX}, origin="private data").ready()
    Schema({"SEX": SEX}, origin="private data", reviewed_by="A. Person").ready()
    with pytest.raises(SchemaError, match="origin"):
        Schema({"SEX": SEX}, origin="the data")


def test_a_unit_is_a_record_or_a_number_of_rows():
    assert Schema({"SEX": SEX}, unit=Unit(column="PERSON", max_rows=3)).unit.max_rows == 3
    for unit in ("person", 3, None):
        with pytest.raises(SchemaError, match="unit"):
            Schema({"SEX": SEX}, unit=unit)
    for rows in (0, 1.5, True):
        with pytest.raises(SchemaError, match="max_rows"):
            Unit(column="PERSON", max_rows=rows)


def test_a_rule_gives_the_cells_that_are_surely_empty():
    assert CHILD.cells(PEOPLE) == ({"AGE": frozenset({0, 1}), "MSP": frozenset({1, 2})},)
    assert Rule(when={"AGE": "< 14"}, never={"SEX": "1"}).cells(PEOPLE)[0]["AGE"] == {0}  # 5-14 is not inside
    assert Rule(when={"AGE": ">= 65"}, never={"SEX": "1"}).cells(PEOPLE)[0]["AGE"] == {3}
    assert Rule(when={"AGE": "> 65"}, never={"SEX": "1"}).cells(PEOPLE)[0]["AGE"] == frozenset()
    assert Rule(when={"AGE": "<=4"}, never={"SEX": "1"}).cells(PEOPLE)[0]["AGE"] == {0}
    assert Rule(when={"AGE": "missing"}, never={"SEX": "1"}).cells(PEOPLE)[0]["AGE"] == {4}


def test_a_comparison_with_an_open_end_holds_for_the_whole_bin():
    schema = Schema({"X": Numeric(lower=0, upper=2, edges=(0, 1, 2)), "SEX": SEX})
    assert Rule(when={"X": "< 1"}, never={"SEX": "1"}).cells(schema)[0]["X"] == {0}
    assert Rule(when={"X": "< 2"}, never={"SEX": "1"}).cells(schema)[0]["X"] == {0}
    assert Rule(when={"X": "<= 2"}, never={"SEX": "1"}).cells(schema)[0]["X"] == {0, 1}


def test_a_level_that_looks_like_a_comparison_is_a_level():
    schema = Schema({"INCOME": Categorical(levels=("<=50K", "<5")), "SEX": SEX})
    assert Rule(when={"INCOME": "<5"}, never={"SEX": "1"}).cells(schema)[0]["INCOME"] == {1}


def test_a_rule_that_makes_no_sense_is_refused():
    with pytest.raises(SchemaError, match="both"):
        Rule(when={"A": "1"}, never={"A": "2"})
    for bad in ({}, {"A": 3}, {"A": []}, {"A": [3]}, "A"):
        with pytest.raises(SchemaError, match="when"):
            Rule(when=bad, never={"B": "1"})
    for condition in ("3", ["1", "9"], "< 15"):
        with pytest.raises(SchemaError, match="rule 1: column SEX"):
            Schema({"SEX": SEX, "AGE": AGE}, rules=(Rule(when={"AGE": "< 15"}, never={"SEX": condition}),))
    with pytest.raises(SchemaError, match="rule 1"):
        Schema({"SEX": SEX}, rules=(Rule(when={"AGE": "< 15"}, never={"SEX": "1"}),))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 's.toml: format must be "stratsynth-schema/1"'),
        ("format = 2", "format"),
        (HEAD, "s.toml: columns must be a table"),
        (HEAD + "[columns]", "at least one column"),
        (HEAD + "x = [", "s.toml: not valid TOML: .*line 2"),
        (HEAD + "x = y z\n" + A, "s.toml: not valid TOML: .*line 2"),
        (HEAD + 'orign = "public"\n' + A, "unknown key 'orign'; did you mean 'origin'"),
        (HEAD + A.replace("levels", "level"), "s.toml: column A: unknown key 'level'; did you mean 'levels'"),
        (HEAD + '[columns.A]\nkind = "categorical"', "column A: levels is missing"),
        (HEAD + '[columns.A]\nkind = "categoric"', "column A: kind .*did you mean 'categorical'"),
        (HEAD + "[columns.A]\nkind = []", "column A: kind"),
        (HEAD + "columns = 3", "columns must be a table"),
        (HEAD + "[columns]\nA = 3", "column A: .*table"),
        (
            HEAD + '[columns.A]\nkind = "numeric"\nlower = 3\nupper = 1',
            "s.toml: column A: upper must be above lower",
        ),
        (HEAD + '[columns.A]\nkind = "numeric"\nlower = nan\nupper = 1', "column A: lower"),
        (HEAD + "unit = { column = 'P' }\n" + A, "unit: max_rows is missing"),
        (HEAD + "unit = { column = 'P', max_rows = 0 }\n" + A, "unit: max_rows"),
        (HEAD + "unit = 3\n" + A, "unit must be"),
        (HEAD + "reviewed_by = ''\n" + A, "reviewed_by"),
        (HEAD + "origin = []\n" + A, "origin"),
        (HEAD + "forbid = 3\n" + A, "forbid must be"),
        (HEAD + A + "[[forbid]]\nwhen = { A = 'x' }", "rule 1 of forbid: never is missing"),
        (HEAD + A + "[[forbid]]\nwhen = { A = 'x' }\nnever = { B = 'x' }", "no column 'B'"),
        (HEAD + "a = " + "[" * 100_000, "too deep"),
        (HEAD + "a = " + "9" * 10_000, "not valid TOML"),
    ],
)
def test_a_wrong_file_is_told_what_and_where(text, said):
    with pytest.raises(SchemaError, match=said):
        Schema.from_toml_text(text, name="s.toml")


def test_files_of_every_kind_of_damage_are_refused(tmp_path):
    path = tmp_path / "s.toml"
    with pytest.raises(SchemaError, match=r"s\.toml: cannot be read"):
        Schema.load(path)
    path.write_bytes(b"a = 1\nb = '\xff'")
    with pytest.raises(SchemaError, match="line 2 is not UTF-8"):
        Schema.load(path)
    path.write_bytes(b"#" * 16_000_001)
    with pytest.raises(SchemaError, match="16 MB"):
        Schema.load(path)
    with pytest.raises(UsageError, match="toml"):
        Schema.load(tmp_path / "s.yaml")


def test_files_come_back(tmp_path):
    path = tmp_path / "s.toml"
    PEOPLE.write_toml(path)
    assert Schema.load(path) == PEOPLE
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))  # as some editors save it
    assert Schema.load(path) == PEOPLE


def test_domain_files_of_mbi_are_read(tmp_path):
    path = tmp_path / "a-domain.json"
    path.write_text(json.dumps({"B": 3, "A": 1}))
    schema = Schema.load(path)
    assert schema.names == ("B", "A")
    assert schema.columns["B"] == Categorical(levels=("0", "1", "2"), dtype="int64")
    for bad in ('{"A": 0}', '{"A": true}', '{"A": 1.5}', '{"A": 100000000}', "[1]", "{", "{}", "[" * 100_000):
        path.write_text(bad)
        with pytest.raises(SchemaError, match=r"a-domain\.json"):
            Schema.load(path)


def test_importing_the_schema_loads_no_heavy_library():
    heavy = "{'numpy', 'pandas', 'pyarrow', 'tomli_w'}"
    code = f"import sys, stratsynth.schema; assert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
