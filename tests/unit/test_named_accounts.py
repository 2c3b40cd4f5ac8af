"""Accounts of people, not of files: versions share a named ledger, and a second ledger is not begun unnoticed."""

import json
import os

import pytest

import stratsynth as ss
from helpers import small
from helpers.fits import requested
from helpers.ledgers import BUDGET, interrupted, kinds, ladder, lines_of, recipe_on_a_ledger
from stratsynth import cli
from stratsynth.accounting.history import coming, read_ledger
from stratsynth.accounting.registry import Registry
from stratsynth.adapters import Independent
from stratsynth.errors import BudgetRefused, LedgerError, UsageError
from stratsynth.release.page.summary import summary


def opened(data, ledger="people.ledger", **settings):
    path = None if ledger is None else data.with_name(ledger)
    return ss.open_table(data, schema=small.SCHEMA, declared_size=small.SIZE, ledger=path, **settings)


def fitted(data, ledger="people.ledger", how=None, **settings):
    return ss.fit(how or Independent(), opened(data, ledger, **settings), BUDGET).certificate


@pytest.fixture
def later(data):
    """Table of these people and one more."""
    path = data.with_name("later.csv")
    small.people(101).to_csv(path, index=False)
    return path


# Versions


def test_versions_share_a_named_account(data, later, ledger):
    first = fitted(data, account="persons 2024", ledger_epsilon=1.5)["ledger"]
    assert (first["account"], first["versions"], first["releases"]) == ("persons 2024", 1, 1)
    second = fitted(later, account="persons 2024")
    assert (second["ledger"]["versions"], second["ledger"]["releases"]) == (2, 2)
    assert second["ledger"]["spent_epsilon"] == pytest.approx(1.437, abs=1e-3)
    assert "account 'persons 2024', shared by 2 versions of the data" in " ".join(summary(second).split())
    with pytest.raises(BudgetRefused):
        fitted(data, account="persons 2024")
    assert read_ledger(ledger)["account"] == "persons 2024"
    assert read_ledger(ledger)["versions"] == 2


def test_other_data_without_the_name_are_refused_with_the_remedy(data, later, ledger):
    fitted(data, account="persons 2024")
    before = ledger.read_bytes()
    with pytest.raises(LedgerError, match=r"belongs to other data; if these are the same people.*'persons 2024'"):
        fitted(later)
    with pytest.raises(UsageError, match="is the account 'persons 2024', not 'firms'"):
        fitted(later, account="firms")
    assert ledger.read_bytes() == before
    fitted(data)  # whose ledger it is


def test_a_ledger_of_one_file_takes_other_data_only_once_it_has_a_name(data, later, ledger):
    fitted(data)
    with pytest.raises(LedgerError, match="share a ledger that has a name"):
        fitted(later, account="persons 2024")
    fitted(data, account="persons 2024")
    assert fitted(later, account="persons 2024")["ledger"]["versions"] == 2
    assert [line["kind"] for line in lines_of(ledger)].count("account") == 1


def test_an_interrupted_fit_goes_on_with_its_own_version_alone(data, later, ledger):
    """Answers of both would be a release of neither."""
    made = ladder(3)
    with pytest.raises(KeyboardInterrupt):
        fitted(data, how=made, account="persons 2024")
    other = fitted(later, how=ladder(), account="persons 2024")["ledger"]
    assert other["releases"] == 2
    again = ladder()
    assert fitted(data, how=again, account="persons 2024")["ledger"]["releases"] == 2
    assert again.seen[:3] == made.seen
    assert kinds(ledger).count("reserve") == 2


def test_fingerprints_are_keyed_and_are_not_shown(data, later, ledger, capsys):
    fitted(data, account="persons 2024")
    fitted(later, account="persons 2024")
    assert cli.run(["ledger", "show", str(ledger), "--json"]) == 0
    shown = capsys.readouterr().out
    prints = [line["data"] for line in lines_of(ledger) if line["kind"] in ("ledger", "version")]
    assert len(set(prints)) == 2
    assert not [1 for each in prints if each[:16] in shown]


@pytest.mark.parametrize("name", ["", "  ", 3, "a\nb", "\x1b[2J"])
def test_names_are_texts_that_can_be_printed(name, data):
    with pytest.raises(UsageError, match="account must be a line of text"):
        opened(data, account=name)


def test_a_name_needs_a_ledger(data):
    with pytest.raises(UsageError, match="needs a ledger"):
        opened(data, None, account="persons 2024")


# The registry


