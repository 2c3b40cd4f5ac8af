"""Allotting rows, mixtures, and models on disk, sound and hostile."""

import contextlib
import io
import math
import pickle
import random
import shutil
import zipfile
from dataclasses import fields
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.small import BUDGET, SCHEMA, people, stratified, table
from stratsynth import Categorical, Schema, fit
from stratsynth.adapters.engine import Graphical, junction_tree
from stratsynth.adapters.independent import Independent, Product
from stratsynth.errors import MechanismError, ReleaseError
from stratsynth.models import Estimate, Figures, Mixture, combine, files
from stratsynth.models import mixture as side_by_side
from stratsynth.models.mixture import allot
from stratsynth.noise import SeededEntropy
from stratsynth.questions import NoisyTable
from stratsynth.strata import Stratum, crossing, within
from stratsynth.testing.record import identical
from stratsynth.weights import Resolved

SEX1, SEX2 = Stratum.of({"SEX": "1"}), Stratum.of({"SEX": "2"})
weights = st.lists(st.floats(0, 1) | st.floats(1e-9, 1e-3), min_size=1, max_size=12).filter(sum)


@given(st.integers(0, 10_000), weights, st.integers(0, 2**32))
def test_allotting_gives_exactly_n_and_each_part_its_floor_or_ceiling(n, shares, seed):
    shares = np.array(shares)
    counts = allot(n, shares, np.random.default_rng(seed))
    due = n * shares / shares.sum()
    assert counts.sum() == n
    assert (counts >= np.floor(due - 1e-6)).all()
    assert (counts <= np.ceil(due + 1e-6)).all()
    assert (counts[shares == 0] == 0).all()


class InOrder:
    """A generator that does not shuffle: rounding must be unbiased in every order, not on average over them."""

    def __init__(self):
        self.random = np.random.default_rng().random
        self.permutation = np.arange


@pytest.mark.parametrize("rng", [np.random.default_rng(), InOrder()], ids=["shuffled", "in order"])
@pytest.mark.parametrize("n", [1, 7])
def test_allotting_is_unbiased(n, rng):
    """The mean of N numbers in an interval of length 1 misses by t with probability 2 exp(-2 N t^2) (Hoeffding)."""
    shares = np.array([0.5, 0.3, 0.15, 0.049, 0.001])
    draws = 4000
    mean = sum(allot(n, shares, rng) for _ in range(draws)) / draws
    bound = math.sqrt(math.log(2 * len(shares) / 1e-9) / (2 * draws))  # 0.05
    assert np.abs(mean - n * shares).max() < bound


def test_small_parts_are_not_always_left_out_together():
    """Parts are taken in random order: neighbours in the list are not tied to each other."""
    rng = np.random.default_rng()
    shares = np.array([0.25, 0.25, 0.25, 0.25])
    pairs = {tuple(np.flatnonzero(allot(2, shares, rng))) for _ in range(200)}
    assert len(pairs) == 6


def product(schema, **odds):
    """Equal odds, but for the columns given."""
    rows = {c: np.array(odds.get(c, np.ones(schema.size(c))), dtype=float) for c in schema.names}
    return Product(schema, {c: row / row.sum() for c, row in rows.items()})


@pytest.fixture(scope="module")
def halves():
    inner = within(SCHEMA, (SEX1,))
    parts = {SEX1: product(inner, WORK=[1, 0, 1]), SEX2: product(inner, WORK=[0, 1, 3])}
    return combine(SCHEMA, parts, Resolved({SEX1: 0.25, SEX2: 0.75}))


def where(**levels):
    return {c: frozenset(SCHEMA.index(c, level) for level in chosen.split()) for c, chosen in levels.items()}


@pytest.mark.parametrize(
    ("condition", "mass"),
    [
        ({}, 1),
        ({"SEX": "2"}, 0.75),
        ({"SEX": "1 2"}, 1),
        ({"GROUP": "a"}, 0.5),
        ({"WORK": "N"}, 0.125),
        ({"WORK": "no"}, 0.25 * 0.5 + 0.75 * 0.75),
        ({"SEX": "2", "WORK": "N"}, 0),
        ({"SEX": "2", "WORK": "yes no", "GROUP": "b"}, 0.375),
    ],
)
def test_the_mass_of_a_condition(halves, condition, mass):
    assert halves.mass(where(**condition)) == pytest.approx(mass)


