"""The clipped mean and COINPRESS: formulas by hand, what is asked and paid, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.exactly import exactly
from stratsynth import Budget, Categorical, Neighbours, Numeric, Schema, Stratified, Weights, fit, open_table
from stratsynth.accounting.budget import PRICED
from stratsynth.adapters import ClippedMean, CoinPress
from stratsynth.adapters.means.clipped import half_width
from stratsynth.adapters.means.coinpress import clip_at, narrowed, noise_of, tail_bound
from stratsynth.errors import StratsynthError, Unsupported, UsageError
from stratsynth.mechanisms import Public, make
from stratsynth.models import Returns
from stratsynth.schema.weight import RowWeight

WIDE = Schema({"x": Numeric(lower=-1000, upper=1000)})
SPIKE = pd.DataFrame({"x": [0.0] * 900 + [100.0] * 100})
BOTH = Schema(
    {
        "g": Categorical(levels=("a", "b")),
        "x": Numeric(lower=-50, upper=50),
        "y": Numeric(lower=0, upper=10, missing=True),
    }
)


# COINPRESS, by hand


def test_the_bounds_of_one_step():
    g = tail_bound(1, 0.01)
    assert g == pytest.approx(3.8082, abs=5e-5)
    assert tail_bound(1, 0.01, "exact") == pytest.approx(2.5758, abs=5e-5)
    assert clip_at(1, g) == pytest.approx(4.6371, abs=5e-5)
    assert noise_of(clip_at(1, g), 1000, 1, Neighbours.REPLACE) == pytest.approx(0.006558, abs=5e-7)
    assert noise_of(clip_at(1, g), 1000, 1, Neighbours.ADD_REMOVE) == pytest.approx(0.003279, abs=5e-7)
    assert clip_at(1, 2.5) == 3.5


@given(st.integers(1, 50), st.floats(1e-6, 0.5))
def test_the_papers_bound_covers_the_quantile(d, beta):
    assert tail_bound(d, beta) >= tail_bound(d, beta, "exact")


def test_one_step_without_noise():
    """900 zeros and 100 times 100, clipped at 4.6371: their mean is .46371."""
    how = CoinPress(shares=[1], radius={"x": 1}, scale={"x": 1}, count="declared", variance="bounded")
    estimate, ((question, sigma),) = exactly(how, WIDE, SPIKE, declared=1000)
    assert question.query.clip == pytest.approx(4.6371, abs=5e-5)
    assert estimate.figures.value == pytest.approx(0.46371, abs=5e-6)
    assert estimate.noise == pytest.approx(sigma / 1000)


@pytest.mark.parametrize("neighbours", PRICED)
def test_the_steps_follow_the_paper(neighbours):
    """Two steps, checked against the formulas with the noise that the driver declares."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(3, 1, size=4000)})
    budget = Budget(1, 1e-9, neighbours=neighbours)
    how = CoinPress(radius={"x": 10}, scale={"x": 1}, count="declared", variance="bounded")
    estimate, asked = exactly(how, WIDE, frame, declared=4000, budget=budget)
    rho, g = budget.zcdp().rho, tail_bound(1, 0.01)
    tau = clip_at(10, g)
    sd = noise_of(tau, 4000, rho / 4, neighbours)
    first = np.clip(frame["x"], -tau, tau).mean()
    second = clip_at(narrowed(4000, sd, g), g)
    last = first + np.clip(frame["x"] - first, -second, second).mean()
    assert [q.query.clip for q, _ in asked] == pytest.approx([tau, second])
    assert [q.price for q, _ in asked] == pytest.approx([rho / 4, 3 * rho / 4])
    assert [sigma / 4000 for _, sigma in asked] == pytest.approx([sd, noise_of(second, 4000, rho * 0.75, neighbours)])
    assert asked[1][0].query.centre == pytest.approx([first])
    assert estimate.figures.value == pytest.approx(last, abs=1e-7)
    assert estimate.noise == pytest.approx(asked[1][1] / 4000)
    assert estimate.fourth == 0


def test_a_step_that_cannot_narrow_down_is_skipped_and_saved():
    """Twenty people at a small epsilon: the first step would leave the radius larger than it was."""
    budget = Budget(0.1, 1e-9)
    frame = pd.DataFrame({"x": np.linspace(-1, 1, 20)})
    how = CoinPress(radius={"x": 1}, scale={"x": 1}, count="declared", variance="bounded")
    _, asked = exactly(how, WIDE, frame, declared=20, budget=budget)
    assert [q.price for q, _ in asked] == pytest.approx([budget.zcdp().rho])


