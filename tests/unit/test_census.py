"""The built-in census: the same people everywhere, and all of them within the schema."""

import hashlib
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from stratsynth import census
from stratsynth.census import draws, people
from stratsynth.errors import UsageError
from stratsynth.schema import Categorical, Schema
from stratsynth.schema.codec import decode, to_pandas
from stratsynth.schema.encoding import encode
from stratsynth.schema.rows import CodedRows

GOLDEN = "3b81d7eed42a413479a2682ccd08a3ec9795bec363eabfdedcc1a615fe3fe7ac"
NAMED = {"AGEP", "SEX", "RAC1P", "HISP", "MAR", "SCHL", "ESR", "PINCP", "WKHP", "POVPIP", "DIS"}
EMPLOYED = ["1", "2", "4", "5"]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return census.make(300_000)


@pytest.fixture(scope="module")
def coded(table: pd.DataFrame) -> CodedRows:
    return encode(census.schema(), pa.Table.from_pandas(table, preserve_index=False))


def content(frame: pd.DataFrame) -> str:
    """A hash of every value, whatever the types that hold it."""
    found = hashlib.sha256()
    for name, column in census.schema().columns.items():
        if isinstance(column, Categorical):
            values = frame[name].map(column.codes).to_numpy(np.int64)
        else:
            values = frame[name].fillna(-99_999).to_numpy(np.int64)
        found.update(f"{name} {len(values)} ".encode() + values.astype("<i8").tobytes())
    return found.hexdigest()


class TestSamePeople:
    def test_the_content_is_the_same_everywhere(self):
        assert content(census.make(2000)) == GOLDEN

    def test_rows_do_not_depend_on_how_many_are_made(self, table):
        more = 3 * people.CHUNK + 7  # ends inside a chunk
        for few in (0, 1, 1000, people.CHUNK, more):
            pd.testing.assert_frame_equal(census.make(few), table[:few])

    def test_an_offset_goes_on_where_others_stopped(self, table):
        start = people.CHUNK - 3
        part = census.make(100, offset=start)
        pd.testing.assert_frame_equal(part, table[start : start + 100].reset_index(drop=True))

    def test_another_seed_makes_other_people(self, table):
        other = census.make(1000, seed=1)
        assert not (other["PINCP"].fillna(0) == table["PINCP"][:1000].fillna(0)).all()
        assert content(other) != content(census.make(1000, seed=2))

    @given(st.integers(0, 2**40), st.integers(0, 2**41))
    def test_draws_are_splitmix_in_exact_arithmetic(self, seed, row):
        def mix(z: int) -> int:
            z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
            z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
            return z ^ z >> 31

        step = 0x9E3779B97F4A7C15
        key = mix((mix((seed + step) % 2**64) + row * step) % 2**64)
        salt = int.from_bytes(hashlib.sha256(b"SEX").digest()[:8], "little")
        keys = draws.keys(seed, row, 3)
        assert keys[0] == key
        assert draws.draws(keys, "SEX")[0] == mix((key + salt) % 2**64) >> 33

    def test_a_million_rows_take_five_seconds_at_most(self):
        start = time.process_time()  # of this process alone, whatever else the machine does
        assert len(census.make(1_000_000)) == 1_000_000
        assert time.process_time() - start <= 5

    def test_importing_it_loads_no_heavy_library(self):
        code = "import stratsynth.census, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
        run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
        assert set(run.stdout.split()) & {"numpy", "pandas", "pyarrow", "scipy"} == set()


