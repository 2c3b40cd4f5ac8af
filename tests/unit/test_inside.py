"""Laws of numbers within bins: closed forms, bins and bounds that no number leaves, files."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stratsynth import Numeric, Schema, Temporal
from stratsynth.errors import ReleaseError
from stratsynth.schema.codec import decode
from stratsynth.schema.encoding import encode
from stratsynth.schema.inside import (
    PLACES,
    Inside,
    Tail,
    declared,
    density_of,
    from_arrays,
    middles,
    numbers,
    to_arrays,
)

EDGES = (-100, 0, 1_000, 10_000, 100_000, 200_000, 4_000_001)
INCOME = Numeric(
    lower=-100, upper=4_000_000, edges=EDGES, integer=True, shape="pareto", spikes=(0,), transform_unit=1_000
)
SHARES = (np.arange(100_000) + 0.5) / 100_000


def pareto_mean(low, end, slope):
    """The mean of a Pareto law cut at both ends."""
    left = 1 - (low / end) ** slope
    return slope * low**slope / (slope - 1) * (low ** (1 - slope) - end ** (1 - slope)) / left


@pytest.mark.parametrize("slope", [1.5, 2.0, 3.7, 6.0])
def test_a_tail_is_the_pareto_law_between_its_start_and_the_bound(slope):
    drawn = numbers(INCOME, np.full(len(SHARES), 6), SHARES, Inside(Tail(6, slope)))
    low, end = 200_000, 4_000_001
    for x in (250_000, 400_000, 1_000_000, 3_000_000):
        above = ((low / x) ** slope - (low / end) ** slope) / (1 - (low / end) ** slope)
        assert np.mean(drawn >= x) == pytest.approx(above, abs=1e-4)
    assert drawn.mean() == pytest.approx(pareto_mean(low, end, slope) - 0.5, rel=1e-3)
    assert middles(INCOME, Inside(Tail(6, slope)))[6] == pytest.approx(pareto_mean(low, end, slope) - 0.5, rel=1e-3)


def test_bins_of_a_tail_are_one_law():
    """Codes drawn again and numbers within them follow one Pareto law over all of the tail's bins."""
    tail = Tail(5, 2.5)
    masses = dict(zip(tail.bins(INCOME).tolist(), tail.masses(INCOME), strict=True))
    assert list(masses) == [5, 6]
    whole = 1 - (100_000 / 4_000_001) ** 2.5
    assert masses[6] == pytest.approx(((100_000 / 200_000) ** 2.5 - (100_000 / 4_000_001) ** 2.5) / whole)
    both = middles(INCOME, Inside(tail))
    assert both[5] == both[6] == pytest.approx(pareto_mean(100_000, 4_000_001, 2.5) - 0.5, rel=1e-3)
    codes = np.repeat([0, 4, 5, 6], 30_000)
    again = tail.redrawn(INCOME, codes, np.random.default_rng(1))
    assert (again[:60_000] == codes[:60_000]).all()
    assert np.mean(again[60_000:] == 6) == pytest.approx(masses[6], abs=0.005)
    drawn = numbers(INCOME, again[60_000:], np.random.default_rng(2).random(60_000), Inside(tail))
    assert drawn.mean() == pytest.approx(both[5], rel=0.02)


def test_bins_below_a_tail_fall_off_by_its_slope_and_keep_their_records():
    law = Inside(Tail(6, 2.5, begin=4))
    drawn = numbers(INCOME, np.repeat([3, 4, 5], len(SHARES)), np.tile(SHARES, 3), law).reshape(3, -1)
    assert drawn[1].mean() == pytest.approx(pareto_mean(10_000, 100_000, 2.5) - 0.5, rel=1e-3)
    assert drawn[2].mean() == pytest.approx(pareto_mean(100_000, 200_000, 2.5) - 0.5, rel=1e-3)
    assert (drawn[0] == numbers(INCOME, np.full(len(SHARES), 3), SHARES, Inside(Tail(6, 2.5)))).all()
    found = middles(INCOME, law)
    assert found[4] == pytest.approx(pareto_mean(10_000, 100_000, 2.5) - 0.5, rel=1e-3)
    codes = np.repeat([4, 5], 100)
    assert (law.tail.redrawn(INCOME, codes, np.random.default_rng(0)) == codes).all()


def test_codes_of_a_tail_are_drawn_among_those_that_a_condition_allows():
    tail, codes = Tail(4, 2.5), np.repeat([4, 5, 6], 1_000)
    rng = np.random.default_rng(1)
    assert set(tail.redrawn(INCOME, codes[:2_000], rng, frozenset({4, 5}))) == {4, 5}
    assert (tail.redrawn(INCOME, codes[:1_000], rng, frozenset({4})) == 4).all()
    assert (tail.redrawn(INCOME, codes, rng, frozenset({0, 1})) == codes).all()


