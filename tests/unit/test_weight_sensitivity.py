"""Overall results as functions of the weights: exact, and against other ways to work them out."""

import dataclasses
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import stratsynth as ss
from helpers import small
from stratsynth import cli
from stratsynth.errors import UsageError
from stratsynth.mechanisms import make
from stratsynth.models import Mixture
from stratsynth.models.rules import forbidden
from stratsynth.release.reweigh import RatioOfShares, extreme, heaviest, root, spread, together
from stratsynth.release.sensitivity_page import sensitivity_page
from stratsynth.report.text import render
from stratsynth.schema import Categorical, Numeric, Rule, Schema
from stratsynth.schema.inside import middles

BY = ["SEX", "RAC1P"]
CACHED = small.clear_release()


@pytest.fixture(scope="module")
def census():
    """A release of the built-in census, eighteen groups."""
    weights = ss.Weights.public(ss.census.shares(BY), citation=ss.census.CITATION)
    schema = dataclasses.replace(ss.census.schema(), rules=())  # quicker
    table = ss.open_table(ss.census.make(5_000), schema=schema, declared_size=5_000)
    return ss.fit(ss.Stratified(make("mst", {}), BY, weights), table, ss.Budget(3, 1e-9))


@pytest.fixture(scope="module")
def found(census):
    return ss.weight_sensitivity(census, off=0.2)


def with_shares(model, shares):
    return Mixture(model.schema, model.parts, dict(zip(model.parts, shares, strict=True)))


def overall(release, result, model=None):
    """The result by a model's own overall marginal, the release's by default, and by the release's laws within bins."""
    model = release.model if model is None else model
    table, column = model.oneway(result.column), model.schema.column(result.column)
    if result.level is not None:
        return table[model.schema.index(result.column, result.level)]
    means = middles(column, release.inside.get(result.column))
    return table[: len(means)] @ means / table[: len(means)].sum()


def test_every_result_is_there_once(census, found):
    schema = census.model.schema
    expected = [
        (name, None) if isinstance(column, Numeric) else (name, level)
        for name, column in schema.columns.items()
        if name not in BY
        for level in ([None] if isinstance(column, Numeric) else column.all_levels)
    ]
    assert [(r.column, r.level) for r in found.results] == expected
    assert all(len(r.tips) == 18 for r in found.results)


def test_the_results_are_those_of_the_model(census, found):
    for result in found.results:
        assert result.value == pytest.approx(overall(census, result), rel=1e-9, abs=1e-12)


def test_the_results_are_those_of_a_sample(census, found):
    rows = census.sample(200_000, seed=1)
    for result in found.results:
        if result.level is None:
            numbers = pd.to_numeric(rows[result.column], errors="coerce").dropna()
            assert numbers.mean() == pytest.approx(result.value, abs=6 * numbers.std() / math.sqrt(len(numbers)) + 0.01)
    employed = next(r for r in found.results if (r.column, r.level) == ("ESR", "1"))
    assert (rows["ESR"].astype(str) == "1").mean() == pytest.approx(employed.value, abs=0.01)


def test_at_the_tipping_point_the_result_has_just_moved(census, found):
    """Put the share there, scale the others, and ask the model again."""
    model = census.model
    labels = [stratum.label for stratum in model.parts]
    shares = np.array([model.weights[s] for s in model.parts])
    results = [r for r in found.results if r.level is None] + [r for r in found.results if r.level is not None][::12]
    checked = 0
    for result in results:
        for tip in result.tips[:3]:
            for share in (tip.below, tip.above):
                if share is None:
                    continue
                group = labels.index(tip.stratum)
                other = shares * (1 - share) / (1 - shares[group])
                other[group] = share
                gone = overall(census, result, with_shares(model, other)) - result.value
                assert abs(gone) == pytest.approx(result.moved, rel=1e-6)
                checked += 1
            if tip.off is not None:
                ends = [abs(s / tip.share - 1) for s in (tip.below, tip.above) if s is not None]
                assert tip.off == pytest.approx(min(ends))
    assert checked > 20