class TestHoldout:
    def test_its_rows_are_never_made(self):
        assert census.PEOPLE == 2**40
        pd.testing.assert_frame_equal(census.holdout(9), people.frame(0, census.PEOPLE, 9))
        with pytest.raises(UsageError, match="hold-out"):
            census.make(2, offset=census.PEOPLE - 1)
        assert len(census.make(1, offset=census.PEOPLE - 1)) == 1

    def test_it_has_other_people(self, table):
        both = pd.concat([census.make(5000), census.holdout(5000)])
        adults = both[both["PINCP"] > 0].drop(columns="POVPIP")
        assert adults.duplicated().mean() < 0.02  # some people are alike by chance

    @pytest.mark.parametrize("column", ["RAC1P", "ESR", "MAR", "SCHL", "PINCP", "WKHP", "PUBCOV", "TEN"])
    def test_it_has_the_same_distribution(self, column, coded):
        other = encode(census.schema(), pa.Table.from_pandas(census.holdout(50_000), preserve_index=False))
        both = np.stack([np.bincount(each.codes[column]) for each in (coded, other)])
        assert stats.chi2_contingency(both[:, both.sum(axis=0) > 30]).pvalue > 1e-4


class TestSchema:
    def test_it_is_public_and_has_the_columns_promised(self):
        schema = census.schema()
        assert schema.origin == "public"
        schema.ready()
        assert len(schema.names) >= 16
        assert set(schema.names) >= NAMED
        assert schema.size("RAC1P") == 9
        assert Schema.from_toml_text(schema.to_toml()) == schema

    def test_no_row_is_left_out_and_no_value_is_outside(self, table, coded):
        schema = census.schema()
        assert coded.size == len(table)
        for name, column in schema.columns.items():
            if isinstance(column, Categorical):
                assert set(table[name].unique()) == set(column.levels), name  # every level exists, too
            else:
                numbers = table[name].dropna()
                assert column.lower <= numbers.min()
                assert numbers.max() <= column.upper
                assert (numbers == numbers.round()).all()
                assert len(np.unique(coded.codes[name])) == column.size, name

    def test_a_synthetic_table_has_the_same_types(self, table, coded):
        released = decode(census.schema(), coded.codes, np.random.default_rng(0))
        assert to_pandas(released).dtypes.to_dict() == table.dtypes.to_dict()
        assert list(released.column_names) == list(table.columns)
        again = encode(census.schema(), released)
        assert all((again.codes[name] == coded.codes[name]).all() for name in census.schema().names)

    def test_a_file_holds_the_same_people(self, tmp_path):
        few = census.make(3000)
        few.to_csv(tmp_path / "people.csv", index=False)
        texts = pa.csv.ConvertOptions(column_types=dict.fromkeys(few.columns, pa.string()), strings_can_be_null=False)
        read = encode(census.schema(), pa.csv.read_csv(tmp_path / "people.csv", convert_options=texts))
        made = encode(census.schema(), pa.Table.from_pandas(few, preserve_index=False))
        assert read.size == made.size == 3000
        assert all((read.codes[name] == made.codes[name]).all() for name in few.columns)

    def test_nobody_is_in_a_forbidden_cell(self, coded):
        boxes = [box for rule in census.schema().rules for box in rule.cells(census.schema())]
        assert len(boxes) > 40
        for box in boxes:
            inside = np.ones(coded.size, bool)
            for name, codes in box.items():
                assert codes, box  # a condition that no level meets would forbid nothing
                inside &= np.isin(coded.codes[name], list(codes))
            assert not inside.any(), box

    def test_children_are_children(self, table):
        young = table[table["AGEP"] < 15]
        assert set(young["MAR"]) == {"5"}
        assert young[["PINCP", "WKHP"]].isna().all(axis=None)
        assert table.loc[table["AGEP"] < 16, "PINCP"].fillna(0).eq(0).all()
        assert not table.loc[table["AGEP"] < 18, "SCHL"].isin(["20", "21", "22", "23", "24"]).any()
        assert (table.loc[table["ESR"].isin(EMPLOYED), "WKHP"] >= 1).all()


class TestArguments:
    @pytest.mark.parametrize(
        "wrong",
        [{"rows": -1}, {"rows": 1.5}, {"rows": True}, {"rows": 1, "seed": -1}, {"rows": 1, "offset": "2"}],
        ids=str,
    )
    def test_what_is_no_whole_number_is_refused(self, wrong):
        with pytest.raises(UsageError, match="whole number"):
            census.make(**wrong)
