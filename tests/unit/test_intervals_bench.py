"""The bench of means and quantiles: simulated fits of people hold what it is to show, in a short seeded form."""

import numpy as np
import pytest

from benches import intervals
from stratsynth.noise import SeededEntropy


@pytest.fixture(scope="module")
def world():
    return intervals.people(None, 6_000)


def test_exact_counts_and_sums_are_those_of_the_people(world):
    assert world.sizes.sum() == 6_000
    assert all(counts.sum() == 6_000 for counts in world.counts.values())
    squares = world.simulated(SeededEntropy(1))
    exact = np.nan_to_num(np.minimum(world.numbers["PINCP"], world.clip) - (world.clip - 20_000) / 2).sum()
    whole = next(each for each in squares.tables.sums if not each.stratum)
    assert abs(whole.value - exact) < 5 * whole.noise_sd
    lacking = [leaf for leaf in squares.tables.leaves if all("MAR" not in table.columns for table in leaf.tables)]
    assert 0 < len(lacking) < 18


def test_intervals_of_simulated_fits_hold(world):
    found = {figure.name: figure for figure in intervals.simulations(world, 3, SeededEntropy(2))}
    coverages = {name: figure.value for name, figure in found.items() if name.endswith("coverage")}
    assert {"simulated: means of ages, everybody: measured: coverage"} < set(coverages)
    assert np.mean(list(coverages.values())) > 93
    assert all(figure.reached is None for figure in found.values()), "too few to judge"


def test_a_coverage_that_is_off_is_missed():
    for bounds, held, reached in ((False, 0.95, True), (False, 0.99, False), (True, 0.99, True), (True, 0.9, False)):
        hits = [i < held * 1000 for i in range(1000)]
        assert intervals._coverage("made", hits, 1000, bounds=bounds).reached is reached
