"""Means of strata of every kind: public weights, those of a sample, noisy ones, merges, and several rows a person."""

import math

import numpy as np
import pandas as pd
import pytest

from helpers.exactly import exactly
from stratsynth import (
    Budget,
    Categorical,
    Groups,
    Numeric,
    Schema,
    Stratified,
    StratumBudgets,
    Weights,
    fit,
    open_table,
    plan,
)
from stratsynth.adapters import ClippedMean, CoinPress
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms import Public
from stratsynth.models import Returns, files
from stratsynth.models.intervals import noisy_shares_covariance, sampled_shares_covariance
from stratsynth.noise import SeededEntropy
from stratsynth.questions import NoisyTable
from stratsynth.release import Release
from stratsynth.release.sensitivity import weight_sensitivity
from stratsynth.schema import Rule, Unit
from stratsynth.strata import Stratum, crossing
from stratsynth.weights import Resolved
from stratsynth.weights.private import counted

LEVELS = ("a", "b", "c", "d")
SCHEMA = Schema(
    {"g": Categorical(levels=LEVELS), "x": Numeric(lower=-50, upper=50), "age": Numeric(lower=0, upper=80, bins=4)}
)
SHARES = {"a": 0.5, "b": 0.3, "c": 0.15, "d": 0.05}
CENTRES = {"a": -30.0, "b": 0.0, "c": 20.0, "d": 40.0}
BUDGET = Budget(2, 1e-9)
PRESS = CoinPress(columns=["x"], scale={"x": 4})
PAIRS = Groups(merge={"g": {"low": ["a", "b"], "high": ["c", "d"]}})


def people(rows=4000, seed=1):
    rng = np.random.default_rng(seed)
    g = rng.choice(LEVELS, size=rows, p=list(SHARES.values()))
    x = rng.normal([CENTRES[level] for level in g], 3).clip(-50, 50)
    return pd.DataFrame({"g": g, "x": x, "age": rng.uniform(0, 80, rows)})


def table(frame=None, schema=SCHEMA):
    frame = people() if frame is None else frame
    return open_table(frame, schema=schema, declared_size=4000)


def public(order=LEVELS):
    return Weights.public(pd.DataFrame({"g": order, "share": [SHARES[g] for g in order]}), citation="made up")


def holdout():
    return Weights.holdout(people(400, seed=2), confidential=True)


def fitted(weights, how=PRESS, groups=None, budgets=None):
    return fit(Stratified(how, ["g"], weights, groups or Groups(), budgets), table(), BUDGET)


def by_hand(model):
    """Groups' means and weights in order, and the overall mean of these."""
    w = np.array([model.shares[s] for s in model.parts])
    m = np.array([part.figures.value[0] for part in model.parts.values()])
    assert model.figures.value[0] == pytest.approx(w @ m)
    errors = np.array([(p.noise**2 + p.figures.sampling**2)[0] for p in model.parts.values()])
    return w, m, errors


def test_public_weights_are_matched_by_label_and_exact():
    """STRATCOINPRESS."""
    model = fitted(public(order=LEVELS[::-1])).model
    w, m, errors = by_hand(model)
    assert {s.label: share for s, share in model.shares.items()} == SHARES
    assert m == pytest.approx(list(CENTRES.values()), abs=3)
    assert model.figures.weighting[0] == 0
    low, high = model.interval()
    assert high - low == pytest.approx(2 * 1.959964 * math.sqrt((w**2 * errors).sum()))


