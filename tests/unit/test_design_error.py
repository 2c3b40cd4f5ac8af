"""Design error of public shares: by replicate weights in closed form, at most by standard errors, and nowhere else."""

import json
import math
import sys
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from benches.design import MEANS, Population
from helpers import bureau
from helpers.pages import Page
from stratsynth import cli
from stratsynth.adapters import ClippedMean, CoinPress
from stratsynth.census import acs
from stratsynth.errors import ReleaseError, WeightsError
from stratsynth.evaluation.means.shown import means_page
from stratsynth.models.base import State
from stratsynth.models.estimate import Estimate, Figures
from stratsynth.models.intervals import NORMAL_95, effective, half_width
from stratsynth.models.weighted import weighted
from stratsynth.noise import SeededEntropy
from stratsynth.report.text import render
from stratsynth.strata import crossing
from stratsynth.weights.design import DesignError
from stratsynth.weights.table import REPLICATE
from stratsynth.weights.totals import write_totals

LEVELS = ("a", "b", "c")
SCHEMA = ss.Schema(
    {
        "g": ss.Categorical(levels=LEVELS),
        "h": ss.Categorical(levels=("1", "2")),
        "x": ss.Numeric(lower=0, upper=100, bins=10),
        "y": ss.Numeric(lower=0, upper=100, bins=10, missing=True),
    }
)
CITED = "a survey of 2023, weighted"
BUDGET = ss.Budget(4, 1e-9)
SEEDED = 3
STRATA = crossing(SCHEMA, ["g"])


def people(rows=3000, seed=1):
    rng = np.random.default_rng(seed)
    group = rng.choice(3, rows, p=[0.6, 0.3, 0.1])
    x = rng.normal(np.array([20, 50, 80])[group], 5).clip(0, 100)
    return pd.DataFrame({"g": np.array(LEVELS)[group], "h": rng.choice(["1", "2"], rows), "x": x, "y": x})


def survey(names=("g",), seed=2, name="share", spread=0.05):
    """Shares of the groups, and of each by 80 replicate weights."""
    rng = np.random.default_rng(seed)
    strata = crossing(SCHEMA, names)
    full = rng.dirichlet(np.full(len(strata), 5.0))
    made = full[:, None] * rng.normal(1, spread, (len(strata), 80))
    frame = pd.DataFrame([stratum.to_dict() for stratum in strata]).assign(**{name: full})
    scale = 1.0 if name == "count" else made.sum(axis=0)
    return frame.join(pd.DataFrame(made / scale, columns=list(REPLICATE[name])))


def means(frame, how=None, by=("g",), entropy=SEEDED, **keys):
    weights = ss.Weights.public(frame, citation=CITED) if isinstance(frame, pd.DataFrame) else frame
    how = ss.Stratified(how or ClippedMean(columns=["x"]), list(by), weights, **keys)
    table = ss.open_table(people(), schema=SCHEMA, declared_size=3000)
    return ss.fit(how, table, BUDGET, entropy=None if entropy is None else SeededEntropy(entropy))


@pytest.fixture(scope="module")
def frame():
    return survey()


@pytest.fixture(scope="module")
def release(frame):
    return means(frame)


def test_the_variance_is_that_of_the_replicates_means(frame, release):
    """4/80 of the sum of squared differences: by hand, from the groups' published means."""
    found = release.estimates()
    every, groups = found.iloc[0], found.iloc[1:]
    m = groups["value"].to_numpy()
    theta = frame["share"].to_numpy() @ m
    each = np.array([frame[name].to_numpy() @ m for name in REPLICATE["share"]])
    design = math.sqrt(4 / 80 * sum((r - theta) ** 2 for r in each))
    assert every["value"] == pytest.approx(theta)
    assert every["design"] == pytest.approx(design)
    assert every["design_by"] == f"80 replicate weights of {CITED}"
    fourth = release.model.fourth[0]  # noise is Laplace's here, and the design error normal
    half = half_width(every["noise"] ** 2 + design**2, fourth, 0.95)
    assert (every["design_lower"], every["design_upper"]) == pytest.approx((theta - half, theta + half))
    both = half_width(every["noise"] ** 2 + design**2 + every["sampling"] ** 2, fourth, 0.95)
    assert (every["lower"], every["upper"]) == pytest.approx((theta - both, theta + both))
    assert every["weighting"] == 0, "which is of noisy shares, and of those of a sample"
    assert groups[["design", "design_lower", "design_upper"]].isna().to_numpy().all(), "no share is in a group's mean"
    assert set(groups["design_by"]) == {""}


