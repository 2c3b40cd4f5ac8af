"""Tasks of Spark's executors, without Spark: partial tables add up to those of rows in memory, to the integer."""

import dataclasses
import itertools
import os
import traceback

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from helpers import small
from helpers.small import SCHEMA
from stratsynth.data import spark_tasks
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.data.spark import PIECE_ROWS, runs
from stratsynth.data.spark_tasks import (
    BLOCK,
    FAILED,
    NOT_HERE,
    SUMS,
    VERSION,
    CheckFiles,
    CountTables,
    FromFiles,
    FromSpark,
    Piece,
    SumRows,
    stamp,
)
from stratsynth.errors import StratsynthError
from stratsynth.schema import Categorical, Nested, Schema
from stratsynth.schema.weight import RowWeight
from stratsynth.strata import Stratum

PATHS = [
    (),
    (Stratum.of({"SEX": "2"}),),
    (Stratum.of({"SEX": "1", "GROUP": ["a", "b"]}),),
    (Stratum.of({"SEX": ["1", "2"], "GROUP": "b"}), Stratum.of({"SEX": "2"})),
]
CLIQUES = [("WORK",), ("AGE",), ("AGE", "WORK")]
ASKED = [(path, CLIQUES) for path in PATHS]


def batches(table, cuts=()):
    """Batches as Spark hands them over: columns numbered, and two hashes of each row after them."""
    rng = np.random.default_rng(table.num_rows)
    lanes = [pa.array(rng.integers(-(2**63), 2**63 - 1, table.num_rows)) for _ in range(2)]
    table = table.append_column("h1", lanes[0]).append_column("h2", lanes[1])
    table = table.rename_columns([f"c{i}" for i in range(table.num_columns)])
    ends = [0, *sorted(cuts), table.num_rows]
    return [batch for a, b in itertools.pairwise(ends) for batch in table.slice(a, b - a).to_batches()]


def added(answers, cells):
    total, sums = np.zeros(cells, np.int64), np.zeros(1, np.uint64)
    for one in answers:
        for first, found in zip(one["first"].to_pylist(), one["cells"].to_pylist(), strict=True):
            if first == SUMS:
                sums = sums + np.frombuffer(found, np.uint64)
            else:
                part = np.frombuffer(found, np.int64)
                total[first : first + len(part)] += part
    return total, sums


def flat(counted):
    return np.concatenate([table.ravel() for tables in counted for table in tables])


def in_memory(schema, data, asked):
    return flat(load_rows(schema, open_source(data)).counts(asked))


def tables_of(schema):
    """A few tables of any schema, of everybody and of the levels of its first column."""
    names = schema.names
    asked = [((), [(name,) for name in names])]
    if len(names) > 1:
        asked[0][1].append(names[:2])
        first = Stratum.of({names[0]: schema.column(names[0]).all_levels[0]})
        asked.append(((first,), [names[1:]]))
    return asked


@given(draw=st.data())
@settings(max_examples=60)
def test_partial_tables_add_up_to_those_in_memory(draw):
    """Any schema, any types, values outside it; any partitions in any order, empty ones too."""
    schema = draw.draw(strategies.schemas().filter(lambda s: isinstance(s.unit, str) and s.cells(s.names) < 20_000))
    table = draw.draw(strategies.tables(schema))
    asked = tables_of(schema)
    wanted = in_memory(schema, table, asked)
    partitions = draw.draw(st.permutations(batches(table, draw.draw(st.lists(st.integers(0, table.num_rows))))))
    task = CountTables(VERSION, schema, asked, FromSpark((*schema.names, *schema.beside), 2))
    answers = [one for each in ([], *([batch] for batch in partitions)) for one in task(iter(each))]
    total, (rows, *_) = added(answers, len(wanted))
    np.testing.assert_array_equal(total, wanted)
    assert rows == table.num_rows
    whole, sums = added(task(iter(partitions)), len(wanted))
    np.testing.assert_array_equal(whole, wanted)
    assert sums.tolist() == added(answers, len(wanted))[1].tolist()


@pytest.mark.parametrize("rows", [1, 40, 10_000])
def test_strata_merges_and_weights_are_those_in_memory(rows, monkeypatch):
    monkeypatch.setattr(spark_tasks, "ROWS", 30)
    monkeypatch.setattr(spark_tasks, "BATCH", 7)
    schema = dataclasses.replace(SCHEMA, row_weight=RowWeight(column="W", most=9))
    data = small.people(100).assign(W=np.arange(100) % 14 - 2)
    table = pa.Table.from_pandas(data, preserve_index=False)
    wanted = in_memory(schema, table, ASKED)
    task = CountTables(VERSION, schema, ASKED, FromSpark((*schema.names, "W"), 2))
    total, _ = added(task(iter(batches(table.select([*schema.names, "W"]), range(0, 100, rows)))), len(wanted))
    np.testing.assert_array_equal(total, wanted)


def test_code_lists_are_counted_in_their_groups():
    codes = tuple(f"{i:03d}" for i in range(40))
    column = Nested(levels=codes, groupings=({f"{i:02d}": codes[10 * i : 10 * i + 10] for i in range(4)},))
    schema = Schema({"CODE": column.grouped(1), "SEX": Categorical(levels=("1", "2"))})
    table = pa.table({"CODE": [codes[i % 40] for i in range(90)], "SEX": ["12"[i % 2] for i in range(90)]})
    asked = [((), [("CODE",), ("SEX", "CODE")])]
    wanted = in_memory(schema, table, asked)
    task = CountTables(VERSION, schema, asked, FromSpark(schema.names, 2))
    np.testing.assert_array_equal(added(task(iter(batches(table, [50]))), len(wanted))[0], wanted)
    assert len(wanted) == 3 * 4