def test_a_samples_shares_bring_its_sampling_error():
    """PUB-STRATCOINPRESS: the sample's rows in any order, and its levels, not their order, say who is who."""
    model = fitted(holdout()).model
    w, m, errors = by_hand(model)
    numbers = people(400, seed=2)["g"].value_counts()
    assert w == pytest.approx([(numbers[level] + 0.5) / 402 for level in LEVELS])
    c = sampled_shares_covariance(w, 400)
    assert model.figures.weighting[0] == pytest.approx(math.sqrt(m @ c @ m + np.diag(c) @ errors))
    assert model.figures.weighting[0] > 3 * model.figures.sampling[0]  # groups this far apart, a sample this small
    assert model.figures.sampling[0] == pytest.approx(
        math.sqrt(sum(v * p.figures.sampling[0] ** 2 for v, p in zip(w**2, model.parts.values(), strict=True)))
    )


def test_noisy_shares_bring_their_noise_and_these_rows_mix():
    release = fitted(Weights.private(share=0.02))
    w, m, errors = by_hand(release.model)
    counts = release.measurements.to_pandas()
    counts = counts[counts["stratum"] == ""]
    assert len(counts) == 4
    found = counts["value"].to_numpy(float)
    assert w == pytest.approx(found / found.sum())
    c = noisy_shares_covariance(found, counts["sigma"].to_numpy(float))
    f = release.model.figures
    assert f.weighting[0] == pytest.approx(math.sqrt(m @ c @ m + np.diag(c) @ errors), rel=1e-6)
    within = sum(v * p.figures.sampling[0] ** 2 for v, p in zip(w**2, release.model.parts.values(), strict=True))
    assert f.sampling[0] ** 2 == pytest.approx(within + w @ (m - w @ m) ** 2 / f.size[0])


def test_exact_counts_of_the_rows_have_their_mix_as_sampling_error_only():
    frame = people()["g"].value_counts().reindex(LEVELS).rename_axis("g").reset_index(name="count")
    exact = fitted(Weights.invariant(frame, citation="disclosed counts")).model
    assert exact.figures.weighting[0] == 0
    assert exact.figures.sampling[0] > 5 * fitted(public()).model.figures.sampling[0]


def test_a_fit_of_uncertain_weights_survives_its_files(tmp_path):
    release = fitted(Weights.private(share=0.02), groups=PAIRS)
    again = Release.load(release.save(tmp_path / "release"))
    pd.testing.assert_frame_equal(again.estimates(), release.estimates())
    assert again.model.interval() == release.model.interval()
    assert release.estimates()["stratum"].tolist() == ["", "low", "high"]


# Merges


def test_the_covariance_of_merged_shares_is_that_of_sums():
    strata = crossing(SCHEMA, ["g"])
    shares = dict(zip(strata, [0.4, 0.3, 0.2, 0.1], strict=True))
    pairs = {Stratum.of({"g": ("a", "b")}): strata[:2], Stratum.of({"g": ("c", "d")}): strata[2:]}
    add = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    for given in (
        Resolved(shares, sampled=50.0),
        Resolved(shares, noise=dict(zip(strata, [0.1, 0.2, 0.3, 0.4], strict=True))),
    ):
        merged = given.merged(pairs)
        assert merged.covariance == pytest.approx(add @ given.covariance @ add.T)
        assert merged.covariance.sum(axis=0) == pytest.approx([0, 0], abs=1e-12)
    assert Resolved(shares).merged(pairs).covariance is None


def test_noise_of_counted_shares():
    merged = crossing(SCHEMA, ["g"], {"g": {"high": ["b", "c", "d"]}})
    found, total = counted(NoisyTable(("g",), np.array([70, 10, 15, 5]), 2.0), merged, SCHEMA)
    assert total == 100
    assert found.covariance == pytest.approx(noisy_shares_covariance([70, 30], [2, 2 * math.sqrt(3)]))
    nothing, _ = counted(NoisyTable(("g",), np.array([1, -2, 0, 0]), 2.0), merged, SCHEMA)
    assert nothing.covariance == pytest.approx(np.array([[0.25, -0.25], [-0.25, 0.25]]))


