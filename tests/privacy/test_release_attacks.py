"""Releases that somebody else wrote: no code is run, no file outside is read, no hang, no flood of memory, no codes."""

import contextlib
import csv
import json
import os
import subprocess
import sys
import textwrap
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stratsynth as ss
from helpers import small
from helpers.command import started
from helpers.crash import capped
from helpers.releases import copied, edited, record_of, saved, tied_again, write_record
from stratsynth import Categorical, Release, Schema, cli
from stratsynth.adapters import Independent
from stratsynth.cli.terminal import printable
from stratsynth.errors import ReleaseError, SchemaError
from stratsynth.files import npz
from stratsynth.files.npz import State
from stratsynth.release import measurements

MEMORY = 500_000_000
FILES = ["certificate.json", "measurements.parquet", "model/model.npz", "model/schema.toml"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return saved(small.stratified(), tmp_path_factory.mktemp("made") / "release", rows=20)


@pytest.fixture
def release(made, tmp_path):
    return copied(made, tmp_path / "release")


def judged(folder):
    """Load and verify: a release error, or none, and a verdict whatever happens."""
    verdict = ss.verify(folder)
    try:
        Release.load(folder).sample(5, seed=1)
    except ReleaseError as error:
        return str(error), verdict
    return "", verdict


LOAD = """
import os, time
import stratsynth as ss
from stratsynth.errors import ReleaseError
start, said = time.process_time(), "it was loaded"
try:
    ss.Release.load(folder).sample(5, seed=1)
except ReleaseError as error:
    said = str(error)
ss.verify(folder)
print(said, "" if time.process_time() - start < 5 else "SLOW", flush=True)
os._exit(0)
"""
"""It ends at once: Arrow's threads, joined under the cap of memory, abort now and then on the way out."""


@pytest.fixture
def refused(nursery):
    """Loads and verifies a release in half a gigabyte and five seconds at most; returns what was said."""

    def load(folder):
        done = nursery.run(capped, LOAD, folder, memory=MEMORY)
        assert done.code == 0, done.said[-500:]
        assert "SLOW" not in done.said
        return done.said

    return load


# Files that are no files, or too large


@pytest.mark.parametrize("name", [*FILES, "rules.json"])
def test_a_pipe_in_place_of_a_file_is_refused_at_once(name, release, refused):
    (release / name).unlink(missing_ok=True)
    os.mkfifo(release / name)
    if name == "rules.json":
        done = started("certificate", release, cwd=release)
        assert done.returncode == 2
        assert "not a regular file" in done.stderr
        return
    assert "regular file" in refused(release)
    assert not ss.verify(release).ok


@pytest.mark.parametrize("name", ["certificate.json", "model/schema.toml"])
def test_a_file_of_200_megabytes_is_refused_unread(name, release, refused):
    with (release / name).open("wb") as file:
        file.truncate(200_000_000)
    if name != "certificate.json":
        tied_again(release)
    assert "is larger than the" in refused(release)


@pytest.mark.parametrize("text", ["[" + "[]," * 15_000_000 + "[]]", '{"a":' + "[" * 100_000, '[{"a":{}},' * 2_000_000])
def test_a_small_file_of_many_values_is_refused(text, release, refused):
    (release / "certificate.json").write_text(text)
    assert "certificate.json is damaged" in refused(release)


def test_facts_of_many_values_in_a_model_are_refused(release, refused):
    document = b'{"facts":[' + b"[]," * 15_000_000 + b'[]],"names":[]}'
    np.savez_compressed(release / "model" / "model.npz", **{"facts.json": np.frombuffer(document, dtype=np.uint8)})
    tied_again(release)
    assert "model.npz is damaged (ValueError)" in refused(release)


def member(header):
    """An array file that claims whatever its header says, and holds nothing of it."""
    text = f"{header!s}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "header",
    [
        {"descr": "<f8", "fortran_order": False, "shape": (1_250_000_000,)},
        {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2**20)},
        {"descr": "|O", "fortran_order": False, "shape": (1,)},
        {"descr": "<U1000000", "fortran_order": False, "shape": (10,)},
    ],
    ids=["10 GB", "more than there is", "objects", "texts"],
)
def test_an_array_that_claims_what_is_not_there_is_refused_before_room_is_made(header, release, refused):
    path = release / "model" / "model.npz"
    state = npz.read(path)
    npz.write(path, state)
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    members["0.npy"] = member(header)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    tied_again(release)
    assert "model.npz is damaged (ValueError)" in refused(release)


