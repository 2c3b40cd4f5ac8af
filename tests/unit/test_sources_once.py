"""A fit converts a frame once: its fingerprint and its rows are made of the same table."""

import pandas as pd
import pytest

from helpers import small
from stratsynth import fit
from stratsynth.adapters import Independent
from stratsynth.data import frames
from stratsynth.data.fingerprint import fingerprint
from stratsynth.data.sources import open_source


@pytest.fixture
def converted(monkeypatch):
    """The names of the columns that were converted."""
    names, real = [], frames.to_arrow
    monkeypatch.setattr(frames, "to_arrow", lambda series: names.append(series.name) or real(series))
    return names


def test_a_fit_converts_each_column_once(converted):
    table = small.table()
    for times in (1, 2):
        fit(Independent(), table, small.BUDGET)
        assert [converted.count(name) for name in small.SCHEMA.names] == [times] * 4


def test_a_frame_that_was_changed_has_another_fingerprint_and_is_read_anew():
    frame = small.people()
    source = open_source(frame)
    before = fingerprint(source, b"key")
    frame.loc[0, "SEX"] = "2"
    assert fingerprint(source, b"key") != before
    assert source.read(["SEX"]).column("SEX")[0].as_py() == "2"
    frame.loc[0, "SEX"] = "1"
    assert source.read(["SEX"]).column("SEX")[0].as_py() == "1"


def test_columns_outside_the_schema_may_have_one_name():
    frame = pd.concat([small.people(), pd.DataFrame({"x": [1] * 100}), pd.DataFrame({"x": [2] * 100})], axis=1)
    fit(Independent(), small.table(frame), small.BUDGET)
