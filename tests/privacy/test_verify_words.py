"""`verify` and the words of a certificate: unit, claims, disclosures, limits and stamp follow from its own sections."""

import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from helpers.ledgers import forged, lines_of
from helpers.releases import copied, edited, saved
from stratsynth import Stratified, fit, open_table
from stratsynth.adapters import External, Independent
from stratsynth.adapters.means import CoinPress
from stratsynth.schema import Schema, Unit


def zeros(frame, sizes, epsilon, delta, rows):
    """Third-party code that looks at no row, whatever it claims."""
    return pd.DataFrame({name: [0] * rows for name in sizes})


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Folders of releases, each charged to a ledger beside it."""
    place = tmp_path_factory.mktemp("releases")
    small.people().assign(PERSON=range(small.SIZE)).to_csv(place / "people.csv", index=False)
    schema = Schema(small.SCHEMA.columns, unit=Unit(column="PERSON", max_rows=1))
    shares = pd.DataFrame({"SEX": ["1", "2"], "count": [50, 50]})
    kinds = {
        "tables": (Independent(), small.SCHEMA),
        "sums": (CoinPress(columns=("AGE",), scale={"AGE": 5.0}), schema),
        "exact": (Stratified(Independent(), by=["SEX"], weights=ss.Weights.invariant(shares)), small.SCHEMA),
    }
    for name, (how, known) in kinds.items():
        data = place / f"data of {name}" / "people.csv"  # copies in one folder would share an account
        data.parent.mkdir()
        data.write_bytes((place / "people.csv").read_bytes())
        table = open_table(data, schema=known, declared_size=small.SIZE, ledger=place / f"{name}.ledger")
        saved(how, place / name, table)
    saved(External(zeros, "their package 1.0", counts_rows=False), place / "claims")
    open_rows = open_table(small.people(), schema=small.SCHEMA, declared_size=small.SIZE, public=True)
    fit(Independent(), open_rows, small.BUDGET).save(place / "open")
    return place


EDITS = {
    "unit of more rows": ("sums", lambda r: r["unit"].update(max_rows=100), "of at most 100 rows"),
    "unit of households": ("tables", lambda r: r.update(unit={"column": "HOME", "max_rows": 1}), "one HOME"),
    "a record": ("sums", lambda r: r.update(unit="record"), "protected unit is one record"),
    "claim of nobody": ("claims", lambda r: r.update(unverified=[]), "under `unverified` whose claim"),
    "size not listed": ("tables", lambda r: r.update(unprotected=[]), "declared size, and does not list it"),
    "counts not listed": ("exact", lambda r: r.update(unprotected=["declared_size"]), "does not list group_counts"),
    "no limits": ("tables", lambda r: r.update(not_protected=[]), "list of what is not protected"),
    "limits taken out": ("tables", lambda r: r.pop("not_protected"), "list of what is not protected"),
    "fewer limits": ("tables", lambda r: r["not_protected"].pop(), "list of what is not protected"),
    "public data as private": (
        "open",
        lambda r: (r.update(private=True), r.pop("warning")),
        "no account was charged for it",
    ),
    "private with a warning": ("open", lambda r: r.update(private=True), "is private, and warns"),
    "no mechanism": ("tables", lambda r: r["mechanism"].update(name=""), "holds no fit of this mechanism"),
    "part of a name": ("tables", lambda r: r["mechanism"].update(name="pend"), "holds no fit of this mechanism"),
    "another source of the shares": ("exact", lambda r: r["weights"].update(citation="the Bureau"), "it was edited"),
    "another reviewer": ("tables", lambda r: r["schema"].update(reviewed_by="the head of the office"), "it was edited"),
    "another setting": ("tables", lambda r: r["mechanism"]["settings"].update(prior=7), "it was edited"),
    "records of one line": ("tables", lambda r: r.update(record="a household"), "it was edited"),
    "a reason of one's own": (
        "tables",
        lambda r: r["ledger"].update(new_account="the board approved it"),
        "different reasons for an account",
    ),
}


@pytest.mark.parametrize("name", ["tables", "sums", "exact", "claims"])
def test_releases_hold_as_they_are(name, releases):
    ledger = releases / f"{name}.ledger"
    assert ss.verify(releases / name, ledger=ledger if ledger.exists() else None).findings == ()


def test_a_ledger_of_an_older_version_leaves_the_sections_unchecked(releases, tmp_path):
    ledger = tmp_path / "tables.ledger"
    lines = lines_of(releases / "tables.ledger")
    forged(ledger, [{key: value for key, value in line.items() if key != "sections"} for line in lines])
    found = ss.verify(releases / "tables", ledger=ledger)
    assert found.findings == ()
    assert any("older version wrote the ledger's line" in text for text in found.unchecked)


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_what_limits_a_release_is_found(name, releases, tmp_path):
    which, change, expected = EDITS[name]
    folder, ledger = copied(releases / which, tmp_path / "release"), releases / f"{which}.ledger"
    edited(folder, change)
    found = ss.verify(folder, ledger=ledger if ledger.exists() else None).findings
    assert any(expected in finding for finding in found), found
