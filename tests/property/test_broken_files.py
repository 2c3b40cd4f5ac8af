"""Files of any content are read or refused in words, soon: a short form of a campaign of tens of thousands."""

import io
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stratsynth as ss
from helpers import small
from stratsynth.data.draft import check
from stratsynth.data.sources import open_source
from stratsynth.errors import StratsynthError
from stratsynth.schema import Schema

PEOPLE = small.people(20).astype(str)
SAID = small.SCHEMA.to_toml().encode()
PIECES = [b'"', b"\n", b",", b"\r", b"\0", b"\xff", b"[[", b"{", b"= 1e308", b"9" * 400, b"a." * 9, b"'''", b"\x1f\x8b"]


def parquet():
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(PEOPLE), sink)
    return sink.getvalue()


def feather():
    sink = io.BytesIO()
    pyarrow.feather.write_feather(PEOPLE, sink)
    return sink.getvalue()


CONTENT = {"toml": SAID, "csv": PEOPLE.to_csv(index=False).encode(), "parquet": parquet(), "feather": feather()}


@st.composite
def broken(draw, content):
    """Some bytes replaced, put in, or cut out."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.sampled_from([0, 0, 1, 4, 40, 400])))
        new = draw(st.one_of(st.sampled_from([*PIECES, b""]), st.binary(max_size=8)))
        content = content[:start] + new + content[end:]
    return content


def read(path):
    if path.suffix == ".toml":
        found = Schema.load(path)
        assert Schema.from_toml_text(found.to_toml()) == found
        return
    check(small.SCHEMA, open_source(path))
    ss.open_table(path, schema=small.SCHEMA).backend.rows().counts([((), [("SEX",)])])


@pytest.mark.parametrize("ending", CONTENT)
@given(data=st.data())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_a_broken_file_is_read_or_refused_soon(ending, data):
    content = data.draw(broken(CONTENT[ending]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file.{ending}"
        path.write_bytes(content)
        start = time.process_time()
        try:
            read(path)
        except StratsynthError as error:
            assert len(str(error)) < 2000  # noqa: PT017 - anything else fails by itself
        assert time.process_time() - start < 5
