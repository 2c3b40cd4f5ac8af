"""Slopes of tails that follow clipped sums: towards the sum as far as noise allows, stated, and worked out again."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers.releases import copied, edited
from stratsynth import Budget, Categorical, Numeric, Schema, Stratified, Weights
from stratsynth.adapters import Independent
from stratsynth.answers.clipped import ClippedSum
from stratsynth.noise import SeededEntropy
from stratsynth.release.notices import inside_line
from stratsynth.release.tail_sums import SPREAD, clipped_mean, with_sum
from stratsynth.schema.inside import PLACES, Inside, Tail, middles

EDGES = (0, 1_000, 30_000, 100_000, 200_000, 300_000, 4_000_001)
INCOME = Numeric(
    lower=0, upper=4_000_000, edges=EDGES, spikes=(0,), integer=True, shape="pareto", tail=(2, 6), transform_unit=1_000,
    clip=1_000_000,
)  # fmt: skip
SCHEMA = Schema({"SEX": Categorical(("1", "2")), "PINCP": INCOME})
COUNTS = np.array([0.0, 3_000, 5_000, 4_000, 1_000, 500, 250])
TAIL = Tail(6, 2.0, 4)


class Exact:
    """Least squares whose number of records is that of COUNTS, with noise of a standard deviation."""

    def __init__(self, noise=1e-6):
        self.noise = noise

    def estimate(self, functions):
        return functions.factors["PINCP"] @ COUNTS, np.ones(functions.number, bool)

    def covariance(self, one, other):
        return np.full(one.number, self.noise**2)


LEVELS = COUNTS / COUNTS.sum()


def total(slope, law, noise=1e-6, off=0.0, counts=COUNTS):
    """Return the clipped sum of numbers whose tail has a slope, and whose other bins follow the law."""
    means = np.array(middles(INCOME, law))
    means[6] = clipped_mean(INCOME, TAIL, slope)
    return ClippedSum("", "PINCP", 500_000.0, float(counts @ (means - 500_000)) + off, noise)


def placed(slope=2.0):
    """Return a law of which every bin below the tail was measured."""
    density = np.ones((7, PLACES))
    density[[0, 6]] = 0
    return Inside(replace(TAIL, slope=slope), density)


def slope(law, noise=1e-6, squares=None, **more):
    found = with_sum("PINCP", INCOME, law, total(law=law, noise=noise, **more), squares or Exact(), LEVELS)
    return found.tail.slope


def test_the_clipped_mean_of_a_tail_is_the_integral_of_its_law():
    low, clip, end = 300_000.0, 1_000_000.0, 4_000_001.0
    for a in (2.0, 3.3, 6.0):
        inside = a / (a - 1) * (low - clip * (low / clip) ** a) + clip * ((low / clip) ** a - (low / end) ** a)
        assert clipped_mean(INCOME, TAIL, a) == pytest.approx(inside / (1 - (low / end) ** a), rel=1e-4)
    whole = replace(INCOME, clip=None)
    assert clipped_mean(whole, TAIL, 2.0) == pytest.approx(2 * low * (1 - low / end) / (1 - (low / end) ** 2), rel=1e-2)


@pytest.mark.parametrize("true", [2.0, 2.7, 4.0, 6.0])
def test_an_exact_sum_of_measured_bins_gives_the_slope(true):
    assert slope(placed(), slope=true) == pytest.approx(true, rel=1e-3)
    joined = replace(placed(), tail=Tail(5, 2.0, 4))  # noise hides the last two bins
    bare = with_sum("PINCP", INCOME, joined, total(2.0, joined), Exact(), LEVELS)
    assert (bare.tail.first, bare.tail.begin) == (5, 4)


def test_a_sum_beyond_the_declared_slopes_gives_the_nearest_of_them():
    law = placed(3.0)
    assert slope(law, slope=3.0, off=1e9) == pytest.approx(2.0)
    assert slope(law, slope=3.0, off=-1e9) == pytest.approx(6.0)


def test_the_louder_the_sum_or_the_counts_the_nearer_the_slope_of_the_counts():
    by_counts, true = clipped_mean(INCOME, TAIL, 2.0), clipped_mean(INCOME, TAIL, 4.0)
    for noise in (1e6, 1e7, 3e7):
        weights = 1 / (SPREAD * by_counts) ** 2, (250 / noise) ** 2
        wanted = np.average([by_counts, true], weights=weights)
        found = clipped_mean(INCOME, TAIL, slope(placed(), slope=4.0, noise=noise))
        assert found == pytest.approx(wanted, rel=1e-3)
    assert slope(placed(), slope=4.0, noise=1e12) == pytest.approx(2.0, abs=1e-3)
    assert slope(placed(), slope=4.0, squares=Exact(1e5)) == pytest.approx(2.0, abs=1e-3)
    assert slope(placed(), slope=4.0, squares=Exact(10.0)) > 3


def test_the_slope_is_the_one_by_which_the_rows_of_the_model_have_the_mean():
    """The model has a tenth more people in the tail than there are: what they have is less."""
    law, rows = placed(), COUNTS * np.where(np.arange(7) == 6, 1.1, 1.0)
    wanted = float(COUNTS @ np.array(middles(INCOME, law))) / COUNTS.sum()
    mean = total(3.0, law).value / COUNTS.sum() + 500_000
    found = with_sum("PINCP", INCOME, law, total(3.0, law), Exact(), rows / rows.sum())
    means = np.array(middles(INCOME, law))
    means[6] = clipped_mean(INCOME, TAIL, found.tail.slope)
    assert mean < 0.99 * wanted
    assert rows @ means / rows.sum() == pytest.approx(mean, rel=1e-4)


def test_bins_whose_places_nobody_measured_weaken_the_sum():
    bare = Inside(TAIL)
    assert 2.0 < slope(bare, slope=4.0) < slope(placed(), slope=4.0)


def test_a_clip_below_the_tail_says_nothing():
    law = placed()
    low = replace(INCOME, clip=300_000)
    assert with_sum("PINCP", low, law, total(4.0, law), Exact(), LEVELS) is None
    assert with_sum("PINCP", INCOME, Inside(), total(4.0, law), Exact(), LEVELS) is None
    nothing = SimpleNamespace(estimate=lambda f: (np.full(f.number, math.nan), np.zeros(f.number, bool)))
    assert with_sum("PINCP", INCOME, law, total(4.0, law), nothing, LEVELS) is None


def people(n=30_000):
    """Return rows of which 1.5 % have 300,000 to 420,000; by the numbers of records, a tail is much longer."""
    rng = np.random.default_rng(1)
    ends = np.array([[1, 60_000], [100_000, 199_999], [200_000, 299_999], [300_000, 420_000]])
    low, top = ends[rng.choice(4, n, p=[0.9, 0.08, 0.005, 0.015])].T
    return pd.DataFrame({"SEX": np.where(np.arange(n) % 2, "1", "2"), "PINCP": rng.integers(low, top, endpoint=True)})


def released(how=None, frame=None, **keys):
    schema = Schema({**SCHEMA.columns, "PINCP": replace(INCOME, **keys)})
    table = ss.open_table(people() if frame is None else frame, schema=schema, declared_size=30_000)
    return ss.fit(how or Independent(), table, Budget(3, 1e-9), entropy=SeededEntropy(7), seed=1)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A release with sums and places, saved, and one without sums."""
    release = released(places=0.1)
    return release, release.save(tmp_path_factory.mktemp("sums") / "release"), released(places=0.1, sums=0)


