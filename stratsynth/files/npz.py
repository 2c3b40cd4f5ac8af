"""Arrays and facts in one npz file: written whole or not at all, read as data and never as code."""

from __future__ import annotations

import json
import math
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stratsynth.errors import ReleaseError
from stratsynth.files.reading import open_regular
from stratsynth.files.untrusted import parse_json
from stratsynth.files.whole import new_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_BYTES = 2**31
"""What would unpack to more than this is refused, whatever its header claims."""
_FACTS = "facts.json"


@dataclass(frozen=True)
class State:
    """Something stored without its code: plain facts, and arrays of numbers. Never a pickle."""

    facts: Any = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


def write(path: Path, state: State, mode: int = 0o666) -> None:
    """Write a state, whole or not at all; `mode` is the file's permissions before the umask."""
    import numpy as np

    # arrays are numbered, and their names, which may be any text, kept in the facts
    document = json.dumps({"facts": state.facts, "names": list(state.arrays)}, allow_nan=False).encode()
    members = {str(i): array for i, array in enumerate(state.arrays.values())}
    members[_FACTS] = np.frombuffer(document, dtype=np.uint8)
    with new_file(path, mode) as handle:  # the stub takes the numbers for options
        np.savez_compressed(handle, allow_pickle=False, **cast("dict[str, Any]", members))


def read(path: Path, *, outside: bool = False) -> State:
    """Read a state back; anything but a sound file is a ReleaseError.

    Args:
        path: Where it is.
        outside: Whether somebody else may have written it: then its facts have at most so many values.
    """
    import numpy as np

    try:
        with open_regular(path, error=ReleaseError) as file:
            with zipfile.ZipFile(file) as archive:
                _refuse_large(path, sum(info.file_size for info in archive.infolist()))
                for info in archive.infolist():
                    _refuse_claims(archive, info)
            file.seek(0)
            with np.load(file, allow_pickle=False) as members:
                content = members[_FACTS].astype(np.uint8).tobytes()
                document = parse_json(content) if outside else json.loads(content)
                arrays = {name: members[str(i)] for i, name in enumerate(document["names"])}
                facts = document["facts"]
    except FileNotFoundError:
        raise ReleaseError(f"{path} is missing.") from None
    except ReleaseError:
        raise
    except Exception as error:  # noqa: BLE001 - a mutated archive raises whatever numpy and zlib like to
        raise ReleaseError(f"{path} is damaged ({type(error).__name__}).") from None
    return State(facts, arrays)


def _refuse_large(path: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise ReleaseError(f"{path.name} would unpack to more than {MAX_BYTES:,} bytes.")


def _refuse_claims(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """Refuse an array whose header claims more than is there, before room is made for it, and any but of numbers."""
    from numpy.lib import format as npy

    with archive.open(info) as member:
        read_header = npy.read_array_header_1_0 if npy.read_magic(member) == (1, 0) else npy.read_array_header_2_0
        shape, _, kind = read_header(member)
        if kind.kind not in "?biuf" or math.prod(shape) * kind.itemsize + member.tell() > info.file_size:
            raise ValueError("an array of something else than numbers, or larger than its file")
