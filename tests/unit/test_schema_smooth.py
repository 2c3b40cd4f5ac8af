"""Numbers of `shape = "smooth"`: within their bins, along a curve through the counts of all bins."""

import numpy as np
import pytest

from stratsynth.schema import Numeric, Schema
from stratsynth.schema.codec import decode

FIVES = tuple(range(0, 101, 5))


def drawn(column: Numeric, codes: object, seed: int = 1) -> np.ndarray:
    table = decode(Schema({"X": column}), {"X": np.asarray(codes)}, np.random.default_rng(seed))
    return table.column("X").to_numpy()


def ages(**keys: object) -> Numeric:
    return Numeric(**{"lower": 0, "upper": 99, "integer": True, "edges": FIVES, "shape": "smooth", **keys})


@pytest.mark.parametrize(
    "column",
    [
        ages(),
        ages(edges=(0, 1, 3, 50, 100)),
        ages(lower=-20, upper=9, edges=(-20, -3, 2, 10), spikes=(0,)),
        Numeric(lower=0.0, upper=1.0, edges=(0, 0.25, 0.5, 1), spikes=(0.25,), shape="smooth"),
        Numeric(lower=0.0, upper=9.5, bins=4, digits=1, shape="smooth"),
        Numeric(lower=-1e308, upper=1.7e308, bins=3, shape="smooth"),
        Numeric(lower=-2.0, upper=0.0, edges=(-2, 0), spikes=(-2.220446049250313e-16,), shape="smooth"),
        Numeric(lower=-(2**53), upper=2**53, bins=3, integer=True, shape="smooth"),
    ],
)
def test_numbers_stay_in_their_bins(column):
    codes = np.random.default_rng(2).integers(0, len(column.extents), 2000)
    found = drawn(column, codes)
    low, top = np.array(column.extents).T
    assert (low[codes] <= found).all()
    assert (found <= top[codes]).all()


def test_numbers_lie_denser_where_the_next_bin_is_fuller():
    counts = [1000, 4000, 8000, 4000, 1000]
    codes = np.repeat(np.arange(5), counts)
    found = drawn(ages(upper=49, edges=(0, 10, 20, 30, 40, 50)), codes) % 10
    means = [found[codes == code].mean() for code in range(5)]
    assert means[0] > means[1] > 4.8
    assert means[4] < means[3] < 4.2
    assert means[2] == pytest.approx(4.5, abs=0.1)


def test_ages_come_back_nearer_than_when_drawn_evenly():
    truth = np.clip(np.random.default_rng(0).normal(40, 18, 50_000), 0, 99).astype(int)

    def away(column: Numeric) -> float:
        found = drawn(column, truth // 5).astype(int)
        return np.abs(np.bincount(found, minlength=100) - np.bincount(truth, minlength=100)).sum() / len(truth)

    assert away(ages()) < 0.6 * away(ages(shape="even"))


def test_a_few_numbers_are_spread_evenly():
    found = np.concatenate([drawn(ages(), [3, 3], seed) for seed in range(500)])
    assert np.bincount(found.astype(int), minlength=20)[15:20] == pytest.approx([200] * 5, rel=0.2)


def test_an_empty_bin_ends_the_curve():
    """As where rows of some ages are wanted: beside them there are people, and no hollow."""
    codes = np.repeat([4, 5, 6], 3000)
    found = drawn(ages(), codes).astype(int)
    assert np.bincount(found, minlength=35)[20:35] == pytest.approx([600] * 15, rel=0.02)


def test_codes_of_no_bin_weigh_nothing():
    column = ages(not_applicable="N", missing=True)
    codes = np.repeat([17, 18, 19], 3000)
    alone = drawn(column, codes)
    among = drawn(column, np.concatenate([codes, [20] * 50_000, [21] * 50_000]))[:9000]
    one, other = (np.bincount(found.astype(int), minlength=100)[85:] for found in (alone, among))
    assert one == pytest.approx(other, rel=0.02)


def test_a_spike_is_no_part_of_the_curve():
    codes = np.repeat([0, 1, 2], [3000, 50_000, 3000])
    found = drawn(ages(upper=20, edges=(0, 21), spikes=(10,)), codes).astype(int)
    assert (found[codes == 1] == 10).all()
    assert np.bincount(found, minlength=21)[[*range(10), *range(11, 21)]] == pytest.approx([300] * 20, rel=0.05)


def test_no_row_is_no_number():
    assert len(drawn(ages(), np.zeros(0, int))) == 0


def test_means_of_bins_are_their_middles():
    assert ages().middles == ages(shape="even").middles
    assert ages(transform="log", transform_unit=10).middles[0] == 2
