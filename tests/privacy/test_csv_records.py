"""One record of a CSV file is one physical line, or it is left out; certificate and pages say so."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stratsynth as ss
from helpers import small
from helpers.command import stratsynth
from stratsynth.adapters import Independent
from stratsynth.data import csvlines
from stratsynth.data.draft import check, draft
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.errors import UsageError
from stratsynth.release.page import words
from stratsynth.release.page.summary import summary
from stratsynth.schema import Categorical, Schema
from stratsynth.schema.schema import Unit

SEX = Schema({"SEX": Categorical(levels=("1", "2"), outside="missing")})
BYTES = st.lists(st.sampled_from([b'"', b'""', b",", b"\r", b"\xff", b"a", b"1", b" ", b",,"]), max_size=9).map(
    b"".join
)


def counted(path, schema=SEX):
    """The exact number of records of each level."""
    return load_rows(schema, open_source(path)).counts([((), [("SEX",)])])[0][0].tolist()


@given(BYTES, BYTES, st.lists(BYTES, max_size=3))
def test_a_line_is_one_record_or_none_whatever_lies_around_it(line, before, after):
    def rows(*lines):
        blocks = csvlines.batches(io.BytesIO(b"\n".join([*lines, b""])), 3, range(3))
        return [row for columns in blocks for row in zip(*(column.to_pylist() for column in columns), strict=True)]

    assert len(rows(line)) <= 1
    assert rows(before, line, *after) == rows(before) + rows(line) + rows(*after)


NO_RECORDS = """\
1,"a
a",1
1,"a"b
1,a"
1,a",3
1,5" pipe,3
1,"a"b,3
"1,a
1
1,a,b,c
1,"a,b
1,"a",,
,
"
1,"a""
1,a"b,"c
"""


@pytest.mark.parametrize("line", NO_RECORDS.rstrip().split("\n"))
def test_a_line_with_open_quotes_or_another_number_of_fields_is_left_out(line, tmp_path):
    (tmp_path / "people.csv").write_text(f"SEX,NOTE,AGE\n1,x,3\n{line}\n2,y,4\n", encoding="utf-8")
    assert counted(tmp_path / "people.csv") == [1, 1, 0]


def test_a_record_with_line_breaks_is_left_out_whole(tmp_path):
    """Its pieces are no rows, and not missing ones either."""
    breaks = "\n".join(f"line {i} of a note" for i in range(20))
    (tmp_path / "people.csv").write_text(f'SEX,NOTE\n1,x\n1,"{breaks}"\n2,y\n', encoding="utf-8")
    assert counted(tmp_path / "people.csv") == [1, 1, 0]


def test_whole_lines_inside_a_field_are_records_of_their_own_and_that_is_said(tmp_path):
    """No reader can tell from a line alone whether it lies in a quoted field: the guarantee is for a line."""
    forged = "\n".join(["2,forged"] * 1000)
    (tmp_path / "people.csv").write_text(f'SEX,NOTE\n1,x\n1,"a\n{forged}\nb"\n', encoding="utf-8")
    assert counted(tmp_path / "people.csv") == [1, 1000, 0]
    found = check(SEX, open_source(tmp_path / "people.csv"))
    assert (found.rows, found.lines.quotes, found.lines.fields) == (1001, 2, 0)


def test_the_unit_of_a_piece_is_no_unit(tmp_path):
    schema = Schema(SEX.columns, unit=Unit(column="PERSON", max_rows=1))
    (tmp_path / "people.csv").write_text('PERSON,SEX,NOTE\np1,1,"a\np2,2\np3,2"\np2,1,b\np3,1,c\n', encoding="utf-8")
    assert counted(tmp_path / "people.csv", schema) == [2, 0, 0]


def released(data, schema=small.SCHEMA):
    table = ss.open_table(data, schema=schema, declared_size=small.SIZE)
    return ss.fit(Independent(), table, small.BUDGET).certificate


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_the_certificate_of_a_csv_file_says_what_a_record_is(ending, tmp_path):
    small.people().to_csv(tmp_path / f"people.{ending}", index=False)
    certificate = released(tmp_path / f"people.{ending}")
    assert certificate["unit"] == "record"
    assert certificate["record"] == "one physical line of the CSV file"
    assert "one physical line of the CSV file" in summary(certificate)
    assert any("one physical line of the CSV file" in sentence for sentence in words.promise(certificate.statement))


def test_other_tables_have_rows_and_say_nothing(tmp_path):
    small.people().astype(str).to_parquet(tmp_path / "people.parquet")
    small.people().astype(str).to_feather(tmp_path / "people.feather")
    for data in (tmp_path / "people.parquet", tmp_path / "people.feather", small.people()):
        certificate = released(data)
        assert "record" not in certificate
        assert "physical" not in summary(certificate, brief=True) + "".join(words.promise(certificate.statement))


def test_units_of_several_rows_are_lines_too(tmp_path):
    people = small.people()
    people["PERSON"] = range(len(people))
    people.to_csv(tmp_path / "people.csv", index=False)
    certificate = released(
        tmp_path / "people.csv", Schema(small.SCHEMA.columns, unit=Unit(column="PERSON", max_rows=2))
    )
    assert certificate["record"] == "one physical line of the CSV file"
    assert any("physical line" in sentence for sentence in words.promise(certificate.statement))


def test_report_and_command_line_say_it(tmp_path):
    recipe = small.write_recipe(tmp_path)
    run = stratsynth("fit", recipe, "-o", tmp_path / "release", cwd=tmp_path)
    assert "one physical line of the CSV file" in run.stdout, run.stderr
    assert "one physical line of the CSV file" in (tmp_path / "release" / "report.html").read_text(encoding="utf-8")


def test_a_header_that_is_no_record_is_refused_without_quoting_it(tmp_path):
    for first in ('SEX,"SECRET', "SEX" + "," * 30 + '"SECRET"x'):
        (tmp_path / "people.csv").write_text(f"{first}\n1,x\n", encoding="utf-8")
        with pytest.raises(UsageError, match="first line holds no column names") as caught:
            open_source(tmp_path / "people.csv").columns()
        assert "SECRET" not in repr(caught.value)


@pytest.mark.parametrize("length", [29, 30, 31, 32, 33, 500])
@pytest.mark.parametrize("block", [1, 7, 64])
def test_a_line_without_an_end_is_never_held_whole(length, block, monkeypatch):
    monkeypatch.setattr(csvlines, "MAX_LINE", 32)
    monkeypatch.setattr(csvlines, "BLOCK", block)
    for ending in (b"\n", b"\r\n"):
        long = b"a" * (length - 4) + b",b,c" + ending
        text = b"1,2,3" + ending + long + b"4,5,6" + ending
        column = [value for [texts] in csvlines.batches(io.BytesIO(text), 3, [0]) for value in texts.to_pylist()]
        kept = [long.split(b",")[0].decode()] if length <= 32 else []
        assert column == ["1", *kept, "4"]
        assert max(map(len, csvlines._blocks(io.BytesIO(text)))) <= max(2 * 34 + block, 100)


def test_schema_check_counts_what_is_left_out_and_warns(tmp_path):
    schema = Schema(SEX.columns, unit=Unit(column="PERSON", max_rows=2))
    text = 'PERSON,SEX,NOTE\n7,1,a\n7.0,1,a\n 07,1,a\n,2,b\n8,2,"b\nc"\n8,2\n8,2,x,y\n'
    (tmp_path / "people.csv").write_text(text, encoding="utf-8")
    schema.write_toml(tmp_path / "schema.toml")
    run = stratsynth("schema", "check", "people.csv", "--schema", "schema.toml", "--json", cwd=tmp_path)
    found = json.loads(run.stdout)
    assert found["INTERNAL"] is True
    assert found["rows"] == 4
    assert found["lines_left_out"] == {"quotes": 2, "fields": 2}
    assert found["unit"] == {"units": 1, "beyond": 1, "without": 1}
    run = stratsynth("schema", "check", "people.csv", "--schema", "schema.toml", cwd=tmp_path)
    assert run.stdout.startswith("INTERNAL")
    assert "2 more lines are left out, since their quotes do not close. A field with a line break" in run.stdout
    assert "2 more lines are left out, as their number of fields is not that of the header" in run.stdout
    assert "1 units; 1 rows beyond a unit's max_rows and 1 rows without a unit are left out" in run.stdout


def test_schema_check_shows_the_header_where_columns_are_absent(tmp_path):
    (tmp_path / "people.csv").write_text("SX,NOTE,\x1b[31mred\n1,a,b\n", encoding="utf-8")
    SEX.write_toml(tmp_path / "schema.toml")
    run = stratsynth("schema", "check", "people.csv", "--schema", "schema.toml", cwd=tmp_path)
    assert run.returncode == 2
    assert run.stdout.splitlines()[0].startswith("INTERNAL")
    assert "Not in the data, or more than once: SEX." in run.stdout
    assert "header: SX, NOTE, \ufffd[31mred" in run.stdout


def test_a_draft_says_that_lines_were_left_out(tmp_path):
    (tmp_path / "people.csv").write_text('SEX,NOTE\n1,a\n2,"b\nc"\n', encoding="utf-8")
    assert "# REVIEW: 2 lines were left out" in draft(open_source(tmp_path / "people.csv"))
