import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.small import SCHEMA
from stratsynth.errors import StratsynthError, UsageError
from stratsynth.models.rules import broken
from stratsynth.schema import Rule, Schema
from stratsynth.strata import Stratum, crossing, disjoint, label, within


def test_every_combination_exists_in_the_order_of_the_schema():
    assert [s.label for s in crossing(SCHEMA, ["GROUP", "WORK"])] == [
        "a|N",
        "a|yes",
        "a|no",
        "b|N",
        "b|yes",
        "b|no",
    ]


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


# Strata that are merges of levels

RULED = Schema(
    dict(SCHEMA.columns),
    rules=(Rule(when={"AGE": "< 6"}, never={"WORK": ("yes", "no")}), Rule(when={"SEX": "1"}, never={"GROUP": "b"})),
)
MERGE = Stratum.of({"SEX": "1", "AGE": ("0-2", "6-9")}, ("1", "ends"))


def test_a_merge_is_called_by_its_name_and_written_by_its_levels():
    assert MERGE.label == "1|ends"
    assert MERGE.to_dict() == {"SEX": "1", "AGE": "0-2|6-9"}
    assert Stratum.from_dict(MERGE.to_dict()) == MERGE
    assert Stratum.of({"AGE": ("0-2", "6-9")}).label == "0-2+6-9"


def test_a_merged_column_varies_inside_among_its_levels():
    inner = within(SCHEMA, (MERGE,))
    assert inner.names == ("GROUP", "AGE", "WORK")
    assert inner.levels("AGE") == ("0-2", "6-9")
    assert within(SCHEMA, (MERGE, Stratum.of({"AGE": "6-9"}))).names == ("GROUP", "WORK")


@given(st.data())
def test_rules_inside_a_stratum_forbid_what_they_forbid_outside(data):
    """Cell by cell: a cell of the stratum breaks a rule inside exactly if it does in the whole."""
    levels = {}
    for column in data.draw(st.sets(st.sampled_from(SCHEMA.names), min_size=1, max_size=3)):
        chosen = data.draw(st.sets(st.sampled_from(SCHEMA.levels(column)), min_size=1))
        levels[column] = tuple(level for level in SCHEMA.levels(column) if level in chosen)
    stratum = Stratum.of(levels)
    inner = within(RULED, (stratum,))
    if len(inner.names) < 2:  # nothing is left for a rule to speak of
        return
    wide = [[RULED.index(c, level) for level in levels.get(c, RULED.levels(c))] for c in RULED.names]
    cells = np.array(list(itertools.product(*wide)))
    outside = broken(RULED, dict(zip(RULED.names, cells.T, strict=True)))
    if outside.all():  # a stratum that cannot occur at all is kept all the same, and is not for rules to empty
        return
    inside = {c: np.searchsorted(wide[i], cells[:, i]) for i, c in enumerate(RULED.names) if c in inner.names}
    np.testing.assert_array_equal(broken(inner, inside), outside)


def test_merges_stand_where_their_first_level_would():
    groups = {"WORK": {"known": ("yes", "no")}}
    assert [s.label for s in crossing(SCHEMA, ["GROUP", "WORK"], groups)] == ["a|N", "a|known", "b|N", "b|known"]


def test_disjoint_strata_have_no_cell_in_common():
    a, b, both = (Stratum.of({"SEX": "1", "GROUP": g}) for g in ("a", "b", ("a", "b")))
    assert disjoint([a, b])
    assert not disjoint([a, both])
    assert not disjoint([a, a])
