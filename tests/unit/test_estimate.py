"""Estimates: how groups combine, what a table of them says, how they are stored, and releases that hold them."""

import json
import math

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from helpers.exactly import exactly
from helpers.pages import Page
from helpers.small import even
from stratsynth import Budget, Categorical, Numeric, Release, Schema, Stratified, Weights, fit, open_table
from stratsynth.adapters import ClippedMean, CoinPress, Independent
from stratsynth.errors import MechanismError, ReleaseError, UsageError
from stratsynth.models import Estimate, Figures, State, files
from stratsynth.models.intervals import sampled_shares_covariance
from stratsynth.models.weighted import weighted
from stratsynth.strata import Stratum, crossing
from stratsynth.testing.record import identical

SCHEMA = Schema(
    {
        "g": Categorical(levels=("a", "b")),
        "h": Categorical(levels=("1", "2", "3")),
        "x": Numeric(lower=0, upper=100),
        "y": Numeric(lower=0, upper=10, missing=True),
    }
)
A, B = (Stratum.of({"g": level}) for level in "ab")
BUDGET = Budget(1, 1e-9)


def people(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    g = rng.choice(["a", "b"], size=n, p=[0.8, 0.2])
    x = np.clip(rng.normal(np.where(g == "a", 30, 60), 10), 0, 100)
    y = np.where(rng.random(n) < np.where(g == "a", 0.9, 0.3), rng.uniform(0, np.where(g == "a", 4, 8)), np.nan)
    return pd.DataFrame({"g": g, "h": rng.choice(["1", "2", "3"], size=n), "x": x, "y": y})


def figures(**given):
    usual = {
        "direct": 0.3,
        "fourth": 0.0,
        "size": 100.0,
        "size_noise": 0.0,
        "pull": 0.0,
        "spread": 2.0,
        "sampling": 0.2,
        "weighting": 0.0,
        "low": 0.0,
        "high": 100.0,
        "design": math.nan,
    }
    return Figures(**{key: np.atleast_1d(np.array(v, dtype=float)) for key, v in (usual | given).items()})


def leaf(column="x", **given):
    return Estimate(SCHEMA.without(["g"]), (column,), figures(**given), laplace=given.get("fourth", 0) > 0)


def combined(parts, shares, covariance=None):
    return weighted(SCHEMA, dict(zip((A, B), parts, strict=True)), dict(zip((A, B), shares, strict=True)), covariance)


# Weighted means


def test_exact_shares_weigh_values_and_variances():
    whole = combined([leaf(value=10, direct=0.3), leaf(value=20, direct=1, sampling=0.5)], [0.9, 0.1])
    f = whole.figures
    assert f.value == pytest.approx(11)
    assert whole.noise == pytest.approx(math.hypot(0.27, 0.1))
    assert f.sampling == pytest.approx(math.hypot(0.9 * 0.2, 0.1 * 0.5))
    assert f.weighting == 0
    assert f.size == 200
    assert f.spread == pytest.approx(math.sqrt(4 + 0.9 * 1**2 + 0.1 * 9**2))


def test_uncertain_shares_are_carried_into_the_interval():
    """Errors with weights of a public sample of 400 agree with simulated ones; shares and groups are independent."""
    parts, shares = [leaf(value=10), leaf(value=25, direct=1)], np.array([0.8, 0.2])
    whole = combined(parts, shares, sampled_shares_covariance(shares, 400))
    rng = np.random.default_rng(0)
    w = rng.multinomial(400, shares, size=300_000) / 400
    m = rng.normal([10, 25], [math.hypot(0.3, 0.2), math.hypot(1, 0.2)], size=(300_000, 2))
    lower, upper = whole.interval()
    assert (w * m).sum(axis=1).std() == pytest.approx((upper - lower)[0] / 2 / 1.959964, rel=0.01)
    assert whole.figures.weighting > 0


def test_the_tails_of_laplace_noise_add_up():
    parts = [leaf(value=1, direct=d, fourth=3 * d**4, pull=0.01, size_noise=20) for d in (0.3, 0.5)]
    whole = combined(parts, [0.6, 0.4])
    rng = np.random.default_rng(1)
    scale = np.array([0.6 * 0.3, 0.4 * 0.5, 0.6 * 0.2, 0.4 * 0.2]) / math.sqrt(2)
    noise = rng.laplace(scale=scale, size=(2_000_000, 4)).sum(axis=1)
    assert whole.noise == pytest.approx(noise.std(), rel=0.005)
    assert whole.fourth == pytest.approx((noise**4).mean() - 3 * noise.var() ** 2, rel=0.05)


def test_a_column_that_some_lack_is_weighed_by_those_who_have_it():
    """Its mean over everybody asked, and the noise of that mean as simulated, sizes and sums noisy."""
    centre, sums, sizes = np.array([5.0, 5.0]), np.array([-900.0, 40.0]), np.array([1000.0, 100.0])
    sigma, count = np.array([6.0, 6.0]), np.array([15.0, 15.0])
    parts = [
        leaf("y", value=c + s / n, direct=d / n, size=n, size_noise=k, pull=-s / n / n)
        for c, s, n, d, k in zip(centre, sums, sizes, sigma, count, strict=True)
    ]
    whole = combined(parts, [0.5, 0.5])
    rng = np.random.default_rng(2)
    n = sizes + rng.normal(scale=count, size=(300_000, 2))
    means = (n @ centre + (sums + rng.normal(scale=sigma, size=n.shape)).sum(axis=1)) / n.sum(axis=1)
    assert whole.figures.value == pytest.approx((5500 - 860) / 1100)
    assert whole.noise == pytest.approx(means.std(), rel=0.01)


def test_an_exact_run_gives_the_plain_means():
    frame = people()
    share = frame["g"].value_counts(normalize=True)
    weights = Weights.public(
        pd.DataFrame({"g": ["a", "b"], "share": [share["a"], share["b"]]}), citation="the table itself"
    )
    for how in (CoinPress(), ClippedMean()):
        whole, _ = exactly(Stratified(how, ["g"], weights), SCHEMA, frame, declared=6000)
        assert whole.figures.value == pytest.approx(frame[["x", "y"]].mean(), rel=2e-3)
        assert whole.figures.spread == pytest.approx(frame[["x", "y"]].std(), rel=0.02)
        for stratum, part in whole.parts.items():
            mine = frame[frame["g"] == stratum.label]
            assert part.figures.value == pytest.approx(mine[["x", "y"]].mean(), rel=2e-3)
            assert part.figures.size == pytest.approx(mine[["x", "y"]].count())


def test_a_stratified_mean_samples_less_error_than_a_pooled_one():
    """With exact shares what differs between groups is known; where sizes are the weights it is not."""
    frame = people()
    pooled, _ = exactly(CoinPress(), SCHEMA, frame)
    strata, _ = exactly(Stratified(CoinPress(), ["g"], even(SCHEMA, "g")), SCHEMA, frame)
    x, y = strata.figures.sampling / pooled.figures.sampling
    assert x < 0.9
    assert y == pytest.approx(1, abs=0.02)


def test_strata_within_strata():
    inner = Stratified(CoinPress(), ["h"], even(SCHEMA, "h"))
    whole, _ = exactly(Stratified(inner, ["g"], even(SCHEMA, "g")), SCHEMA, people(), declared=6000)
    flat, _ = exactly(Stratified(CoinPress(), ["g", "h"], even(SCHEMA, "g", "h")), SCHEMA, people(), declared=6000)
    assert whole.figures.value == pytest.approx(flat.figures.value, rel=1e-6)
    assert whole.noise == pytest.approx(flat.noise, rel=0.05)
    groups = ["", "a", "a|1", "a|2", "a|3", "b", "b|1", "b|2", "b|3"]
    assert whole.estimates()["stratum"].unique().tolist() == groups


@pytest.mark.parametrize(
    ("parts", "covariance"),
    [
        ([leaf(value=1), leaf("y", value=1)], None),
        ([leaf(value=1), leaf(value=1, fourth=1)], None),
        ([leaf(value=1), leaf(value=1)], np.zeros((3, 3))),
        ([leaf(value=1), leaf(value=1)], np.full((2, 2), np.nan)),
    ],
)
def test_what_cannot_be_combined(parts, covariance):
    with pytest.raises(MechanismError):
        combined(parts, [0.5, 0.5], covariance)


# Tables


def test_a_table_has_everybody_and_every_group():
    whole = combined([leaf(value=10), leaf(value=20)], [0.9, 0.1])
    table = whole.estimates()
    assert table["stratum"].tolist() == ["", "a", "b"]
    assert table["value"].tolist() == pytest.approx([11, 10, 20])
    assert (table["lower"] < table["value"]).all()
    wider = whole.estimates(0.99)
    assert (wider["upper"] > table["upper"]).all()


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"direct": 0.1}, "ok"),
        ({"direct": 0.3}, "small"),
        ({"direct": 20}, "not_estimable"),
        ({"direct": 0.1, "size": 50, "size_noise": 20}, "not_estimable"),
        ({"direct": 0.1, "size": 70, "size_noise": 20}, "ok"),
        ({"direct": 0.1, "size": 1}, "not_estimable"),
    ],
)
def test_what_is_not_estimable_is_said_and_not_dropped(given, status):
    (row,) = leaf(value=10, **given).estimates().to_dict("records")
    assert row["status"] == status
    assert row["value"] == 10


