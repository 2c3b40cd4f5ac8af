"""Strata without a table: the others answer, these are assumed by their declared sizes, and nothing else is."""

import dataclasses

import pytest

from helpers import small
from stratsynth.answers.assumed import NOTE

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
    assert set(men.status) == {"assumed"}
    assert set(found[found.SEX == "2"].status) <= {"ok", "small"}, "no woman is in a stratum without a table"
    others = counted(PEOPLE[(PEOPLE.SEX == "1") & (PEOPLE.GROUP == "a")]).reindex(men.index, fill_value=0)
    shares = others / others.sum()
    assert men.estimate.tolist() == pytest.approx((others + DECLARED * shares).tolist(), abs=0.1)
    assert men.noise_low.tolist() == pytest.approx(others.tolist(), abs=1.1)
    assert men.noise_high.tolist() == pytest.approx((others + 2 * DECLARED).tolist(), abs=1.1)
    truth = counted(PEOPLE[PEOPLE.SEX == "1"]).reindex(men.index, fill_value=0)
    assert ((men.noise_low <= truth) & (truth <= men.noise_high)).all()
    assert all(note.endswith(NOTE) and "1|b, of about 10 in all by declared figures" in note for note in men.note)


def test_a_rate_lies_between_the_quotients_of_all_such_counts(clear):
    found = without(clear, "WORK").query(["WORK"], by=["SEX"], statistic="rate")
    men = found[found.SEX == "1"].set_index("WORK")
    assert set(men.status) == {"assumed"}
    others = counted(PEOPLE[(PEOPLE.SEX == "1") & (PEOPLE.GROUP == "a")]).reindex(men.index, fill_value=0)
    all_, most = others.sum(), 2 * DECLARED
    assert men.estimate.tolist() == pytest.approx((others / all_).tolist(), abs=0.02)
    assert men.noise_low.tolist() == pytest.approx((others / (all_ + most)).tolist(), abs=0.02)
    assert men.noise_high.tolist() == pytest.approx(((others + most) / (all_ + most)).tolist(), abs=0.02)


def test_a_share_is_of_all_rows(clear):
    found = without(clear, "WORK").query(["WORK"], by=["SEX"], statistic="share")
    men = found[found.SEX == "1"].set_index("WORK")
    assert set(men.status) == {"assumed"}
    truth = counted(PEOPLE[PEOPLE.SEX == "1"]).reindex(men.index, fill_value=0) / small.SIZE
    assert ((men.noise_low <= truth) & (truth <= men.noise_high)).all()


def test_people_of_a_group_are_counted_with_strata_that_nobody_counted(clear):
    found = without(clear).query(["SEX"]).set_index("SEX")
    assert found.status.to_dict() == {"1": "assumed", "2": "ok"}
    others = ((PEOPLE.SEX == "1") & (PEOPLE.GROUP == "a")).sum()
    assert found.estimate["1"] == pytest.approx(others + DECLARED, abs=0.1)


def test_nothing_is_assumed_of_a_cell_that_would_be_assumed_mostly(clear):
    found = without(clear, "WORK").query(["WORK"], by=["SEX", "GROUP"])
    of = found[(found.SEX == "1") & (found.GROUP == "b")]
    assert set(of.status) == {"not_estimable"}
    assert "assumed" not in set(found.status)


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
    assert "assumed" not in set(without(clear, "AGE").query(**query).status)


def test_without_declared_sizes_nothing_is_assumed(clear):
    release = without(clear, "WORK")
    certificate = {key: value for key, value in release.certificate.items() if key != "declared_and_measured"}
    release = dataclasses.replace(release, certificate=certificate)
    assert set(release.query(["WORK"], by=["SEX"]).status) >= {"not_estimable"}
