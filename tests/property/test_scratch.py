"""Rows in a scratch file answer every question as rows in memory do, to the integer."""

import itertools
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property.test_sums import QUERIES, SCHEMA, world
from stratsynth.driver import counting, rows
from stratsynth.driver.covers import covers
from stratsynth.driver.rows import StoredRows
from stratsynth.files.scratch import Scratch
from stratsynth.noise import SeededEntropy
from stratsynth.schema import Categorical, Schema
from stratsynth.schema.rows import CodedRows
from stratsynth.strata import Stratum

WIDER = Schema({**SCHEMA.columns, "g": Categorical(levels=tuple("abcd")), "h": Categorical(levels=tuple("xyz"))})
PATHS = (
    (),
    (Stratum.of({"g": "a"}),),
    (Stratum.of({"h": "y", "g": "d"}),),
    (Stratum.of({"g": ["a", "c"]}),),
    (Stratum.of({"g": ["b", "d"], "h": "z"}), Stratum.of({"g": ["b", "d"]})),
    (Stratum.of({"h": ["x", "z"]}), Stratum.of({"g": ["a", "b", "d"], "h": "z"}), Stratum.of({"g": ["b", "d"]})),
)
CLIQUES = [("g",), ("h",), ("kind", "yes"), ("yes", "class", "kind"), ("class", "age"), ("one",), ("age", "y", "unit")]


def both(seed, size, cuts):
    """Rows in memory, and in a scratch file in parts of any sizes."""
    plain = world(seed, size)
    rng = np.random.default_rng(seed)
    extra = {name: rng.integers(WIDER.size(name), size=size).astype(np.uint8) for name in "gh"}
    whole = CodedRows(WIDER, {**plain.codes, **extra}, plain.numbers, size)
    space = Scratch()

    def put(array):
        place = space.empty(array.dtype, len(array))
        place[:] = array
        return place

    ends = [0, *sorted(min(cut, size) for cut in cuts), size]
    parts = []
    for a, b in itertools.pairwise(ends):
        part = whole.take(slice(a, b))
        arrays = ({name: put(array) for name, array in held.items()} for held in (part.codes, part.numbers))
        parts.append(CodedRows(WIDER, *arrays, part.size))
    return StoredRows([CodedRows(WIDER, whole.codes, whole.numbers, size)]), StoredRows(parts, space)


@pytest.fixture
def small_blocks(monkeypatch):
    """Every loop over rows goes round several times, and wide tables are counted of few rows."""
    for module, name, value in (
        (counting, "BLOCK", 5),
        (rows, "BLOCK", 5),
        (counting, "STEP", 11),
        (rows, "PIECE", 9),
        (counting, "MANY", 8),
    ):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(counting, "cores", lambda: 2)
    monkeypatch.setattr("stratsynth.files.scratch.RESIDENT", 64)


sizes = st.integers(0, 60)
cuts = st.lists(st.integers(0, 60), max_size=4)


def inside(path):
    """The columns that no stratum of the path holds constant."""
    gone = {c for stratum in path for c, levels in stratum.items if len(levels) == 1}
    return [clique for clique in CLIQUES if gone.isdisjoint(clique)]


@pytest.mark.usefixtures("small_blocks")
@given(st.integers(0, 2**63), sizes, cuts, st.lists(st.sampled_from(PATHS), min_size=1, max_size=4))
@settings(suppress_health_check=["function_scoped_fixture"])
def test_tables_are_the_same(seed, size, cuts, paths):
    memory, scratch = both(seed, size, cuts)
    asked = [(path, inside(path)) for path in paths]
    counting.MANY = 10**9  # in memory each table is counted by itself
    plain = memory.counts(asked)
    counting.MANY = 8
    for here, there in zip(plain, scratch.counts(asked), strict=True):
        assert [table.tolist() for table in here] == [table.tolist() for table in there]
        assert [(t.dtype, t.shape) for t in here] == [(t.dtype, t.shape) for t in there]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", QUERIES)
@given(st.integers(0, 2**63), sizes, cuts)
@settings(max_examples=4, suppress_health_check=["function_scoped_fixture"])
def test_sums_are_the_same(name, seed, size, cuts):
    memory, scratch = both(seed, size, cuts)
    asked = [(path, QUERIES[name], 1.0) for path in PATHS]
    here, there = memory.sums(asked, SeededEntropy(0)), scratch.sums(asked, SeededEntropy(0))
    for one, other in zip(here, there, strict=True):
        assert [block.tolist() for block in one] == [block.tolist() for block in other]


@pytest.mark.parametrize("name", ["one column, l2", "logistic", "moments"])
def test_samples_are_of_the_rows_whose_coins_fell(name, monkeypatch):
    """With coins that are told by the place of a row, both sum the same rows, and none is drawn at rate 1."""
    memory, scratch = both(5, 60, [])
    monkeypatch.setattr(rows, "poisson_coins", lambda size, rate, entropy: np.arange(size) % 3 == 0)
    asked = [(path, QUERIES[name], rate) for path in PATHS for rate in (0.5, 1.0)]
    here, there = memory.sums(asked, None), scratch.sums(asked, None)
    assert [[b.tolist() for b in one] for one in here] == [[b.tolist() for b in one] for one in there]
    assert any(a != b for a, b in zip(here[0][0].tolist(), here[1][0].tolist(), strict=True))


def test_the_frame_is_the_same():
    memory, scratch = both(3, 40, [7, 20])
    for path in PATHS:
        assert memory.frame(path).equals(scratch.frame(path))


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 300), min_size=1, max_size=8),
    st.data(),
)
def test_covers_hold_every_clique_once_and_are_narrow(columns, data):
    names = list(columns)
    clique = st.permutations(names).flatmap(lambda order: st.integers(1, len(order)).map(lambda n: tuple(order[:n])))
    cliques = tuple(data.draw(st.lists(clique, min_size=1, max_size=12)))
    found = covers(cliques, tuple(columns.items()), counting.WIDE)
    assert sorted(number for _, numbers in found for number in numbers) == list(range(len(cliques)))
    for cover, numbers in found:
        assert all(set(cliques[number]) <= set(cover) for number in numbers)
        cells = np.prod([columns[c] for c in cover], dtype=object)
        assert cells <= counting.WIDE or cover == cliques[numbers[0]]


def test_wide_tables_serve_several_small_ones():
    """All 45 pairs of ten columns of six levels in at most a quarter as many tables."""
    names = [f"c{i}" for i in range(10)]
    pairs = tuple(itertools.combinations(names, 2))
    assert len(covers(pairs, tuple((name, 6) for name in names), counting.WIDE)) <= len(pairs) // 4


def test_a_scratch_file_has_no_name_and_its_arrays_outlive_it(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    space = Scratch()
    arrays = [space.empty(kind, size) for kind in (np.uint8, np.float64) for size in (0, 1, 1000, 3_000_000)]
    for i, array in enumerate(arrays):
        array[:] = i
    space.touched(2**40)
    assert list(tmp_path.iterdir()) == []
    assert os.fstat(space._file.fileno()).st_nlink == 0
    del space
    assert all((array == i).all() for i, array in enumerate(arrays))
