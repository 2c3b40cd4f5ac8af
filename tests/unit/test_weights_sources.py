"""Every source of weights: what it gives, what it discloses, what it refuses."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.small import SCHEMA, people, shares_frame
from stratsynth import Weights
from stratsynth.errors import SchemaError, WeightsError
from stratsynth.models.intervals import wilson
from stratsynth.questions import NoisyTable
from stratsynth.strata import Stratum, crossing
from stratsynth.weights.private import counted
from stratsynth.weights.raking import rake
from stratsynth.weights.simplex import nearest

STRATA = crossing(SCHEMA, ["SEX", "GROUP"])
MERGED = crossing(SCHEMA, ["SEX", "WORK"], {"WORK": {"asked": ["yes", "no"]}})


def frame(columns, rows):
    return pd.DataFrame(rows, columns=columns.split())


def by_label(weights, strata=STRATA, schema=SCHEMA):
    return {stratum.label: share for stratum, share in weights.resolve(strata, schema).shares.items()}


# Public: shares, counts, intervals


def test_counts_need_not_add_up_to_anything():
    counts = frame("SEX GROUP count", [("1", "a", 30), ("1", "b", 10), ("2", "a", 60), ("2", "b", 0)])
    weights = Weights.public(counts, citation="made up")
    assert by_label(weights) == pytest.approx({"1|a": 0.3, "1|b": 0.1, "2|a": 0.6, "2|b": 0})
    assert weights.resolve(STRATA).total == 1
    with pytest.raises(WeightsError, match="all 0"):
        Weights.public(counts.assign(count=0), citation="made up").resolve(STRATA)


def test_bounds_are_kept_beside_shares_and_scaled_with_counts():
    counts = frame(
        "SEX GROUP count low high",
        [("1", "a", 30, 20, 40), ("1", "b", 10, 10, 10), ("2", "a", 60, 0, 80), ("2", "b", 0, 0, 5)],
    )
    ranges = {s.label: r for s, r in Weights.public(counts, citation="made up").resolve(STRATA).ranges.items()}
    assert ranges == {"1|a": (0.2, 0.4), "1|b": (0.1, 0.1), "2|a": (0, 0.8), "2|b": (0, 0.05)}


@given(st.lists(st.tuples(st.floats(0, 0.25), st.floats(0, 0.5)), min_size=4, max_size=4))
def test_bounds_alone_give_shares_between_them(pairs):
    rows = [(*s.to_dict().values(), low, low + wide) for s, (low, wide) in zip(STRATA, pairs, strict=True)]
    weights = Weights.public(frame("SEX GROUP low high", [(*r[:3], min(1.0, r[3])) for r in rows]), citation="made up")
    if math.fsum(r[3] for r in rows) < 0.999:
        with pytest.raises(WeightsError, match="never to 1"):
            weights.resolve(STRATA)
        return
    resolved = weights.resolve(STRATA)
    assert math.fsum(resolved.shares.values()) == pytest.approx(1, abs=1e-12)
    for stratum, (low, high) in resolved.ranges.items():
        assert low - 2e-3 <= resolved.shares[stratum] <= high + 2e-3


@pytest.mark.parametrize(
    ("columns", "row", "match"),
    [
        ("SEX GROUP share count", ("1", "a", 1, 1), "not both"),
        ("SEX GROUP share low", ("1", "a", 1, 1), "two columns"),
        ("SEX GROUP share low high", ("1", "a", 0.5, 0.6, 0.7), "line 2"),
        ("SEX GROUP low high", ("1", "a", 0.7, 0.6), "line 2"),
        ("SEX GROUP low high", ("1", "a", 100, 200), "shares up to 1"),
        ("SEX GROUP count", ("1", "a", -1), "line 2"),
    ],
)
def test_figures_that_make_no_sense_are_refused(columns, row, match):
    with pytest.raises(WeightsError, match=match):
        Weights.public(frame(columns, [row]), citation="made up")


def test_a_merge_may_be_given_by_its_name_or_by_its_levels():
    rows = [("1", "N", 0.1), ("1", "asked", 0.4), ("2", "N", 0.1), ("2", "yes", 0.3), ("2", "no", 0.1)]
    found = by_label(Weights.public(frame("SEX WORK share", rows), citation="made up"), MERGED)
    assert found == pytest.approx({"1|N": 0.1, "1|asked": 0.4, "2|N": 0.1, "2|asked": 0.4})
    with pytest.raises(WeightsError, match="two shares"):
        Weights.public(frame("SEX WORK share", [*rows, ("1", "yes", 0)]), citation="made up").resolve(MERGED)
    with pytest.raises(WeightsError, match="no share for SEX=2 WORK=no"):
        Weights.public(frame("SEX WORK share", rows[:-1]), citation="made up").resolve(MERGED)


# Holdout


def test_a_holdout_is_counted_by_the_schemas_levels_and_smoothed():
    sample = frame("GROUP SEX more", [("a", 1, "x"), ("a", 1.0, "x"), ("b", "2", "x"), ("zebra", "2", "x")])
    found = by_label(Weights.holdout(sample, citation="made up"))  # a row that the schema leaves out does not count
    assert found == pytest.approx({"1|a": 2.5 / 5, "1|b": 0.5 / 5, "2|a": 0.5 / 5, "2|b": 1.5 / 5})


def test_bins_are_matched_by_their_numbers(tmp_path):
    frame("AGE", [(0,), (2,), (9,)]).to_csv(tmp_path / "sample.csv", index=False)
    found = by_label(Weights.holdout(tmp_path / "sample.csv", citation="made up"), crossing(SCHEMA, ["AGE"]))
    assert found == pytest.approx({"0-2": 2.5 / 4.5, "3-5": 0.5 / 4.5, "6-9": 1.5 / 4.5})


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_ranges_hold_the_smoothed_share(counts):
    seen, whole = counts
    low, high = wilson(seen, whole)
    assert 0 <= low <= (seen + 0.5) / (whole + 1) <= high <= 1


def test_disjoint_is_not_public():
    sample = people(30)
    published, cut = Weights.holdout(sample, citation="PUMS 2019"), Weights.holdout(sample, confidential=True)
    assert published.unprotected == ()
    assert cut.unprotected == ("holdout_people",)
    assert Weights.holdout(sample).unprotected == ("holdout_people",), "what nobody has published is confidential"
    assert Weights.holdout(sample, citation="our people", confidential=True).unprotected == ("holdout_people",)
    with pytest.raises(WeightsError, match="confidential = true"):
        Weights.holdout(sample, confidential=False)
    assert "sha256" not in cut.describe()


def test_a_holdout_lacks_nothing():
    with pytest.raises(SchemaError, match="GROUP"):
        Weights.holdout(people(30).drop(columns="GROUP"), citation="made up").resolve(STRATA, SCHEMA)
    with pytest.raises(WeightsError, match="no rows"):
        Weights.holdout(people(0), citation="made up").resolve(STRATA, SCHEMA)


# Private


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=8).filter(lambda v: sum(v) > 0))
def test_the_nearest_counts_that_are_not_negative(values):
    """Optimality: what is cut is at most what the kept ones lose (Karush, Kuhn and Tucker)."""
    values = np.array(values, dtype=float)
    found = nearest(values, values.sum())
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(values.sum())
    moved = values - found
    kept = found > 0
    assert np.ptp(moved[kept]) < 1e-9
    assert (moved[~kept] <= moved[kept].max() + 1e-9).all()


def test_counts_of_cells_are_added_up_in_merges():
    noisy = NoisyTable(("SEX", "WORK"), np.array([[10, 20, 30], [40, -20, 20]]), 5.0)
    shares, total = counted(noisy, MERGED, SCHEMA)
    assert total == 100
    assert {s.label: share for s, share in shares.shares.items()} == pytest.approx(
        {"1|N": 0.1, "1|asked": 0.5, "2|N": 0.4, "2|asked": 0}
    )


def test_where_nothing_is_counted_all_strata_are_alike():
    shares, total = counted(NoisyTable(("SEX",), np.array([-4, 3]), 5.0), crossing(SCHEMA, ["SEX"]), SCHEMA)
    assert (list(shares.shares.values()), total) == ([0.5, 0.5], 0)


def test_before_they_are_asked_private_weights_are_even_or_those_of_a_prior():
    assert set(by_label(Weights.private(share=0.1)).values()) == {0.25}
    prior = Weights.public(shares_frame(), citation="last year")
    assert by_label(Weights.private(share=0.1, prior=prior)) == by_label(prior)


def test_private_weights_are_planned_by_raked_ones():
    sexes, groups = frame("SEX share", [("1", 0.3), ("2", 0.7)]), frame("GROUP share", [("a", 0.6), ("b", 0.4)])
    raked = Weights.raked(Weights.public(sexes, citation="made up"), Weights.invariant(groups))
    weights = Weights.private(share=0.1, prior=raked)
    assert by_label(weights) == pytest.approx({"1|a": 0.18, "1|b": 0.12, "2|a": 0.42, "2|b": 0.28})
    assert weights.worst == "invariant"
    assert not weights.of_rows  # what is released are noisy counts
    assert weights.unprotected == ("group_counts",)
    assert weights.describe()["prior"] == raked.describe()


@pytest.mark.parametrize("share", [0, 1, -0.1, "half", None, True, math.nan])
def test_private_weights_cost_a_part_of_the_budget(share):
    with pytest.raises(WeightsError, match="part of the budget"):
        Weights.private(share=share)


def test_a_prior_is_known_before():
    with pytest.raises(WeightsError, match="prior"):
        Weights.private(share=0.1, prior=Weights.private(share=0.1))


# Raked


SEX = Weights.public(frame("SEX share", [("1", 0.4), ("2", 0.6)]), citation="table of sexes")
GROUP = Weights.public(frame("GROUP share", [("a", 0.9), ("b", 0.1)]), citation="table of groups")


def test_margins_alone_go_together_at_random():
    found = by_label(Weights.raked(SEX, GROUP))
    assert found == pytest.approx({"1|a": 0.36, "1|b": 0.04, "2|a": 0.54, "2|b": 0.06})


def test_a_starting_table_says_how_they_go_together():
    start = Weights.public(
        frame("SEX GROUP share", [("1", "a", 0.5), ("1", "b", 0), ("2", "a", 0.25), ("2", "b", 0.25)]),
        citation="an old table",
    )
    found = by_label(Weights.raked(SEX, GROUP, start=start))
    assert found == pytest.approx({"1|a": 0.4, "1|b": 0, "2|a": 0.5, "2|b": 0.1})


@given(st.lists(st.floats(0.01, 1), min_size=12, max_size=12))
def test_every_margin_is_met(cells):
    table = np.array(cells).reshape(3, 4)
    table /= table.sum()
    places = [np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)]
    fitted = rake(np.ones(12), places, [table.sum(axis=1), table.sum(axis=0)]).reshape(3, 4)
    np.testing.assert_allclose(fitted.sum(axis=1), table.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(fitted.sum(axis=0), table.sum(axis=0), atol=1e-9)


def test_margins_that_contradict_each_other_are_named():
    both = Weights.public(shares_frame(), citation="other year")  # SEX=1 has 0.5 there
    with pytest.raises(WeightsError, match=r"SEX=1 has the share 0\.4 in one and 0\.5 in another"):
        Weights.raked(SEX, both).resolve(STRATA)


def test_margins_that_a_starting_table_rules_out_do_not_converge():
    start = Weights.public(
        frame("SEX GROUP share", [("1", "a", 0.5), ("1", "b", 0), ("2", "a", 0.5), ("2", "b", 0)]),
        citation="an old table",
    )
    with pytest.raises(WeightsError, match="did not converge"):
        Weights.raked(SEX, GROUP, start=start).resolve(STRATA)


def test_a_column_without_a_margin_is_named():
    with pytest.raises(WeightsError, match="no margin knows GROUP"):
        Weights.raked(SEX).resolve(STRATA)


def test_raked_weights_are_as_public_as_the_worst_of_them():
    cut = Weights.holdout(people(30), confidential=True)
    exact = Weights.invariant(frame("GROUP count", [("a", 9), ("b", 1)]))
    assert Weights.raked(SEX, GROUP).worst == "public"
    assert Weights.raked(SEX, Weights.holdout(people(30), citation="made up")).worst == "holdout"
    assert Weights.raked(SEX, GROUP, start=cut).worst == "confidential holdout"
    both = Weights.raked(SEX, exact, start=cut)
    assert both.worst == "invariant"
    assert set(both.unprotected) == {"group_counts", "holdout_people"}
    assert [m["source"] for m in both.describe()["margins"]] == ["public", "invariant"]


def test_what_cannot_be_raked_is_refused():
    for margins in [(), (shares_frame(),), (Weights.private(share=0.1),), (Weights.raked(SEX, GROUP),)]:
        with pytest.raises(WeightsError, match="made of public"):
            Weights.raked(*margins)


# Invariant


def test_exact_counts_exist_behind_that_word_only():
    weights = Weights.invariant(frame("SEX GROUP count", [("1", "a", 3), ("1", "b", 1), ("2", "a", 4), ("2", "b", 0)]))
    assert weights.unprotected == ("group_counts",)
    assert weights.source == "invariant"
    assert "exact" in weights.citation
    assert by_label(weights) == {"1|a": 3 / 8, "1|b": 1 / 8, "2|a": 0.5, "2|b": 0}


def test_shares_of_merges_are_sums():
    resolved = Weights.public(
        frame("SEX GROUP share low high", [(s, g, 0.25, 0.2, 0.6) for s in "12" for g in "ab"]), citation="made up"
    ).resolve(STRATA)
    both = Stratum.of({"SEX": ("1", "2"), "GROUP": ("a", "b")})
    merged = resolved.merged({both: STRATA})
    assert merged.shares == {both: 1}
    assert merged.ranges == {both: (pytest.approx(0.8), 1.0)}