def test_measurements_that_would_unpack_to_gigabytes_are_not_read_for_a_sample(release, nursery):
    """A file of a few megabytes; a sample does not need it, and whoever asks for it is told."""
    rows = 1_000_000
    repeated = pa.array(["x"]).dictionary_encode().take(pa.nulls(rows, pa.int32()).fill_null(0))
    zeros = {
        name: pa.nulls(rows, measurements.COLUMNS.field(name).type).fill_null(0)
        for name in ("question", "cell", "value", "sigma")
    }
    table = pa.table({**zeros, "stratum": repeated, "clique": repeated}).select(measurements.COLUMNS.names)
    with pq.ParquetWriter(release / "measurements.parquet", measurements.COLUMNS) as writer:
        for _ in range(20):
            writer.write_table(table.cast(measurements.COLUMNS))
    assert (release / "measurements.parquet").stat().st_size < 10_000_000
    tied_again(release)
    read = """
    import stratsynth as ss
    from stratsynth.release import measurements
    measurements.MAX_CELLS = 15_000_000
    try:
        print(len(ss.Release.load(folder).sample(5, seed=1)))
        ss.Release.load(folder).measurements
    except Exception as error:
        print(type(error).__name__, error)
    """
    said = nursery.run(capped, textwrap.dedent(read), release, memory=MEMORY).said
    assert said.startswith("5\nReleaseError")
    assert measurements.MAX_CELLS < 40_000_000
    assert "20,000,000 cells, more than the 15,000,000 that are read at once" in said


def test_measurements_of_other_columns_are_refused(release):
    texts = pa.table({name: ["x" * 10] for name in measurements.COLUMNS.names})
    pq.write_table(texts, release / "measurements.parquet")
    tied_again(release)
    assert "has not the columns of measurements" in judged(release)[0]


def test_a_sample_reads_no_measurements(release, monkeypatch):
    read = []
    monkeypatch.setattr(measurements, "read_measurements", read.append)
    found = Release.load(release)
    found.sample(5)
    assert read == []
    _ = found.measurements
    assert read == [release]


# No code is run, and nothing outside is read or written


def test_no_pickle_and_no_path_out_of_the_folder(release, tmp_path):
    canary = tmp_path / "canary"

    class Evil:
        def __reduce__(self):
            return (canary.write_text, ("ran",))

    path = release / "model" / "model.npz"
    good = path.read_bytes()
    np.savez(path, **{"facts.json": np.array([Evil()], dtype=object)})
    tied_again(release)
    assert "damaged" in judged(release)[0]
    path.write_bytes(good)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../escaped.npy", member({"descr": "<f8", "fortran_order": False, "shape": (0,)}))
    tied_again(release)
    judged(release)
    edited(release, lambda record: record["files"].update({"../../escaped.npy": "0" * 64, "/etc/passwd": "0" * 64}))
    assert "/etc/passwd is missing" in " ".join(ss.verify(release).findings)
    assert not canary.exists()
    assert not list(tmp_path.rglob("escaped*"))


# What is printed


ESCAPES = ["\x1b[2J\x1b[31m", "\x9b31m", "\u202e", "\x07", "\r", "\u2028"]


@pytest.mark.parametrize("escape", ESCAPES, ids=repr)
@pytest.mark.parametrize("command", [["certificate"], ["certificate", "--json"], ["verify"], ["verify", "--json"]])
def test_terminals_are_shown_no_codes_of_a_certificate(escape, command, release, capsys):
    def change(record):
        record["weights"]["citation"] = f"cited {escape} here"
        record["unverified"] = [f"somebody {escape} says so"]
        record["mechanism"]["name"] = f"independent{escape}"

    edited(release, change)
    # what is not protected is no longer as the sections have it, which `verify` finds
    assert cli.run([command[0], str(release), *command[1:]]) == (command[0] == "verify")
    said = capsys.readouterr().out
    assert escape not in said
    if "--json" not in command:
        assert f"\\u{ord(escape[0]):04x}" in said
    elif command[0] == "certificate":
        assert json.loads(said) == record_of(release)
    else:
        assert any(escape in sentence for sentence in json.loads(said)["unchecked"])


