"""Other years of the built-in census: other people, the same groups, a drift that grows."""

import numpy as np
import pytest

from stratsynth import census
from stratsynth.census.model import tables
from stratsynth.census.population import _AGE, _DRAWN
from stratsynth.census.years import STILL, YEAR
from stratsynth.errors import UsageError
from stratsynth.evaluation.scores.marginals import coded
from stratsynth.models.rules import broken

ROWS = 60_000


def shares(frame):
    schema = census.schema()
    codes = coded(frame, schema)
    return {n: np.bincount(codes[n], minlength=schema.size(n)) / len(frame) for n in schema.names}


@pytest.fixture(scope="module")
def years():
    return {year: shares(census.make(ROWS, year=year)) for year in (YEAR, 2018, 2009)}


def test_the_year_of_the_tables_is_the_default():
    assert census.make(50, year=YEAR).equals(census.make(50))


def test_groups_keep_their_shares_and_other_columns_drift_with_the_years(years):
    near, far = ({n: 0.5 * np.abs(years[y][n] - years[YEAR][n]).sum() for n in years[YEAR]} for y in (2018, 2009))
    for name in ("AREA", "SEX", "RAC1P", "HISP", "AGEP"):
        assert far[name] < 0.012, name  # two samples of 60,000 people
    drifting = [name for name in near if name not in ("AREA", "SEX", "RAC1P", "HISP", "AGEP")]
    assert 0.002 < np.mean([near[n] for n in drifting]) < 0.03
    assert np.mean([far[n] for n in drifting]) > 3 * np.mean([near[n] for n in drifting])


def test_the_variables_that_never_drift_are_those_that_shares_rest_on():
    assert {*_DRAWN, *_AGE} <= STILL <= set(tables())


def test_structural_zeros_hold_in_every_year():
    schema = census.schema()
    assert not broken(schema, dict(coded(census.make(20_000, year=2029), schema))).any()


def test_other_years_are_other_people():
    one, two = (census.make(2_000, year=year) for year in (2018, 2019))
    assert (one.AGEP.to_numpy() == two.AGEP.to_numpy()).mean() < 0.05


@pytest.mark.parametrize("year", [2008, 2030, "2019", 2019.0, True, None])
def test_a_year_that_there_is_not_is_refused(year):
    with pytest.raises(UsageError, match="year is a whole number from 2009 to 2029"):
        census.make(5, year=year)
