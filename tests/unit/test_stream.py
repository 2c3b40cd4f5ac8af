"""The engine "stream": the same releases as from memory, of every kind of file, and what it refuses."""

import dataclasses
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
import stratsynth as ss
from helpers import attribute, regressing, small
from helpers.ledgers import kinds, without_account
from helpers.small import BUDGET, SCHEMA, SIZE
from stratsynth import progress
from stratsynth.adapters import AIM, MST, CoinPress, DPFermi, External, Independent
from stratsynth.data import load
from stratsynth.data.backends import MOST_BYTES, Memory, backend
from stratsynth.data.fingerprint import fingerprint
from stratsynth.data.overlap import check_public_inputs
from stratsynth.data.sources import open_source
from stratsynth.data.stream import Stream
from stratsynth.errors import LedgerError, SchemaError, StratsynthError, Unsupported, UsageError, WeightsError
from stratsynth.files.scratch import NoRoomError, Scratch
from stratsynth.noise import SeededEntropy
from stratsynth.schema import Unit
from stratsynth.schema.encoding import width
from stratsynth.testing.record import identical

KEY = b"k" * 32


def folder(path, frame, by=(), files=3):
    """A folder as other engines write it, the columns of `by` in the names of its partitions."""
    groups = frame.groupby(list(by), sort=True) if by else [((), frame)]
    for key, rows in groups:
        names = [f"{c}={value}" for c, value in zip(by, key, strict=True)]
        below = path.joinpath(*names)
        below.mkdir(parents=True, exist_ok=True)
        for i, part in enumerate(np.array_split(np.arange(len(rows)), files)):
            rows.drop(columns=list(by)).iloc[part].to_parquet(below / f"part-{i}.parquet", index=False)
    (path / "_SUCCESS").touch()
    return path


def written(tmp_path, kind):
    frame = small.people().astype(str)
    path = tmp_path / f"people.{kind}"
    if kind in {"csv", "csv.gz"}:
        frame.to_csv(path, index=False)
    elif kind == "row groups.parquet":
        pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=7)
    elif kind == "feather":
        frame.to_feather(path)
    elif kind == "folder":
        return folder(path, frame)
    elif kind == "partitions":
        return folder(path, frame, by=("SEX", "GROUP"))
    else:
        frame.to_parquet(path)
    return path


FILES = ["csv", "csv.gz", "parquet", "row groups.parquet", "feather", "folder", "partitions"]
HOW = {
    "independent": Independent,
    "mst in strata": lambda: ss.Stratified(
        MST(), ["SEX", "GROUP"], ss.Weights.public(small.shares_frame(), citation="made up for testing")
    ),
    "a merge": lambda: ss.Stratified(
        AIM(rounds=2),
        ["SEX", "GROUP"],
        ss.Weights.public(small.shares_frame(), citation="made up for testing"),
        ss.Groups(merge={"GROUP": {"both": ["a", "b"]}}),
    ),
    "sums in strata": lambda: ss.Stratified(CoinPress(columns=["AGE"]), ["SEX"], small.even(SCHEMA, "SEX")),
}


@pytest.fixture(autouse=True)
def short_batches(monkeypatch):
    monkeypatch.setattr("stratsynth.data.sources.BATCH", 13)
    monkeypatch.setattr("stratsynth.data.csvlines.BLOCK", 200)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("how", HOW)
def test_releases_are_those_of_rows_in_memory(how, kind, tmp_path):
    path = written(tmp_path, kind)
    one, other = (
        ss.fit(
            HOW[how](),
            ss.open_table(path, schema=SCHEMA, declared_size=SIZE, engine=engine),
            BUDGET,
            seed=1,
            entropy=SeededEntropy(1),
        )
        for engine in ("memory", "stream")
    )
    assert one.measurements.equals(other.measurements)
    assert identical(one.model.state(), other.model.state())
    assert without_account(one) == without_account(other)


@given(draw=st.data())
@settings(max_examples=40, suppress_health_check=["function_scoped_fixture"])
def test_every_column_of_every_table_is_read_the_same(draw, tmp_path_factory):
    schema = draw.draw(strategies.schemas().filter(lambda schema: isinstance(schema.unit, str)))
    table = draw.draw(strategies.tables(schema))
    path = tmp_path_factory.mktemp("t") / "t.parquet"
    try:
        pq.write_table(table, path, row_group_size=draw.draw(st.integers(1, 5)))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # types that Parquet does not know
        return
    plain = load.load_rows(schema, open_source(table))
    stored = load.load_rows(schema, open_source(path), Scratch())
    assert plain.frame(()).equals(stored.frame(()))
    for name, numbers in plain._parts[0].numbers.items():
        np.testing.assert_array_equal(numbers, np.concatenate([part.numbers[name] for part in stored._parts]))


