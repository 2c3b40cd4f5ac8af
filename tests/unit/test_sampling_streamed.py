"""Samples larger than memory: in pieces, into a file or a folder that is gone on with."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers import small
from stratsynth import cli
from stratsynth.data.sources import open_source
from stratsynth.release import Release, sampling, streaming


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "release"
    small.clear_release().save(folder, rows=10, seed=1)
    return folder


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch):
    monkeypatch.setattr(sampling, "PIECE", 100)
    monkeypatch.setattr(streaming, "PIECE", 100)


def run(*arguments):
    return cli.run([str(a) for a in arguments])


def rows(path):
    return open_source(path).read(small.SCHEMA.names)


def test_file_folder_and_memory_hold_the_same_rows(saved, tmp_path):
    assert run("sample", saved, "-n", 1234, "--seed", 5, "-o", tmp_path / "one.parquet") == 0
    assert run("sample", saved, "-n", 1234, "--seed", 5, "-o", tmp_path / "many") == 0
    here = Release.load(saved).sample_arrow(1234, seed=5)
    assert rows(tmp_path / "one.parquet").equals(here.select(small.SCHEMA.names))
    assert rows(tmp_path / "many").equals(here.select(small.SCHEMA.names))
    assert pq.ParquetFile(tmp_path / "one.parquet").num_row_groups == 13
    assert len(list((tmp_path / "many").glob("*.parquet"))) == 13
    assert pq.read_schema(tmp_path / "one.parquet").equals(here.schema, check_metadata=True)


def test_one_piece_is_drawn_as_before_there_were_any(saved, monkeypatch):
    """Samples that were published are still those of their seeds."""
    release = Release.load(saved)
    few = release.sample_arrow(100, seed=5)
    monkeypatch.setattr(sampling, "PIECE", 10**9)
    assert release.sample_arrow(100, seed=5).equals(few)
    assert not release.sample_arrow(101, seed=5).slice(0, 100).equals(few)


def test_pieces_differ_and_numbers_of_groups_are_exact(saved):
    release = Release.load(saved)
    table = release.sample_arrow(1000, seed=1)
    assert not table.slice(0, 100).equals(table.slice(100, 100))
    given = {("1", "a"): 333, ("2", "a"): 501, ("1", "b"): 1}
    found = release.sample(n_by_group=given, by=["SEX", "GROUP"], seed=3).groupby(["SEX", "GROUP"]).size()
    assert found.to_dict() == given


@pytest.mark.parametrize("seed", [["--seed", 5], []], ids=["a seed", "none"])
def test_an_interrupted_folder_is_gone_on_with_to_the_same_rows(seed, saved, tmp_path, monkeypatch):
    out, proper, drawn = tmp_path / "many", sampling.Drawing.piece, []

    def piece(self, number, moved):
        if number == 7 and not drawn.count(7):
            drawn.append(7)
            raise KeyboardInterrupt
        drawn.append(number)
        return proper(self, number, moved)

    monkeypatch.setattr(sampling.Drawing, "piece", piece)
    assert run("sample", saved, "-n", 1234, *seed, "-o", out) == 130
    assert len(list(out.glob("*.parquet"))) == 7
    assert run("sample", saved, "-n", 1234, *seed, "-o", out) == 0
    assert drawn == [*range(8), *range(7, 13)]
    note = json.loads((out / streaming.NOTE).read_text())
    assert (note["complete"], note["rows"], note["pieces"]) == (True, 1234, 13)
    monkeypatch.undo()
    monkeypatch.setattr(sampling, "PIECE", 100)
    assert rows(out).equals(Release.load(saved).sample_arrow(1234, seed=note["seed"]).select(small.SCHEMA.names))


def test_what_is_not_this_sample_is_refused_and_left_alone(saved, tmp_path, capsys, monkeypatch):
    out = tmp_path / "many"
    with monkeypatch.context() as patch:
        patch.setattr(sampling.Drawing, "piece", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run("sample", saved, "-n", 300, "--seed", 5, "-o", out) == 130
    for other in (["-n", 301, "--seed", 5], ["-n", 300, "--seed", 6], ["-n", 300, "--seed", 5, "--where", "SEX=1"]):
        assert run("sample", saved, *other, "-o", out) == 2
        assert "another sample" in capsys.readouterr().err
    assert run("sample", saved, "-n", 300, "-o", out) == 0
    before = small.tree(out)
    assert run("sample", saved, "-n", 300, "--seed", 5, "-o", out) == 2
    assert "is complete" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    assert run("sample", saved, "-n", 300, "-o", tmp_path / "other") == 2
    assert "no sample that was begun" in capsys.readouterr().err
    assert run("sample", saved, "-n", 300, "-o", saved) == 2
    assert "lies in the release" in capsys.readouterr().err
    for name in ("many", "one.parquet"):
        assert run("sample", saved, "-n", 300, "-o", tmp_path / "nowhere" / name) == 2
    assert run("sample", saved, "-n", 300, "-o", out, "--as", out / "part-00000.parquet") == 2
    assert small.tree(out) == before


def test_a_folder_of_synthetic_rows_is_data(saved, tmp_path):
    assert run("sample", saved, "-n", 250, "--seed", 5, "-o", tmp_path / "many") == 0
    assert isinstance(rows(tmp_path / "many"), pa.Table)
    assert rows(tmp_path / "many").num_rows == 250


PEAK = """
import resource, sys
from stratsynth import cli
code = cli.run(["sample", sys.argv[1], "-n", sys.argv[2], "--seed", "1", "-o", sys.argv[3]])
line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(line.split()[1]) // 1024, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_sample(saved, tmp_path):
    peaks = []
    for pieces in (1, 6):
        arguments = [str(saved), str(pieces * 2**20), str(tmp_path / f"{pieces}")]
        done = subprocess.run([sys.executable, "-c", PEAK, *arguments], check=True, capture_output=True, text=True)
        peaks.append(int(done.stderr.split()[-1]))
        assert len(list(Path(arguments[2]).glob("*.parquet"))) == pieces
    assert peaks[1] < 1.2 * peaks[0]
