"""The private rows are refused as a public input whatever file, spelling or order they come in."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather

from helpers.ledgers import BUDGET
from helpers.priors import CITATION, SCHEMA, people
from stratsynth import Prior, PublishedTable, Stratified, Weights, fit, open_table
from stratsynth.adapters import MST, Independent
from stratsynth.data import overlap, same_rows
from stratsynth.data.same_rows import KINDS, LEAST, chance, coded, contents
from stratsynth.data.sources import ParquetSource, open_source
from stratsynth.errors import StratsynthError, WeightsError
from stratsynth.schema import Categorical, Schema

ROWS = 300
FRAME = people(ROWS, 6)
OTHERS = people(ROWS, 7)


def written(path, frame=None, **how):
    frame = FRAME if frame is None else frame
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".feather":
        feather.write_feather(pa.Table.from_pandas(frame), path)
    else:
        frame.to_csv(path, index=False, **how)
    return path


def parts(folder):
    (folder / "copy" / "G=0").mkdir(parents=True)
    (folder / "copy" / "G=1").mkdir(parents=True)
    for value in ("0", "1"):
        FRAME[value == FRAME.G].drop(columns="G").to_parquet(
            folder / "copy" / f"G={value}" / "part.parquet", index=False
        )
    return folder / "copy"


def database(folder):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    with duckdb.connect(str(folder / "copy.duckdb")) as connection:
        connection.register("given", FRAME)
        connection.execute("CREATE TABLE people AS SELECT * FROM given ORDER BY A")
    return open_source(folder / "copy.duckdb", "people")


DISGUISES = {
    "the bytes": lambda folder: written(folder / "copy.csv"),
    "other line ends": lambda folder: written(folder / "copy.csv", lineterminator="\r\n"),
    "quotes": lambda folder: written(folder / "copy.csv", quoting=1),
    "gzip": lambda folder: written(folder / "copy.csv.gz"),
    "Parquet": lambda folder: written(folder / "copy.parquet"),
    "Feather": lambda folder: written(folder / "copy.feather"),
    "a folder": parts,
    "whole numbers": lambda folder: written(folder / "copy.parquet", FRAME.astype(int)),
    "reals in text": lambda folder: written(folder / "copy.csv", FRAME.astype(float)),
    "another order of rows": lambda folder: written(folder / "copy.csv", FRAME.sample(frac=1, random_state=3)),
    "another order of columns": lambda folder: written(folder / "copy.csv", FRAME[FRAME.columns[::-1]]),
    "one more column": lambda folder: written(folder / "copy.csv", FRAME.assign(MORE=range(ROWS))),
    "a frame": lambda _: FRAME.copy(),
    "a shuffled frame": lambda _: FRAME.sample(frac=1, random_state=3),
    "a frame with an index": lambda _: FRAME.set_axis(np.arange(ROWS) + 7),
    "categories": lambda _: FRAME.astype("category"),
    "an Arrow table": lambda _: pa.Table.from_pandas(FRAME),
}
PRIVATE = {
    "csv": lambda folder: written(folder / "people.csv"),
    "parquet": lambda folder: written(folder / "people.parquet"),
    "frame": lambda _: FRAME,
}


CASES = [("csv", name) for name in DISGUISES] + [
    (private, name) for private in ("parquet", "frame") for name in ("other line ends", "a shuffled frame")
]


def refused(data, sentence, mechanism, **options):
    ledger = None if isinstance(data, pd.DataFrame) else data.with_name("people.ledger")
    table = open_table(data, schema=SCHEMA, declared_size=ROWS, ledger=ledger)
    with pytest.raises(WeightsError, match=sentence):
        fit(mechanism, table, BUDGET, **options)
    assert ledger is None or b'"reserve"' not in ledger.read_bytes()
    assert ledger is not None or table.ledger.reserved == ()


@pytest.mark.parametrize(("private", "disguise"), CASES)
def test_the_private_rows_are_no_prior_and_no_sample(private, disguise, tmp_path):
    data, copy = PRIVATE[private](tmp_path), DISGUISES[disguise](tmp_path)
    refused(data, "^prior: it is the private table itself", MST(), prior=Prior.public(copy, citation=CITATION))
    weights = Weights.holdout(copy, citation=CITATION)
    refused(data, "^weights: their source is the private", Stratified(Independent(), ["G"], weights))


@pytest.mark.duckdb
def test_the_private_rows_are_no_prior_out_of_a_database(tmp_path):
    prior = Prior.public(database(tmp_path), citation=CITATION)
    refused(written(tmp_path / "people.csv"), "^prior: it is the private table itself", MST(), prior=prior)


@pytest.mark.parametrize("weights", ["raked", "private"])
def test_nor_what_other_weights_are_made_of(weights, tmp_path):
    sample = Weights.holdout(written(tmp_path / "copy.parquet"), citation=CITATION)
    made = Weights.raked(sample) if weights == "raked" else Weights.private(share=0.1, prior=sample)
    refused(written(tmp_path / "people.csv"), "private table itself", Stratified(Independent(), ["G"], made))


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_whatever_engine_holds_them(engine, tmp_path):
    table = open_table(written(tmp_path / "people.parquet"), schema=SCHEMA, declared_size=ROWS, engine=engine)
    prior = Prior.public(written(tmp_path / "copy.csv"), citation=CITATION)
    with pytest.raises(WeightsError, match="private table itself"):
        fit(MST(), table, BUDGET, prior=prior)


def test_the_private_rows_are_no_prior_under_other_names_and_values(tmp_path):
    words = {"0": "none", "1": "some", "2": "many"}
    names = {"A": "amount", "B": "b", "C": "c", "D": "d", "G": "g"}
    frame = FRAME.assign(A=FRAME.A.map(words)).rename(columns=names)
    back = {word: level for level, word in words.items()}
    prior = Prior.public(frame, citation=CITATION, rename=names, recode={"A": back})
    refused(written(tmp_path / "people.csv"), "private table itself", MST(), prior=prior)


def test_a_part_of_the_columns_of_the_private_rows_is_no_sample(tmp_path):
    sample = written(tmp_path / "copy.parquet", FRAME[["A", "B", "D", "G"]])
    weights = Weights.holdout(sample, citation=CITATION)
    refused(written(tmp_path / "people.csv"), "private table itself", Stratified(Independent(), ["G"], weights))


def test_a_table_of_shares_or_a_published_one_that_lists_the_private_rows_is_refused(tmp_path):
    """A private table of one row for each of many cells, with a column of counts."""
    levels = tuple(str(i) for i in range(40))
    schema = Schema({"CODE": Categorical(levels=levels)})
    frame = pd.DataFrame({"CODE": levels, "count": range(1, 41)})
    data = written(tmp_path / "people.csv", frame)
    table = open_table(data, schema=schema, declared_size=40)
    by_code = written(tmp_path / "shares.csv", frame[::-1], quoting=1)
    with pytest.raises(WeightsError, match="weights: their source is the private"):
        fit(Stratified(Independent(), ["CODE"], Weights.public(by_code, citation=CITATION)), table, BUDGET)
    with pytest.raises(WeightsError, match="prior: it is the private"):
        fit(MST(), table, BUDGET, prior=Prior.tables([PublishedTable(by_code, CITATION)]))
    assert table.ledger.reserved == ()


# What is let in


def test_shares_of_codes_that_the_private_table_has_once_each_are_taken(tmp_path):
    """That a table of shares lists every code once makes it no table of these rows."""
    levels = tuple(str(i) for i in range(40))
    schema = Schema({"CODE": Categorical(levels=levels), "SIZE": Categorical(levels=("s", "l"))})
    frame = pd.DataFrame({"CODE": levels, "SIZE": ["s", "l"] * 20})
    table = open_table(written(tmp_path / "people.csv", frame), schema=schema, declared_size=40)
    shares = Weights.public(pd.DataFrame({"CODE": levels, "count": 1}), citation=CITATION)
    assert fit(Stratified(Independent(), ["CODE"], shares), table, BUDGET).certificate["private"]


@pytest.mark.parametrize("other", ["one row fewer", "one row more", "one value", "others", "a part"])
def test_rows_that_are_not_all_the_same_decide_nothing(other, tmp_path):
    """Otherwise one record would, and nobody has paid for that."""
    changed = FRAME.copy()
    changed.loc[5, "A"] = str((int(changed.loc[5, "A"]) + 1) % 3)
    frame = {
        "one row fewer": FRAME[1:],
        "one row more": pd.concat([FRAME, FRAME[:1]]),
        "one value": changed,
        "others": OTHERS,
        "a part": FRAME[: ROWS // 2],
    }[other]
    table = open_table(written(tmp_path / "people.csv"), schema=SCHEMA, declared_size=ROWS)
    release = fit(MST(), table, BUDGET, prior=Prior.public(written(tmp_path / "o.csv", frame), citation=CITATION))
    assert release.certificate["private"]


def test_tables_of_few_kinds_of_rows_may_be_equal_by_chance(tmp_path):
    """Other people with as many men and women are no sign that they are the same people."""
    schema = Schema({"SEX": Categorical(levels=("1", "2"))})
    frame = pd.DataFrame({"SEX": ["1", "2"] * 50})
    sample = written(tmp_path / "sample.csv", frame[::-1])
    table = open_table(written(tmp_path / "people.parquet", frame), schema=schema, declared_size=100)
    weights = Weights.holdout(sample, citation=CITATION)
    assert fit(Stratified(Independent(), ["SEX"], weights), table, BUDGET).certificate["private"]


def test_the_chance_of_equal_tables_is_bounded():
    assert chance([7]) == chance([]) == 1
    assert chance([1, 1]) == pytest.approx(1 / 2)
    assert chance([2, 1]) == pytest.approx(4 / 9)
    assert chance([50, 50]) == pytest.approx(0.0796, abs=1e-4)
    assert chance([250_000] * 4) == pytest.approx(1.016e-9, rel=1e-3)
    assert chance([1] * (KINDS - 1)) < LEAST
    assert chance([10**6] + [1] * (KINDS - 2)) <= 2.0 ** (2 - KINDS)
    assert chance([1] * 10**5) == chance([10**6] + [1] * (KINDS - 1)) == 2.0 ** (1 - KINDS) <= LEAST


def test_drawn_tables_are_equal_no_more_often_than_the_bound_says():
    rng = np.random.default_rng(0)
    for law in ([0.5, 0.5], [0.2, 0.3, 0.5], [0.9, 0.05, 0.05]):
        drawn = rng.multinomial(12, law, size=20_000)
        kinds, often = np.unique(drawn, axis=0, return_counts=True)
        for times, equal in zip(kinds.tolist(), (often / len(drawn)).tolist(), strict=True):
            assert equal <= chance([k for k in times if k]) + 0.02


# Nothing else is told


def test_what_cannot_be_read_is_told_after_the_charge_alone(tmp_path, monkeypatch):
    """A private table that fails where it is compared is fitted as if it were not compared."""
    table = open_table(written(tmp_path / "people.parquet"), schema=SCHEMA, declared_size=ROWS)
    prior = Prior.public(written(tmp_path / "other.csv", OTHERS), citation=CITATION)
    whole = ParquetSource.batches

    def failing(self, *columns):
        yield from whole(self, *columns)
        raise ValueError("zebra")

    monkeypatch.setattr(ParquetSource, "batches", failing)
    with pytest.raises(StratsynthError, match="could not be read; the charge stands") as caught:
        fit(MST(), table, BUDGET, prior=prior)
    assert "zebra" not in str(caught.value)
    assert len(table.ledger.reserved) == 1


def test_a_small_public_table_costs_no_pass_over_the_private_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("stratsynth.data.sources.BATCH", 100)
    data, small = written(tmp_path / "people.parquet"), OTHERS[:90]
    read, whole = [], ParquetSource.batches
    monkeypatch.setattr(
        ParquetSource, "batches", lambda self, *c: (read.append(b.num_rows) or b for b in whole(self, *c))
    )
    other = coded(SCHEMA, [pa.Table.from_pandas(small)])
    assert not overlap.has_rows(open_source(data), SCHEMA, other)
    assert read == [100]


def test_wide_tables_are_digested_in_parts(monkeypatch):
    whole = contents(open_source(FRAME), SCHEMA)
    monkeypatch.setattr(same_rows, "CELLS", 35)
    assert contents(open_source(FRAME), SCHEMA) == contents(open_source(FRAME.astype("category")), SCHEMA) == whole


@pytest.mark.parametrize("disguise", DISGUISES)
def test_contents_are_of_the_rows_whatever_holds_them(disguise, tmp_path):
    values, codes = contents(open_source(DISGUISES[disguise](tmp_path)), SCHEMA)
    mine, coded_mine = contents(open_source(FRAME), SCHEMA)
    assert coded_mine == codes
    assert (values == mine) == (disguise != "one more column")
    other, coded_other = contents(open_source(OTHERS), SCHEMA)
    assert other != values
    assert coded_other != codes
    assert str(mine.total) not in repr(mine)


def test_all_bits_of_a_rows_digest_count():
    """Sums of one row have the bits of its digest, whatever batch it is in."""
    one, two, both = (coded(SCHEMA, [pa.Table.from_pandas(frame)]) for frame in (FRAME[:1], FRAME[1:2], FRAME[:2]))
    assert both.total == (one.total + two.total) % 2**128
    assert one.total != two.total
    assert all(content.total >> 96 and content.total % 2**32 for content in (one, two, both))
    batches = [pa.Table.from_pandas(FRAME[:1]), pa.Table.from_pandas(FRAME[1:2])]
    assert coded(SCHEMA, batches) == coded(SCHEMA, batches[::-1]) == both