def test_spikes_are_no_part_of_a_tail():
    column = Numeric(
        lower=0, upper=99_999, edges=(0, 1_000, 10_000, 99_999), spikes=(0, 5_000, 99_999), shape="pareto", integer=True
    )
    assert column.all_levels == ("0", "1-999", "1000-4999", "5000", "5001-9999", "10000-99998", "99999")
    tail = Tail(2, 2.0)
    assert tail.bins(column).tolist() == [2, 4, 5]
    again = tail.redrawn(column, np.repeat([2, 3, 6], 100), np.random.default_rng(0))
    assert (again[100:] == np.repeat([3, 6], 100)).all()
    assert declared(column).tail == Tail(5, 3.75)


def test_a_column_without_counts_has_the_middle_of_its_slopes_in_its_last_bin():
    assert declared(INCOME).tail == Tail(6, 3.75)
    assert declared(Numeric(lower=0, upper=1, bins=2, shape="log")).tail is None


COLUMNS = st.fixed_dictionaries(
    {
        "lower": st.sampled_from([-1e6, -0.3, 0, 1, 1e-3]),
        "upper": st.sampled_from([1e3, 1e7, 5.5e4]),
        "bins": st.integers(1, 9),
        "spacing": st.sampled_from(["even", "log"]),
        "shape": st.sampled_from(["even", "log", "pareto"]),
        "round": st.sampled_from([(), ((0, 10), (1_000, 100)), ((5, 0.05), (100, 7)), ((0, 1e9),)]),
        "digits": st.sampled_from([None, 2]),
        "integer": st.booleans(),
        "stored": st.sampled_from([None, "float32"]),
        "transform_unit": st.sampled_from([1, 1_000]),
    }
)


@settings(max_examples=60, deadline=None)
@given(keys=COLUMNS, spike=st.booleans(), seed=st.integers(0, 99), first=st.integers(0, 9), dense=st.booleans())
def test_every_number_is_drawn_in_its_bin_and_within_the_bounds(keys, spike, seed, first, dense):
    if keys["integer"]:
        keys |= {"lower": math.floor(keys["lower"]), "digits": None, "stored": None}
    if keys["shape"] == keys["spacing"] == "even":
        keys["transform_unit"] = 1
    if keys["shape"] == "pareto" and Numeric(**keys | {"shape": "log"}).extents[-1][0] <= 0:
        keys |= {"shape": "log"}
    column = Numeric(**keys, spikes=(max(1, keys["lower"]),) if spike else ())
    rng, bins = np.random.default_rng(seed), len(column.extents)
    starts = [i for i, (low, _) in enumerate(column.extents) if low > 0 and low not in column.spikes]
    tail = (
        Tail(starts[first % len(starts)], 1.0 + seed / 20, starts[0] if spike else None)
        if column.shape == "pareto"
        else None
    )
    density = rng.integers(0, 3, (bins, PLACES)) * rng.integers(0, 2, (bins, 1)) if dense else None
    law = Inside(tail, density)
    assert law.fits(column)
    schema, codes = Schema({"x": column}), np.repeat(np.arange(bins), 40)
    table = decode(schema, {"x": codes}, rng, {"x": law})
    drawn = table["x"].to_numpy().astype(float)
    assert ((drawn >= np.float32(column.lower)) & (drawn <= np.float32(column.upper))).all() or (
        (drawn >= column.lower) & (drawn <= column.upper)
    ).all()
    if column.stored is None:
        assert (encode(schema, table).codes["x"] == codes).all()
    assert np.isfinite(middles(column, law)).all()


@pytest.mark.parametrize("integer", [True, False])
def test_rounded_numbers_are_multiples_and_an_even_law_stays_even(integer):
    column = Numeric(
        lower=-5_000, upper=60_000, edges=(-5_000, 0, 1_001, 50_001, 60_000), integer=integer,
        round=((0, 10), (1_000, 100), (50_000, 1_000)),
    )  # fmt: skip
    drawn = numbers(column, np.repeat([0, 1, 2, 3], 100_000), np.tile(SHARES, 4), Inside())
    parts = drawn.reshape(4, -1)
    size = np.abs(drawn)
    unit = np.where(size >= 50_000, 1_000, np.where(size >= 1_000, 100, 10))
    assert (drawn % unit == 0).all()
    for part, wanted in ((parts[2], np.arange(1_100, 50_001, 100)), (parts[3], np.arange(51_000, 60_001, 1_000))):
        found, times = np.unique(part, return_counts=True)
        assert found.tolist() == wanted.tolist()
        assert times.max() <= 1.02 * times.min()
    assert set(np.unique(parts[0])) == {*range(-5_000, -999, 100), *range(-990, 0, 10)}
    assert middles(column)[3] == pytest.approx(np.arange(51_000, 60_001, 1_000).mean(), rel=1e-3)


