"""Columns and pairs of columns that no noisy table covers are named in plan, certificate, report and warnings."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import small
from stratsynth import Budget, Release, fit, open_table, verify
from stratsynth.adapters import MST, Fixed
from stratsynth.planning import plan
from stratsynth.release.coverage import coverage, coverage_line
from stratsynth.strata import Stratum

BUDGET = Budget(2, 1e-9)
MEN, WOMEN = (Stratum.of({"SEX": "1"}),), (Stratum.of({"SEX": "2"}),)
NAMES = ("SEX", "GROUP", "AGE", "WORK")


@pytest.fixture(scope="module")
def table():
    return open_table(small.people(), schema=small.SCHEMA, declared_size=small.SIZE)


@pytest.fixture(scope="module")
def release(table):
    return fit(Fixed(tables=(("SEX", "GROUP"),)), table, BUDGET, seed=1)


def test_columns_that_no_table_has_are_named_first(release, tmp_path):
    assert release.statement.measured.unmeasured == ("AGE", "WORK")
    assert release.statement.measured.pairs == 1
    [notice] = release.certificate["notices"]
    assert notice["text"].startswith("NOT MEASURED: no noisy table has the columns AGE and WORK.")
    folder = release.save(tmp_path / "release", rows=10)
    assert Release.load(folder).certificate["measured"] == release.certificate["measured"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "NOT MEASURED: no noisy table has the columns AGE and WORK." in page
    assert page.count("No noisy table has AGE and WORK.") == 2, "the chapters on columns and on how it was made"


def test_a_plan_names_them_before_anything_is_spent():
    found = plan(Fixed(tables=(("SEX", "GROUP"),)), small.SCHEMA, BUDGET, declared_size=small.SIZE)
    assert any("AGE and WORK" in text for text in found.warnings)
    assert "2 of 4 columns in no table" in found.strata[0].verdict
    assert "Of 6 pairs of columns 1 will be measured together." in " ".join(str(found).split())
    assert found.to_dict()["measured"] == {"columns": 4, "unmeasured": ["AGE", "WORK"], "pairs": 1}


def test_nothing_is_said_where_every_column_is_measured(table):
    release = fit(MST(), table, BUDGET, seed=1)
    assert release.statement.measured.unmeasured == ()
    assert release.statement.measured.pairs == 3, "the edges of a tree of four columns"
    assert "unmeasured" not in {notice["kind"] for notice in release.certificate.get("notices", ())}


def test_columns_of_groups_need_no_table(table):
    release = fit(small.stratified(), table, BUDGET, seed=1)
    found = release.statement.measured
    assert (found.unmeasured, found.partly) == ((), ())
    assert found.pairs == 5, "all but AGE with WORK: the groups' columns are constant in a group"


def test_a_column_measured_in_one_stratum_alone():
    found = coverage([(MEN, ["AGE"]), (WOMEN, ["WORK"]), (WOMEN, ["AGE", "GROUP"])], NAMES, ["SEX"])
    assert found.unmeasured == ()
    assert found.partly == ("GROUP", "WORK")
    assert (found.pairs, found.pairs_in_some) == (1, 3), "SEX with AGE; then GROUP with AGE and SEX, and WORK with SEX"
    assert "Measured in some groups only: GROUP and WORK." in coverage_line(found.stated())


def test_a_table_of_everybody_covers_strata_that_have_none():
    found = coverage([((), ["AGE", "WORK"]), (MEN, ["GROUP"])], NAMES, ["SEX"], [MEN, WOMEN])
    assert found.partly == ("GROUP",)
    assert found.pairs == 1, "AGE with WORK; how they differ by SEX is in no table"
    assert found.pairs_in_some == 1, "GROUP with SEX, of men"


def test_one_family_of_strata_covers_for_the_others():
    old = (Stratum.of({"AGE": "0-2"}),)
    found = coverage([(MEN, ["WORK"]), (WOMEN, ["WORK"]), (old, ["GROUP"])], NAMES, ["SEX"], [MEN, WOMEN, old])
    assert found.unmeasured == ()
    assert found.partly == ()


def test_sums_have_no_coverage():
    assert coverage([], NAMES) is None
    assert coverage([((), ())], NAMES) is None


@given(st.lists(st.sets(st.sampled_from(NAMES)), min_size=1, max_size=4).filter(any))
def test_pairs_are_those_of_the_tables(tables):
    found = coverage([((), sorted(columns)) for columns in tables], NAMES)
    pairs = {pair for columns in tables for pair in itertools.combinations(sorted(columns), 2)}
    assert found.pairs == len(pairs)
    assert set(found.unmeasured) == set(NAMES) - set().union(*tables)


EDITS = {
    "no column is unmeasured": {"measured": {"columns": 4, "pairs": 1}},
    "more pairs": {"measured": {"columns": 4, "unmeasured": ["AGE", "WORK"], "pairs": 6}},
    "no notice": {"notices": []},
    "no section": {"measured": None},
}


@pytest.mark.parametrize("edit", EDITS)
def test_verify_compares_the_section_with_the_measurements(edit, release, tmp_path):
    folder = release.save(tmp_path / "release", rows=10)
    assert verify(folder).ok
    path = folder / "certificate.json"
    record = {**json.loads(path.read_text(encoding="utf-8")), **EDITS[edit]}
    path.write_text(json.dumps({key: value for key, value in record.items() if value is not None}), encoding="utf-8")
    assert any("columns" in text for text in verify(folder).findings)
