"""Columns of long code lists: counted by groups, given back as codes."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from stratsynth.errors import SchemaError
from stratsynth.schema import Categorical, Nested, Schema
from stratsynth.schema.codec import decode
from stratsynth.schema.encoding import encode
from stratsynth.strata.strata import narrow

CODES = ("N", "0010", "0020", "1005", "1006", "9920")
GROUPS = {"Managers": ("0010", "0020"), "Computing": ("1005", "1006"), "Unemployed": ("9920",)}


def column(**keys: object) -> Nested:
    return Nested(**{"levels": CODES, "not_applicable": "N", "groupings": (GROUPS,), **keys})  # type: ignore[arg-type]


def grouped(**keys: object) -> Nested:
    return column(**keys).grouped(1)


def encoded(of: Nested, values: list[object]) -> list[int]:
    return encode(Schema({"OCCP": of}), pa.table({"OCCP": pa.array(values)})).codes["OCCP"].tolist()


def drawn(of: Nested, level: str, rows: int = 4000) -> pd.Series:
    schema = Schema({"OCCP": of})
    codes = np.full(rows, schema.index("OCCP", level))
    return decode(schema, {"OCCP": codes}, np.random.default_rng(1)).column("OCCP").to_pandas()


def test_codes_are_counted_in_their_group():
    assert grouped().all_levels == ("N", "Managers", "Computing", "Unemployed")
    assert encoded(grouped(), ["N", "0010", "0020", "1006", "9920"]) == [0, 1, 1, 2, 3]


def test_a_code_is_read_as_a_number_too_and_null_does_not_apply():
    assert encoded(grouped(), [10.0, 20.0, None, 1005.0]) == [1, 1, 0, 2]


def test_what_is_no_code_leaves_its_row_out_or_is_missing():
    assert encoded(grouped(), ["0010", "Managers", "7"]) == [1]
    assert encoded(grouped(outside="missing"), ["0010", "Managers", None]) == [1, 4, 4]


def test_ungrouped_it_is_a_column_of_categories():
    plain = Categorical(levels=CODES, not_applicable="N")
    values = ["N", "0010", "1006", "9920", None, "x"]
    data = pa.table({"OCCP": pa.array(values)})
    own, same = (encode(Schema({"OCCP": c}), data).codes["OCCP"].tolist() for c in (column(), plain))
    assert own == same


def test_records_of_a_group_come_back_as_its_codes_evenly():
    found = drawn(grouped(), "Managers").value_counts()
    assert set(found.index) == {"0010", "0020"}
    assert abs(found["0010"] - 2000) < 200  # six standard deviations


def test_or_by_public_shares_of_which_those_within_the_group_count():
    shares = {"0010": 0.3, "0020": 0.1, "1006": 5.0}
    own = grouped(shares=shares, source="a census")
    found = drawn(own, "Managers").value_counts()
    assert abs(found["0010"] - 3000) < 170
    assert set(drawn(own, "Computing")) == {"1006"}
    assert set(drawn(own, "Unemployed")) == {"9920"}  # none of its codes has a share
    assert set(drawn(own, "N", 9)) == {"N"}


def test_what_is_drawn_is_counted_where_it_was_drawn_from():
    own = grouped(shares={"0020": 1e-9, "0010": 1e9}, source="a census", outside="missing")
    schema = Schema({"OCCP": own})
    codes = np.repeat(np.arange(own.size), 300)
    rows = decode(schema, {"OCCP": codes}, np.random.default_rng(2))
    assert encode(schema, rows).codes["OCCP"].tolist() == codes.tolist()


def test_types_are_those_of_the_codes():
    own = Nested(levels=("10", "20", "30"), groupings=({"a": ("10", "20"), "b": ("30",)},), dtype="int64").grouped(1)
    table = decode(Schema({"C": own}), {"C": np.array([0, 1])}, np.random.default_rng(0))
    assert table.schema.field("C").type == pa.int64()
    assert table.column("C")[1].as_py() == 30


def test_groupings_nest():
    fine = {"1": ("0010",), "2": ("0020",), "10": ("1005", "1006"), "99": ("9920",)}
    own = column(groupings=(fine, GROUPS))
    assert own.grouped(1).all_levels == ("N", "1", "2", "10", "99")
    assert own.grouped(2).all_levels == grouped().all_levels
    assert own.grouped(0) is own


def test_a_narrower_column_keeps_the_codes_of_its_groups():
    own = narrow(grouped(shares={"0010": 1.0}, source="a census", labels={"0010": "Chiefs"}), ("N", "Computing"))
    assert isinstance(own, Nested)
    assert own.single.levels == ("N", "1005", "1006")
    assert own.shares == {}
    assert own.labels == {}


def test_files_say_all_of_it():
    own = column(labels={"0010": "Chief executives"}, shares={"0010": 0.5, "1005": 0.25}, source="a census")
    for each in (own, own.grouped(1), column(measure=0)):
        schema = Schema({"OCCP": each})
        assert Schema.from_toml_text(schema.to_toml()) == schema
        assert Schema.from_toml_text(schema.to_toml()).column("OCCP") == each


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"groupings": ({"a": ("0010", "0020")},)}, "'1005' is in no group"),
        ({"groupings": ({**GROUPS, "more": ("0010",)},)}, "'0010' is there twice"),
        ({"groupings": ({**GROUPS, "more": ("7",)},)}, "'7' is no such level"),
        ({"groupings": ({**GROUPS, "N": ("0010",)},)}, "twice"),
        ({"groupings": ({"0010": CODES[1:]},)}, "must not be called '0010'"),
        ({"groupings": ("Managers",)}, "tables from a group's name"),
        ({"groupings": ({"none": ()},)}, "has no codes"),
        ({"members": {"Managers": ("1",)}}, "members name 'Managers'"),
        ({"members": {"0010": ("0020",)}}, "'0020' is there twice"),
        ({"members": {"N": ("0",)}}, "not_applicable"),
        ({"shares": {"0010": 0.1}}, "need a source"),
        ({"source": "a census"}, "a source needs shares"),
        ({"shares": {"7": 0.1}, "source": "a"}, "'7', which is not a code"),
        ({"shares": {"0010": -1.0}, "source": "a"}, "not below 0"),
        ({"shares": {"0010": True}, "source": "a"}, "not below 0"),
        ({"shares": {"0010": float("nan")}, "source": "a"}, "not below 0"),
        ({"outside": "0010"}, "outside of a nested column"),
        ({"measure": 2}, "measure must be"),
        ({"measure": True}, "measure must be"),
        ({"dtype": "bool"}, "cannot hold level"),
        ({"labels": {"7": "seven"}}, "labels name '7'"),
    ],
)
def test_what_makes_no_sense_is_refused(keys, says):
    with pytest.raises(SchemaError, match=says):
        column(**keys)