def test_numbers_are_kept_only_where_sums_may_be_asked(tmp_path, monkeypatch):
    path, seen = written(tmp_path, "parquet"), []
    proper = Stream.rows
    monkeypatch.setattr(Stream, "rows", lambda self, *, numbers: seen.append(numbers) or proper(self, numbers=numbers))
    for how in HOW.values():
        ss.fit(how(), ss.open_table(path, schema=SCHEMA, declared_size=SIZE, engine="stream"), BUDGET)
    assert seen == [False, False, False, True]


def test_a_column_of_partitions_may_be_null(tmp_path):
    frame = small.people().astype(str).assign(WORK="__HIVE_DEFAULT_PARTITION__")
    path = folder(tmp_path / "people", frame, by=("WORK",))
    table = load.load_rows(SCHEMA, open_source(path)).counts([((), [("WORK",)])])[0][0]
    assert table.tolist() == [0, 0, SIZE]  # null is what the column keeps all strange values as


# The choice of an engine


def test_auto_takes_streams_for_what_is_declared_large_and_looks_at_nothing_else(tmp_path):
    path, most = written(tmp_path, "parquet"), MOST_BYTES // width(SCHEMA)
    source, frame = open_source(path), open_source(small.people())
    path.unlink()
    assert isinstance(backend("auto", source, SCHEMA, most), Memory)
    assert isinstance(backend("auto", source, SCHEMA, most + 1), Stream)
    assert isinstance(backend("auto", source, SCHEMA, None), Memory)
    assert isinstance(backend("auto", frame, SCHEMA, most + 1), Memory)
    units = dataclasses.replace(SCHEMA, unit=Unit(column="PERSON", max_rows=2))
    assert isinstance(backend("auto", source, units, most + 1), Memory)