def test_counts_have_replicates_too(release):
    counts = survey(name="count").assign(count=lambda f: 1000 * f["count"])
    columns = list(REPLICATE["count"])
    counts[columns] = counts[columns] * 1000
    found = means(counts).estimates().iloc[0]
    shares = counts["count"] / counts["count"].sum()
    m = means(counts).estimates()["value"].to_numpy()[1:]
    each = counts[columns].to_numpy() / counts[columns].to_numpy().sum(axis=0)
    theta = np.array(shares) @ m
    assert found["design"] == pytest.approx(math.sqrt(4 / 80 * ((m @ each - theta) ** 2).sum()))
    resolved = ss.Weights.public(counts, citation=CITED).resolve(STRATA, SCHEMA)
    errors = np.sqrt(4 / 80 * ((each - np.array(shares)[:, None]) ** 2).sum(axis=1))
    assert list(resolved.errors.values()) == pytest.approx(errors), "as they enter the comparison with measured sizes"


def test_standard_errors_alone_bound_it_whatever_the_correlations(release):
    """Exact for two groups, and never below what replicates with these standard errors give."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        values, apart = rng.uniform(0, 100, 6), rng.normal(0, 0.02, (6, 80))
        apart -= apart.mean(axis=0)  # shares add up to 1
        errors = np.sqrt(4 / 80 * (apart**2).sum(axis=1))
        exact = DesignError("", errors, apart).sd(values)
        assert exact <= DesignError("", errors).sd(values) * (1 + 1e-12)
    assert DesignError("", np.array([0.02, 0.02])).sd(np.array([10.0, 30.0])) == pytest.approx(0.4)
    plain = pd.DataFrame({"g": LEVELS, "share": [0.6, 0.3, 0.1], "standard_error": [0.02, 0.02, 0.01]})
    found = means(plain)
    m = found.estimates()["value"].to_numpy()[1:]
    least = min(float(np.array([0.02, 0.02, 0.01]) @ np.abs(m - c)) for c in m)
    assert found.estimates()["design"].iloc[0] == pytest.approx(least)
    assert found.estimates()["design_by"].iloc[0] == f"standard errors, at most of {CITED}"
    assert found.statement.weights.design == "standard errors, at most"


def test_shares_that_state_no_error_have_no_such_interval():
    plain = survey()[["g", "share"]]
    kinds = {
        "public": ss.Weights.public(plain, citation=CITED),
        "records": ss.Weights.public(plain, citation=CITED, records=900),
        "holdout": ss.Weights.holdout(people(400, 2), citation=CITED),
        "invariant": ss.Weights.invariant(plain.rename(columns={"share": "count"})),
    }
    for weights in kinds.values():
        found = means(weights)
        assert found.estimates()[["design", "design_lower", "design_upper"]].isna().to_numpy().all()
        assert set(found.estimates()["design_by"]) == {""}
        assert found.statement.weights.design is None
    private = means(
        ss.Weights.private(share=0.2, prior=ss.Weights.public(survey(), citation=CITED)), CoinPress(columns=["x"])
    )
    assert private.estimates()["design"].isna().all(), "the private rows' own replicate weights are not asked"


def test_a_mean_that_is_not_weighted_by_shares_has_none(frame):
    """A column that some rows may lack is weighted by the measured sizes."""
    found = means(frame, ClippedMean(columns=["x", "y"])).estimates().set_index(["stratum", "column"])
    assert found.loc[("", "x"), "design"] > 0
    assert math.isnan(found.loc[("", "y"), "design"])
    assert math.isnan(found.loc[("", "y"), "design_lower"])


def test_it_stands_in_release_page_certificate_and_command(frame, release, tmp_path, capsys):
    folder = release.save(tmp_path / "release")
    again = ss.Release.load(folder)
    pd.testing.assert_frame_equal(again.estimates(0.9), release.estimates(0.9))
    assert ss.verify(means(frame, entropy=None).save(tmp_path / "private")).ok
    assert release.statement.weights.design == "80 replicate weights"
    page = Page((folder / "report.html").read_text(encoding="utf-8")).check()
    assert f"The design-based interval, by 80 replicate weights of {CITED}," in page.text
    assert "interval of 95 %, simple random sampling" in page.text
    assert "the error of their survey's design is known, by 80 replicate weights" in page.text
    figures, _ = page.numbers("means-of-x")
    assert float(figures[0]["design_lower"]) == pytest.approx(release.estimates()["design_lower"].iloc[0], rel=1e-3)
    assert cli.run(["query", str(folder), "--columns", "x", "--by", "g", "--statistic", "mean"]) == 0
    assert "design_low" not in capsys.readouterr().out, "no share is in a group's mean"
    assert cli.run(["query", str(folder), "--columns", "x", "--statistic", "mean", "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    every = release.estimates().iloc[0]
    assert (row["design_low"], row["design_high"]) == pytest.approx((every["design_lower"], every["design_upper"]))
    assert (row["low"], row["high"]) == pytest.approx((every["lower"], every["upper"]))
    assert row["noise_high"] - row["noise_low"] < row["design_high"] - row["design_low"]
    assert f"design-based, by 80 replicate weights of {CITED}" in row["note"]


def test_the_command_shows_it_where_there_is_one(release):
    """`stratsynth means`: a column of its own, and a sentence on its source."""
    shown = " ".join(render(means_page(release.estimates(), 0.95, "", internal=False)).split())
    every = release.estimates().iloc[0]
    assert "95 % interval, simple random sampling 95 % interval, design-based" in shown
    assert f"{every['design_lower']:,.5g} to {every['design_upper']:,.5g}" in shown
    assert f"The design-based interval, by 80 replicate weights of {CITED}," in shown
    without = release.estimates().assign(design_lower=math.nan, design_upper=math.nan, design_by="")
    assert "design" not in render(means_page(without, 0.95, "", internal=False))


def test_answers_from_tables_have_none_and_say_why(frame, capsys, tmp_path):
    table = ss.open_table(people(), schema=SCHEMA, declared_size=3000)
    how = ss.Stratified("independent", ["g"], ss.Weights.public(frame, citation=CITED))
    release = ss.fit(how, table, BUDGET)
    found = release.query(["h"], by=["g"], statistic="rate")
    assert list(found.columns)[-2:] == ["design_low", "design_high"]
    assert found[["design_low", "design_high"]].isna().to_numpy().all()
    [said] = release.answers.conditions
    assert "no answer from tables has an interval for the design error of the shares (80 replicate weights)" in said
    assert cli.run(["query", str(release.save(tmp_path / "r", rows=5)), "--columns", "h"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "their own replicate weights are private, and were not asked" in out
    assert "design_low" not in out


def test_forbidden_groups_and_merges_take_their_replicates_along(frame):
    weights = ss.Weights.public(frame, citation=CITED)
    resolved = weights.resolve(STRATA, SCHEMA)
    columns = frame[list(REPLICATE["share"])].to_numpy()
    assert resolved.replicates == pytest.approx(columns)
    left = resolved.without({STRATA[1]})
    kept = columns * np.array([[1], [0], [1]])
    assert left.replicates == pytest.approx(kept / kept.sum(axis=0))
    both = resolved.merged({STRATA[0]: STRATA[:2], STRATA[2]: STRATA[2:]})
    assert both.replicates == pytest.approx(np.array([columns[0] + columns[1], columns[2]]))
    groups = ss.Groups(merge={"g": {"low": ["a", "b"]}})
    merged = means(frame, groups=groups).estimates()
    m = merged["value"].to_numpy()[1:]
    theta = np.array([frame["share"][:2].sum(), frame["share"][2]]) @ m
    each = m @ np.array([columns[0] + columns[1], columns[2]])
    assert merged["design"].iloc[0] == pytest.approx(math.sqrt(4 / 80 * ((each - theta) ** 2).sum()))


def leaf(value):
    usual = dict.fromkeys((f.name for f in fields(Figures)), 0.0) | {"size": 50.0, "high": 100.0, "design": math.nan}
    one = SCHEMA.restrict(["h", "x"])
    return Estimate(one, ("x",), Figures(**{k: np.array([v]) for k, v in (usual | {"value": value}).items()}))


def test_deviations_of_nested_shares_add_up_at_most():
    """They may be of one survey, and its replicates move them together."""
    halves = crossing(SCHEMA, ["h"])
    design = DesignError("s", np.array([0.02, 0.02]))
    schema = SCHEMA.restrict(["g", "h", "x"])
    even, lower = dict.fromkeys(halves, 0.5), SCHEMA.restrict(["h", "x"])
    inner = [
        weighted(lower, dict(zip(halves, map(leaf, pair), strict=True)), even, design=design)
        for pair in ((10.0, 20.0), (30.0, 50.0))
    ]
    parts = dict(zip(STRATA[:2], inner, strict=True))
    outer = weighted(schema, parts, dict(zip(STRATA[:2], (0.7, 0.3), strict=True)), design=design)
    assert outer.figures.design[0] == pytest.approx(0.02 * 25 + 0.7 * 0.02 * 10 + 0.3 * 0.02 * 20)
    unknown = [replace(part, figures=replace(part.figures, design=np.array([math.nan]))) for part in inner]
    parts = dict(zip(STRATA[:2], unknown, strict=True))
    assert math.isnan(weighted(schema, parts, dict.fromkeys(STRATA[:2], 0.5), design=design).figures.design[0])


def test_means_of_earlier_versions_state_none(release):
    state = release.model.state()
    assert state.facts["design_by"]
    old = State(
        {k: v for k, v in state.facts.items() if k != "design_by"},
        {k: v for k, v in state.arrays.items() if not k.endswith("design")},
    )
    found = Estimate.from_state(SCHEMA, old).estimates()
    assert found["design_lower"].isna().all()
    assert found["value"].tolist() == release.estimates()["value"].tolist()
    with pytest.raises(ReleaseError, match="design"):
        Estimate.from_state(SCHEMA, State({**state.facts, "design_by": 3}, state.arrays))


def test_differences_of_groups_have_no_share_in_them(release):
    found = release.query(["x"], by=["g"], statistic="mean", versus={"g": "a"})
    assert found["design_low"].isna().all()


# Raked shares


def test_raked_shares_are_raked_anew_by_each_replicate():
    """Of a start with replicates and exact margins, by hand for a two by two table."""
    start = survey(("g", "h"), seed=4)
    exact = pd.DataFrame({"g": LEVELS, "share": [0.5, 0.3, 0.2]})
    sides = pd.DataFrame({"h": ["1", "2"], "share": [0.4, 0.6]})
    weights = ss.Weights.raked(
        *(ss.Weights.public(each, citation="the census") for each in (exact, sides)),
        start=ss.Weights.public(start, citation=CITED),
    )
    cells = crossing(SCHEMA, ["g", "h"])
    found = weights.resolve(cells, SCHEMA)
    assert found.replicates.shape == (6, 80)
    for number, name in enumerate(REPLICATE["share"][:5]):
        alone = ss.Weights.raked(
            *weights.given.margins,
            start=ss.Weights.public(start[["g", "h"]].assign(share=start[name]), citation="a replicate"),
        )
        assert found.replicates[:, number] == pytest.approx([*alone.resolve(cells, SCHEMA).shares.values()])
    release = means(weights, by=("g", "h"))
    assert release.estimates()["design"].iloc[0] > 0
    assert release.statement.weights.design == "80 replicate weights"
    assert release.statement.weights.margins[0].get("design") is None


def test_one_surveys_margins_move_together_and_two_surveys_apart():
    one, other = survey(seed=6), survey(("h",), seed=7)
    cells = crossing(SCHEMA, ["g", "h"])

    def resolved(citation):
        return ss.Weights.raked(
            ss.Weights.public(one, citation=CITED), ss.Weights.public(other, citation=citation)
        ).resolve(cells, SCHEMA)

    together, apart = resolved(CITED), resolved("another survey")
    assert together.replicates.shape == (6, 80)
    assert apart.replicates.shape == (6, 160)
    g, h = one["share"].to_numpy(), other["share"].to_numpy()
    gs, hs = (frame[list(REPLICATE["share"])].to_numpy() for frame in (one, other))
    assert together.replicates == pytest.approx(np.einsum("ir,jr->ijr", gs, hs).reshape(6, 80))
    assert apart.replicates[:, :80] == pytest.approx(np.einsum("ir,j->ijr", gs, h).reshape(6, 80))
    assert apart.replicates[:, 80:] == pytest.approx(np.einsum("i,jr->ijr", g, hs).reshape(6, 80))


def test_raked_shares_of_unknown_error_have_none():
    plain = survey()[["g", "share"]].assign(standard_error=0.01)
    sampled = ss.Weights.holdout(people(300, 5)[["g"]], citation=CITED)
    both = survey(("h",), seed=7)
    for margin in (ss.Weights.public(plain, citation=CITED), sampled):
        weights = ss.Weights.raked(margin, ss.Weights.public(both, citation="another survey"))
        assert weights.resolve(crossing(SCHEMA, ["g", "h"]), SCHEMA).design is None
    joint, contradicting = survey(("g", "h"), seed=8), survey(seed=9)[["g"]]
    exact = contradicting.assign(share=joint.groupby("g", sort=False)["share"].sum().to_numpy())
    weights = ss.Weights.raked(
        ss.Weights.public(joint, citation=CITED), ss.Weights.public(exact, citation="the census")
    )
    assert weights.resolve(crossing(SCHEMA, ["g", "h"]), SCHEMA).design is None, (
        "replicates contradict the other margin"
    )


# Files


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: f.drop(columns="share_80"), "all of share_1 to share_80 go beside `share`"),
        (lambda f: f.rename(columns={"share": "count"}), "all of share_1 to share_80 go beside `share`"),
        (lambda f: f.assign(share_7="many"), "line 2 has a figure by a replicate weight that is no number"),
        (lambda f: f.assign(share_7=-1.0), "do not add up to more than 0"),
    ],
)
def test_tables_with_some_replicates_or_none_that_are_numbers_are_refused(frame, change, says):
    with pytest.raises(WeightsError, match=says):
        ss.Weights.public(change(frame), citation=CITED).resolve(STRATA, SCHEMA)


def written(folder, rows=400):
    """A file of persons with 80 replicate weights, some below 0."""
    rng = np.random.default_rng(3)
    replicates = pd.DataFrame({f"PWGTP{i}": rng.integers(-5, 400, rows) for i in range(1, 81)})
    frame = pd.concat([bureau.people(rows, 2024).drop(columns="PWGTP1"), replicates], axis=1)
    frame.to_csv(folder / "psam_p42.csv", index=False)
    return frame, folder / "psam_p42.csv"


def test_census_shares_and_totals_of_weights_write_them(tmp_path, capsys):
    people, path = written(tmp_path)
    schema = acs.schema(["SEX", "AGEP"], year=2024)
    schema.write_toml(tmp_path / "schema.toml")
    out, totals = tmp_path / "shares.csv", tmp_path / "totals.csv"
    assert cli.run(["census", "shares", "--from", str(path), "--by", "SEX", "-o", str(out)]) == 0
    assert "standard errors, and the shares by 80 replicate weights" in capsys.readouterr().out
    write_totals(path, tmp_path / "schema.toml", ["SEX"], "PWGTP", totals)
    women = (people["SEX"] == "2").to_numpy()
    counts = pd.read_csv(totals)
    assert counts["count_80"].tolist() == [people["PWGTP80"][~women].sum(), people["PWGTP80"][women].sum()]
    strata = crossing(schema, ["SEX"])
    for file, smooth in ((out, 0.5), (totals, 0.0)):
        found = ss.Weights.public(file, citation=CITED).resolve(strata, schema)
        for number in (0, 79):
            weights = people[f"PWGTP{number + 1}"].to_numpy(float)
            added = smooth * weights.mean()
            part = (weights[women].sum() + added) / (weights.sum() + 2 * added)
            assert found.replicates[1, number] == pytest.approx(part)
    heavy = write_totals(path, tmp_path / "schema.toml", ["SEX"], "AGEP", tmp_path / "ages.csv")
    assert heavy[1] == 2
    assert list(pd.read_csv(tmp_path / "ages.csv")) == ["SEX", "count"], "of what may have replicates of another method"


def test_of_very_many_groups_standard_errors_alone_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["stratsynth.census.acs.shares"], "MOST_REPLICATED", 1)
    _, path = written(tmp_path, 100)
    found = acs.shares(path, ["SEX"])
    assert list(found.frame) == ["SEX", "share", "standard_error"]
    assert found.design == "standard errors alone, as there are more than 1 groups"


# Coverage


def test_intervals_hold_over_surveys_of_clustered_households():
    """Design-based ones do; shares taken for a simple random sample of as many persons do not."""
    rng, z = np.random.default_rng(11), NORMAL_95
    population = Population.made(rng)
    truth, values = population.shares, np.array(MEANS)
    draws, held = 800, np.zeros(2)
    for _ in range(draws):
        survey = population.survey(rng)
        w, replicates = survey.shares()
        design, noisy = DesignError("", np.zeros(4), replicates - w[:, None]), values + rng.normal(0, 0.5, 4)
        noise = 0.5 * math.sqrt(w @ w)
        persons = float(effective(np.repeat(survey.weights, 3)).sum())
        for i, error in enumerate((design.sd(noisy), math.sqrt(w @ (noisy - w @ noisy) ** 2 / persons))):
            held[i] += abs(w @ noisy - truth @ values) <= z * math.hypot(noise, error)
    assert 0.91 <= held[0] / draws <= 0.98
    assert held[1] / draws < 0.88
