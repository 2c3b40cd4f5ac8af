"""A copy of the data in another order, spelling or kind of file has no budget of its own."""

import json

import pandas as pd
import pyarrow as pa
import pytest

import stratsynth as ss
from helpers.ledgers import BUDGET, kinds, ladder
from helpers.priors import CITATION, SCHEMA, people
from stratsynth.accounting.registry import Registry
from stratsynth.adapters import Independent
from stratsynth.census.acs.shares import shares
from stratsynth.data import same_rows
from stratsynth.data.sources import ParquetSource
from stratsynth.errors import BudgetRefused, StratsynthError, UsageError
from stratsynth.schema import Numeric, Schema
from stratsynth.weights.totals import write_totals

ROWS = 300
FRAME = people(ROWS, 6).assign(AGE=[i % 90 for i in range(ROWS)])
BINNED = Schema({**SCHEMA.columns, "AGE": Numeric(lower=0, upper=90, bins=9)})
OTHER_BINS = Schema({**SCHEMA.columns, "AGE": Numeric(lower=0, upper=99, bins=4)})


def opened(data, ledger="people.ledger", schema=BINNED, **settings):
    path = None if ledger is None else data.with_name(ledger)
    return ss.open_table(data, schema=schema, declared_size=ROWS, ledger=path, **settings)


def fitted(data, ledger="people.ledger", how=None, **settings):
    return ss.fit(how or Independent(), opened(data, ledger, **settings), BUDGET).certificate["ledger"]


@pytest.fixture
def data(tmp_path):
    """A file with an account."""
    path = tmp_path / "people.parquet"
    FRAME.to_parquet(path, index=False)
    fitted(path)
    return path


COPIES = {
    "csv": lambda path: FRAME.to_csv(path.with_suffix(".csv"), index=False),
    "csv.gz": lambda path: FRAME.to_csv(path.with_suffix(".csv.gz"), index=False),
    "other line ends": lambda path: FRAME.to_csv(path.with_suffix(".csv"), index=False, lineterminator="\r\n"),
    "another order": lambda path: FRAME.sample(frac=1, random_state=1).to_parquet(path.with_name("b.parquet")),
    "numbers": lambda path: FRAME.astype(float).to_parquet(path.with_name("b.parquet"), index=False),
    "one more column": lambda path: FRAME.assign(MORE=1).to_parquet(path.with_name("b.parquet"), index=False),
    "another name": lambda path: path.rename(path.with_name("moved.parquet")),
}


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_in_the_folder_has_no_budget_of_its_own(how, data):
    COPIES[how](data)
    [copy] = [p for p in data.parent.iterdir() if p != data and p.suffix in (".csv", ".gz", ".parquet")]
    for ledger in ("other.ledger", None):
        with pytest.raises(UsageError, match=r"the rows of people\.parquet, which has an account already, people\.led"):
            fitted(copy, ledger)
    assert not data.with_name("other.ledger").exists() or kinds(data.with_name("other.ledger")) == []
    assert not Registry(copy).path.exists()
    assert (
        fitted(copy, "other.ledger", new_account="the first one is retired")["new_account"]
        == "the first one is retired"
    )


def test_another_schema_is_no_other_data(data):
    COPIES["csv"](data)
    with pytest.raises(UsageError, match=r"the rows of people\.parquet"):
        fitted(data.with_suffix(".csv"), "other.ledger", schema=OTHER_BINS)


def test_a_copy_may_share_an_account_with_a_name(data):
    COPIES["csv"](data)
    fitted(data, account="persons 2024")
    shared = fitted(data.with_suffix(".csv"), account="persons 2024")
    assert (shared["versions"], shared["releases"]) == (2, 3)


@pytest.mark.parametrize("how", ["one value", "one row fewer", "one row more"])
def test_other_data_have_an_account_of_their_own(how, data):
    changed = {"one row fewer": FRAME[1:], "one row more": pd.concat([FRAME, FRAME[:1]]), "one value": FRAME.copy()}[
        how
    ]
    if how == "one value":
        changed.loc[7, "AGE"] = 89
    changed.to_csv(data.with_name("other.csv"), index=False)
    assert fitted(data.with_name("other.csv"), "other.ledger")["releases"] == 1