@pytest.mark.usefixtures("seeded_noise")
def test_a_group_of_nobody_cannot_spoil_the_mean_of_all():
    """Group b is empty; its mean is off by no more than the range, and its part of the whole by its share."""
    frame = people()
    frame = frame[frame["g"] == "a"]
    weights = Weights.public(pd.DataFrame({"g": ["a", "b"], "share": [0.999, 0.001]}), citation="made up")
    table = open_table(frame, schema=SCHEMA, declared_size=5000, public=True)
    said = []
    for _ in range(20):
        release = fit(Stratified(ClippedMean(), ["g"], weights), table, BUDGET)
        found = release.estimates().set_index(["stratum", "column"])
        said.append(found.loc[("b", "x"), "status"])
        assert abs(found.loc[("", "x"), "value"] - frame["x"].mean()) < 1.5  # unbounded, it would be off by tens
        assert found.loc[("", "x"), "noise"] < 0.3
    assert said.count("not_estimable") > 15


def test_what_was_clipped_is_said():
    frame = people()
    for how in (CoinPress(scale={"x": 2}, columns=["x"]), ClippedMean(scale={"x": 2}, radius={"x": 9}, columns=["x"])):
        whole, _ = exactly(Stratified(how, ["g"], even(SCHEMA, "g")), SCHEMA, frame, declared=6000)
        table = whole.estimates().set_index("stratum")
        assert (table["clip_low"] > 0).all()
        assert (table["clip_high"] < 100).all()
        assert table.loc["", "clip_low"] == table["clip_low"].max()
        assert table.loc["", "clip_high"] == table["clip_high"].min()
    whole, _ = exactly(ClippedMean(), SCHEMA, frame)
    assert whole.estimates()[["clip_low", "clip_high"]].to_numpy().tolist() == [[0, 100], [0, 10]]