def test_a_number_whose_bin_has_no_multiple_stays():
    column = Numeric(lower=1, upper=20, edges=(1, 7, 20), round=((0, 7),))
    assert set(numbers(column, np.repeat([0, 1], 1_000), np.tile(SHARES[::100], 2), Inside())[1_000:]) == {7, 14}
    small = numbers(column, np.zeros(1_000, int), SHARES[::100], Inside())
    assert len(set(small)) == 1_000
    assert small.max() < 7


def test_a_density_of_public_numbers_is_drawn_again():
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(5_000, 200, 5_000), rng.choice([20_000.0, 60_000.0], 5_000)]).round()
    codes = np.searchsorted(INCOME.breaks, values, side="right") - 1
    density = density_of(INCOME, values, codes, np.ones(len(values)), 0.05)
    assert (density.sum(axis=1) > 0).tolist() == [False, False, False, True, True, False, False]
    law = Inside(Tail(6, 3), density)
    drawn = numbers(INCOME, codes, rng.random(len(codes)), law)
    for code in (3, 4):
        assert drawn[codes == code].mean() == pytest.approx(values[codes == code].mean(), rel=0.02)
        assert middles(INCOME, law)[code] == pytest.approx(values[codes == code].mean(), rel=0.02)
    near = [np.mean((drawn[codes == 4] > x * 0.97) & (drawn[codes == 4] < x * 1.03)) for x in (20_000, 60_000)]
    assert sum(near) > 0.98
    apart = numbers(INCOME, np.full(1_000, 2), SHARES[::100], law)  # of the bin that no public number is in: its shape
    assert (apart == numbers(INCOME, np.full(1_000, 2), SHARES[::100], Inside())).all()


def test_dates_follow_a_density_of_public_dates():
    column = Temporal(kind="date", lower="2000-01-01", upper="2019-12-31", bins=2, within="prior")
    day = column.quantity("2004-05-06")
    density = density_of(column, np.full(50, day), np.zeros(50, int), np.ones(50), 0.05)
    table = decode(
        Schema({"d": column}), {"d": np.zeros(500, int)}, np.random.default_rng(1), {"d": Inside(None, density)}
    )
    drawn = table["d"].to_pandas().astype("datetime64[s]")
    assert drawn.between("2004-04-01", "2004-06-10").mean() > 0.8  # 29 days a place
    assert drawn.between("2000-01-01", "2009-12-31").all()


def test_weights_count_in_a_density_and_a_place_without_a_number_has_a_little():
    values, codes = np.array([2_000.0, 9_000.0]), np.array([3, 3])
    density = density_of(INCOME, values, codes, np.array([300.0, 100.0]), 0.05)
    assert sorted(density[3])[-2:] == pytest.approx([0.55, 1.55])
    assert sorted(density[3])[:-2] == pytest.approx([0.05] * (PLACES - 2))


def test_heaps_are_multiples_of_their_own_and_of_no_larger_one():
    column = Numeric(lower=1, upper=50_000, edges=(1, 5, 50_001), integer=True, heaps=(10_000, 1_000, 100))
    heaps = np.tile([[0.1, 0.3, 0.2, 0.4]], (2, 1))
    table = decode(
        Schema({"x": column}),
        {"x": np.repeat([0, 1], [100, 20_000])},
        np.random.default_rng(1),
        {"x": Inside(heaps=heaps)},
    )
    drawn = table["x"].to_numpy()
    assert set(drawn[:100]) == {1, 2, 3, 4}
    large = drawn[100:]
    first = np.select([large % 10_000 == 0, large % 1_000 == 0, large % 100 == 0], [0, 1, 2], 3)
    assert np.bincount(first) / 20_000 == pytest.approx([0.1, 0.3, 0.2, 0.4], abs=0.015)
    assert ((large >= 5) & (large <= 50_000)).all()


def test_a_file_holds_laws_and_a_damaged_one_is_refused():
    density = np.zeros((7, PLACES))
    laws = {"x": Inside(Tail(5, 2.5), density), "y": Inside(heaps=np.ones((2, 2)))}
    columns = {"x": INCOME, "y": Numeric(lower=0, upper=9, bins=2, heaps=(5,))}
    facts, arrays = to_arrays(laws)
    again = from_arrays(facts, arrays, columns)
    assert again["x"].tail == Tail(5, 2.5)
    assert (again["x"].density == density).all()
    assert again["y"].tail is None
    for wrong in ({"columns": {"z": {}}}, {"columns": {"x": {"first": 0, "slope": 1}}}, [], {"columns": {"x": 1}}):
        with pytest.raises(ReleaseError, match="damaged"):
            from_arrays(wrong, arrays, columns)
    for array in (np.full((7, PLACES), -1.0), np.zeros((7, 3)), np.zeros((6, PLACES))):
        with pytest.raises(ReleaseError, match="damaged"):
            from_arrays(facts, {**arrays, "density/x": array}, columns)