def test_a_second_ledger_is_refused_in_fits_and_plans(data, ledger):
    fitted(data)
    for act in (
        lambda: fitted(data, "other.ledger"),
        lambda: coming(
            opened(data, "other.ledger").ledger, [requested(Independent(), opened(data, "other.ledger"), BUDGET)]
        ),
    ):
        with pytest.raises(UsageError, match=r"people\.csv has an account already, people\.ledger.*new_account"):
            act()
    assert not data.with_name("other.ledger").exists()
    assert fitted(data)["ledger"]["accounts"] == ["people.ledger"]


def test_a_reason_begins_a_second_ledger_and_is_certified(data):
    fitted(data, account="persons 2024")
    second = fitted(data, "other.ledger", new_account="the board approved a second budget")
    assert second["ledger"]["accounts"] == ["persons 2024", "other.ledger"]
    assert second["ledger"]["new_account"] == "the board approved a second budget"
    assert "begun beside another account because: the board approved" in " ".join(summary(second).split())
    assert fitted(data, account="persons 2024")["ledger"]["accounts"] == ["persons 2024", "other.ledger"]
    assert fitted(data, "other.ledger")["ledger"]["new_account"] == "the board approved a second budget"


def test_leaving_the_ledger_out_is_refused_too(data):
    fitted(data)
    with pytest.raises(UsageError, match="has an account already"):
        opened(data, None)
    assert ss.fit(Independent(), opened(data, None, new_account="a rehearsal"), BUDGET)


def test_data_with_an_account_are_not_public(data, ledger):
    opened(data, None, public=True)
    fitted(data)
    with pytest.raises(UsageError, match=r"has an account, people\.ledger, so it is not public"):
        opened(data, None, public=True)
    Registry(data).path.unlink()  # as with what an older version made
    with pytest.raises(UsageError, match="is not public"):
        opened(data, None, public=True)


def test_a_ledger_that_is_there_already_is_listed(data, ledger):
    """One that version 0.2.0 made, and a second one beside it."""
    fitted(data)
    Registry(data).path.unlink()
    fitted(data, "other.ledger")
    assert fitted(data)["ledger"]["accounts"] == ["other.ledger", "people.ledger"]


def test_a_link_to_the_data_has_the_account_of_the_data(data, tmp_path):
    fitted(data)
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "link.csv").symlink_to(data)
    with pytest.raises(UsageError, match="has an account already"):
        fitted(other / "link.csv", "other.ledger")


def test_a_folder_that_cannot_be_written_is_said_in_the_certificate(data, tmp_path, monkeypatch):
    def full(path, mode=0o666):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("stratsynth.accounting.registry.new_file", full)
    certificate = fitted(data)
    assert "folder cannot be written" in certificate["ledger"]["note"]
    assert not Registry(data).path.exists()


@pytest.mark.parametrize("content", [b"{", b"[]\n", b"3\n", b'{"ledger": 3}\n', b"\xff", b"[" * 9000, b"{}\n"])
def test_a_damaged_registry_is_refused(content, data):
    Registry(data).path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"people\.csv\.accounts, the list of these data's ledgers, is damaged"):
        fitted(data)
    assert not data.with_name("people.ledger").exists()


def test_the_registry_holds_names_and_no_path_of_the_machine(data, tmp_path):
    fitted(data, account="persons 2024")
    text = Registry(data).path.read_text(encoding="utf-8")
    assert [json.loads(line) for line in text.splitlines()] == [{"ledger": "people.ledger", "account": "persons 2024"}]
    assert str(tmp_path) not in text
    assert os.sep not in text


def test_a_fit_that_goes_on_needs_no_reason(data):
    interrupted(data)
    assert fitted(data, how=ladder())["ledger"]["releases"] == 1


# The command line


def test_a_recipe_names_its_account_and_the_command_gives_a_reason(tmp_path, capsys):
    recipe = recipe_on_a_ledger(tmp_path)
    small.edit(recipe, 'ledger = "people.ledger"\n', 'ledger = "people.ledger"\naccount = "persons 2024"\n')
    assert cli.run(["plan", str(recipe)]) == 0
    assert cli.run(["fit", str(recipe)]) == 0
    capsys.readouterr()
    small.edit(recipe, 'account = "persons 2024"', "")
    small.edit(recipe, "people.ledger", "other.ledger")
    assert cli.run(["plan", str(recipe)]) == 0
    assert "REFUSED without --new-account: people.csv has an account already" in " ".join(
        capsys.readouterr().out.split()
    )
    assert cli.run(["fit", str(recipe), "-o", str(tmp_path / "second")]) == 2
    assert "has an account already" in capsys.readouterr().err
    assert cli.run(["fit", str(recipe), "-o", str(tmp_path / "second"), "--new-account", "approved"]) == 0
    certificate = ss.Release.load(tmp_path / "second").certificate
    assert certificate["ledger"]["new_account"] == "approved"
    assert certificate["ledger"]["accounts"] == ["persons 2024", "other.ledger"]