def test_intervals_do_not_leave_the_public_bounds():
    (row,) = leaf(value=1, direct=20).estimates().to_dict("records")
    assert row["lower"] == 0


# Storage


@pytest.fixture(scope="module")
def fitted():
    return exactly(Stratified(CoinPress(), ["g"], even(SCHEMA, "g")), SCHEMA, people(), declared=6000)[0]


def test_an_estimate_comes_back_equal(fitted, tmp_path):
    files.save(fitted, tmp_path / "model")
    again = files.load(tmp_path / "model")
    assert identical(again.state(), fitted.state())
    pd.testing.assert_frame_equal(again.estimates(), fitted.estimates())


@pytest.mark.parametrize(
    "damage",
    [
        lambda facts, arrays: facts.update(columns=["g"]),
        lambda facts, arrays: facts.update(columns=[]),
        lambda facts, arrays: facts.update(columns=["x"]),
        lambda facts, arrays: facts["parts"][0].update(stratum={"h": "1"}),
        lambda facts, arrays: facts["parts"][0].update(stratum={"g": "b"}),
        lambda facts, arrays: facts["parts"][0].update(stratum={"g": "b|a"}),
        lambda facts, arrays: facts["parts"][0].update(stratum={"g": "a|b"}),
        lambda facts, arrays: facts["parts"][0].update(names=["a", "b"]),
        lambda facts, arrays: facts["parts"][0].update(names=[1]),
        lambda facts, arrays: facts["parts"][0].update(names=["a|b"]),
        lambda facts, arrays: facts["parts"][0].update(share=math.nan),
        lambda facts, arrays: arrays.pop("value"),
        lambda facts, arrays: arrays.update(value=np.array([1.0, math.nan])),
        lambda facts, arrays: arrays.update(value=np.array([1, 2])),
        lambda facts, arrays: arrays.update({"1/direct": np.array([-1.0, 1.0])}),
        lambda facts, arrays: arrays.update({"1/size": np.array([math.nan, 1.0])}),
    ],
)
def test_damage_is_a_release_error(fitted, damage):
    state = fitted.state()
    facts, arrays = json.loads(json.dumps(state.facts)), dict(state.arrays)
    damage(facts, arrays)
    with pytest.raises(ReleaseError):
        files.restore("estimate", SCHEMA, State(facts, arrays))


# Releases


@pytest.fixture(scope="module")
def release():
    table = open_table(people(), schema=SCHEMA, declared_size=6000)
    return fit(Stratified(ClippedMean(), ["g"], even(SCHEMA, "g")), table, BUDGET)


def test_a_release_of_estimates_on_disk(release, tmp_path):
    folder = release.save(tmp_path / "release", csv=True)
    assert sorted(p.name for p in folder.iterdir()) == [
        "certificate.json",
        "estimates.csv",
        "estimates.parquet",
        "measurements.parquet",
        "model",
        "report.html",
    ]
    pd.testing.assert_frame_equal(pq.read_table(folder / "estimates.parquet").to_pandas(), release.estimates())
    page = Page((folder / "report.html").read_text(encoding="utf-8")).check()
    assert "No count of a single column" not in page.text
    means, _ = page.numbers("means-of-x")
    assert [row["group"] for row in means] == ["everybody", *release.estimates()["stratum"].unique()[1:]]
    assert {row["status"] for row in means} <= {"ok", "small", "not_estimable"}
    again = Release.load(folder)
    pd.testing.assert_frame_equal(again.estimates(0.9), release.estimates(0.9))


def test_estimates_draw_no_rows_and_rows_hold_no_estimates(release):
    with pytest.raises(UsageError, match=r"estimates\(\)"):
        release.sample(5)
    with pytest.raises(UsageError, match="rows"):
        release.save("nowhere", rows=5)
    table = open_table(people(), schema=SCHEMA, declared_size=6000)
    with pytest.raises(UsageError, match="sample"):
        fit(Independent(), table, BUDGET).estimates()


def test_no_group_is_left_out(release):
    assert release.estimates()["stratum"].unique().tolist() == ["", *(s.label for s in crossing(SCHEMA, ["g"]))]