def test_a_band_holds_all_shares_within_it_and_is_reached(census, found):
    rng, model = np.random.default_rng(0), census.model
    shares = np.array([model.weights[s] for s in model.parts])
    others = []
    while len(others) < 20:
        other = shares * rng.uniform(0.85, 1.15, len(shares))
        other /= other.sum()
        assert (np.abs(other / shares - 1) <= 0.4).all()
        if (np.abs(other / shares - 1) <= 0.2).all():
            others.append(with_shares(model, other))
    for result in [r for r in found.results if r.level is None]:
        seen = [overall(census, result, other) for other in others]
        assert result.low <= min(seen) <= max(seen) <= result.high
        assert result.low < result.value < result.high


numbers = st.lists(st.floats(0, 1), min_size=2, max_size=6)


@given(numbers, st.data())
def test_extremes_are_those_of_a_linear_program(a, data):
    """With b = 1 the problem is linear; scipy solves it by other means."""
    size = len(a)
    raw = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=size, max_size=size)))
    # scipy calls boxes that are narrower than its tolerance of 1e-7 infeasible
    shares, off = raw / raw.sum(), data.draw(st.just(0.0) | st.floats(1e-3, 2))
    low, high = spread(shares, off)
    quotient = RatioOfShares(np.array(a), np.ones(size))
    for sign in (1, -1):
        solved = linprog(
            -sign * quotient.a, A_eq=np.ones((1, size)), b_eq=[1], bounds=list(zip(low, high, strict=True))
        )
        assert extreme(quotient, shares, low, high, sign) == pytest.approx(-sign * solved.fun, abs=1e-6)


@given(numbers, st.data())
def test_quotients_reach_their_extremes(a, data):
    """No vertex that moves weight from one group to another does better; b may be 0 in some groups."""
    size = len(a)
    b = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=size, max_size=size)))
    b[0] = 1.0
    raw = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=size, max_size=size)))
    shares = raw / raw.sum()
    quotient = RatioOfShares(np.array(a) * b, b)
    low, high = spread(shares, 0.5)
    top, bottom = (extreme(quotient, shares, low, high, sign) for sign in (1, -1))
    rng = np.random.default_rng(0)
    for _ in range(30):
        other = heaviest(rng.normal(size=size), low, high)
        assert other.sum() == pytest.approx(1)
        assert bottom - 1e-9 <= quotient.at(other) <= top + 1e-9
    moved = (top - quotient.at(shares)) / 2
    if moved > 1e-6:  # all together: just within, nothing has moved; just beyond, it has
        reach = together(quotient, shares, moved)
        for factor, beyond in ((0.999, False), (1.001, True)):
            box = spread(shares, reach * factor)
            ends = [abs(extreme(quotient, shares, *box, sign) - quotient.at(shares)) for sign in (1, -1)]
            assert (max(ends) >= moved * (1 - 1e-9)) == beyond


def test_a_tipping_point_worked_out_by_hand():
    """Groups of 10 % and 90 % with means 50 and 40: overall 41; 2 % more is 41.82, where the share is 18.2 %."""
    quotient = RatioOfShares(np.array([50.0, 40.0]), np.ones(2))
    shares = np.array([0.1, 0.9])
    assert quotient.at(shares) == pytest.approx(41)
    assert root(quotient, shares, 0, 41 * 1.02) == pytest.approx(0.182)
    assert root(quotient, shares, 0, 41 * 0.98) == pytest.approx(0.018)
    assert root(quotient, shares, 0, 60) is None
    assert root(quotient, np.array([1.0, 0.0]), 0, 41) is None


def test_a_group_without_numbers_counts_for_nothing():
    """Only the other groups' proportions matter if nobody has a number."""
    quotient = RatioOfShares(np.array([0.0, 30.0, 50.0]), np.array([0.0, 1.0, 1.0]))
    shares = np.array([0.5, 0.25, 0.25])
    assert quotient.at(shares) == 40
    assert root(quotient, shares, 0, 41) is None
    assert extreme(quotient, shares, *spread(shares, 1), 1) == 50
    assert math.isnan(quotient.at(np.array([1.0, 0.0, 0.0])))


