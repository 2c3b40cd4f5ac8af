"""Means and quantiles: intervals that hold the truth of the numbers, not that of their bins."""

import dataclasses
import json
import math

import numpy as np
import pandas as pd
import pytest

from stratsynth import Budget, Categorical, Numeric, Schema, Stratified, Weights, fit, open_table
from stratsynth.adapters import Independent
from stratsynth.answers import Query, quantiles
from stratsynth.answers.ask import answers
from stratsynth.answers.clipped import ClippedSum, clipped_sums
from stratsynth.answers.release_answers import BINNED, SMALL, WIDE, Answers
from stratsynth.answers.squares import Squares
from stratsynth.answers.tables import Leaf, Noisy, Tables
from stratsynth.noise import SeededEntropy
from stratsynth.questions.sums.columns import Columns
from stratsynth.questions.sums.published import PublishedSum, summed
from stratsynth.release.opening import open_answers
from stratsynth.schema.temporal import Temporal

GROUPS = 200
"""Groups with noise of their own, so that one query has as many independent intervals."""
SIGMA, NOISE = 5.0, 2_000.0
INCOME = Numeric(lower=0, upper=100, edges=(0, 10, 20, 50, 101), integer=True, spikes=(0,), clip=60, shape="log")
SCHEMA = Schema(
    {
        "G": Categorical(levels=tuple(map(str, range(GROUPS)))),
        "H": Categorical(levels=("x", "y")),
        "INCOME": INCOME,
        "AGE": Numeric(lower=0, upper=9, integer=True),
    }
)
RNG = np.random.default_rng(5)
NUMBERS = np.concatenate([np.zeros(60), RNG.integers(1, 40, 300), RNG.integers(40, 101, 90), np.full(50, 100)])
"""Incomes of the people of each group."""
AGES = RNG.integers(0, 10, 500)


def squares(rng, *, sigma=SIGMA, stated=SIGMA, sums=None, noise=NOISE):
    """Least squares of one simulated fit; `sums` are the groups with a sum of their own, "" for everybody."""
    counted = np.bincount(np.searchsorted(INCOME.breaks, NUMBERS, side="right") - 1, minlength=INCOME.size)
    ages = np.bincount(AGES, minlength=10)
    leaves = [
        Leaf(
            str(i),
            {"G": [i]},
            [
                Noisy(("INCOME",), counted + rng.normal(0, sigma, INCOME.size), stated**2),
                Noisy(("AGE",), ages + rng.normal(0, sigma, 10), stated**2),
            ],
        )
        for i in range(GROUPS)
    ]
    exact = (np.minimum(NUMBERS, 60) - 30).sum()
    some = [] if sums is None else sums
    found = [
        ClippedSum(label, "INCOME", 30.0, exact * (1 if label else GROUPS) + rng.normal(0, noise), noise)
        for label in some
    ]
    return Squares(Tables(SCHEMA, frozenset({"G"}), tuple(leaves), (), tuple(found)))


def asked(squares_, statistic, **settings):
    (found,) = answers(squares_, [Query(["INCOME"], by=["G"], statistic=statistic, **settings)])
    return found


def held(found, true):
    """Part of the intervals that hold the truth, and number of intervals."""
    known = np.isfinite(found.estimate)
    return float(((found.noise_low <= true) & (true <= found.noise_high))[known].mean()), int(known.sum())


@pytest.mark.parametrize("part", [0.05, 0.25, 0.5, 0.75, 0.9])
def test_a_quantile_of_the_numbers_is_in_its_interval_at_least_as_often_as_it_says(part):
    true = np.quantile(NUMBERS, part, method="inverted_cdf")
    found = asked(squares(np.random.default_rng(1)), "quantile", quantile=part)
    often, number = held(found, true)
    assert often > 0.92  # two standard errors of 200 intervals
    assert number > GROUPS / 2
    ends = {end for pair in INCOME.extents for end in pair}
    assert set(found.noise_low[np.isfinite(found.noise_low)]) <= ends
    assert set(found.noise_high[np.isfinite(found.noise_high)]) <= ends


def test_where_a_quantile_is_the_last_of_its_bin_the_level_is_no_higher_than_it_says():
    """Of 500 incomes 60 are 0, so 12 % do not exceed 0: noise alone decides if the interval holds it."""
    true, part = 0.0, 60 / 500
    right, _ = held(asked(squares(np.random.default_rng(2)), "quantile", quantile=part), true)
    wrong, _ = held(asked(squares(np.random.default_rng(2), stated=SIGMA / 2), "quantile", quantile=part), true)
    assert 0.95 < right < 1
    assert wrong < 0.9


