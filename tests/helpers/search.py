"""Search for texts in files of all packings."""

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq


def contents(name, raw):
    """The bytes of a file, and of everything inside it."""
    yield raw
    if raw[:2] == b"\x1f\x8b":
        yield from contents(name, gzip.decompress(raw))
    elif raw[:4] == b"PAR1":
        table = pq.read_table(io.BytesIO(raw))
        yield repr(table.to_pydict()).encode()
        yield repr(table.schema.metadata).encode()
    elif raw[:6] == b"\x93NUMPY":
        yield repr(np.load(io.BytesIO(raw)).tolist()).encode()
    elif zipfile.is_zipfile(io.BytesIO(raw)):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            for member in archive.namelist():
                yield member.encode()
                yield from contents(member, archive.read(member))


def spellings(text):
    """Yield the byte strings by which a text or a number may lie in a file."""
    yield text.encode()
    yield text.encode("utf-16-le")
    yield text.encode("utf-16-be")
    if text.isdigit():
        yield int(text).to_bytes(8, "little")
        yield np.float64(text).tobytes()


def found(needles, name, raw):
    """The needles that occur in a file, packed or not."""
    blobs = [name.encode(), *contents(name, raw)]
    return [needle for needle in needles if any(s in blob for s in spellings(needle) for blob in blobs)]


def found_below(needles, *folders):
    """Every needle that occurs in a file below some folders, with where."""
    return [
        (str(path), needle)
        for folder in folders
        for path in Path(folder).rglob("*")
        if path.is_file()
        for needle in found(needles, path.name, path.read_bytes())
    ]