def test_intervals_name_some_groups_and_the_others_keep_theirs():
    frame = pd.DataFrame({"SEX": [1, 2], "GROUP": ["a", "a"], "low": [0.2, 0.3], "high": [0.6, 0.7]})
    (age,) = ss.weight_sensitivity(CACHED, columns=["AGE"], intervals=frame).results
    # b of SEX 1 keeps 0.1, b of SEX 2 its 0
    ends = [overall(CACHED, age, with_shares(CACHED.model, [share, 0.1, 0.9 - share, 0.0])) for share in (0.2, 0.6)]
    assert (age.low, age.high) == pytest.approx((min(ends), max(ends)))


def test_a_group_of_no_weight_has_no_part_of_itself_to_be_off_by():
    tips = {t.stratum: t for r in ss.weight_sensitivity(CACHED, columns=["AGE"]).results for t in r.tips}
    assert (tips["2|b"].share, tips["2|b"].off, tips["2|b"].below) == (0, None, None)


def test_strata_of_strata_and_models_without_marginals():
    """`independent` has no marginals of its own; a part may be a mixture again."""
    inner = ss.Stratified(make("independent", {}), ["GROUP"], small.even(small.SCHEMA, "GROUP"))
    how = ss.Stratified(inner, ["SEX"], small.even(small.SCHEMA, "SEX"))
    release = ss.fit(how, small.table(), ss.Budget(5, 1e-9))
    found = ss.weight_sensitivity(release, columns=["AGE", "GROUP"])
    groups = [r.value for r in found.results if r.column == "GROUP"]
    assert groups == pytest.approx([0.5, 0.5])
    age = next(r for r in found.results if r.column == "AGE")
    assert age.value == pytest.approx(release.sample(100_000, seed=1)["AGE"].mean(), abs=0.05)