@pytest.mark.parametrize("weights", [public, holdout, lambda: Weights.private(share=0.1)])
def test_merged_strata_have_means(weights):
    model = fitted(weights(), groups=PAIRS).model
    assert [s.label for s in model.parts] == ["low", "high"]
    low = model.parts[next(iter(model.parts))]
    assert low.figures.value[0] == pytest.approx(-30 * 5 / 8, abs=3)
    again = files.restore("estimate", SCHEMA, model.state())
    assert again.parts.keys() == model.parts.keys()


def test_bands_of_a_column_have_the_means_of_the_others():
    """In a band of several bins the column itself varies; in one bin it does not. All groups have the same means."""
    bands = Groups(bands={"age": [20]})
    ages = pd.DataFrame({"age": crossing_names(bands), "share": [0.25, 0.75]})
    how = Stratified(CoinPress(), ["age"], Weights.public(ages, citation="made up"), bands)
    assert fit(how, table(), BUDGET).model.columns == ("x",)
    named = Stratified(CoinPress(columns=["age"]), ["age"], Weights.public(ages, citation="made up"), bands)
    with pytest.raises(UsageError, match="constant in this stratum"):
        named.price(Public(SCHEMA, 4000), BUDGET)
    halves = Groups(bands={"age": [40]})
    ages = pd.DataFrame({"age": crossing_names(halves), "share": [0.5, 0.5]})
    both = Stratified(CoinPress(columns=["age"]), ["age"], Weights.public(ages, citation="made up"), halves)
    assert fit(both, table(), BUDGET).model.figures.value == pytest.approx([40], abs=3)


def crossing_names(groups):
    return [s.label for s in crossing(SCHEMA, ["age"], groups.together(SCHEMA, ["age"]))]


def test_strata_with_budgets_of_their_own():
    model = fitted(public(), budgets=StratumBudgets.factors({"b": 0.2})).model
    noise = {s.label: part.figures.direct[0] * part.figures.size[0] for s, part in model.parts.items()}
    assert noise["b"] > 3 * noise["a"]


# What is refused, before anything is paid


@pytest.mark.parametrize("how", [CoinPress(count="declared"), ClippedMean(count="declared")])
@pytest.mark.parametrize("weights", [holdout, lambda: Weights.private(share=0.1)])
def test_a_declared_size_is_divided_by_exact_shares_only(how, weights):
    with pytest.raises(Unsupported, match="noisy"):
        Stratified(how, ["g"], weights()).price(Public(SCHEMA, 4000), BUDGET)
    Stratified(how, ["g"], public()).price(Public(SCHEMA, 4000), BUDGET)


def test_inside_strata_of_a_sample_no_size_is_exact():
    inner = Stratified(CoinPress(count="declared", columns=["x"]), ["age"], even_ages())
    with pytest.raises(Unsupported, match="not exact"):
        Stratified(inner, ["g"], holdout()).price(Public(SCHEMA, 4000), BUDGET)


def even_ages():
    ages = [s.label for s in crossing(SCHEMA, ["age"])]
    return Weights.public(pd.DataFrame({"age": ages, "share": [0.25] * 4}), citation="made up")


def test_raked_weights_are_as_exact_as_what_they_are_made_of():
    assert Weights.raked(public()).exact
    assert not Weights.raked(public(), start=holdout()).exact


def test_small_groups_get_no_tables_where_the_others_get_means():
    with pytest.raises(Unsupported, match="keep"):
        Stratified(PRESS, ["g"], public(), Groups(small="one-way", threshold=500))
    merged = Groups(hierarchy={"g": {"rest": ["c", "d"]}}, small="merge", threshold=800)
    assert [s.label for s in fitted(public(), groups=merged).model.parts] == ["a", "b", "rest"]


def test_pure_epsilon_buys_no_noisy_counts():
    with pytest.raises(Unsupported, match="another source"):
        Stratified(ClippedMean(), ["g"], Weights.private(share=0.1)).price(Public(SCHEMA, 4000), BUDGET)


# Several rows a person