def test_a_copy_is_not_public(data):
    copy = data.with_name("others.csv")
    schema = data.with_name("schema.toml")
    BINNED.write_toml(schema)
    FRAME.to_csv(copy, index=False)
    for act in (
        lambda: opened(copy, None, public=True),
        lambda: ss.Prior.public(copy, citation=CITATION),
        lambda: ss.PublishedTable(copy, CITATION),
        lambda: write_totals(copy, schema, ["G"], None, data.with_name("shares.csv")),
        lambda: shares(copy, ["SEX"], year=2023),
    ):
        with pytest.raises(UsageError, match=r"others\.csv has the rows of people\.parquet, which has an account"):
            act()
    FRAME[1:].to_csv(copy, index=False)
    opened(copy, None, public=True)


def test_totals_are_not_written_of_a_copy_with_columns_beside(data):
    """By the schema that counts them, whatever other columns the copy has; without one of its columns there is none."""
    copy, schema, out = data.with_name("others.csv"), data.with_name("schema.toml"), data.with_name("shares.csv")
    BINNED.write_toml(schema)
    FRAME.assign(MORE=range(ROWS)).to_csv(copy, index=False)
    with pytest.raises(UsageError, match=r"others\.csv has the rows of people\.parquet, which has an account"):
        write_totals(copy, schema, ["G"], None, out)
    assert not out.exists()
    FRAME.drop(columns="AGE").to_csv(copy, index=False)
    assert write_totals(copy, schema, ["G"], None, out)[1] == BINNED.size("G")


def test_a_versions_rows_are_noted_and_the_old_ones_kept(data):
    COPIES["csv"](data)
    fitted(data, account="persons 2024")
    FRAME[1:].to_parquet(data, index=False)
    fitted(data, account="persons 2024")
    FRAME[1:].to_csv(data.with_name("later.csv"), index=False)
    for copy in ("people.csv", "later.csv"):
        with pytest.raises(UsageError, match=r"the rows of people\.parquet"):
            fitted(data.with_name(copy), "other.ledger")


def test_an_account_of_an_earlier_version_gets_its_marks_with_the_next_fit(data):
    listed = Registry(data).path
    line = json.loads(listed.read_text())
    assert set(line) == {"ledger", "contents"}
    listed.write_text(json.dumps({"ledger": line["ledger"]}) + "\n")
    fitted(data)
    assert json.loads(listed.read_text()) == line


def test_marks_are_of_the_ledgers_key(data, tmp_path):
    (tmp_path / "apart").mkdir()
    (tmp_path / "apart" / "people.parquet").write_bytes(data.read_bytes())
    fitted(tmp_path / "apart" / "people.parquet")
    one, other = (
        json.loads(Registry(path).path.read_text())["contents"] for path in (data, tmp_path / "apart/people.parquet")
    )
    [first], [second] = one.values(), other.values()
    assert len(first) == len(second) == 2
    assert len({*first, *second}) == 4
    assert {len(mark) for mark in first} == {64}


@pytest.mark.parametrize(
    "what", [b"{", b'{"ledger": "gone.ledger", "contents": {"a": ["b"]}}\n', b'{"ledger": "x", "contents": 3}\n']
)
def test_what_is_no_list_of_ours_beside_the_data_is_passed_over(what, data):
    data.with_name("bank.accounts").write_bytes(what)
    assert fitted(data)["releases"] == 2


# When rows are read


@pytest.fixture
def looked(monkeypatch):
    """The sources whose rows were read for a comparison."""
    found, proper = [], same_rows.contents
    monkeypatch.setattr(
        same_rows, "contents", lambda source, schema=None: found.append(source) or proper(source, schema)
    )
    return found