def test_bins_of_reals_end_where_the_next_begins():
    column = Numeric(-1.0, 4.0, edges=(-1.0, 2.0, 4.0), spikes=(0.0,))
    assert quantiles.ends(column).tolist() == [[-1.0, 0.0, 0.0, 2.0], [0.0, 0.0, 2.0, 4.0]]
    assert quantiles.ends(INCOME).T.tolist() == [list(pair) for pair in INCOME.extents]


def test_whole_numbers_with_a_bin_each_have_intervals_of_whole_numbers():
    (found,) = answers(squares(np.random.default_rng(3)), [Query(["AGE"], by=["G"], statistic="quantile")])
    often, number = held(found, np.quantile(AGES, 0.5, method="inverted_cdf"))
    assert number == GROUPS
    assert often > 0.92
    assert not found.bounded.any()
    assert (found.noise_high - found.noise_low).mean() < 3
    assert set(np.concatenate([found.estimate, found.noise_low])) <= set(range(10))


def test_a_mean_by_bins_holds_the_mean_of_the_numbers_or_is_not_given():
    (found,) = answers(squares(np.random.default_rng(4)), [Query(["INCOME"], by=["G"], statistic="mean")])
    often, number = held(found, NUMBERS.mean())
    assert (often, number > 0) == (1.0, True)
    assert found.bounded[np.isfinite(found.estimate)].all()
    half = (found.noise_high - found.noise_low) / 2
    assert np.nanmax(half) < 0.55 * NUMBERS.mean()
    coarse = dataclasses.replace(INCOME, edges=(0, 101))
    counts = Noisy(("INCOME",), np.array([60.0, 440.0]), 1.0)
    schema = Schema({"INCOME": coarse})
    (found,) = answers(
        Squares(Tables(schema, frozenset(), (Leaf("", {}, [counts]),), ())), [Query(["INCOME"], statistic="mean")]
    )
    assert np.isnan(found.estimate[0])
    assert found.measured[0]
    assert found.point[0] == pytest.approx(440 / 500 * coarse.middles[1])


def test_a_mean_of_whole_numbers_with_a_bin_each_is_exact_and_holds_as_often_as_it_says():
    (found,) = answers(squares(np.random.default_rng(5)), [Query(["AGE"], by=["G"], statistic="mean")])
    assert 0.92 < held(found, AGES.mean())[0] < 0.985
    assert not found.bounded.any()


def test_a_measured_mean_is_of_numbers_up_to_the_clip_and_says_what_is_above():
    sums = [str(i) for i in range(GROUPS)]
    found = asked(squares(np.random.default_rng(6), sums=sums), "mean")
    clipped = np.minimum(NUMBERS, 60).mean()
    often, number = held(found, clipped)
    assert number == GROUPS
    assert 0.91 < often < 0.99
    assert not found.bounded.any()
    # the last bin reaches to 100: what its people may have above 60
    most = (NUMBERS >= 50).sum() * 40 / len(NUMBERS)
    assert found.above.mean() == pytest.approx(most, rel=0.15)
    inside = (found.noise_low <= NUMBERS.mean()) & (NUMBERS.mean() <= found.noise_high + found.above)
    assert inside.mean() > 0.93


def test_the_noise_of_the_number_of_rows_moves_a_measured_mean():
    """With hardly any noise in sums, (centre - mean) times that of the rows is what remains."""
    sums = [str(i) for i in range(GROUPS)]
    far = 30 - np.minimum(NUMBERS, 60).mean()
    found = asked(squares(np.random.default_rng(7), sums=sums, noise=1e-6), "mean")
    rows = SIGMA / math.sqrt(1 / INCOME.size + 1 / 10)  # both tables count them
    assert found.noise_sd.mean() == pytest.approx(abs(far) * rows / len(NUMBERS), rel=0.1)


def test_sums_of_groups_and_of_everybody_are_combined():
    whole = Query(["INCOME"], statistic="mean")
    own = [str(i) for i in range(GROUPS)]
    alone, both = (answers(squares(np.random.default_rng(8), sums=s), [whole])[0] for s in (own, [*own, ""]))
    single = answers(squares(np.random.default_rng(8), sums=[""]), [whole])[0]
    assert single.noise_sd[0] < both.noise_sd[0] * 1.5
    assert both.noise_sd[0] < min(alone.noise_sd[0], single.noise_sd[0])
    assert abs(both.estimate[0] - np.minimum(NUMBERS, 60).mean()) < 4 * both.noise_sd[0]
    # a group's own sum moves with everybody's
    two = Query(["INCOME"], where={"G": ["0", "1"]}, statistic="mean")
    (found,) = answers(squares(np.random.default_rng(8), sums=own), [two])
    assert found.noise_sd[0] == pytest.approx(NOISE * math.sqrt(2) / 1_000, rel=0.2)


