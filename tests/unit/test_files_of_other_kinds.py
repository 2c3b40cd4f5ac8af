"""Paths that are no file, or one larger than is sensible, are refused at once: nothing hangs or fills the memory."""

import json
import os
import time
from pathlib import Path

import pytest

from stratsynth.errors import ReleaseError, SchemaError, StratsynthError, UsageError, WeightsError
from stratsynth.files import npz
from stratsynth.files.atomic import read_json
from stratsynth.files.outside import records
from stratsynth.files.reading import open_regular, read_bytes
from stratsynth.recipes.recipe import Recipe
from stratsynth.schema import Schema


def pipe(folder):
    os.mkfifo(folder / "pipe.toml")
    return folder / "pipe.toml"


def sparse(folder):
    with (folder / "sparse.toml").open("wb") as file:
        file.truncate(3 * 10**9)
    return folder / "sparse.toml"


KINDS = {"a pipe": pipe, "a device": lambda _: Path("/dev/zero"), "a folder": lambda folder: folder}
READERS = {
    "bytes": lambda path: read_bytes(path, 1000),
    "JSON": read_json,
    "arrays": npz.read,
    "a small table": lambda path: records("weights", path, WeightsError),
    "a schema": Schema.from_toml,
    "a recipe": Recipe.read,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_regular_file_is_refused_at_once(kind, reader, tmp_path):
    with pytest.raises(StratsynthError, match="is not a regular file"):
        READERS[reader](KINDS[kind](tmp_path))


@pytest.mark.parametrize("reader", [name for name in READERS if name != "arrays"])
def test_what_is_too_large_is_refused_unread(reader, tmp_path):
    start = time.process_time()
    with pytest.raises(StratsynthError, match="is larger than the"):
        READERS[reader](sparse(tmp_path))
    assert time.process_time() - start < 1


def test_what_is_not_there_is_the_callers_to_say(tmp_path):
    for absent in (tmp_path / "a", tmp_path / ("x" * 5000), Path("a\0b")):
        with pytest.raises(OSError, match=r"(?i)no (such )?file|too long"):
            open_regular(absent)
    (tmp_path / "b").write_bytes(b"12345")
    assert read_bytes(tmp_path / "b", 5) == b"12345"
    with pytest.raises(UsageError, match="larger"):
        read_bytes(tmp_path / "b", 4)
    (tmp_path / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(ValueError, match="deeply"):
        read_json(tmp_path / "deep.json")
    (tmp_path / "good.json").write_text(json.dumps({"a": "é"}), encoding="utf-8")
    assert read_json(tmp_path / "good.json") == {"a": "é"}
    with pytest.raises(ReleaseError, match="is missing"):
        npz.read(tmp_path / "absent.npz")


@pytest.mark.parametrize(
    "key", ["a." * 30_000 + "a", '"a" . ' * 30_000 + "a", "'a'." * 30_000 + "a"], ids=["bare", "quoted", "literal"]
)
@pytest.mark.parametrize("shape", ["{} = 1", "[{}]", "x = {{ {} = 1 }}"])
def test_a_schema_of_long_keys_is_refused_at_once(key, shape):
    start = time.process_time()
    with pytest.raises(SchemaError, match="a key has more than 8 parts"):
        Schema.from_toml_text(shape.format(key))
    assert time.process_time() - start < 2


def test_dots_in_texts_and_comments_are_no_keys():
    dots = ".".join("abcdefghijklmnop")
    text = f"""format = "stratsynth-schema/1"
    # {dots} "
    [columns."{dots}"]
    kind = 'categorical'
    levels = ["{dots}", '{dots}b', "a \\" {dots}"]
    """
    assert Schema.from_toml_text(text).levels(dots)[0] == dots
    for endless in ("x" * 3_000_000, "x " * 1_000_000, '"' * 1_000_001, "'''\"\"\"" * 200_001, "a" + " " * 2_000_000):
        start = time.process_time()
        with pytest.raises(SchemaError):
            Schema.from_toml_text(endless)
        assert time.process_time() - start < 3