@pytest.mark.parametrize("condition", [{"SEX": "2"}, {"WORK": "N"}, {"SEX": "1", "WORK": "no", "GROUP": "b"}])
def test_rows_meet_the_condition_and_are_as_many_as_asked(halves, condition):
    rows = halves.sample(101, np.random.default_rng(1), where(**condition))
    assert {len(codes) for codes in rows.values()} == {101}
    for column, allowed in where(**condition).items():
        assert set(rows[column]) <= allowed


def test_a_condition_weighs_the_strata_by_how_many_of_their_rows_meet_it(halves):
    rows = halves.sample(1100, np.random.default_rng(1), where(WORK="no"))
    assert (rows["SEX"] == 0).sum() in {200, 201, 199, 1100 * 2 // 11}  # masses 0.125 and 0.5625
    assert abs((rows["SEX"] == 0).sum() - 1100 * 0.125 / 0.6875) <= 1


def test_a_condition_that_no_row_meets_is_refused(halves):
    with pytest.raises(MechanismError, match="mass"):
        halves.sample(1, np.random.default_rng(1), where(SEX="2", WORK="N"))


def test_no_rows_are_asked_of_a_part_that_draws_none(halves):
    class Touchy(Product):
        def sample(self, n, rng, where=None):
            assert n > 0
            return super().sample(n, rng, where)

    inner = within(SCHEMA, (SEX1,))
    parts = {SEX1: Touchy(inner, product(inner).probabilities), SEX2: Touchy(inner, product(inner).probabilities)}
    model = Mixture(SCHEMA, parts, {SEX1: 0.0, SEX2: 1.0})
    assert (model.sample(50, np.random.default_rng(0))["SEX"] == 1).all()
    assert all(len(codes) == 0 for codes in model.sample(0, np.random.default_rng(0)).values())


def test_a_mixture_of_what_draws_no_rows_is_refused():
    numbers, rows = (
        Estimate(SCHEMA, (), Figures(*[np.zeros(0)] * len(fields(Figures)))),
        product(within(SCHEMA, (SEX1,))),
    )
    for parts in ({SEX1: numbers, SEX2: rows}, {SEX1: rows, SEX2: numbers}):
        with pytest.raises(MechanismError, match="estimates and rows cannot be combined"):
            combine(SCHEMA, parts, Resolved({SEX1: 0.5, SEX2: 0.5}))


# Models on disk


@pytest.fixture(scope="module")
def fitted():
    return fit(stratified(), table(), BUDGET, entropy=SeededEntropy(0)).model  # the same damage every time


@pytest.fixture(scope="module")
def stored(fitted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    files.save(fitted, folder)
    return folder


@pytest.fixture
def copy(stored, tmp_path):
    return shutil.copytree(stored, tmp_path / "model")


def the_npz(folder):
    (archive,) = folder.glob("*.npz")
    return archive


def test_a_model_comes_back_equal(fitted, stored):
    again = files.load(stored)
    assert identical(again.state(), fitted.state())
    assert again.schema == fitted.schema
    assert list(again.parts) == list(fitted.parts) == list(crossing(SCHEMA, ["SEX", "GROUP"]))


def test_a_mixture_of_mixtures_comes_back_equal(halves, tmp_path):
    group = Stratum.of({"GROUP": "a"}), Stratum.of({"GROUP": "b"})
    deep = within(SCHEMA, (SEX1, group[0]))
    shares = Resolved({group[0]: 0.9, group[1]: 0.1})
    inner = combine(within(SCHEMA, (SEX1,)), {g: product(deep) for g in group}, shares)
    model = combine(SCHEMA, {SEX1: inner, SEX2: halves.parts[SEX2]}, Resolved({SEX1: 0.5, SEX2: 0.5}))
    files.save(model, tmp_path / "model")
    assert identical(files.load(tmp_path / "model").state(), model.state())


YOUNG, OLD = Stratum.of({"AGE": ("0-2", "3-5")}, ("young",)), Stratum.of({"AGE": "6-9"})


@pytest.fixture
def merged():
    """Two bins merged, one alone: inside the merge the bins are drawn one to three."""
    parts = {YOUNG: product(within(SCHEMA, (YOUNG,)), AGE=[1, 3]), OLD: product(within(SCHEMA, (OLD,)))}
    return combine(SCHEMA, parts, Resolved({YOUNG: 0.8, OLD: 0.2}))


@pytest.mark.parametrize(
    ("condition", "mass"), [({"AGE": "0-2"}, 0.2), ({"AGE": "3-5 6-9"}, 0.8), ({"AGE": "6-9", "SEX": "1"}, 0.1)]
)
def test_a_condition_reaches_into_a_merge(merged, condition, mass):
    assert merged.mass(where(**condition)) == pytest.approx(mass)
    rows = merged.sample(200, np.random.default_rng(1), where(**condition))
    for column, allowed in where(**condition).items():
        assert set(rows[column]) == allowed


def test_merged_levels_are_drawn_by_their_own_numbers_and_shares_are_exact(merged):
    ages = merged.sample(1000, np.random.default_rng(1))["AGE"]
    assert (ages == 2).sum() == 200
    assert 140 < (ages == 0).sum() < 260  # 200, give or take 13


def test_a_mixture_of_merges_comes_back_equal(merged, tmp_path):
    files.save(merged, tmp_path / "model")
    again = files.load(tmp_path / "model")
    assert identical(again.state(), merged.state())
    assert list(again.parts) == [YOUNG, OLD]


def test_a_stored_mixture_of_overlapping_strata_is_refused(merged, tmp_path):
    state = merged.state()
    state.facts["parts"][1]["stratum"] = {"AGE": "3-5"}
    with pytest.raises(ReleaseError, match="one split"):
        Mixture.from_state(SCHEMA, state)


@pytest.mark.parametrize("name", ["file", "allow_pickle", "args", "a/b", "../a", "facts.json", "x.npy"])
def test_a_column_may_have_any_name(name, tmp_path):
    schema = type(SCHEMA)({name: SCHEMA.columns["SEX"], "x": SCHEMA.columns["WORK"]})
    model = product(schema, **{name: [1, 3]})
    files.save(model, tmp_path / "model")
    assert identical(files.load(tmp_path / "model").state(), model.state())


def test_nothing_is_a_pickle(stored):
    with zipfile.ZipFile(the_npz(stored)) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            assert name.endswith(".json") or content.startswith(b"\x93NUMPY")
            assert b"|O" not in content[:128]


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_raise_release_error_and_nothing_else(seed, copy, stored):
    rng = random.Random(seed)
    for path in sorted(p for p in stored.iterdir() if p.is_file()):
        content = path.read_bytes()
        for _ in range(60):
            damaged = bytearray(content)
            for _ in range(rng.choice([1, 1, 4])):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            if rng.random() < 0.1:
                del damaged[rng.randrange(len(damaged)) :]
            (copy / path.name).write_bytes(damaged)
            with contextlib.suppress(ReleaseError):
                files.load(copy).sample(5, np.random.default_rng(0))
        (copy / path.name).write_bytes(content)
    files.load(copy)


@pytest.mark.parametrize("name", ["model.npz", "schema.toml"])
def test_a_missing_file_is_a_release_error(name, copy):
    (copy / name).unlink()
    with pytest.raises(ReleaseError):
        files.load(copy)


def test_a_file_that_claims_ten_gigabytes_is_refused_before_it_is_unpacked(copy):
    content = bytearray(the_npz(copy).read_bytes())
    entry = content.index(b"PK\x01\x02")  # the first entry of the central directory: its size is at byte 24
    for at in range(entry, len(content) - 4):
        if content[at : at + 4] == b"PK\x01\x02":
            content[at + 24 : at + 28] = (2**32 - 2).to_bytes(4, "little")
    the_npz(copy).write_bytes(content)
    with pytest.raises(ReleaseError, match="unpack"):
        files.load(copy)


def with_member(folder, name, content):
    """The archive with one member put in the place of its namesake, or added."""
    path = the_npz(folder)
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for n, c in {**members, name: content}.items():
            archive.writestr(n, c)


def an_array(folder):
    """The name of a member that holds three probabilities."""
    with np.load(the_npz(folder)) as members:
        return next(f"{n}.npy" for n in members.files if members[n].shape == (3,) and members[n].dtype == float)


def npy(array, **options):
    handle = io.BytesIO()
    np.lib.format.write_array(handle, array, **options)
    return handle.getvalue()


class Bomb:
    def __reduce__(self):
        return (Bomb.explode, ())

    @staticmethod
    def explode():
        pytest.fail("a pickle was executed")


def hostile(shape):
    """A header that claims an array much larger than what follows it."""
    handle = io.BytesIO()
    np.lib.format.write_array_header_1_0(handle, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return handle.getvalue() + b"\0" * 24


MEMBERS = {
    "an object array": npy(np.array([Bomb()] * 3), allow_pickle=True),
    "a bare pickle": pickle.dumps(Bomb()),
    "an array of ten terabytes": hostile((10**13 // 8,)),
    "an array of negative shape": hostile((-3,)),
    "the wrong shape": npy(np.ones(4)),
    "a probability below zero": npy(np.array([1.5, -0.5, 0])),
    "a probability that is NaN": npy(np.array([0.5, math.nan, 0.5])),
    "no probability at all": npy(np.zeros(3)),
    "probabilities that overflow": npy(np.full(3, 1e308)),
    "complex numbers": npy(np.ones(3, dtype=complex) / 3),
    "texts": npy(np.array(["a", "b", "c"])),
    "a record": npy(np.zeros(3, dtype=[("a", "f8"), ("b", "f8")])),
    "nothing": b"",
}


@pytest.mark.parametrize("case", MEMBERS)
def test_hostile_arrays_raise_release_error(case, copy):
    with_member(copy, an_array(copy), MEMBERS[case])
    with pytest.raises(ReleaseError):
        files.load(copy)


@pytest.mark.parametrize("name", ["../outside.npy", "/outside.npy", "..\\outside.npy"])
def test_members_that_point_outside_write_nothing(name, copy, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    with_member(copy, name, npy(np.ones(3)))
    with contextlib.suppress(ReleaseError):
        files.load(copy)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04", pickle.dumps(Bomb())], ids=repr)
def test_what_is_no_archive_is_a_release_error(content, copy):
    the_npz(copy).write_bytes(content)
    with pytest.raises(ReleaseError):
        files.load(copy)


FACTS = {
    "no parts": lambda facts: facts.pop("parts"),
    "parts that are a number": lambda facts: facts.update(parts=3),
    "none of the parts": lambda facts: facts.update(parts=[]),
    "a part too few": lambda facts: facts["parts"].pop(0),
    "a part twice": lambda facts: facts["parts"].append(facts["parts"][0]),
    "no weight": lambda facts: facts["parts"][0].pop("weight"),
    "a weight below 0": lambda facts: facts["parts"][0].update(weight=-1),
    "a weight that is NaN": lambda facts: facts["parts"][0].update(weight=math.nan),
    "a weight that is a word": lambda facts: facts["parts"][0].update(weight="a"),
    "weights of 0": lambda facts: [part.update(weight=0) for part in facts["parts"]],
    "an unknown kind": lambda facts: facts["parts"][0].update(kind="nobody"),
    "a kind that is a list": lambda facts: facts["parts"][0].update(kind=["mixture"]),
    "another kind": lambda facts: facts["parts"][0].update(kind="mixture"),
    "a stratum that is a number": lambda facts: facts["parts"][0].update(stratum=7),
    "a stratum of an unknown column": lambda facts: facts["parts"][0].update(stratum={"NOBODY": "1"}),
    "a stratum of other columns": lambda facts: facts["parts"][0].update(stratum={"SEX": "1"}),
    "a stratum of an unknown level": lambda facts: facts["parts"][0].update(stratum={"SEX": "9", "GROUP": "a"}),
}


@pytest.mark.parametrize("case", FACTS)
def test_facts_that_make_no_mixture_raise_release_error(case, fitted):
    state = fitted.state()
    FACTS[case](state.facts)
    with pytest.raises(ReleaseError):
        files.restore("mixture", SCHEMA, state)


def test_a_model_that_no_package_provides_is_named(fitted):
    with pytest.raises(ReleaseError, match="nobody"):
        files.restore("nobody", SCHEMA, fitted.state())


def test_counts_below_zero_are_no_rows_and_no_counts_at_all_are_even():
    schema = SCHEMA.restrict(["GROUP", "WORK"])
    noisy = [NoisyTable(("GROUP",), np.array([-3, -3]), 1.0), NoisyTable(("WORK",), np.array([-9, -9, -9]), 1.0)]
    odds = Product.of(schema, noisy).probabilities
    assert list(odds["GROUP"]) == [0.5, 0.5]
    assert odds["WORK"] == pytest.approx([1 / 3] * 3)
    # enough records for the noise: what is below zero is taken off the others, in equal parts
    many = [NoisyTable(("GROUP",), np.array([60, 40]), 1.0), NoisyTable(("WORK",), np.array([75, -4, 29]), 1.0)]
    odds = Product.of(schema, many, 100.0).probabilities
    assert odds["WORK"] == pytest.approx([0.73, 0, 0.27])


def test_the_example_mechanism_survives_a_table_without_rows():
    empty = fit(Independent(), table(people(0)), BUDGET).model
    assert {len(c) for c in empty.sample(20, np.random.default_rng(0)).values()} == {20}


def test_what_strata_have_in_common_is_stored_once(tmp_path):
    inner = Schema({name: Categorical(levels=("0", "1")) for name in "ab"})
    schema = Schema({"g": Categorical(levels=("x", "y", "z")), **inner.columns})
    tree = junction_tree((("a", 2), ("b", 2)), (("a", "b"),))
    apart = junction_tree((("a", 2), ("b", 2)), (("a",), ("b",)))
    parts = {
        Stratum.of({"g": level}): Graphical(inner, one, tuple(np.zeros(one.shape(c)) for c in one.cliques), 5.0 + i)
        for i, (level, one) in enumerate(zip("xyz", (tree, apart, tree), strict=True))
    }
    mixture = Mixture(schema, parts, dict.fromkeys(parts, 1 / 3))
    files.save(mixture, tmp_path / "model")
    state = mixture.state()
    assert [part["like"] for part in state.facts["parts"]] == [0, 1, 0]
    assert len(state.facts["alike"]) == 2
    assert all("cliques" not in part["facts"] for part in state.facts["parts"])
    again = files.load(tmp_path / "model")
    assert [part.tree for part in again.parts.values()] == [tree, apart, tree]
    assert [part.total for part in again.parts.values()] == [5.0, 6.0, 7.0]
    for like in (-1, 2, True, "0", 1.0):
        state.facts["parts"][0]["like"] = like
        with pytest.raises(ReleaseError, match="damaged"):
            files.restore("mixture", schema, state)


def test_what_strata_have_in_common_is_bounded_with_each_of_them(monkeypatch):
    monkeypatch.setattr(side_by_side, "MOST_ALIKE", 50)
    facts = {"alike": [{"cliques": [["a"] * 5]}], "parts": [{"like": 0}] * 2}
    with pytest.raises(ReleaseError, match="more than 50 characters"):
        side_by_side.read_again(facts)
    assert side_by_side.read_again({**facts, "parts": [{"like": 0}, {}]}) == [facts["alike"][0], {}]


def test_lists_of_lists_in_common_are_numbers_of_distinct_ones_that_are_bounded_as_if_written_out(monkeypatch):
    structures = [{"cliques": [["a", "b"], ["c"]], "parents": [-1]}, {"cliques": [["c"]], "parents": [-1]}]
    common, own = side_by_side.written_once([structures[0], structures[1], structures[0]])
    assert common["items"] == [["a", "b"], ["c"]]
    assert [one["cliques"] for one in common["alike"]] == [[0, 1], [1]]
    facts = {**common, "parts": own}
    assert side_by_side.read_again(facts) == [structures[0], structures[1], structures[0]]
    long = {**facts, "items": [["a" * 1000], ["c"]]}
    monkeypatch.setattr(side_by_side, "MOST_ALIKE", 1500)
    side_by_side.read_again(facts)
    with pytest.raises(ReleaseError, match="more than 1,500 characters"):
        side_by_side.read_again(long)


class Looked(str):
    """A text that counts how often it is looked up or compared."""

    __slots__ = ()
    times: ClassVar[int] = 0

    def __hash__(self):
        Looked.times += 1
        return super().__hash__()

    def __eq__(self, other):
        Looked.times += 1
        return super().__eq__(other)


def test_names_of_lists_are_not_looked_for_in_every_structure():
    """A small file could hold so many of both that their product takes hours."""
    many = 300
    facts = {
        "alike": [{Looked(f"x{i}"): []} for i in range(many)],
        "itemised": [Looked(f"k{i}") for i in range(many)],
        "parts": [{"like": 0}],
    }
    Looked.times = 0
    side_by_side.read_again(facts)
    assert Looked.times < 20 * many


@pytest.mark.parametrize(
    "wrong",
    [
        {"items": {"0": ["a"]}},
        {"itemised": "cliques"},
        {"alike": [{"cliques": [-1]}]},
        {"alike": [{"cliques": [True]}]},
        {"alike": [{"cliques": [[0]]}]},
        {"alike": [{"cliques": [1]}]},
        {"alike": [{"cliques": ["0"]}]},
    ],
    ids=str,
)
def test_numbers_of_lists_that_are_none_damage_a_model(wrong):
    facts = {"alike": [{"cliques": [0]}], "items": [["a"]], "itemised": ["cliques"], "parts": [{"like": 0}]}
    assert side_by_side.read_again(facts) == [{"cliques": [["a"]]}]
    with pytest.raises((ReleaseError, LookupError)):  # as whoever reads models takes both
        side_by_side.read_again({**facts, **wrong})


@pytest.mark.parametrize("one", [[1], {"kind": "graphical"}, {"parts": [{"kind": "tilted_rows"}]}], ids=str)
def test_nothing_but_lists_is_in_common_and_no_model_hides_there(one):
    with pytest.raises(ReleaseError, match="in common is damaged"):
        side_by_side.read_again({"alike": [one], "parts": [{"like": 0}]})