def test_groups_without_a_sum_are_bounded_by_their_bins():
    two = Query(["INCOME"], where={"G": ["0", "1"]}, statistic="mean")
    (found,) = answers(squares(np.random.default_rng(9), sums=["0", ""], noise=500.0), [two])
    assert found.bounded[0]
    assert found.noise_low[0] < np.minimum(NUMBERS, 60).mean() < found.noise_high[0]
    (half,) = answers(squares(np.random.default_rng(9), sums=["0"], noise=500.0), [Query(["INCOME"], statistic="mean")])
    low, top = np.array(INCOME.extents).T
    width = np.minimum(top, 60) - np.minimum(low, 60)
    counted = np.bincount(np.searchsorted(INCOME.breaks, NUMBERS, side="right") - 1, minlength=INCOME.size)
    assert half.noise_high[0] - half.noise_low[0] > (counted @ width) / len(NUMBERS) * (GROUPS - 1) / GROUPS


def test_a_condition_on_another_column_has_no_sum():
    both = Noisy(("INCOME", "H"), np.ones((INCOME.size, 2)) * 50, 1.0)
    tables = Tables(SCHEMA, frozenset(), (Leaf("", {}, [both]),), (), (ClippedSum("", "INCOME", 30.0, 900.0, 10.0),))
    queries = [Query(["INCOME"], where={"H": "x"}, statistic="mean"), Query(["INCOME"], statistic="mean")]
    some, everybody = answers(Squares(tables), queries)
    assert np.isnan(some.above[0])
    assert np.isfinite(everybody.above[0])


def test_differences_of_measured_means_hold_as_often_as_they_say():
    sums = [str(i) for i in range(GROUPS)]
    found = asked(squares(np.random.default_rng(11), sums=sums), "mean", versus={"G": "0"})
    assert (found.estimate[0], found.noise_low[0], found.noise_high[0]) == (0, 0, 0)
    sd = math.sqrt(2) * NOISE / 500
    assert found.noise_sd[1:].mean() == pytest.approx(sd, rel=0.1)
    assert found.above[0] == 0
    assert (found.above[1:] > 0).all()
    bounds = asked(squares(np.random.default_rng(11)), "mean", versus={"G": "0"})
    known = np.isfinite(bounds.estimate)
    known[0] = False
    assert ((bounds.noise_low < 0) & (bounds.noise_high > 0))[known].all()
    assert bounds.bounded[known].all()


def test_sums_are_read_from_the_measurements_where_they_are_up_to_the_clip():
    import pyarrow as pa

    def row(query, stratum=""):
        of = summed(query, SCHEMA, 0, "gaussian")
        one = PublishedSum(("INCOME",), np.array([8]), 4.0, 0.5, of)
        return {"stratum": stratum, "cell": 0, "value": int(one.values[0]), "sigma": 4.0, "grid": 0.5, "sum": of}

    right = Columns(("INCOME",), (30.0,), (2.0,), 15.0)
    others = [
        Columns(("INCOME",), (30.0,), (2.0,), 14.0),  # up to 58
        Columns(("INCOME",), (30.0,), (2.0,), 16.0),  # up to 62
        Columns(("INCOME",), (40.0,), (2.0,), 10.0),  # from 20
        Columns(("INCOME",), (30.0,), (2.0,), 15.0, square=True),
        Columns(("INCOME", "AGE"), (30.0, 0.0), (2.0, 1.0), 15.0),
        Columns(("AGE",), (5.0,), (1.0,), 5.0),  # without a clip
    ]
    table = pa.Table.from_pylist([row(right, "3"), *map(row, others), row(right) | {"sum": ""}])
    assert clipped_sums(SCHEMA, table) == (ClippedSum("3", "INCOME", 30.0, 8 * 0.5 * 2, 4 * 0.5 * 2),)
    assert clipped_sums(SCHEMA, table.drop_columns(["sum"])) == ()


def test_a_frame_tells_measured_bounded_and_not_estimable_apart():
    class Known(Answers):
        """Answers from given least squares."""

        _tables = "alone"

        def __init__(self, known):
            super().__init__(SCHEMA, None, lambda: None, lambda: None)
            self.squares = known

    group = Query(["INCOME"], where={"G": "1"}, statistic="mean")
    half = Query(["INCOME"], where={"G": ["1", "2"]}, statistic="mean")
    kept = Known(squares(np.random.default_rng(12), sums=["1"], noise=500.0))
    for query, status in ((group, "ok"), (half, "bounded"), (Query(["INCOME"], statistic="quantile"), "bounded")):
        found = kept.one(query)
        assert found["status"] == [status]
        clipped = found["note"][0].startswith("mean of min(INCOME, 60); numbers above raise it by 0 to ")
        assert clipped == (query.statistic == "mean")
        assert found["note"][0].endswith(BINNED) == (status == "bounded")
    assert json.dumps(kept.one(group)["above"])
    coarse = Schema({"INCOME": dataclasses.replace(INCOME, edges=(0, 101), clip=None)})
    counts = Noisy(("INCOME",), np.array([60.0, 440.0]), 1.0)
    kept.squares, kept._schema = Squares(Tables(coarse, frozenset(), (Leaf("", {}, [counts]),), ())), coarse
    found = kept.one(Query(["INCOME"], statistic="mean"))
    assert (found["status"], found["note"]) == (["not_estimable"], [WIDE])
    assert math.isfinite(found["model"][0])