def test_where_rules_have_rows_drawn_again_the_figures_are_those_of_the_rows_given_out():
    """`independent` knows nothing of rules: its own marginals are not those of a sample."""
    schema = Schema(small.SCHEMA.columns, rules=(Rule(when={"AGE": "0-2"}, never={"WORK": ("yes", "no")}),))
    how = ss.Stratified(make("independent", {}), ["SEX"], small.even(schema, "SEX"))
    release = ss.fit(how, ss.open_table(small.people(900), schema=schema, declared_size=900), ss.Budget(5, 1e-9))
    found = ss.weight_sensitivity(release)
    assert found.drawn == ("1", "2")
    assert "The models of 2 groups do not contain the structural rules" in " ".join(
        render(sensitivity_page(found)).split()
    )
    rows = release.sample(100_000, seed=1)
    values = {(r.column, r.level): r.value for r in found.results}
    assert values["AGE", None] == pytest.approx(rows["AGE"].mean(), abs=0.05)
    assert values["WORK", "yes"] == pytest.approx((rows["WORK"] == "yes").mean(), abs=0.01)
    model = release.model.oneway("WORK")[schema.index("WORK", "yes")]
    assert abs(values["WORK", "yes"] - model) > 0.03
    assert ss.weight_sensitivity(release) == found
    holding = ss.fit(ss.Stratified(make("mst", {}), ["SEX"], small.even(schema, "SEX")), small.table(), small.BUDGET)
    assert ss.weight_sensitivity(holding).drawn == ()
    assert forbidden(holding.model) == 0


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"threshold": 0}, "threshold"),
        ({"threshold": "much"}, "threshold"),
        ({"off": -0.1}, "off"),
        ({"off": True}, "off"),
        ({"columns": "AGE"}, "list"),
        ({"columns": ["AGGE"]}, "did you mean 'AGE'"),
        ({"off": 0.1, "intervals": pd.DataFrame()}, "not both"),
        ({"intervals": 3}, "CSV file or a frame"),
        ({"intervals": pd.DataFrame({"SEX": ["1"], "GROUP": ["a"], "low": [0.1]})}, "`high`"),
        ({"intervals": pd.DataFrame({"SEX": ["1"], "GROUP": ["z"], "low": [0.1], "high": [1]})}, "no stratum"),
        ({"intervals": pd.DataFrame({"SEX": ["1"], "GROUP": ["a"], "low": [0.5], "high": [0.4]})}, "low <= high"),
        ({"intervals": pd.DataFrame({"SEX": ["1"], "GROUP": ["a"], "low": ["x"], "high": [0.4]})}, "two numbers"),
        ({"intervals": pd.DataFrame({"SEX": ["1"], "GROUP": ["a"], "low": [0.0], "high": [0.1]})}, "add up"),
        ({"intervals": pd.DataFrame({"SEX": ["1"] * 2, "GROUP": ["a"] * 2, "low": [0] * 2, "high": [1] * 2})}, "two"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(settings, match):
    with pytest.raises(UsageError, match=match):
        ss.weight_sensitivity(CACHED, **settings)


def test_a_release_without_strata_does_not_depend_on_weights():
    with pytest.raises(UsageError, match="no strata"):
        ss.weight_sensitivity(ss.fit(make("independent", {}), small.table(), small.BUDGET))


def test_it_needs_the_model_alone(census, found):
    """No measurement, no certificate and no row."""
    bare = dataclasses.replace(census, certificate={}, measurements=None)
    unmeasured = [
        dataclasses.replace(
            result,
            measured=None,
            tips=tuple(dataclasses.replace(tip, difference=None, verdict="") for tip in result.tips),
        )
        for result in found.results
    ]
    assert ss.weight_sensitivity(bare, off=0.2) == dataclasses.replace(found, results=tuple(unmeasured))


def test_the_command(tmp_path, capsys):
    folder = CACHED.save(tmp_path / "release", rows=10)

    def command(*arguments):
        return cli.run([str(a) for a in ("weights", "sensitivity", *arguments)])

    assert command(folder, "--json", "--threshold", "0.01", "--off", "0.5") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["threshold"] == 0.01
    assert {r["column"] for r in said["results"]} == {"AGE", "WORK"}
    assert said["results"][0]["low"] < said["results"][0]["high"]
    assert command(folder, "--column", "WORK") == 0
    words = capsys.readouterr().out
    assert all(f"WORK={level} " in words for level in ("N", "yes", "no"))
    assert "mean AGE" not in words
    intervals = tmp_path / "intervals.csv"
    intervals.write_text("SEX,GROUP,low,high\n1,a,0.3,0.5\n2,a,0.4,0.6\n", encoding="utf-8")
    assert command(folder, "--intervals", intervals) == 0
    assert "Bands: the intervals given" in capsys.readouterr().out
    for wrong in ([folder, "--threshold", "0"], [folder, "--column", "AGGE"], [tmp_path], [folder, "--intervals", "x"]):
        assert command(*wrong) == 2
        assert "Traceback" not in capsys.readouterr().err


def test_a_sentence_for_the_statistician():
    schema = Schema({"G": Categorical(levels=("1", "2")), "X": Numeric(lower=0, upper=99, integer=True)})
    weights = ss.Weights.public(pd.DataFrame({"G": ["1", "2"], "share": [0.1, 0.9]}), citation="made up")
    rows = pd.DataFrame({"G": ["1"] * 5000 + ["2"] * 5000, "X": [50] * 5000 + [40] * 5000})
    table = ss.open_table(rows, schema=schema, declared_size=10_000)
    release = ss.fit(ss.Stratified(make("independent", {}), ["G"], weights), table, ss.Budget(10, 1e-5))
    text = " ".join(render(sensitivity_page(ss.weight_sensitivity(release))).split())
    assert "The overall mean of X moves by more than 2 % once the share of " in text
    (tip, _) = ss.weight_sensitivity(release).results[0].tips
    assert tip.stratum == "2"  # 0.818 instead of 0.9 is closer, as a part of itself, than 0.182 instead of 0.1
    assert tip.below == pytest.approx(0.818, abs=0.02)
