"""Arrays and facts in one npz file: written whole or not at all, read as data and never as code."""

from __future__ import annotations

import itertools
import json
import math
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stratsynth.errors import ReleaseError
from stratsynth.files.reading import open_regular
from stratsynth.files.replacing import new_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

MAX_BYTES = 2**31
"""Largest size of the unpacked members in bytes, checked before anything is unpacked."""
MAX_NAMED = 2**35
"""Largest size of the arrays by name, in bytes, which may name one array many times: each name is read."""
MOST_SHAPES = 2**22
"""Largest number of integers in the shapes of joined arrays: an array without cells takes no room in a file, and some
250 bytes in memory."""
MOST_AXES = 32
_FACTS, _SHAPES = "facts.json", "shapes"


@dataclass(frozen=True)
class State:
    """Data stored without its code: plain facts, and arrays of numbers. Never a pickle."""

    facts: Any = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


def write(path: Path, state: State, mode: int = 0o666, *, joined: bool = False) -> None:
    """Write a `State` to the file `path`, whole or not at all; `mode` is the file's permissions before the umask.

    An array that has several names is written once. With `joined`, arrays of one type are written one after another as
    one, and their shapes as another: tens of thousands of small ones take twenty times as long one by one.
    """
    import numpy as np

    # arrays are numbered, and their names, which may be any text, kept in the facts
    several = {id(array): array for array in state.arrays.values()}
    number = {one: i for i, one in enumerate(several)}
    contents: dict[str, Any] = {"facts": state.facts, "names": list(state.arrays)}
    if len(several) < len(state.arrays):
        contents["members"] = [number[id(array)] for array in state.arrays.values()]
    members = {str(i): array for i, array in enumerate(several.values())}
    shapes = [number for array in several.values() for number in (array.ndim, *array.shape)] if joined else []
    if 1 < len(shapes) <= MOST_SHAPES and len({array.dtype for array in several.values()}) == 1:
        members = {"0": np.concatenate([array.ravel() for array in several.values()]), _SHAPES: np.array(shapes)}
        numbers = _numbers(contents["names"])
        if numbers is not None:  # texts by the hundred thousand
            contents["names"] = numbers
    document = json.dumps(contents, allow_nan=False).encode()
    members[_FACTS] = np.frombuffer(document, dtype=np.uint8)
    with new_file(path, mode) as handle:  # the stub takes the numbers for options
        np.savez_compressed(handle, allow_pickle=False, **cast("dict[str, Any]", members))


def read(path: Path, parse: Callable[[bytes], Any] = json.loads) -> State:
    """Return the `State` in a file; anything but a sound file is a ReleaseError.

    Names of one array share it, and it is read-only.

    Args:
        path: The file.
        parse: Function from the JSON of its facts to their value: `parse_json` if somebody else may have written it.
    """
    import numpy as np

    try:
        with open_regular(path, error=ReleaseError) as file:
            with zipfile.ZipFile(file) as archive:
                _refuse_large(path, sum(info.file_size for info in archive.infolist()), MAX_BYTES)
                for info in archive.infolist():
                    _refuse_claims(archive, info)
            file.seek(0)
            with np.load(file, allow_pickle=False) as members:
                document = parse(members[_FACTS].astype(np.uint8).tobytes())
                names = document["names"]
                if _SHAPES in members.files:
                    several: Mapping[str, NDArray[Any]] = _apart(members["0"], members[_SHAPES])
                    names = _numbered(names, len(document.get("members", several)))
                else:
                    several = members
                arrays, facts = _named(path, several, names, document.get("members")), document["facts"]
    except FileNotFoundError:
        raise ReleaseError(f"{path} is missing.") from None
    except ReleaseError:
        raise
    except Exception as error:  # noqa: BLE001 - a mutated archive raises whatever numpy and zlib like to
        raise ReleaseError(f"{path} is damaged ({type(error).__name__}).") from None
    return State(facts, arrays)


def _named(path: Path, members: Mapping[str, NDArray[Any]], names: list[str], numbers: Any) -> dict[str, NDArray[Any]]:
    """Return {name: array} of `members` (keys "0", "1", ...) for a list of `names`; `numbers`: their keys, or None."""
    if type(names) is not list or any(type(name) is not str for name in names):
        raise ValueError("names that are none")
    if numbers is None:
        if len(set(names)) < len(names):
            raise ValueError("several arrays of one name")
        return {name: members[str(i)] for i, name in enumerate(names)}
    if type(numbers) is not list or any(type(number) is not int for number in numbers):
        raise ValueError("numbers of arrays that are none")
    several = {number: members[str(number)] for number in dict.fromkeys(numbers)}
    _refuse_large(path, sum(several[number].nbytes for number in numbers), MAX_NAMED)
    for array in several.values():
        array.flags.writeable = False
    return {name: several[number] for name, number in zip(names, numbers, strict=True)}


def _apart(flat: NDArray[Any], shapes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return {number as text: copy of an array}, of the arrays end to end in `flat`; ValueError unless `shapes` fit.

    `shapes` is an array of integers: for each array the number of its axes, then their lengths.
    """
    sound = flat.ndim == shapes.ndim == 1 and shapes.dtype == "i8" and shapes.size <= MOST_SHAPES
    if not sound or (shapes < 0).any():
        raise ValueError("shapes that are none, or too many")
    found, start, rest = dict[str, Any](), 0, iter(shapes.tolist())
    for size in rest:
        shape = tuple(itertools.islice(rest, min(size, MOST_AXES)))
        end = start + math.prod(shape)
        if len(shape) < size or end > flat.size:
            raise ValueError("arrays of another size than was written")
        found[str(len(found))], start = flat[start:end].reshape(shape).copy(), end  # programs are given them
    if start != flat.size:
        raise ValueError("arrays of another size than was written")
    return found


def _numbers(names: list[str]) -> list[int] | None:
    """Return a list, how many of `names` each part has, if they are exactly 0/0, 0/1, 1/0, ... (part/i); else None."""
    counts: dict[str, int] = {}
    for name in names:
        part = name.partition("/")[0]
        counts[part] = counts.get(part, 0) + 1
    numbers = list(counts.values())
    return numbers if _numbered(numbers, len(names)) == names else None


def _numbered(names: list[Any], number: int) -> list[Any]:
    """Return a list of `number` names: `names`, or, if these are counts by part, 0/0, 0/1, 1/0, ...; or ValueError."""
    if not names or type(names[0]) is not int:
        if len(names) != number:
            raise ValueError("another number of arrays than was written")
        return names
    if any(type(count) is not int or count < 0 for count in names) or sum(names) != number:
        raise ValueError("another number of arrays than was written")
    return [f"{part}/{i}" for part, count in enumerate(names) for i in range(count)]


def _refuse_large(path: Path, size: int, most: int) -> None:
    if size > most:
        raise ReleaseError(f"{path.name} would unpack to more than {most:,} bytes.")


def _refuse_claims(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """Refuse (ValueError) a member `info` of a zip archive that is no array of numbers or larger than its size."""
    from numpy.lib import format as npy

    with archive.open(info) as member:
        read_header = npy.read_array_header_1_0 if npy.read_magic(member) == (1, 0) else npy.read_array_header_2_0
        shape, _, kind = read_header(member)
        if kind.kind not in "?biuf" or math.prod(shape) * kind.itemsize + member.tell() > info.file_size:
            raise ValueError("an array of something else than numbers, or larger than its file")