def test_the_engine_is_no_part_of_what_a_fit_is_known_by(tmp_path):
    """A fit that was interrupted goes on with another engine, and is charged once."""
    path, ledger = written(tmp_path, "parquet"), tmp_path / "people.ledger"

    def opened(engine):
        return ss.open_table(path, schema=SCHEMA, declared_size=SIZE, ledger=ledger, engine=engine)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scratch, "empty", lambda *_: (_ for _ in ()).throw(NoRoomError("no room")))
        with pytest.raises(NoRoomError):
            ss.fit(Independent(), opened("stream"), BUDGET)
    ss.fit(Independent(), opened("memory"), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge", "done"]


# Refusals


def test_what_cannot_be_streamed_is_refused_before_anything_is_charged(tmp_path):
    path, ledger = written(tmp_path, "parquet"), tmp_path / "people.ledger"
    units = dataclasses.replace(SCHEMA, unit=Unit(column="PERSON", max_rows=2))
    small.people().assign(PERSON=1).to_parquet(tmp_path / "persons.parquet")
    with pytest.raises(Unsupported, match=r'rows of one unit may lie anywhere; take engine = "memory"'):
        ss.open_table(tmp_path / "persons.parquet", schema=units, engine="stream")
    with pytest.raises(Unsupported, match=r'a frame is in memory already; take engine = "memory"'):
        ss.open_table(small.people(), schema=SCHEMA, engine="stream")
    table = ss.open_table(path, schema=SCHEMA, declared_size=SIZE, ledger=ledger, engine="stream")
    with pytest.raises(Unsupported, match=r'needs Raw, which these rows cannot answer; take engine = "memory"'):
        ss.fit(External(print, "nobody 1.0"), table, dataclasses.replace(BUDGET, neighbours="replace"))
    assert not ledger.exists()


def test_what_auto_would_stream_and_a_mechanism_cannot_use_names_the_remedy_in_fit_and_plan(tmp_path, monkeypatch):
    """Public columns are handed out row by row, which streams cannot do; `auto` does not know the mechanism."""
    monkeypatch.setattr("stratsynth.data.backends.MOST_BYTES", 1)
    regressing.people(200).to_parquet(tmp_path / "people.parquet")
    how = DPFermi(target="D", features=["X", "C"], groups=["G"], penalty=1, protect="sensitive")
    for engine in ("auto", "stream"):
        table = ss.open_table(tmp_path / "people.parquet", schema=attribute.SCHEMA, declared_size=200, engine=engine)
        with pytest.raises(Unsupported, match=r'needs PublicRows, .* take engine = "memory"'):
            ss.fit(how, table, attribute.BUDGET)
        assert table.ledger.reserved == ()
        with pytest.raises(Unsupported, match=r'needs PublicRows, .* take engine = "memory"'):
            ss.plan(how, attribute.SCHEMA, attribute.BUDGET, declared_size=200, engine=engine)
    ss.plan(how, attribute.SCHEMA, attribute.BUDGET, declared_size=200, engine="memory")


def test_a_full_disk_is_an_error_that_says_nothing_about_the_rows(tmp_path, monkeypatch):
    path, ledger = written(tmp_path, "parquet"), tmp_path / "people.ledger"

    def full(handle, start, length):
        raise OSError(28, "No space left on device", str(length))

    table = ss.open_table(path, schema=SCHEMA, declared_size=SIZE, ledger=ledger, engine="stream")
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(StratsynthError, match="Name a folder on a larger disk by TMPDIR") as refused:
            ss.fit(Independent(), table, BUDGET)
    assert not any(digit in str(refused.value).replace(str(tmp_path), "") for digit in "123456789")
    ss.fit(Independent(), table, BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge", "done"]


@pytest.mark.parametrize("how", HOW)
def test_a_disk_with_too_little_room_is_refused_before_anything_is_reserved(how, tmp_path, monkeypatch):
    path, ledger, asked = written(tmp_path, "parquet"), tmp_path / "people.ledger", []
    split, numbers = how != "independent", "sums" in how
    least = SIZE * width(SCHEMA, numbers=numbers) * (2 if split else 1)

    def usage(folder):
        asked.append(folder)
        return SimpleNamespace(free=free)

    monkeypatch.setattr("shutil.disk_usage", usage)
    table = ss.open_table(path, schema=SCHEMA, declared_size=SIZE, ledger=ledger, engine="stream")
    free = least - 1
    with pytest.raises(UsageError, match=r"Name a folder on a larger disk by TMPDIR\. Nothing was charged"):
        ss.fit(HOW[how](), table, BUDGET)
    assert kinds(ledger) == ["ledger"]
    free = least
    ss.fit(HOW[how](), table, BUDGET)
    assert set(asked) == {tempfile.gettempdir()}
    assert "reserve" in kinds(ledger)
    asked.clear()
    ss.fit(HOW[how](), ss.open_table(small.people(), schema=SCHEMA, declared_size=SIZE), BUDGET)
    assert asked == []  # rows in memory need no disk


def test_the_scratch_file_is_gone_when_the_fit_is(tmp_path, monkeypatch):
    made, proper = [], Scratch.__init__

    def noted(self):
        proper(self)
        made.append(os.dup(self._file.fileno()))

    monkeypatch.setattr(Scratch, "__init__", noted)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    path = written(tmp_path, "parquet")
    release = ss.fit(
        HOW["mst in strata"](), ss.open_table(path, schema=SCHEMA, declared_size=SIZE, engine="stream"), BUDGET
    )
    [handle] = made
    seen = os.fstat(handle)
    assert (seen.st_nlink, seen.st_mode & 0o777) == (0, 0o600)
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    assert f" {seen.st_ino} " not in maps  # nothing of it is mapped any more
    os.close(handle)
    assert list((tmp_path / "scratch").iterdir()) == []
    assert release is not None


# Folders


def test_folders_of_anything_else_are_refused(tmp_path):
    path = written(tmp_path, "folder")
    (path / "notes.txt").touch()
    with pytest.raises(UsageError, match="and nothing else"):
        open_source(path)
    (path / "notes.txt").rename(path / ".notes")
    open_source(path)
    (tmp_path / "elsewhere").mkdir()
    (path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="no links to folders"):
        open_source(path)
    with pytest.raises(UsageError, match=r"holds no \.parquet file"):
        open_source(tmp_path / "elsewhere")


def test_a_column_that_one_file_lacks_is_refused_before_anything_is_charged(tmp_path):
    path = written(tmp_path, "folder")
    small.people(3).astype(str).drop(columns="WORK").to_parquet(path / "part-9.parquet")
    with pytest.raises(SchemaError, match="column WORK must be in the data once, and is there nowhere"):
        ss.open_table(path, schema=SCHEMA)
    (path / "part-9.parquet").unlink()
    (path / "SEX=1").mkdir()
    (path / "SEX=1" / "part.parquet").write_bytes((path / "part-0.parquet").read_bytes())
    ss.open_table(path, schema=SCHEMA)  # not all files say so by their folder's name, so it is no column of partitions
    for name in ("part-0", "part-1", "part-2"):
        (path / f"{name}.parquet").rename(path / "SEX=1" / f"{name}.parquet")
    with pytest.raises(SchemaError, match="column SEX must be in the data once, and is there more than once"):
        ss.open_table(path, schema=SCHEMA)


CHANGES = {
    "a file more": lambda path: (path / "part-3.parquet").write_bytes((path / "part-0.parquet").read_bytes()),
    "a file fewer": lambda path: (path / "part-1.parquet").unlink(),
    "another name in the same place": lambda path: (path / "part-2.parquet").rename(path / "part-3.parquet"),
    "another name": lambda path: (path / "part-1.parquet").rename(path / "part-7.parquet"),
    "another partition": lambda path: (path / "part-1.parquet").rename(
        (path / "A=1").mkdir() or path / "A=1" / "x.parquet"
    ),
    "other bytes": lambda path: small.people(9).astype(str).to_parquet(path / "part-1.parquet"),
    "two exchanged": lambda path: [
        (path / a).rename(path / b)
        for a, b in (
            ("part-0.parquet", "x.parquet"),
            ("part-1.parquet", "part-0.parquet"),
            ("x.parquet", "part-1.parquet"),
        )
    ],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_folders_fingerprint_tells_names_and_bytes(change, tmp_path):
    path = written(tmp_path, "folder")
    before = fingerprint(open_source(path), KEY)
    assert before == fingerprint(open_source(path), KEY) != fingerprint(open_source(path), b"x" * 32)
    os.utime(path / "part-0.parquet", (0, 0))
    (path / "_SUCCESS").write_text("noted")
    assert before == fingerprint(open_source(path), KEY)
    CHANGES[change](path)
    assert before != fingerprint(open_source(path), KEY)


@pytest.mark.parametrize("change", CHANGES)
def test_a_folder_that_changes_after_the_reservation_is_refused(change, tmp_path, monkeypatch):
    path, ledger, read = written(tmp_path, "folder"), tmp_path / "people.ledger", Stream.rows

    def late(self, **settings):
        CHANGES[change](path)
        return read(self, **settings)

    monkeypatch.setattr(Stream, "rows", late)
    with pytest.raises(LedgerError, match="changed or replaced"):
        ss.fit(
            Independent(),
            ss.open_table(path, schema=SCHEMA, declared_size=SIZE, ledger=ledger, engine="stream"),
            BUDGET,
        )
    assert kinds(ledger) == ["ledger", "reserve", "charge"]


def test_a_file_of_a_private_folder_is_no_holdout(tmp_path):
    path = written(tmp_path, "folder")
    with pytest.raises(WeightsError, match="is the private table itself"):
        check_public_inputs(open_source(path), weights=[path / "part-1.parquet"])
    with pytest.raises(WeightsError, match="is the private table itself"):
        check_public_inputs(open_source(path / "part-1.parquet"), weights=[path])
    check_public_inputs(open_source(path), weights=[written(tmp_path, "parquet")])


# Progress


@pytest.mark.parametrize("kind", ["csv", "parquet", "row groups.parquet", "folder"])
def test_long_steps_have_a_line_with_the_parts_they_have(kind, tmp_path, monkeypatch):
    seen = []

    class Shown:
        def add_task(self, what, total):
            seen.append([what, total, 0])
            return seen[-1]

        def update(self, task, advance):
            task[2] += advance

        def remove_task(self, task):
            task.append("gone")

    monkeypatch.setattr("stratsynth.driver.rows.BLOCK", 10)
    token = progress._SHOWN.set(Shown())
    try:
        table = ss.open_table(written(tmp_path, kind), schema=SCHEMA, declared_size=SIZE, engine="stream")
        ss.fit(HOW["mst in strata"](), table, BUDGET).save(tmp_path / "release", seed=0)
    finally:
        progress._SHOWN.reset(token)
    lines = ["reading", "sorting", "drawing rows", "writing the page"]
    assert [(what, *end) for what, _, _, *end in seen] == [(what, "gone") for what in lines]
    (_, parts, read, _), (_, steps, moved, _), *written_down = seen
    assert all(total == done > 0 for _, total, done, _ in written_down)
    assert 0.5 * read <= parts <= 2 * read
    assert steps <= moved <= 2 * steps + 2
