"""Pooled: what both stages ask and pay, what strata keep and move, and what is refused."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import stratsynth as ss
from helpers import recompute
from helpers.small import BUDGET
from stratsynth import Budget, Groups, StratumBudgets, Weights, census
from stratsynth.adapters import AIM, MST, Independent, Pooled
from stratsynth.adapters.pooled.mechanism import SHARES
from stratsynth.errors import StratsynthError
from stratsynth.mechanisms import Public, make
from stratsynth.noise import SeededEntropy

BY = ("SEX", "RAC1P")
ROWS = 6_000
COLUMNS = ("SEX", "RAC1P", "AGEP", "MAR", "SCHL", "DIS")


@pytest.fixture(scope="module")
def people():
    return census.make(ROWS)[list(COLUMNS)]


@pytest.fixture(scope="module")
def schema():
    return census.schema().restrict(COLUMNS)


@pytest.fixture(scope="module")
def weights():
    return Weights.public(census.shares(BY), citation=census.CITATION)


def fitted(mechanism, people, schema, epsilon=3.0, seed=1):
    table = ss.open_table(people, schema=schema, declared_size=ROWS)
    return ss.fit(mechanism, table, Budget(epsilon, 1e-9, first=0), seed=seed, entropy=SeededEntropy(seed))


def spent(release):
    """Exact rho of everybody, and of each stratum, by label."""
    everybody, strata = Fraction(0), {}
    for charge in release.certificate["charges"]:
        label = "|".join(charge["path"][0].values()) if charge["path"] else None
        if label is None:
            everybody += Fraction(charge["rho"])
        else:
            strata[label] = strata.get(label, Fraction(0)) + Fraction(charge["rho"])
    return everybody, strata


@pytest.mark.parametrize("base", [MST(), AIM(model_cells=2**12)], ids=["mst", "aim"])
@pytest.mark.parametrize("share", ["auto", 0.25])
def test_both_stages_cost_what_they_were_given(people, schema, weights, base, share):
    how = Pooled(base=base, by=BY, weights=weights, share=share)
    release = fitted(how, people, schema)
    recompute.check(release.certificate)
    rho = Fraction(release.certificate["guarantee"]["rho"])
    part = how.part(Public(schema, ROWS), float(rho), BUDGET)
    everybody, strata = spent(release)
    assert float(everybody) == pytest.approx(part * float(rho), rel=1e-9)
    for own in strata.values():
        assert everybody + own <= rho
    # a stratum that measures spends all that is left for it, or stops where nothing is affordable any more
    assert max(everybody + own for own in strata.values()) == pytest.approx(float(rho), rel=1e-9)
    small = [label for label, s in census_sizes(schema, weights).items() if s < 2]
    assert not set(small) & set(strata)  # decided before anything was asked


def census_sizes(schema, weights):
    strata = ss.strata.crossing(schema, BY)
    return {s.label: ROWS * share for s, share in weights.resolve(strata).shares.items()}


def test_everybody_is_asked_without_the_strata_s_columns(people, schema, weights):
    release = fitted(Pooled(base="mst", by=BY, weights=weights), people, schema)
    found = release.measurements.to_pandas()
    asked = {column for clique in found["clique"] for column in clique.split(",")}
    assert asked == set(COLUMNS) - set(BY)
    assert (found["stratum"] == "").any()
    assert (found["stratum"] != "").any()


def test_a_stratum_too_small_to_measure_keeps_the_pooled_distribution(people, schema, weights):
    release = fitted(Pooled(base="mst", by=BY, weights=weights), people, schema)
    measured = set(release.measurements.to_pandas()["stratum"])
    kept = [part for stratum, part in release.model.parts.items() if stratum.label not in measured]
    moved = [part for stratum, part in release.model.parts.items() if stratum.label in measured]
    assert len(kept) >= 2
    assert moved
    for part in kept[1:]:
        np.testing.assert_array_equal(part.marginal(("AGEP", "SCHL")), kept[0].marginal(("AGEP", "SCHL")))
    assert np.abs(moved[0].marginal(("AGEP",)) - kept[0].marginal(("AGEP",))).sum() > 0.01


def test_share_0_is_the_base_plainly_stratified(people, schema, weights):
    releases = [
        fitted(how, people, schema)
        for how in (Pooled(base="mst", by=BY, weights=weights, share=0), ss.Stratified(MST(), BY, weights))
    ]
    frames = [release.sample(500, seed=2) for release in releases]
    assert frames[0].equals(frames[1])
    assert releases[0].measurements.equals(releases[1].measurements)


def test_share_1_is_the_base_with_rows_drawn_by_the_weights(people, schema, weights):
    pooled = fitted(Pooled(base="mst", by=BY, weights=weights, share=1), people, schema)
    vanilla = fitted(ss.Weighted(MST(), weights, BY), people, schema)
    assert pooled.measurements.equals(vanilla.measurements)
    assert pooled.certificate["charges"] == vanilla.certificate["charges"]
    groups = pooled.sample(20_000, seed=1).groupby(list(BY)).size() / 20_000
    for (sex, race), share in census.shares(BY).set_index(list(BY))["share"].items():
        assert groups.get((sex, race), 0) == pytest.approx(share, abs=1e-3)
    both, same = (next(iter(release.model.parts.values())).marginal(("AGEP",)) for release in (pooled, vanilla))
    np.testing.assert_array_equal(both, same)


def test_merged_strata_and_private_weights(people, schema):
    groups = Groups(merge={"RAC1P": {"few": ["3", "4", "5", "7"]}})
    how = Pooled(base="mst", by=BY, weights=Weights.private(share=0.05), groups=groups)
    release = fitted(how, people, schema)
    recompute.check(release.certificate)
    sample = release.sample(3000, seed=1)
    assert set(sample["RAC1P"]) <= set(schema.levels("RAC1P"))
    assert len(release.model.parts) == 2 * (len(schema.levels("RAC1P")) - 3)


def test_groups_are_nearer_than_by_either_alone(people, schema, weights):
    """The reason for it all, at one size and budget; `scripts/bench pooled` measures it at many."""
    every = [("AGEP", "SCHL"), ("AGEP", "MAR"), ("SCHL", "MAR"), ("AGEP", "DIS")]
    true = census.make(200_000)[list(COLUMNS)]

    def error(how):
        sample = fitted(how, people, schema, epsilon=1.0).sample(100_000, seed=3)
        return np.mean(
            [
                (true[true["RAC1P"] == race].groupby(list(pair), observed=True).size() / (true["RAC1P"] == race).sum())
                .sub(
                    sample[sample["RAC1P"] == race].groupby(list(pair), observed=True).size()
                    / (sample["RAC1P"] == race).sum(),
                    fill_value=0,
                )
                .abs()
                .sum()
                for pair in every
                for race in ("1", "2", "6")
            ]
        )

    pooled = error(Pooled(base="mst", by=BY, weights=weights))
    assert pooled < error(ss.Stratified(MST(), BY, weights))
    assert pooled < 1.05 * error(MST())


def test_the_share_follows_public_sizes(schema, weights):
    every = []
    for base in ("mst", "aim"):
        how = Pooled(base=base, by=BY, weights=weights)
        parts = [how.part(Public(schema, size), 1e-4, BUDGET) for size in (0, 1_000, 30_000, 300_000, 10**9)]
        assert parts == sorted(parts, reverse=True)
        assert (parts[-1], parts[0]) == SHARES
        assert how.part(Public(schema, 30_000), 1.0, BUDGET) < how.part(Public(schema, 30_000), 1e-4, BUDGET)
        every.append(parts)
    assert every[1][3] > every[0][3]  # everybody's AIM grows with its budget, a tree does not
    prior = SimpleNamespace(codes={})
    assert how.part(Public(schema, 300_000, prior=prior), 1e-4, BUDGET) == every[0][3]  # and a prior is there at once


def test_a_plan_foresees_both_stages(schema, weights):
    how = Pooled(base=AIM(model_cells=2**12), by=BY, weights=weights)
    foreseen = ss.plan(how, schema, BUDGET, declared_size=100_000)
    assert foreseen.adaptive
    assert foreseen.spent == pytest.approx(foreseen.reserved, rel=1e-9)
    assert "everybody's model first" in str(foreseen)
    assert "columns measured here, others as in everybody's model" in foreseen.strata[0].verdict
    assert foreseen.strata[0].verdict.startswith(("good", "fair", "poor", "noise"))
    for stratum in foreseen.strata:
        assert stratum.oneway_error is not None
        assert stratum.twoway_error is not None
    tiny = ss.plan(how, schema, BUDGET, declared_size=500)
    kept = [s for s in tiny.strata if s.verdict.startswith("drawn as everybody")]
    assert kept
    # the error of the model that they keep: the same for all of them, whatever their size
    assert len({s.oneway_error for s in kept}) == 1
    assert "only data could tell" in str(tiny)
    private = ss.Stratified(MST(), BY, Weights.private(share=0.1))
    assert not any("everybody's" in s.verdict for s in ss.plan(private, schema, BUDGET, declared_size=5000).strata)
    largest, smallest = (f(foreseen.strata, key=lambda s: s.size) for f in (max, min))
    assert largest.rounds > smallest.rounds


def test_its_name_says_what_it_is(weights):
    assert Pooled(base="mst", by=BY, weights=weights).title == "pooled mst by SEX x RAC1P"
    made = make("pooled", {"base": {"name": "aim", "model_cells": 4096}, "by": list(BY), "weights": weights})
    assert made.inner == AIM(model_cells=4096)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"base": Independent()}, "base is AIM, MST or GEM"),
        ({"base": "mts"}, "mst"),
        ({"share": 2}, "0 to 1"),
        ({"share": "half"}, "auto"),
        ({"share": True}, "auto"),
        ({"prior": -1}, "prior"),
        ({"by": "SEX"}, "list of columns"),
        ({"weights": None}, "Weights.public"),
        ({"budgets": StratumBudgets.factors({"1|1": 0.5})}, "alike"),
        ({"share": 1, "weights": Weights.private(share=0.1)}, "private weights"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(weights, settings, match):
    with pytest.raises(StratsynthError, match=match):
        Pooled(**{"base": "mst", "by": BY, "weights": weights, **settings})


def test_what_the_base_or_the_weights_refuse_is_refused_before_any_charge(people, schema, weights):
    table = ss.open_table(people, schema=schema, declared_size=ROWS)
    for how, match in (
        (Pooled(base=AIM(workload=[["AGE"]]), by=BY, weights=weights), "no column"),
        (Pooled(base="mst", by=["SEX"], weights=weights), "strata"),
    ):
        with pytest.raises(StratsynthError, match=match):
            ss.fit(how, table, BUDGET)