def test_the_mean_of_rows_is_nearer_with_a_sum(both):
    release, _, without = both
    real = people().PINCP.mean()
    near, far = (each.sample(30_000, seed=2).PINCP.mean() / real - 1 for each in (release, without))
    assert far > 0.06
    assert abs(near) < 0.03


def test_certificate_page_and_verdict_say_what_the_slope_is_made_of(both, tmp_path):
    release, folder, without = both
    (stated,), (bare,) = release.statement.inside, without.statement.inside
    assert (stated.summed, bare.summed) == (True, False)
    assert "counts of everybody and a noisy sum within" in inside_line(stated)
    assert "what everybody's numbers add up to" in inside_line(stated)
    assert "not of how large they are" in inside_line(bare)
    verdict = ss.verify(folder)
    assert all("NOT PRIVATE" in line for line in verdict.findings)  # the noise is seeded
    assert any("noisy counts and clipped sums in measurements" in line for line in verdict.checked)
    for change in ({"summed": False}, {"slope": bare.slope}):
        found = copied(folder, tmp_path / next(iter(change)))
        edited(found, lambda record, change=change: record["inside"][0].update(change))
        assert any("other laws of numbers within bins" in line for line in ss.verify(found).findings)


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NoticeWarning")
def test_rows_by_measured_sizes_have_a_slope_of_their_own_and_hold(tmp_path):
    """Of the rich there are twice as many as declared, all of them men."""
    frame = people().assign(SEX=lambda f: np.where((f.PINCP > 50_000) | (np.arange(len(f)) % 2), "1", "2"))
    shares = pd.DataFrame({"SEX": ["1", "2"], "share": [0.4, 0.6]})
    how = Stratified(Independent(), ["SEX"], Weights.public(shares, citation="made up for testing"))
    declared = released(how, frame, places=0.1)
    measured = declared.by_measured_sizes()
    (one,), (other,) = declared.statement.inside, measured.statement.inside
    assert other.summed
    assert other.slope == measured.inside["PINCP"].tail.slope != one.slope
    folder = measured.save(tmp_path / "release", rows=100)
    assert all("NOT PRIVATE" in line for line in ss.verify(folder).findings)
