"""Faults that a second reading of the privacy argument found: each let one record, or one object, do too much."""

import decimal

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from stratsynth.adapters import MST, Independent
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.rows import StoredRows
from stratsynth.errors import MechanismError, SchemaError, UsageError
from stratsynth.fitting import request_of
from stratsynth.mechanisms import prepare
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Choose, Coded, Columns, Counts, Gradients, Peak, PublicRows, Split, Total
from stratsynth.schema import Numeric, Schema, Unit
from stratsynth.schema.encoding import encode
from stratsynth.schema.rows import CodedRows
from stratsynth.schema.temporal import Temporal
from stratsynth.schema.values import _unit
from stratsynth.strata import Stratum

ODD = [
    "0e99999999999999999999",
    "1e-99999999999999999999",
    "1e9999999",
    "-70.5e604248298812503",
    "1e400",
    "-0e7",
    "9" * 60,
]


@pytest.mark.parametrize("precision", [28, 3])
@pytest.mark.parametrize("text", ODD)
def test_no_text_of_one_record_fails_a_fit(text, precision):
    """Numbers with exponents beyond all decimals mean something or nothing, whatever the caller's decimals."""
    schema = ss.Schema({"T": Temporal(kind="duration", lower=0, upper=100), "X": ss.Numeric(lower=0, upper=1, bins=2)})
    frame = pd.DataFrame({"T": ["5", text, "7"], "X": ["0.5", text, "0.25"]})
    with decimal.localcontext(prec=precision):
        import pyarrow as pa

        encode(schema, pa.Table.from_pandas(frame, preserve_index=False))
        _unit(text)


def test_a_unit_of_any_text_is_kept_apart_or_left_out():
    schema = ss.Schema(dict(small.SCHEMA.columns), unit=Unit(column="P", max_rows=2))
    for odd in ODD:
        frame = small.people(30).assign(P=[odd, *(str(i) for i in range(29))])
        release = ss.fit("independent", ss.open_table(frame, schema=schema, declared_size=30), ss.Budget(1, 1e-9))
        assert release.certificate["unit"] == {"column": "P", "max_rows": 2}


class Sly(float):
    """One number where it is compared, another where it is added up."""

    def as_integer_ratio(self):
        return (1, 10**9)


class Yes(int):
    """Equal to whatever it is compared with."""

    __hash__ = int.__hash__

    def __eq__(self, other):
        return True


SCHEMA = ss.Schema(
    {
        "G": ss.Categorical(levels=("a", "b"), outside="a", public=True),
        "X": ss.Numeric(lower=-1, upper=1, bins=2),
        "Y": ss.Numeric(lower=-1, upper=1, bins=2),
    }
)
SUM, ONE = Columns(("X",), (0.0,), (1.0,), 1.0), np.ones(1)


@pytest.mark.parametrize(
    "question",
    [
        Choose((Peak(SUM, ONE[None], ONE),), Sly(0.1)),
        Choose((Peak(SUM, ONE[None], ONE, Yes(5)),), 0.1),
        Total(SUM, Sly(0.1)),
        Total(Columns(("X",), (0.0,), (1.0,), Sly(1.0)), 0.1),
        Total(Gradients(Coded(("X",)), "Y", "linear", np.zeros((1, 2)), Sly(1.0)), 0.1),
    ],
)
def test_numbers_are_told_by_their_exact_class(question):
    with pytest.raises(MechanismError):
        question.check(SCHEMA)


class Turning(tuple):
    """One thing while it is looked at for the first few times, and another from then on."""

    __slots__ = ()
    looked = 0

    def __iter__(self):
        type(self).looked += 1
        return iter(self[:1] if self.looked < 4 else self[1:])

    def __len__(self):
        return 1


class Apart(Stratum):
    """Has no cell in common with any other, whatever its levels."""

    def cells(self):
        return iter([object()])


@pytest.mark.parametrize(
    "question",
    [
        Counts(Turning([("G",), ("X",), ("Y",)]), 0.1),
        Counts((Turning(["G", "X"]),), 0.1),
        Counts((("G",), ("X",)), 0.1, Turning([1.0, 1.0])),
        Choose(Turning([Peak(SUM, ONE[None], ONE)]), 0.1),
        PublicRows(Turning(["G", "X"])),
        Split({Apart.of({"G": "a"}): None, Apart.of({"G": ("a", "b")}): None}),
    ],
)
def test_what_holds_the_parts_of_a_question_is_told_by_its_exact_class(question):
    """`PublicRows` of a tuple that turned gave a protected column out, and `Counts` of one more tables than it paid."""
    Turning.looked = 0
    with pytest.raises(MechanismError):
        question.check(SCHEMA)


def test_numpys_own_floats_are_numbers_and_its_texts_name_columns():
    Counts(((np.str_("G"), "X"),), 0.1).check(SCHEMA)
    Total(Columns(("X",), (0.0,), (1.0,), np.float64(1.0)), np.float64(0.1)).check(SCHEMA)


def test_a_question_is_charged_and_read_as_it_was_admitted():
    """An array can be retyped while other strata's programs run: the copy that is charged and read is another array."""
    query = Gradients(Coded(("X",)), "Y", "linear", np.zeros((1, 2)), 1.0, ("G",), np.ones(2))
    asked = Asked((), SCHEMA, Total(query, 0.1))
    query.parts.dtype = np.int64
    assert asked.question.query.parts is not query.parts
    assert asked.question.query.parts.dtype == np.float64
    asked.question.check(SCHEMA)
    with pytest.raises(MechanismError, match="from 0 to 1"):
        Asked((), SCHEMA, Total(query, 0.1))


def test_a_schema_that_nobody_reviewed_is_good_for_public_rows_alone():
    people = small.people(60)
    with pytest.warns(ss.errors.NotPrivateWarning):
        release = ss.synthesize(people, epsilon=1, public=True)
    schema = release.model.schema
    table = ss.open_table(people, schema=schema, declared_size=60)
    with pytest.raises(SchemaError, match="reviewed_by"):
        ss.fit(MST(), table, ss.Budget(1, 1e-9))
    for name in (" ", "", None, schema.reviewed_by):
        with pytest.raises(SchemaError, match="who has reviewed"):
            schema.reviewed(name)
    assert (
        ss.open_table(people, schema=schema.reviewed("A. Person"), declared_size=60).schema.reviewed_by == "A. Person"
    )


def test_a_file_with_an_account_is_refused_before_it_is_drafted_from(tmp_path):
    small.people(40).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "people.ledger").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="has an account"):
        ss.synthesize(tmp_path / "people.csv", epsilon=1, public=True)


def test_a_sum_that_is_shorter_than_its_query_says_is_refused_and_not_repeated(monkeypatch):
    schema = Schema({name: Numeric(lower=0, upper=1, bins=2) for name in ("a", "b")})
    query = Columns(("a", "b"), (0.0, 0.0), (1.0, 1.0), 1.0)
    codes = {name: np.zeros(3, np.uint8) for name in schema.names}
    rows = StoredRows([CodedRows(schema, codes, {name: np.full(3, 0.5) for name in schema.names}, 3)])
    monkeypatch.setattr(Columns, "exact", lambda *_: [np.ones(1, np.int64)])
    with pytest.raises(MechanismError, match="another size than its query says"):
        rows.sums([((), query, 1.0)], SeededEntropy(1))


def test_another_query_of_a_database_is_another_fit():
    prepared = prepare(Independent(), small.SCHEMA, small.BUDGET, small.SIZE)
    identities = {request_of(prepared, 1, query=query).identity for query in (None, "SELECT 1", "SELECT 2")}
    assert len(identities) == 3
