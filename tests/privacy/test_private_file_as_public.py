"""The private table is never its own public source of weights, under whatever name or copy."""

import itertools
import os
import shutil

import pandas as pd
import pyarrow as pa
import pytest

from helpers.small import BUDGET, SCHEMA, people, shares_frame
from stratsynth import Stratified, Weights, fit, open_table
from stratsynth.adapters import MST, Independent
from stratsynth.errors import WeightsError

BY = ["SEX", "GROUP"]


def margin(column, *shares):
    return Weights.public(pd.DataFrame({column: SCHEMA.levels(column), "share": shares}), citation="a yearbook")


def refused(data, weights):
    table = open_table(data, schema=SCHEMA, declared_size=100)
    with pytest.raises(WeightsError, match="is the private table itself"):
        fit(Stratified(Independent(), by=BY, weights=weights), table, BUDGET)
    assert table.ledger.reserved == ()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "people.csv"
    people().to_csv(path, index=False)
    return path


@pytest.mark.parametrize("confidential", [False, True])
def test_the_same_path_is_refused(file, confidential, monkeypatch):
    monkeypatch.chdir(file.parent)
    refused(file, Weights.holdout("people.csv", citation="a survey", confidential=confidential))


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_links_to_the_same_file_are_refused(file, link):
    link(file, file.with_name("survey.csv"))
    refused(file, Weights.holdout(file.with_name("survey.csv"), citation="a survey"))


def test_the_same_frame_and_the_same_arrow_table_are_refused():
    frame = people()
    refused(frame, Weights.holdout(frame, citation="a survey"))
    table = pa.Table.from_pandas(frame.astype(str))
    refused(table, Weights.holdout(table, citation="a survey"))


def test_a_copy_is_refused_before_the_reservation(file, tmp_path):
    shutil.copy(file, tmp_path / "survey.csv")
    refused(file, Weights.holdout(tmp_path / "survey.csv", citation="a survey"))
    frame = people()
    refused(frame, Weights.holdout(frame.copy(), citation="a survey"))


def test_a_copy_leaves_the_account_of_a_ledger_as_it_was(file, tmp_path):
    shutil.copy(file, tmp_path / "survey.csv")
    table = open_table(file, schema=SCHEMA, declared_size=100, ledger=tmp_path / "l.ledger")
    with pytest.raises(WeightsError, match="is the private table itself"):
        fit(
            Stratified(Independent(), by=BY, weights=Weights.holdout(tmp_path / "survey.csv", citation="made up")),
            table,
            BUDGET,
        )
    release = fit(
        Stratified(Independent(), by=BY, weights=Weights.public(shares_frame(), citation="made up")), table, BUDGET
    )
    assert release.certificate["ledger"]["releases"] == 1


def test_what_raked_and_private_weights_are_made_of_is_looked_at(file):
    sample = Weights.holdout(file, citation="a survey")
    refused(file, Weights.raked(margin("SEX", 0.5, 0.5), margin("GROUP", 0.5, 0.5), start=sample))
    refused(file, Weights.raked(sample))
    refused(file, Weights.private(share=0.1, prior=sample))


def test_what_raked_and_private_weights_are_made_of_is_looked_at_by_path(file, monkeypatch):
    """At the door: nothing is read, so that the check of the contents has no say."""
    different = itertools.count()
    monkeypatch.setattr("stratsynth.data.fingerprint.fingerprint", lambda *_: str(next(different)))
    os.link(file, file.with_name("survey.csv"))
    sample = Weights.holdout(file.with_name("survey.csv"), citation="a survey")
    refused(file, sample)
    refused(file, Weights.raked(sample))
    refused(file, Weights.private(share=0.1, prior=sample))


def test_strata_within_strata_are_looked_at(file):
    inner = Stratified(Independent(), by=["GROUP"], weights=Weights.holdout(file, citation="a survey"))
    table = open_table(file, schema=SCHEMA, declared_size=100)
    with pytest.raises(WeightsError, match="is the private table itself"):
        fit(Stratified(inner, by=["SEX"], weights=margin("SEX", 0.5, 0.5)), table, BUDGET)


def test_a_table_of_shares_that_is_the_data_file_is_refused(tmp_path):
    """A data file that happens to have a column `count`."""
    path = tmp_path / "people.csv"
    people().drop_duplicates(BY).assign(count=[30, 20, 40, 10])[[*BY, "count"]].to_csv(path, index=False)
    table = open_table(path, schema=SCHEMA.restrict(BY), declared_size=100)
    how = Stratified(Independent(), by=BY[:1], weights=margin("SEX", 0.5, 0.5))
    assert fit(how, table, BUDGET).certificate["private"]
    how = Stratified(MST(), by=BY, weights=Weights.public(path, citation="a yearbook"))
    with pytest.raises(WeightsError, match="is the private table itself"):
        fit(how, table, BUDGET)


def test_a_copy_of_a_data_file_or_frame_as_a_table_of_shares_is_refused(tmp_path):
    frame = people().drop_duplicates(BY).assign(count=[30, 20, 40, 10])[[*BY, "count"]]
    path, copy = tmp_path / "people.csv", tmp_path / "yearbook.csv"
    frame.to_csv(path, index=False)
    shutil.copy(path, copy)
    schema = SCHEMA.restrict(BY)
    for data, given in ((path, copy), (frame, frame.copy())):
        table = open_table(data, schema=schema, declared_size=100)
        with pytest.raises(WeightsError, match="is the private table itself"):
            fit(Stratified(MST(), by=BY, weights=Weights.public(given, citation="a yearbook")), table, BUDGET)
        assert table.ledger.reserved == ()


def test_a_small_table_that_cannot_be_the_data_costs_no_reading(file, tmp_path, monkeypatch):
    shares_frame().to_csv(tmp_path / "shares.csv", index=False)
    monkeypatch.setattr("stratsynth.data.fingerprint.fingerprint", lambda *_: pytest.fail("read"))
    for given in (tmp_path / "shares.csv", shares_frame()):
        for data in (file, people()):
            table = open_table(data, schema=SCHEMA, declared_size=100)
            how = Stratified(Independent(), by=BY, weights=Weights.public(given, citation="a yearbook"))
            assert fit(how, table, BUDGET).certificate["private"]


def test_where_figures_were_read_from_is_no_part_of_a_fits_identity(tmp_path):
    shares_frame().to_csv(tmp_path / "a.csv", index=False)
    frame, file = (
        Weights.public(x, citation="made up") for x in (shares_frame().astype({"share": str}), tmp_path / "a.csv")
    )
    assert frame.describe() == file.describe()
    assert frame == file


def test_other_people_with_the_same_columns_are_taken(file):
    other = people(60)
    release = fit(
        Stratified(Independent(), by=BY, weights=Weights.holdout(other, citation="a survey")),
        open_table(file, schema=SCHEMA, declared_size=100),
        BUDGET,
    )
    assert release.certificate["weights"]["source"] == "holdout"


def test_public_rows_may_be_weighed_by_themselves():
    frame = people()
    table = open_table(frame, schema=SCHEMA, declared_size=100, public=True)
    how = Stratified(Independent(), by=BY, weights=Weights.holdout(frame, citation="the same public file"))
    assert fit(how, table, BUDGET).certificate["private"] is False