def test_rows_are_read_for_marks_once_and_after_the_charge(tmp_path, monkeypatch):
    path, ledger, seen = tmp_path / "people.parquet", tmp_path / "people.ledger", []
    FRAME.to_parquet(path, index=False)
    proper = same_rows.contents
    monkeypatch.setattr(same_rows, "contents", lambda *given: seen.append(kinds(ledger)) or proper(*given))
    for _ in range(2):
        fitted(path, how=ladder())
    assert seen == [["ledger", "reserve", "charge"]]


def test_a_fit_that_the_cap_refuses_compares_nothing(data, looked):
    COPIES["csv"](data)
    with pytest.raises(BudgetRefused):
        fitted(data.with_suffix(".csv"), "other.ledger", ledger_epsilon=0.5)
    with pytest.raises(UsageError):
        fitted(data.with_suffix(".csv"), "other.ledger", ledger_epsilon=5)
    assert len(looked) == 1


def test_large_data_are_not_read_for_marks(tmp_path, looked, monkeypatch):
    monkeypatch.setattr(same_rows, "LARGEST", 6 * ROWS - 1)
    FRAME.to_parquet(tmp_path / "people.parquet", index=False)
    fitted(tmp_path / "people.parquet")
    assert looked == []
    assert "contents" not in Registry(tmp_path / "people.parquet").path.read_text()


def test_rows_that_cannot_be_read_have_no_marks_and_that_is_told_by_nothing(tmp_path, monkeypatch):
    FRAME.to_parquet(tmp_path / "people.parquet", index=False)

    def failing(self, *columns):
        raise ValueError("zebra")
        yield

    with monkeypatch.context() as broken:
        broken.setattr(ParquetSource, "looked_at", failing)
        assert fitted(tmp_path / "people.parquet")["releases"] == 1
    assert "contents" not in Registry(tmp_path / "people.parquet").path.read_text()


# Without a ledger


IN_MEMORY = {
    "shuffled": lambda frame: frame.sample(frac=1, random_state=1),
    "one more column": lambda frame: frame.assign(MORE=1),
    "categories": lambda frame: frame.astype("category"),
    "Arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "reals": lambda frame: frame.astype(float),
}


@pytest.mark.parametrize("how", IN_MEMORY)
def test_equal_rows_in_memory_have_one_account(how):
    def once(data, schema=BINNED):
        table = ss.open_table(data, schema=schema, declared_size=ROWS, ledger_epsilon=1.2)
        return ss.fit(Independent(), table, BUDGET)

    frame = people(ROWS, 20 + list(IN_MEMORY).index(how)).assign(AGE=FRAME.AGE)  # data of this test alone
    once(frame.copy())
    with pytest.raises(BudgetRefused):
        once(IN_MEMORY[how](frame))
    if how != "one more column":
        with pytest.raises(BudgetRefused):
            once(IN_MEMORY[how](frame), OTHER_BINS)
    once(frame[1:])


def test_a_comparison_leaves_the_table_that_is_read_next(monkeypatch):
    from stratsynth.data.frames import FrameSource

    frame, read, proper = people(ROWS, 11), [], FrameSource._converted
    monkeypatch.setattr(
        FrameSource, "_converted", lambda self, places: read.append(len(places)) or proper(self, places)
    )
    table = ss.open_table(frame, schema=SCHEMA, declared_size=ROWS)
    ss.fit(Independent(), table, BUDGET)
    assert read == [5]


def test_an_error_of_the_files_own_is_raised(tmp_path):
    """A file swapped while it was compared is not taken for other data."""
    from stratsynth.data.sources import open_source
    from stratsynth.errors import LedgerError

    path = tmp_path / "people.parquet"
    FRAME.to_parquet(path, index=False)
    source = open_source(path)
    with source.open() as file:
        source.seen.note(b"k", file, "mark")
    FRAME[1:].to_parquet(path, index=False)
    with pytest.raises(LedgerError, match="changed or replaced"):
        same_rows.contents(source, SCHEMA)
    with pytest.raises(StratsynthError, match="changed or replaced"):
        same_rows.has_rows(source, SCHEMA, same_rows.Content((), 10, 0, 0.0))
