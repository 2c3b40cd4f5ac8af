"""`ledger name` and `ledger correct`: versions of the data share an account without a paid fit or a new budget."""

import pytest

import stratsynth as ss
from helpers import small
from helpers.command import complaint, stratsynth
from helpers.ledgers import forged, lines_of
from stratsynth import Budget, fit, open_table
from stratsynth.accounting.amending import correct_data, name_account
from stratsynth.accounting.history import read_ledger
from stratsynth.adapters import Independent
from stratsynth.errors import BudgetRefused, LedgerError, UsageError

REASON = "line 7 had the age of another person"


@pytest.fixture
def place(tmp_path):
    """A folder with people, whose ledger of at most epsilon 1.2 has one fit."""
    small.people().to_csv(tmp_path / "people.csv", index=False)
    spend(tmp_path)
    return tmp_path


def spend(place, **settings):
    table = open_table(
        place / "people.csv", schema=small.SCHEMA, declared_size=small.SIZE, ledger=place / "people.ledger",
        ledger_epsilon=1.2, **settings,
    )  # fmt: skip
    return fit(Independent(), table, Budget(settings.pop("epsilon", 1), 1e-9))


def correct(place):
    people = small.people()
    people.loc[7, "AGE"] = 2
    people.to_csv(place / "people.csv", index=False)


def test_a_corrected_row_costs_no_fit_and_the_certificate_says_why(place):
    spent = read_ledger(place / "people.ledger")["spent_epsilon"]
    correct(place)
    with pytest.raises(LedgerError, match="ledger correct LEDGER DATA --reason"):
        spend(place)
    done = stratsynth("ledger", "correct", "people.ledger", "people.csv", "--reason", REASON, cwd=place)
    assert done.returncode == 0, done.stderr
    assert read_ledger(place / "people.ledger")["spent_epsilon"] == spent
    with pytest.raises(BudgetRefused, match=r"remaining .* of 1\.2"):
        spend(place)
    table = open_table(
        place / "people.csv", schema=small.SCHEMA, declared_size=small.SIZE, ledger=place / "people.ledger"
    )
    release = fit(Independent(), table, Budget(0.1, 1e-9))
    assert release.statement.ledger.corrections == (REASON,)
    folder = release.save(place / "release", rows=10)
    assert f"the data were corrected: {REASON}" in (folder / "report.html").read_text(encoding="utf-8")
    assert not ss.verify(folder, ledger=place / "people.ledger").findings


def test_another_reason_in_the_certificate_is_found(place):
    correct(place)
    stratsynth("ledger", "correct", "people.ledger", "people.csv", "--reason", REASON, cwd=place)
    table = open_table(
        place / "people.csv", schema=small.SCHEMA, declared_size=small.SIZE, ledger=place / "people.ledger"
    )
    folder = fit(Independent(), table, Budget(0.1, 1e-9)).save(place / "release", rows=10)
    lines = lines_of(place / "people.ledger")
    forged(place / "other.ledger", [line | ({"reason": "no"} if "reason" in line else {}) for line in lines])
    found = ss.verify(folder, ledger=place / "other.ledger").findings
    assert any("different reasons for corrections" in text for text in found)


def test_a_name_is_given_without_a_fit_and_versions_share_the_account_by_it(place):
    before = lines_of(place / "people.ledger")
    for words in ("now the account 'persons 2024'", "already the account 'persons 2024'"):
        done = stratsynth("ledger", "name", "people.ledger", "persons 2024", cwd=place)
        assert words in done.stdout, done.stderr
    added = lines_of(place / "people.ledger")[len(before) :]
    assert [(line["kind"], line["name"]) for line in added] == [("account", "persons 2024")]
    correct(place)
    with pytest.raises(BudgetRefused):
        spend(place, account="persons 2024")


def test_the_same_data_are_no_correction(place):
    before = lines_of(place / "people.ledger")
    done = stratsynth("ledger", "correct", "people.ledger", "people.csv", "--reason", REASON, cwd=place)
    assert "these very data already" in done.stdout
    assert lines_of(place / "people.ledger") == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("name", "nowhere.ledger", "x"), "there is no ledger nowhere.ledger"),
        (("name", "people.ledger", " "), "must be a line of text"),
        (("name", "people.csv", "x"), "ledger"),
        (("correct", "people.ledger", "nowhere.csv", "--reason", "x"), "nowhere.csv"),
        (("correct", "people.ledger", "people.csv", "--reason", "a\nb"), "must be a line of text"),
        (("correct", "people.ledger", "people.csv", "--reason", "x" * 5000), "must be a line of text"),
    ],
)
def test_refused_with_the_reason_and_nothing_is_written(place, words, says):
    before = (place / "people.ledger").read_bytes()
    done = stratsynth("ledger", *words, cwd=place)
    assert says in complaint(done, done.returncode or -1)
    assert (place / "people.ledger").read_bytes() == before


def test_an_empty_ledger_has_no_account_yet(tmp_path):
    (tmp_path / "empty.ledger").touch()
    with pytest.raises(UsageError, match="the first fit begins it"):
        name_account(tmp_path / "empty.ledger", "x")
    with pytest.raises(UsageError, match="the first fit begins it"):
        correct_data(tmp_path / "empty.ledger", lambda key: "data", "x")
