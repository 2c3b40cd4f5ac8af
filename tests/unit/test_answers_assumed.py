"""Strata without a table: the others answer, and these are bounded by their measured sizes, or by declared ones."""

import dataclasses

import numpy as np
import pytest

from helpers import small
from stratsynth.answers import Query
from stratsynth.answers.ask import answers
from stratsynth.answers.assumed import ASSUMED, BOUNDED, assumed
from stratsynth.answers.squares import Squares
from stratsynth.answers.tables import Leaf, Noisy, Tables

PEOPLE = small.people()
DECLARED = small.SIZE * small.SHARES["1", "b"]
"""Declared records of men of b, whose tables are taken away here."""


@pytest.fixture(scope="module")
def clear():
    return small.clear_release()


def without(release, *cliques):
    """The release without these tables of the men of b, whose size nobody measured; without any if none is named."""
    stratum, clique = (release.measurements[name].to_pylist() for name in ("stratum", "clique"))
    kept = [not (s == "1|b" and (not cliques or c in cliques)) for s, c in zip(stratum, clique, strict=True)]
    stated = [
        each
        | {"measured": DECLARED, "difference": 0.0, "low": -0.9, "high": 0.9, "z": 0.0, "verdict": "not to be told"}
        if each["stratum"] == "1|b"
        else each
        for each in release.certificate["declared_and_measured"]
    ]
    certificate = {**release.certificate, "declared_and_measured": stated}
    return dataclasses.replace(release, measurements=release.measurements.filter(kept), certificate=certificate)


def counted(rows):
    """Numbers of the rows by WORK, as the schema reads it."""
    return rows.WORK.replace({"zebra": "no"}).value_counts()


def test_a_count_lies_between_that_of_the_others_and_the_same_with_all_of_them(clear):
    found = without(clear, "WORK").query(["WORK"], by=["SEX"])
    men = found[found.SEX == "1"].set_index("WORK")
    assert set(men.status) == {"bounded"}, "the table of AGE has measured how many they are"
    assert set(found[found.SEX == "2"].status) <= {"ok", "small"}, "no woman is in a stratum without a table"
    others = counted(PEOPLE[(PEOPLE.SEX == "1") & (PEOPLE.GROUP == "a")]).reindex(men.index, fill_value=0)
    size = ((PEOPLE.SEX == "1") & (PEOPLE.GROUP == "b")).sum()
    shares = others / others.sum()
    assert men.estimate.tolist() == pytest.approx((others + size * shares).tolist(), abs=0.7)
    assert men.noise_low.tolist() == pytest.approx(others.tolist(), abs=1.1)
    assert men.noise_high.tolist() == pytest.approx((others + size).tolist(), abs=2.1)
    truth = counted(PEOPLE[PEOPLE.SEX == "1"]).reindex(men.index, fill_value=0)
    assert ((men.noise_low <= truth) & (truth <= men.noise_high)).all()
    assert all(note.endswith(BOUNDED) and "1|b, of about 10 in all by declared figures" in note for note in men.note)


def test_a_rate_lies_between_the_quotients_of_all_such_counts(clear):
    found = without(clear, "WORK").query(["WORK"], by=["SEX"], statistic="rate")
    men = found[found.SEX == "1"].set_index("WORK")
    assert set(men.status) == {"bounded"}
    others = counted(PEOPLE[(PEOPLE.SEX == "1") & (PEOPLE.GROUP == "a")]).reindex(men.index, fill_value=0)
    all_, most = others.sum(), ((PEOPLE.SEX == "1") & (PEOPLE.GROUP == "b")).sum()
    assert men.estimate.tolist() == pytest.approx((others / all_).tolist(), abs=0.02)
    assert men.noise_low.tolist() == pytest.approx((others / (all_ + most)).tolist(), abs=0.03)
    assert men.noise_high.tolist() == pytest.approx(((others + most) / (all_ + most)).tolist(), abs=0.03)


def test_a_share_is_of_all_rows(clear):
    found = without(clear, "WORK").query(["WORK"], by=["SEX"], statistic="share")
    men = found[found.SEX == "1"].set_index("WORK")
    assert set(men.status) == {"bounded"}
    truth = counted(PEOPLE[PEOPLE.SEX == "1"]).reindex(men.index, fill_value=0) / small.SIZE
    assert ((men.noise_low <= truth) & (truth <= men.noise_high)).all()


