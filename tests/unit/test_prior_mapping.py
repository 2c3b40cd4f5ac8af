"""A prior's rows in the columns and levels of a schema, and what has no place there."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from helpers.priors import CITATION, SCHEMA, last_year, people
from stratsynth import Categorical, Numeric, Prior, Schema, StratsynthError
from stratsynth.mechanisms.prior_rows import KIN, LENT
from stratsynth.priors import mapping
from stratsynth.schema import Nested, Rule
from stratsynth.strata import Stratum, within

SMALL = Schema({"SEX": Categorical(levels=("1", "2")), "AGE": Numeric(lower=0, upper=90, bins=3)})
FRAME = pd.DataFrame({"sex": ["m", "f", "f", "w"], "AGE": ["1", "31", "61", "62"]})
RULES = {"rename": {"SEX": "sex"}, "recode": {"SEX": {"m": "1", "f": "2", "w": "2"}}}


def test_names_and_levels_are_mapped_by_declared_rules_and_levels_may_be_merged():
    rows = Prior.public(FRAME, citation=CITATION, **RULES).rows(SMALL)
    assert rows.codes["SEX"].tolist() == [0, 1, 1, 1]
    assert rows.codes["AGE"].tolist() == [0, 1, 2, 2]
    assert rows.weights.tolist() == [1.0] * 4
    assert rows.stated["citation"] == CITATION
    assert rows.stated["rows"] == 4


def test_a_code_that_is_counted_in_groups_is_mapped_by_its_code():
    jobs = Nested(levels=("a", "b"), members={"a": ("001", "002"), "b": ("003",)})
    frame = pd.DataFrame({"OCC": ["001", "old"]})
    for column in (jobs, jobs.grouped(0)):
        rows = Prior.public(frame, citation=CITATION, recode={"OCC": {"old": "003"}}).rows(Schema({"OCC": column}))
        assert rows.codes["OCC"].size == 2


REFUSED = {
    "an unknown value is named with its rows": (FRAME, {"rename": {"SEX": "sex"}}, "'f' in 2"),
    "a column that nobody has mentioned": (FRAME[["AGE"]], {}, "no column SEX"),
    "a rule for no column": (FRAME, {**RULES, "without": ["AGEP"]}, "names AGEP, which is no column"),
    "a level that there is not": (FRAME, {**RULES, "recode": {"SEX": {"m": "3"}}}, "the level '3'"),
    "a recode of numbers": (FRAME, {**RULES, "recode": {"AGE": {"1": "2"}}}, "has numbers and no levels"),
    "nothing in common": (FRAME, {"without": ["SEX", "AGE"]}, "no column of the schema"),
    "no rows": (FRAME[:0], RULES, "no row that the schema lets in"),
    "another word for unknown": (FRAME, {"unknown": "keep"}, "unknown"),
    "rules that are none": (FRAME, {"rename": ["SEX"]}, "rename is a table"),
    "a list that is none": (FRAME, {"without": "SEX"}, "list of columns"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_place_is_refused_by_name(case: str):
    frame, rules, words = REFUSED[case]
    with pytest.raises(StratsynthError, match=words):
        Prior.public(frame, citation=CITATION, **rules).rows(SMALL)


@pytest.mark.parametrize("citation", ["", "  ", "TODO", "[Publisher] [Title]", None])
def test_a_citation_has_to_be_filled_in(citation: str):
    with pytest.raises(StratsynthError, match="citation"):
        Prior.public(FRAME, citation=citation)


def test_unknown_values_are_dropped_where_that_is_said_and_counted():
    rows = Prior.public(
        FRAME, citation=CITATION, rename={"SEX": "sex"}, recode={"SEX": {"m": "1", "f": "2"}}, unknown="drop"
    ).rows(SMALL)
    assert rows.n == 3
    assert rows.stated["left_out"] == 1


def test_a_missing_column_has_even_levels_that_do_not_go_with_anything():
    prior = Prior.public(people(600, 3).drop(columns=["B", "D"]), citation=CITATION, without=["B", "D"])
    rows = prior.rows(SCHEMA)
    shares = np.zeros((3, 4, 3))
    np.add.at(shares, (rows.codes["A"], rows.codes["B"], rows.codes["D"]), rows.weights / rows.people)
    assert shares.sum(axis=(0, 2)) == pytest.approx([0.25] * 4, abs=0.01)
    assert shares.sum(axis=(0, 1)) == pytest.approx([1 / 3] * 3, abs=0.01)
    apart = np.einsum("i,j,k->ijk", *(shares.sum(axis=axes) for axes in ((1, 2), (0, 2), (0, 1))))
    assert np.abs(shares - apart).sum() < 0.12  # 2,400 rows in 36 cells; crossed unevenly, it would be 0.5 or more
    assert rows.people == pytest.approx(600)
    assert rows.stated["without"] == ["B", "D"]


def test_a_level_that_no_row_has_gets_half_a_person():
    frame = people(400, 4)
    rows = Prior.public(frame[frame.B != "3"], citation=CITATION).rows(SCHEMA)
    assert rows.weights[rows.codes["B"] == 3].sum() == pytest.approx(mapping.LENT_LEVEL)


def test_rows_that_break_a_structural_rule_are_left_out():
    rule = Rule(when={"A": ("0",)}, never={"C": ("1",)})
    schema = Schema(SCHEMA.columns, rules=(rule,))
    rows = last_year(300).rows(schema)
    assert not ((rows.codes["A"] == 0) & (rows.codes["C"] == 1)).any()


def test_a_prior_whose_rows_mostly_cannot_be_is_refused():
    rule = Rule(when={"C": ("0", "1")}, never={"B": ("0", "1", "2")})
    with pytest.raises(StratsynthError, match="% of its rows break a structural rule"):
        last_year(300).rows(Schema(SCHEMA.columns, rules=(rule,)))


def test_very_many_rows_are_thinned_and_stand_for_all(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mapping, "MOST_ROWS", 100)
    rows = last_year(1_000).rows(SCHEMA)
    assert rows.n == 100
    assert rows.people == pytest.approx(1_000)


def test_a_stratum_has_its_own_rows_and_borrows_the_same_weight_from_all_others():
    rows = last_year(1_000).rows(SCHEMA)
    stratum = Stratum.of({"G": "1"})
    inside = rows.within(stratum, within(SCHEMA, (stratum,)))
    own = int((rows.codes["G"] == 1).sum())
    assert inside.people == pytest.approx(own + LENT)
    assert inside.weights[:own].tolist() == [1.0] * own
    assert inside.lent.tolist() == [False] * own + [True] * (inside.n - own)
    assert "G" not in inside.codes
    assert (rows.codes["A"][inside.parent] == inside.codes["A"]).all()


def test_a_borrowed_row_counts_more_for_each_level_that_it_shares():
    rows = last_year(1_000).rows(SCHEMA)
    stratum = Stratum.of({"B": "2", "G": "1"})
    inside = rows.within(stratum, within(SCHEMA, (stratum,)))
    shared = (rows.codes["B"][inside.parent] == 2).astype(int) + (rows.codes["G"][inside.parent] == 1)
    for few in (0, 1):
        of_few, of_all = (set(inside.weights[inside.lent & (shared == n)].round(9).tolist()) for n in (few, 0))
        assert of_few == {round(KIN**few * w, 9) for w in of_all}


@pytest.mark.parametrize("each", [0.0, 5e-324, 1.0, 1e308])
def test_what_is_borrowed_weighs_the_same_however_little_or_much_each_row_stands_for(each):
    rows = last_year(1_000).rows(SCHEMA)
    rows = dataclasses.replace(rows, weights=np.full(rows.n, each))
    stratum = Stratum.of({"B": "2", "G": "1"})
    inside = rows.within(stratum, within(SCHEMA, (stratum,)))
    assert inside.weights[inside.lent].sum() == pytest.approx(LENT)
    assert inside.weights[inside.lent].max() == pytest.approx(KIN * inside.weights[inside.lent].min())
    assert (inside.weights[~inside.lent] == each).all()
    assert (rows.weights == each).all()


def test_a_group_that_the_prior_does_not_know_borrows_everything():
    frame = people(500, 5)
    rows = Prior.public(frame[frame.G == "0"], citation=CITATION).rows(SCHEMA)
    stratum = Stratum.of({"G": "1"})
    inside = rows.within(stratum, within(SCHEMA, (stratum,)))
    assert inside.people == pytest.approx(LENT + mapping.LENT_LEVEL)
    assert inside.n >= 440


def test_in_a_merge_the_merged_levels_vary():
    rows = last_year(1_000).rows(SCHEMA)
    stratum = Stratum.of({"B": ("1", "3"), "G": "1"})
    inside = rows.within(stratum, within(SCHEMA, (stratum,)))
    assert set(inside.codes["B"].tolist()) == {0, 1}
    own = inside.weights == 1.0
    assert (inside.codes["B"][own] == (rows.codes["B"][inside.parent][own] == 3)).all()


def test_the_digest_follows_rows_and_citation():
    one, two = last_year(seed=1).rows(SCHEMA), last_year(seed=2).rows(SCHEMA)
    other = Prior.public(people(2_000, 1), citation="another year").rows(SCHEMA)
    assert len({one.digest, two.digest, other.digest}) == 3
    assert one.digest == last_year(seed=1).rows(SCHEMA).digest
    assert one.stated["sha256"] == other.stated["sha256"]