def written(path, rows=100, group=7):
    table = pa.Table.from_pandas(small.people(rows).astype(str), preserve_index=False)
    pq.write_table(table, path, row_group_size=group)
    return path


def pieces_of(path, groups):
    return tuple(Piece(str(path), "", SCHEMA.names, group, stamp(path)) for group in groups)


def numbers(*some):
    return [pa.RecordBatch.from_pydict({"id": list(some)})]


def test_pieces_of_a_file_add_up_to_it(tmp_path):
    path = written(tmp_path / "p.parquet")
    pieces = pieces_of(path, [(0, 1), (2,), tuple(range(3, 15))])
    wanted = in_memory(SCHEMA, path, ASKED)
    task = CountTables(VERSION, SCHEMA, ASKED, FromFiles(pieces, SCHEMA.names))
    answers = [one for some in ([2], [0, 1], []) for one in task(iter(numbers(*some)))]
    np.testing.assert_array_equal(added(answers, len(wanted))[0], wanted)


@given(st.lists(st.integers(0, 3_000_000)))
def test_runs_are_all_row_groups_in_order(sizes):
    found = list(runs(sizes, PIECE_ROWS))
    assert [i for run in found for i in run] == list(range(len(sizes)))
    assert all(len(run) == 1 or sum(sizes[i] for i in run) <= PIECE_ROWS for run in found)


@given(st.lists(st.integers(1, 100)), st.integers(1, 150))
def test_passes_are_all_tables_in_order_and_no_larger_than_they_may_be(sizes, most):
    found = list(runs(sizes, most))
    assert [i for part in found for i in part] == list(range(len(sizes)))
    assert all(len(part) == 1 or sum(sizes[i] for i in part) <= most for part in found)


# What leaves an executor


def test_an_answer_has_as_many_bytes_whatever_the_rows():
    """Spark notes sizes and numbers of rows of answers in its logs."""
    sizes = {"A": 600, "B": 8, "C": 60}
    schema = Schema({name: Categorical(levels=tuple(map(str, range(size)))) for name, size in sizes.items()})
    asked = [((), [("A", "B", "C"), ("A",)])]
    task = CountTables(VERSION, schema, asked, FromSpark(schema.names, 2))

    def shape(rows):
        table = pa.table({"A": ["1"] * rows, "B": ["a"] * rows, "C": ["x", "2"] * (rows // 2)})
        return [
            (one.num_rows, one["first"].to_pylist(), len(one["cells"][0].as_py())) for one in task(iter(batches(table)))
        ]

    cells = 600 * 8 * 60 + 600
    assert shape(2) == shape(4_000)
    assert len(shape(2)) == 1 + -(-cells // BLOCK) > 3


CANARY = "Eleonora-of-Ravenna"


def failing(*_, **__):
    raise ValueError(CANARY)


@pytest.mark.parametrize("where", ["encode", "batches"])
def test_what_goes_wrong_is_one_sentence_that_quotes_nothing(where, monkeypatch):
    if where == "encode":
        monkeypatch.setattr(spark_tasks.StoredRows, "counts", failing)
    table = pa.Table.from_pandas(small.people().astype(str), preserve_index=False)
    given = iter(batches(table)) if where == "encode" else (failing() for _ in [1])
    with pytest.raises(StratsynthError) as refused:
        list(CountTables(VERSION, SCHEMA, ASKED, FromSpark(SCHEMA.names, 2))(given))
    assert str(refused.value) == FAILED
    assert CANARY not in "".join(traceback.format_exception(refused.value))  # as Spark's workers write it into logs


def test_another_version_is_refused_before_a_row_is_looked_at():
    for task in (CountTables("0.0", SCHEMA, ASKED, FromSpark(SCHEMA.names, 2)), SumRows("0.0"), CheckFiles("0.0", ())):
        with pytest.raises(StratsynthError, match="another version"):
            list(task(failing() for _ in [1]))


@pytest.mark.parametrize("change", ["gone", "other bytes", "other time"])
def test_a_file_that_is_not_as_the_driver_saw_it_is_refused(change, tmp_path):
    path = written(tmp_path / "p.parquet")
    pieces = pieces_of(path, [(0,)])
    assert list(CheckFiles(VERSION, pieces)(iter(numbers(0))))
    if change == "gone":
        path.unlink()
    elif change == "other bytes":
        written(path, 99)
    else:
        os.utime(path, ns=(0, 0))
    tasks = (CheckFiles(VERSION, pieces), CountTables(VERSION, SCHEMA, ASKED, FromFiles(pieces, SCHEMA.names)))
    for task in tasks:
        with pytest.raises(StratsynthError, match=f"^{NOT_HERE}$"):
            list(task(iter(numbers(0))))


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)), max_size=30), st.data())
def test_sums_of_rows_know_neither_order_nor_partitions(rows, draw):
    def told(some):
        lanes = [pa.array([row[i] for row in some], pa.int64()) for i in range(2)]
        return pa.RecordBatch.from_arrays(lanes, ["a", "b"])

    cut = draw.draw(st.integers(0, len(rows)))
    shuffled = draw.draw(st.permutations(rows))
    [whole] = SumRows(VERSION)(iter([told(rows)]))
    parts = [
        one for some in (shuffled[:cut], shuffled[cut:]) for one in SumRows(VERSION)(iter([told(some)] if some else []))
    ]
    expected = [len(rows), *(sum(row[i] for row in rows) % 2**64 for i in range(2))]
    assert np.frombuffer(whole["cells"][0].as_py(), np.uint64).tolist() == expected
    assert (added(parts, 0)[1] + np.zeros(3, np.uint64)).tolist() == expected
