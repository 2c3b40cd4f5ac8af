import pytest

from helpers.small import SCHEMA
from stratsynth.errors import StratsynthError, UsageError
from stratsynth.strata import Stratum, crossing, label, within


def test_every_combination_exists_in_the_order_of_the_schema():
    assert [s.label for s in crossing(SCHEMA, ["GROUP", "WORK"])] == [
        "a|N", "a|yes", "a|no", "b|N", "b|yes", "b|no",
    ]  # fmt: skip


def test_a_numeric_column_is_crossed_by_its_bins():
    assert [s.items for s in crossing(SCHEMA, ["AGE"])] == [(("AGE", (level,)),) for level in SCHEMA.levels("AGE")]


@pytest.mark.parametrize("by", [[], ["SEX", "SEX"], ["NOBODY"], [["SEX"]], [1]], ids=str)
def test_columns_that_make_no_strata_are_refused(by):
    with pytest.raises(StratsynthError):
        crossing(SCHEMA, by)


def test_a_misspelt_column_is_suggested():
    with pytest.raises(UsageError, match="did you mean 'SEX'"):
        crossing(SCHEMA, ["SEXX"])


def test_what_a_path_holds_constant_is_gone_from_its_schema():
    path = (Stratum.of({"SEX": "1"}), Stratum.of({"GROUP": "a"}))
    assert within(SCHEMA, path).names == ("AGE", "WORK")
    assert within(SCHEMA, ()).names == SCHEMA.names


def test_labels_join_levels():
    assert label(()) == ""
    assert label((Stratum.of({"SEX": "1", "GROUP": "a"}), Stratum.of({"WORK": "no"}))) == "1|a|no"


def test_the_order_of_columns_belongs_to_a_stratum():
    stratum = Stratum.of({"GROUP": "a", "SEX": "1"})
    assert stratum.columns == ("GROUP", "SEX")
    assert stratum.to_dict() == {"GROUP": "a", "SEX": "1"}