def test_errors_show_no_codes_either(tmp_path, capsys):
    folder = tmp_path / "a\x1b[2Jb"
    assert cli.run(["certificate", str(folder)]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_printable_leaves_ordinary_text_as_it_is():
    plain = "Größe, 東京, العربية, 🙂, a\tb\nc “quoted” é\u00a0x"
    assert printable(plain) == plain
    assert json.loads(printable(json.dumps("\U000e0001\ud800\x1b", ensure_ascii=False))) == "\U000e0001\ud800\x1b"


def test_half_a_character_is_damage(release):
    path = release / "certificate.json"
    path.write_text(path.read_text().replace("made up for testing", "made \\ud800 up"))
    with pytest.raises(ReleaseError, match=r"certificate\.json is damaged \(UnicodeEncodeError\)"):
        Release.load(release)
    assert cli.run(["certificate", str(release)]) == 2


def test_a_report_shows_no_markup_of_a_certificate(release):
    hostile = "<script>alert(1)</script>"
    edited(release, lambda record: record["weights"].update(citation=hostile))
    folder = Release.load(release).save(release.parent / "again", rows=3)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "alert(1)" in page
    assert hostile not in page


# What is finished is said to be, where it cannot be printed


def test_a_full_device_after_a_complete_release_says_that_it_is_complete(tmp_path):
    small.write_recipe(tmp_path)
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "stratsynth", "fit", "recipe.toml"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("stratsynth: the output cannot be written (No space left on device). The release in ")
    assert done.stderr.endswith(" is complete.\n")
    assert ss.verify(tmp_path / "release").ok


def test_a_closed_output_is_nobody_s_loss(tmp_path):
    small.write_recipe(tmp_path)
    run = f"exec {sys.executable} -m stratsynth fit recipe.toml >&-"
    done = subprocess.run(["sh", "-c", run], cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert ss.verify(tmp_path / "release").ok


# Formulas: no text of a file that a spreadsheet opens begins with one


PAYLOADS = [
    f"{first}{rest}"
    for first in ("=", "+", "-", "@", "\t", "\r")
    for rest in ("cmd|' /C calc'!A0", "1+1", "SUM(A1:A9)", 'HYPERLINK("http://x")', " 1")
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=repr)
def test_a_schema_has_no_text_that_a_spreadsheet_would_run(payload):
    with pytest.raises(SchemaError):
        Categorical(levels=("a", payload))
    with pytest.raises(SchemaError):
        Schema({payload: Categorical(levels=("a",))})


def test_no_text_in_the_files_of_a_release_begins_a_formula(tmp_path):
    """Numbers stay numbers, negative ones too."""
    schema = Schema({"A": Categorical(levels=("-1", "+2", "x")), "B": Categorical(levels=("u", "v"))})
    path = tmp_path / "data.csv"
    path.write_text("A,B\n" + "-1,u\n+2,v\nx,u\n=1+1,v\n@SUM,u\n" * 200)
    table = ss.open_table(path, schema=schema, declared_size=1000)
    folder = saved(Independent(), tmp_path / "release", table, rows=200, csv=True)
    with (folder / "synthetic.csv").open(newline="") as file:
        fields = {field for row in csv.reader(file) for field in row}
    assert "-1" in fields
    assert [f for f in fields if f[:1] in "=+-@\t\r" and f not in ("-1", "+2")] == []


# Random damage: typed errors only


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_damaged_release_is_a_release_error_and_nothing_else(made, tmp_path_factory, data):
    folder = copied(made, tmp_path_factory.mktemp("damaged") / "release")
    path = folder / data.draw(st.sampled_from(FILES))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    path.write_bytes(bytes(content))
    if data.draw(st.booleans()):
        with contextlib.suppress(ValueError, KeyError, AttributeError, TypeError):
            tied_again(folder)
    judged(folder)


VALUES = st.sampled_from([None, True, -1, 1e308, float("nan"), float("inf"), "", "zcdp", "1|2", [], {}, [[]], {"a": 1}])


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_certificate_of_other_values_is_a_release_error_and_nothing_else(made, tmp_path_factory, data):
    folder = copied(made, tmp_path_factory.mktemp("edited") / "release")
    record = record_of(folder)
    place, key = record, data.draw(st.sampled_from(sorted(record)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)) if isinstance(place, dict) else st.integers(0, len(place) - 1))
    place[key] = data.draw(VALUES)
    write_record(folder, record)
    judged(folder)
    assert cli.run(["certificate", str(folder)]) in (0, 2)


def test_a_model_of_other_arrays_is_a_release_error(release):
    path = release / "model" / "model.npz"
    state = npz.read(path)
    for name, array in state.arrays.items():
        for other in (array[:0], -array, np.full_like(array, np.nan, dtype=float), array.astype("?")):
            npz.write(path, State(state.facts, {**state.arrays, name: other}))
            tied_again(release)
            judged(release)
