"""An array that a state names several times is stored once, and is one object when it is read."""

import json
import zipfile

import numpy as np
import pytest

from stratsynth.errors import ReleaseError
from stratsynth.files import npz
from stratsynth.files.npz import State
from stratsynth.files.outside import parse_json

TABLE = np.arange(6.0).reshape(2, 3)
SHARED = State({"a": 1}, {"0/x": TABLE, "0/y": np.arange(4), "1/x": TABLE, "2/x": TABLE.copy()})


@pytest.fixture
def path(tmp_path):
    npz.write(tmp_path / "x.npz", SHARED)
    return tmp_path / "x.npz"


def facts(path):
    with np.load(path) as members:
        return json.loads(members["facts.json"].tobytes())


def rewritten(path, document):
    """File with other facts."""
    with np.load(path) as members:
        arrays = {name: members[name] for name in members.files}
    arrays["facts.json"] = np.frombuffer(json.dumps(document).encode(), dtype=np.uint8)
    np.savez_compressed(path, **arrays)
    return path


def test_one_object_is_stored_once_and_comes_back_as_one(path):
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 4  # three arrays and the facts
    found = npz.read(path)
    assert found.facts == SHARED.facts
    assert list(found.arrays) == list(SHARED.arrays)
    for name, array in SHARED.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == array.dtype
    assert found.arrays["0/x"] is found.arrays["1/x"]
    assert found.arrays["2/x"] is not found.arrays["0/x"]


def test_nobody_can_write_to_what_others_share(path):
    with pytest.raises(ValueError, match="read-only"):
        npz.read(path).arrays["1/x"][0] = 7


ARRAYS = [np.arange(6).reshape(2, 3), np.array(7), np.arange(0), np.arange(4)]


@pytest.mark.parametrize("names", [["x", "y", "z", "0/0"], ["0/0", "0/1", "1/0", "2/0"], ["1/0", "1/1", "1/2", "1/3"]])
@pytest.mark.parametrize("parse", [parse_json, json.loads])
def test_what_is_written_joined_comes_back_apart(names, parse, tmp_path):
    arrays = dict(zip(names, ARRAYS, strict=True))
    npz.write(tmp_path / "j.npz", State({"a": 1}, arrays), joined=True)
    found = npz.read(tmp_path / "j.npz", parse)
    assert (list(found.arrays), found.facts) == (names, {"a": 1})
    for name, array in arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].shape == array.shape
        assert found.arrays[name].base is None  # who is given one has no way to another


def test_shapes_of_very_many_arrays_are_as_bounded_as_facts(tmp_path, monkeypatch):
    """An array without cells takes nothing in a file."""
    npz.write(tmp_path / "j.npz", State({}, {f"0/{i}": np.zeros(0) for i in range(50)}), joined=True)
    monkeypatch.setattr(npz, "MOST_SHAPES", 100)
    assert len(npz.read(tmp_path / "j.npz", parse_json).arrays) == 50
    monkeypatch.setattr(npz, "MOST_SHAPES", 99)
    with pytest.raises(ReleaseError, match="damaged"):
        npz.read(tmp_path / "j.npz", parse_json)


def test_joined_arrays_that_have_several_names_are_one(tmp_path):
    arrays = {"0/0": TABLE, "0/1": TABLE + 1, "1/0": TABLE}
    npz.write(tmp_path / "j.npz", State({}, arrays), joined=True)
    assert facts(tmp_path / "j.npz")["names"] == [2, 1]
    found = npz.read(tmp_path / "j.npz", parse_json).arrays
    assert found["0/0"] is found["1/0"]
    np.testing.assert_array_equal(found["0/1"], arrays["0/1"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"shapes": [1, 6, 1, 5]},
        {"shapes": [1, 6, 1, 3]},
        {"shapes": [1, 6, 2, 2]},
        {"shapes": [1, 6, 1, 2, 1, 2]},
        {"shapes": [1, 8, 1, -4]},
        {"shapes": [1, 6, -1, 4]},
        {"shapes": [[1, 6], [1, 4]]},
        {"shapes": [1.0, 6.0, 1.0, 4.0]},
        {"shapes": []},
        {"shapes": [33, *[1] * 32, 10]},
        {"0": [[0] * 10]},
        {"names": [1]},
        {"names": [3, -1]},
        {"names": [10**12]},
        {"names": [2, True]},
        {"names": ["a"]},
        {"names": ["a", "a"]},
        {"names": "ab"},
        {"names": None},
    ],
    ids=str,
)
def test_damaged_joined_arrays_are_refused(wrong, tmp_path):
    path = tmp_path / "j.npz"
    npz.write(path, State({}, {"0/0": np.arange(6), "0/1": np.arange(4)}), joined=True)
    with np.load(path) as members:
        arrays = {name: members[name] for name in members.files}
    document = facts(path)
    assert (document["names"], arrays["shapes"].tolist()) == ([2], [1, 6, 1, 4])
    arrays.update({name: np.array(value) for name, value in wrong.items() if name != "names"})
    document.update({name: value for name, value in wrong.items() if name == "names"})
    arrays["facts.json"] = np.frombuffer(json.dumps(document).encode(), dtype=np.uint8)
    np.savez_compressed(path, **arrays)
    with pytest.raises(ReleaseError, match="damaged"):
        npz.read(path, parse_json)


def test_files_without_shared_arrays_are_as_they_were(path, tmp_path):
    """States that earlier versions wrote, and can read."""
    npz.write(tmp_path / "y.npz", State({}, {"x": TABLE, "y": TABLE.copy()}))
    assert facts(tmp_path / "y.npz") == {"facts": {}, "names": ["x", "y"]}
    assert npz.read(tmp_path / "y.npz").arrays["y"].flags.writeable


@pytest.mark.parametrize(
    "members",
    [
        [0, 1, 0],
        [0, 1, 0, 2, 2],
        [0, 1, 0, 3],
        [0, 1, 0, -1],
        [0, 1, 0, 1.0],
        [0, 1, 0, True],
        [0, 1, 0, "2"],
        [0, 1, 0, "facts.json"],
        [0, 1, 0, None],
        [0, 1, 0, [2]],
        "0102",
        {"0": 1},
        3,
        True,
    ],
    ids=str,
)
def test_damaged_numbers_are_refused(path, members):
    document = facts(path)
    assert document["members"] == [0, 1, 0, 2]
    with pytest.raises(ReleaseError, match="damaged"):
        npz.read(rewritten(path, {**document, "members": members}), parse_json)


def test_a_small_file_that_names_one_array_without_end_is_refused(path, monkeypatch):
    """Each of them is looked at by what reads it, so that their number is bounded like what a file holds."""
    every = 2 * TABLE.nbytes + TABLE.nbytes + 4 * 8
    monkeypatch.setattr(npz, "MAX_NAMED", every)
    npz.read(path)
    monkeypatch.setattr(npz, "MAX_NAMED", every - 1)
    with pytest.raises(ReleaseError, match="unpack"):
        npz.read(path)