SEVERAL = Schema(SCHEMA.columns, unit=Unit(column="who", max_rows=4))


@pytest.mark.parametrize("how", [PRESS, ClippedMean(columns=["x"])])
def test_several_rows_a_person(how):
    """Counts are of the rows that are kept; rows of a person may be alike, so the sampling error is as if they were."""
    frame = people().assign(who=np.repeat(np.arange(800), 5))  # of five rows each, four are kept
    several, single = table(frame, SEVERAL), table(frame.drop(columns="who"))
    model, alone = (
        fit(Stratified(how, ["g"], public()), rows, Budget(20, 1e-9), entropy=SeededEntropy(5)).model
        for rows in (several, single)
    )
    assert model.figures.size[0] == pytest.approx(3200, rel=0.05)
    assert alone.figures.size[0] == pytest.approx(4000, rel=0.05)
    ratio = model.figures.sampling[0] / alone.figures.sampling[0]
    due = math.sqrt(4 * 4000 / 3200)
    # the clipped mean's variance is bought with so much noise that its root comes out large rather than small
    assert 0.8 * due < ratio < (1.2 if how == PRESS else 1.8) * due
    assert model.conservative
    assert not alone.conservative
    assert model.figures.value[0] == pytest.approx(alone.figures.value[0], abs=0.5)


def test_a_declared_number_of_people_is_no_number_of_rows():
    with pytest.raises(Unsupported, match="several rows"):
        CoinPress(count="declared").price(Public(SEVERAL, 4000), BUDGET)
    one = Schema(SCHEMA.columns, unit=Unit(column="who", max_rows=1))
    assert exactly(CoinPress(count="declared"), one, people().assign(who=range(4000)), declared=4000)[0].columns


def test_a_sample_of_people_with_several_rows_says_less():
    one, four = (holdout().resolve(crossing(s, ["g"]), s).covariance for s in (SCHEMA, SEVERAL))
    assert four == pytest.approx(4 * one)


# Plans and releases


@pytest.mark.parametrize("weights", [public, holdout, lambda: Weights.private(share=0.1)])
def test_a_plan_says_how_noisy_means_will_be(weights):
    foreseen = plan(Stratified(PRESS, ["g"], weights(), PAIRS), SCHEMA, BUDGET, declared_size=4000)
    assert [s.stratum for s in foreseen.strata] == ["low", "high"]
    assert all(s.verdict.startswith("noise in means: x 0.") for s in foreseen.strata)


def test_strata_within_strata_are_planned_and_draw_no_rows():
    how = Stratified(Stratified(PRESS, ["age"], even_ages()), ["g"], public())
    assert how.returns == Returns.ESTIMATES
    foreseen = plan(how, SCHEMA, BUDGET, declared_size=4000)
    assert foreseen.strata[0].verdict.startswith("noise in means")


def test_what_is_for_rows_is_refused_with_a_remedy(tmp_path):
    release = fitted(public())
    with pytest.raises(UsageError, match=r"estimates\(\)"):
        weight_sensitivity(release)
    for asked in ({"n_by_group": {("a",): 5}}, {"n": 8, "balance": ["g"]}):
        with pytest.raises(UsageError, match=r"estimates\(\)"):
            release.sample(**asked)
    with pytest.raises(UsageError, match=r"estimates\(\)"):
        release.rules_moved(5)


def test_rules_move_no_estimates(tmp_path):
    schema = Schema(SCHEMA.columns, rules=(Rule(when={"g": ("a",)}, never={"age": SCHEMA.levels("age")[:1]}),))
    release = fit(Stratified(PRESS, ["g"], public()), table(schema=schema), BUDGET)
    assert not (release.save(tmp_path / "release") / "rules.json").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_have_nothing_to_do(workers):
    assert fit(Stratified(PRESS, ["g"], public()), table(), BUDGET, workers=workers).model.columns == ("x",)