def test_people_of_a_group_are_counted_with_strata_that_nobody_counted(clear):
    found = without(clear).query(["SEX"]).set_index("SEX")
    assert found.status.to_dict() == {"1": "assumed", "2": "ok"}
    others = ((PEOPLE.SEX == "1") & (PEOPLE.GROUP == "a")).sum()
    assert found.estimate["1"] == pytest.approx(others + DECLARED, abs=0.1)
    assert found.noise_low["1"] == pytest.approx(others, abs=2.1)
    assert found.noise_high["1"] == pytest.approx(others + 2 * DECLARED, abs=2.1)
    assert found.note["1"].endswith(ASSUMED)
    rates = without(clear).query(["WORK"], by=["SEX"], statistic="rate").set_index(["SEX", "WORK"])
    assert set(rates.loc["1"].status) == {"assumed"}
    work = counted(PEOPLE[(PEOPLE.SEX == "1") & (PEOPLE.GROUP == "a")])
    ends = work["yes"] / (others + 2 * DECLARED), (work["yes"] + 2 * DECLARED) / (others + 2 * DECLARED)
    assert rates.loc["1", "yes"][["noise_low", "noise_high"]].tolist() == pytest.approx(ends, abs=0.03)


def test_without_declared_sizes_measured_ones_bound(clear):
    release = without(clear, "WORK")
    certificate = {key: value for key, value in release.certificate.items() if key != "declared_and_measured"}
    release = dataclasses.replace(release, certificate=certificate)
    assert set(release.query(["WORK"], by=["SEX"]).status[:3]) == {"bounded"}


def test_nothing_is_assumed_of_a_cell_that_would_be_assumed_mostly(clear):
    found = without(clear, "WORK").query(["WORK"], by=["SEX", "GROUP"])
    of = found[(found.SEX == "1") & (found.GROUP == "b")]
    assert set(of.status) == {"not_estimable"}
    assert "bounded" not in set(found.status)


@pytest.mark.parametrize(
    "query",
    [
        {"columns": ["AGE"], "by": ["SEX"], "statistic": "mean"},
        {"columns": ["AGE"], "by": ["SEX"], "statistic": "quantile"},
        {"columns": ["AGE"], "by": ["SEX"], "versus": {"SEX": "2"}},
        {"columns": ["AGE", "WORK"], "by": ["SEX"]},
    ],
)
def test_of_means_quantiles_differences_and_unmeasured_pairs_nothing_is_assumed(query, clear):
    found = without(clear, "AGE").query(**query)
    assert set(found[found.SEX == "1"].status) == {"not_estimable"}


def test_without_any_size_nothing_is_assumed(clear):
    release = without(clear)
    certificate = {key: value for key, value in release.certificate.items() if key != "declared_and_measured"}
    release = dataclasses.replace(release, certificate=certificate)
    assert set(release.query(["WORK"], by=["SEX"]).status) >= {"not_estimable"}


TRUE = np.array([[900.0, 300.0, 800.0], [700.0, 900.0, 400.0], [10.0, 30.0, 5.0], [25.0, 2.0, 20.0]])
"""Rows by stratum (SEX 1 and 2 of GROUP a and b) and level of WORK; those of b have no table of it."""


@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("statistic", ["count", "rate", "share"])
def test_bounds_hold_at_least_as_often_as_they_say(statistic, sized):
    """Strata of b are counted by another table, or by everybody's number less that of all others."""
    rng, held = np.random.default_rng(1), []
    query = Query(["WORK"], by=["SEX"], statistic=statistic)
    whole = TRUE[:2] + TRUE[2:]
    over = {"count": 1.0, "rate": whole.sum(axis=1, keepdims=True), "share": whole.sum()}[statistic]
    for _ in range(40):
        leaves = []
        for i, counts in enumerate(TRUE):
            sizes = Noisy((), np.array(counts.sum() + rng.normal(0, 4.0)), 16.0)
            work = Noisy(("WORK",), counts + rng.normal(0, 4.0, 3), 16.0)
            own = [work] if i < 2 else [sizes] if sized else []
            leaves.append(Leaf(str(i), {"SEX": [i % 2], "GROUP": [i // 2]}, own))
        whole_number = Noisy((), np.array(TRUE.sum() + rng.normal(0, 4.0)), 16.0)
        tables = Tables(small.SCHEMA, frozenset({"SEX", "GROUP"}), tuple(leaves), () if sized else (whole_number,))
        (plain,) = answers(Squares(tables), [query])
        assert np.isnan(plain.estimate).all()
        found = assumed(Squares(tables), query)
        assert found.bounded.all()
        inside = (found.noise_low <= (whole / over).ravel()) & ((whole / over).ravel() <= found.noise_high)
        assert ((found.noise_low <= found.estimate) & (found.estimate <= found.noise_high)).all()
        held += inside.tolist()
    assert np.mean(held) > 0.95
