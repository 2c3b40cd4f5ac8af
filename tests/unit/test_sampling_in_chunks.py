"""Rows become values a chunk at a time: the chunks' borders show nowhere."""

import numpy as np
import pytest

from helpers import small
from stratsynth.release import sampling as module


@pytest.fixture(scope="module")
def release():
    return small.clear_release()


def test_chunks_change_no_label_and_no_number_of_rows(release, monkeypatch):
    whole = release.sample_arrow(1_000, seed=1)
    monkeypatch.setattr(module, "CHUNK", 64)
    cut = release.sample_arrow(1_000, seed=1)
    assert cut.schema.equals(whole.schema, check_metadata=True)
    for column in ("SEX", "GROUP", "WORK"):  # a number within its bin may differ
        assert cut.column(column).to_pylist() == whole.column(column).to_pylist()
    assert release.sample_arrow(1_000, seed=1).equals(cut)
    assert len(release.sample(1_000, seed=1)) == 1_000


def test_no_rows_are_a_table_too(release):
    assert release.sample_arrow(0, seed=1).num_rows == 0
    assert list(release.sample(0).columns) == ["SEX", "GROUP", "AGE", "WORK"]


def test_numbers_within_a_bin_do_not_repeat_from_chunk_to_chunk(release, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 500)
    ages = release.sample(1_000, seed=1)["AGE"].to_numpy(dtype=float)
    assert not np.array_equal(ages[:500], ages[500:], equal_nan=True)