def test_where_every_record_has_the_largest_weight_steps_narrow_down_as_without():
    """Sums, their noise and the size are all 100 times as large; a ball that takes the noise for less is too small."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(3, 1, size=2000), "W": 100})
    how, budget = CoinPress(scale={"x": 1}, variance="bounded"), Budget(0.1, 1e-9)
    weighted = replace(WIDE, row_weight=RowWeight(100, "W"))
    one, other = (exactly(how, of, frame, budget=budget)[1] for of in (WIDE, weighted))
    assert [q.query.clip for q, _ in other] == pytest.approx([q.query.clip for q, _ in one])
    assert [sigma for _, sigma in other] == pytest.approx([100 * sigma for _, sigma in one])


def test_a_vector_is_narrowed_down_as_one():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal([2, 5], [1, 2], size=(5000, 2)), columns=["x", "y"])
    schema = Schema({"x": Numeric(lower=-50, upper=50), "y": Numeric(lower=-50, upper=50)})
    how = CoinPress(joint=True, scale={"x": 1, "y": 2}, variance="bounded", count="declared")
    estimate, asked = exactly(how, schema, frame, declared=5000)
    assert len(asked) == 2
    assert asked[-1][0].query.columns == ("x", "y")
    assert asked[-1][0].query.clip < 4 + tail_bound(2, 0.01)
    assert estimate.figures.value == pytest.approx(frame.mean().to_numpy(), abs=0.02)


def test_nothing_is_clipped_beyond_the_bounds():
    frame = pd.DataFrame({"x": [-1000.0, 1000.0, 1000.0, 1000.0]})
    for how in (CoinPress(scale={"x": 500}, count="declared"), ClippedMean(count="declared")):
        estimate, asked = exactly(how, WIDE, frame, declared=4)
        assert estimate.figures.value == pytest.approx(500, abs=1e-3)
        query = asked[0][0].query
        assert query.clip * query.scale[0] <= 2000 * (1 + 1e-12)


# The clipped mean, by hand


def test_the_clip_interval_is_symmetric():
    """The printed one turned N(0, 1) into a deviation of 7.9."""
    frame = pd.DataFrame({"x": np.random.default_rng(2).normal(size=5000)})
    how = ClippedMean(radius={"x": 5}, scale={"x": 1}, gamma=0.5, tail="paper", count="declared")
    estimate, asked = exactly(how, WIDE, frame, declared=5000)
    assert asked[0][0].query.scale[0] == pytest.approx(5 + math.sqrt(math.log(5000 / 0.5)))
    assert estimate.figures.value == pytest.approx(frame["x"].mean(), abs=1e-6)
    assert estimate.figures.spread == pytest.approx(frame["x"].std(), rel=0.02)  # the squares are clipped too


def test_the_noise_is_the_clip_over_epsilon():
    for neighbours, times in ((Neighbours.ADD_REMOVE, 1), (Neighbours.REPLACE, 2)):
        budget = Budget(0.5, 1e-9, neighbours=neighbours)
        how = ClippedMean(radius={"x": 5}, scale={"x": 1}, count="declared", variance="bounded")
        estimate, ((question, scale),) = exactly(how, WIDE, SPIKE, declared=1000, budget=budget)
        b = 5 + half_width(1000, 0.01)
        assert question.query.scale[0] == pytest.approx(b)
        assert scale * question.query.scale[0] == pytest.approx(times * b / 0.5)
        assert estimate.figures.value == pytest.approx(min(b, 100) * 0.1)


def test_the_wider_clip_covers_and_the_papers_does_not():
    rng = np.random.default_rng(3)
    draws = np.abs(rng.normal(size=(2000, 1000))).max(axis=1)
    assert (draws > half_width(1000, 0.1)).mean() <= 0.1
    assert (draws > half_width(1000, 0.1, "paper")).mean() > 0.5


# Sizes, squares and scales


def test_values_are_counted_where_they_can_be_missing():
    frame = pd.DataFrame({"g": ["a"] * 10, "x": [1.0] * 10, "y": [4.0, None] * 5})
    for how in (CoinPress(), ClippedMean()):
        estimate, _ = exactly(how, BOTH, frame)
        assert estimate.figures.size == pytest.approx([10, 5])
        assert estimate.figures.value == pytest.approx([1, 4], abs=1e-5)
    together, _ = exactly(CoinPress(joint=True), BOTH, frame)
    assert together.figures.size == pytest.approx([5, 5])
    assert together.figures.value == pytest.approx([1, 4], abs=1e-5)


def test_a_noisy_size_moves_the_mean_by_its_distance_from_the_centre():
    frame = pd.DataFrame({"x": [30.0] * 500})
    schema = Schema({"x": Numeric(lower=-50, upper=50)})
    estimate, asked = exactly(ClippedMean(centre={"x": 10}), schema, frame)
    count, mean = asked[0][1], asked[1][1] * asked[1][0].query.scale[0]
    assert estimate.figures.pull == pytest.approx((10 - 30) / 500)
    assert estimate.noise == pytest.approx(math.hypot(mean / 500, 20 / 500 * count))
    assert estimate.fourth == pytest.approx(3 * ((mean / 500) ** 4 + (20 / 500 * count) ** 4))


@pytest.mark.parametrize("how", [CoinPress(), ClippedMean(), CoinPress(joint=True)])
def test_the_bought_spread(how):
    frame = pd.DataFrame(np.random.default_rng(4).normal([10, -20], [5, 3], size=(20_000, 2)), columns=["x", "z"])
    schema = Schema({"x": Numeric(lower=-50, upper=50), "z": Numeric(lower=-50, upper=50)})
    estimate, _ = exactly(how, schema, frame)
    assert estimate.figures.spread == pytest.approx([5, 3], rel=0.02)
    assert estimate.figures.sampling == pytest.approx(estimate.figures.spread / math.sqrt(20_000))
    assert not estimate.conservative


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=40))
def test_the_public_bound_is_never_too_small(values):
    frame = pd.DataFrame({"x": values})
    how = ClippedMean(variance="bounded", count="declared")
    estimate, _ = exactly(how, Schema({"x": Numeric(lower=-50, upper=50)}), frame, declared=len(values))
    assert estimate.conservative
    assert np.isnan(estimate.figures.spread).all()
    assert estimate.figures.sampling[0] >= np.std(values) / math.sqrt(len(values)) - 1e-6


def test_means_are_taken_on_the_declared_scale():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"pay": np.exp(rng.normal(10, 0.8, size=20_000))})
    schema = Schema({"pay": Numeric(lower=0, upper=1e7, transform="log")})
    for how in (CoinPress(), ClippedMean()):
        estimate, _ = exactly(how, schema, frame)
        assert estimate.figures.value == pytest.approx(10, abs=0.03)
        (row,) = estimate.estimates().to_dict("records")
        assert row["scale"] == "log"
        assert row["value"] == pytest.approx(math.exp(10), rel=0.03)
        assert row["value"] - row["bias"] == pytest.approx(frame["pay"].mean(), rel=0.03)
        assert row["lower"] < row["value"] < row["upper"]


def test_a_scale_that_tames_the_tail_makes_the_mean_estimable():
    """Raw bounds of ten million drown 300 people in noise, at equal incomes and budget."""
    frame = pd.DataFrame({"pay": np.exp(np.random.default_rng(6).normal(10, 0.8, size=300))})
    raw, log = (Schema({"pay": Numeric(lower=0, upper=1e7, transform=t)}) for t in (None, "log"))
    assert exactly(ClippedMean(), raw, frame, budget=Budget(0.1, 1e-9))[0].status() == ["not_estimable"]
    assert exactly(ClippedMean(), log, frame, budget=Budget(1, 1e-9))[0].status() != ["not_estimable"]


# What is paid


@pytest.mark.parametrize("how", [CoinPress(), ClippedMean(), CoinPress(joint=True, shares=(1, 1, 1))])
@pytest.mark.parametrize("neighbours", PRICED)
def test_a_fit_spends_its_budget_and_no_more(how, neighbours):
    frame = pd.DataFrame({"g": ["a", "b"] * 500, "x": np.linspace(-5, 5, 1000), "y": [1.0, None, 2.0, 3.0] * 250})
    table = open_table(frame, schema=BOTH, declared_size=1000)
    weights = Weights.public(pd.DataFrame({"g": ["a", "b"], "share": [0.5, 0.5]}), citation="made up")
    certificate = fit(Stratified(how, ["g"], weights), table, Budget(2, 1e-6, neighbours=neighbours)).certificate
    currency = certificate["guarantee"]["currency"]
    unit = {"zcdp": "rho", "pure": "epsilon"}[currency]
    for level in "ab":
        spent = math.fsum(c[unit] for c in certificate["charges"] if c["path"] in ([], [{"g": level}]))
        assert 0.999 * certificate["guarantee"][unit] <= spent <= certificate["guarantee"][unit]
    if currency == "pure":
        assert certificate["guarantee"]["delta"] == 0
        assert certificate["prices"][str(neighbours)] == pytest.approx(2)


def test_what_is_not_asked_for_is_not_paid_for():
    whole = Budget(1, 1e-9).zcdp().rho
    _, asked = exactly(CoinPress(count="declared", variance="bounded"), WIDE, SPIKE, declared=1000)
    assert math.fsum(q.price for q, _ in asked) == pytest.approx(whole)
    assert len(asked) == 2


# What is refused


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"columns": "x"}, "list"),
        ({"columns": [1]}, "list"),
        ({"columns": ["x", "x"]}, "different column names"),
        ({"centre": [1]}, "table"),
        ({"centre": {"x": "3"}}, "table"),
        ({"scale": {"x": math.inf}}, "finite"),
        ({"count": "exact"}, "count"),
        ({"variance": "free"}, "variance"),
        ({"count_share": 0}, "count_share"),
        ({"count_share": 0.5, "variance_share": 0.5}, "nothing"),
        ({"variance_share": True}, "variance_share"),
    ],
)
@pytest.mark.parametrize("kind", [CoinPress, ClippedMean])
def test_wrong_settings(kind, settings, match):
    with pytest.raises(UsageError, match=match):
        kind(**settings)


@pytest.mark.parametrize(
    "wrong",
    [
        {"shares": []},
        {"shares": [0.5, 0]},
        {"shares": "11"},
        {"shares": [math.nan]},
        {"beta": 1},
        {"tail": "t"},
        {"joint": 1},
    ],
)
def test_wrong_settings_of_coinpress(wrong):
    with pytest.raises(UsageError):
        CoinPress(**wrong)


@pytest.mark.parametrize("wrong", [{"gamma": 0}, {"gamma": 1}, {"tail": "exact"}])
def test_wrong_settings_of_the_clipped_mean(wrong):
    with pytest.raises(UsageError):
        ClippedMean(**wrong)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"columns": ["z"]}, "z"),
        ({"columns": ["g"]}, "categorical"),
        ({"centre": {"z": 1}}, "z"),
        ({"columns": ["x"], "centre": {"y": 1}}, "y"),
        ({"centre": {"x": 51}}, "bounds"),
        ({"radius": {"x": 0}}, "radius"),
        ({"scale": {"x": -1}}, "scale"),
        ({"scale": {"x": 1e-30}}, "proportion"),
        ({"count": "declared"}, "y may be missing"),
    ],
)
@pytest.mark.parametrize("kind", [CoinPress, ClippedMean])
def test_what_the_schema_does_not_allow(kind, settings, match):
    with pytest.raises(StratsynthError, match=match):
        kind(**settings).price(Public(BOTH, 100), Budget(1, 1e-9))


@pytest.mark.parametrize("kind", [CoinPress, ClippedMean])
def test_more_that_cannot_be_served(kind):
    with pytest.raises(Unsupported, match="declared size"):
        kind(count="declared", columns=["x"]).price(Public(BOTH, None), Budget(1, 1e-9))
    with pytest.raises(Unsupported, match="no numeric column"):
        kind().price(Public(BOTH.restrict(["g"]), 5), Budget(1, 1e-9))
    with pytest.raises(Unsupported, match="too far"):
        kind().price(Public(Schema({"x": Numeric(lower=-1e300, upper=1e300)}), 5), Budget(1, 1e-9))


def test_nothing_is_spent_on_what_is_refused():
    table = open_table(pd.DataFrame({"g": ["a"], "x": [1.0], "y": [1.0]}), schema=BOTH, declared_size=100)
    with pytest.raises(UsageError):
        fit(CoinPress(columns=["z"]), table, Budget(1, 1e-9))
    assert fit(CoinPress(), table, Budget(1, 1e-9)).certificate["ledger"]["releases"] == 1


def test_they_are_found_by_name():
    assert isinstance(make("coinpress", {"columns": ["x"], "shares": [1, 3]}), CoinPress)
    assert isinstance(make("clipped_mean", {}), ClippedMean)
    assert Stratified(CoinPress(), ["g"], Weights("public", "here", ())).returns == Returns.ESTIMATES
    assert make("independent", {}).returns == Returns.ROWS