def test_a_fit_measures_sums_of_a_column_with_a_clip_and_its_release_answers_means(tmp_path):
    rng = np.random.default_rng(13)
    pay = np.exp(rng.normal(10, 1, 20_000)).round().clip(0, 900_000)
    frame = pd.DataFrame({"SEX": np.where(np.arange(20_000) % 20, "1", "2"), "PAY": pay})
    column = Numeric(0, 1_000_000, integer=True, spacing="log", bins=20, transform_unit=1_000, clip=100_000)
    schema = Schema({"SEX": Categorical(("1", "2")), "PAY": column})
    shares = Weights.public(pd.DataFrame({"SEX": ["1", "2"], "share": [0.95, 0.05]}), citation="made up for testing")
    table = open_table(frame, schema=schema, declared_size=20_000)
    release = fit(Stratified(Independent(), ["SEX"], shares), table, Budget(1, 1e-9), entropy=SeededEntropy(4))
    found = release.query(["PAY"], by=["SEX"], statistic="mean")
    assert found.status[0] == "ok"
    assert found.note[0].startswith("mean of min(PAY, 100,000); numbers above raise it by 0 to ")
    own = frame.PAY[frame.SEX == "1"]
    assert abs(found.estimate[0] - own.clip(upper=100_000).mean()) < 4 * found.noise_sd[0]
    assert found.noise_sd[0] < 0.03 * own.mean()
    assert found.noise_low[0] < own.mean() < found.noise_high[0] + found.above[0]
    everybody = release.query(["PAY"], statistic="mean")
    assert everybody.noise_low[0] < pay.clip(max=100_000).mean() < everybody.noise_high[0]
    saved = release.save(tmp_path / "release", rows=10)
    assert open_answers(saved).frame(Query(["PAY"], by=["SEX"], statistic="mean")).equals(found)


def test_means_and_quantiles_of_dates_are_said_as_dates():
    schema = Schema(
        {
            "DAY": Temporal("2024-01-01", "2024-12-31", kind="date", edges=("2024-01-01", "2024-07-01", "2025-01-01")),
            "AT": Temporal(
                "08:00:00", "17:59:59", kind="time", unit="hour", edges=("08:00:00", "12:00:00", "18:00:00")
            ),
        }
    )
    frame = pd.DataFrame({"DAY": ["2024-02-01", "2024-08-01"] * 500, "AT": ["09:00:00", "13:00:00"] * 500})
    release = fit(Independent(), open_table(frame, schema=schema, declared_size=1_000), Budget(8, 1e-9), seed=1)
    (found,) = release.query(["DAY"], statistic="quantile", quantile=0.75).note
    assert found.startswith("in days since 1970-01-01: 2024-")
    assert "from 2024-07-01 to 2024-12-31" in found
    (found,) = release.query(["AT"], statistic="mean").note
    assert found.startswith("in hours since midnight: 1")
    assert set(release.query(["DAY"]).note) == {""}


def test_a_group_whose_numbers_noise_hides_has_the_models_mean_within_their_bounds():
    schema = Schema(
        {
            "G": Categorical(levels=("a", "b")),
            "PAY": Numeric(lower=0, upper=1_000_000, bins=40, spacing="log", transform_unit=100),
        }
    )
    frame = pd.DataFrame({"G": ["a"] * 990 + ["b"] * 10, "PAY": [500.0] * 1_000})
    for seed in range(3):
        table = open_table(frame, schema=schema, declared_size=1_000)
        weights = Weights.public(
            pd.DataFrame({"G": ["a", "b"], "share": [0.99, 0.01]}), citation="Statistics Office, Groups 2024, table 1"
        )
        how = Stratified(Independent(), ["G"], weights)
        release = fit(how, table, Budget(1, 1e-9), seed=seed, entropy=SeededEntropy(seed))
        found = release.query(["PAY"], by=["G"], statistic="mean").set_index("G").loc["b"]
        assert (found.status, found.note) == ("not_estimable", SMALL)
        assert 0 <= found.model <= 1_000_000
