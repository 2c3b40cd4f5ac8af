"""The ledger of a data file: what is charged, what it adds up to, and what is refused with nothing charged."""

import json

import pytest

import stratsynth as ss
from helpers import small
from helpers.fits import requested
from helpers.ledgers import BUDGET, chained, forged, interrupted, kinds, ladder, lines_of, refused, table
from stratsynth import Budget, cli
from stratsynth.accounting.history import coming, read_ledger
from stratsynth.adapters import Independent
from stratsynth.errors import BudgetRefused, LedgerError, UsageError
from stratsynth.release.page.summary import summary

# What is charged, and what it adds up to


def test_releases_show_the_cap_and_the_running_total(data):
    totals = []
    for _ in range(3):
        certificate = ss.fit(Independent(), table(data, cap=2), BUDGET).certificate
        assert certificate["ledger"]["name"] == "people.ledger"
        assert certificate["ledger"]["cap_epsilon"] == 2
        totals.append(certificate["ledger"]["spent_epsilon"])
    assert totals == pytest.approx([1, 1.437142, 1.778393], abs=1e-6)  # goldens.json
    assert certificate["ledger"]["releases"] == 3
    assert "people.ledger: epsilon 1.77839 of at most 2 at delta 1e-09 over 3 releases" in summary(certificate)


def test_the_ledger_shows_what_was_spent_by_which_fits_and_what_is_left(data, ledger):
    ss.fit(Independent(), table(data, cap=2), BUDGET)
    interrupted(data)
    found = read_ledger(ledger)
    assert (found["cap_epsilon"], found["delta"]) == (2, 1e-9)
    assert found["spent_epsilon"] == pytest.approx(1.437142, abs=1e-6)
    assert found["left_epsilon"] == pytest.approx(0.562858, abs=1e-6)
    shown = [(fit["mechanism"], fit["state"], fit["questions"]) for fit in found["fits"]]
    assert shown == [("independent", "done", 1), ("ladder", "open", 3)]


def test_a_fit_done_and_run_again_is_a_new_fit_with_new_noise(data, ledger):
    one, other = (ss.fit(Independent(), table(data), BUDGET) for _ in range(2))
    assert not one.measurements.equals(other.measurements)
    assert kinds(ledger) == ["ledger", *["reserve", "charge", "done"] * 2]


def test_a_fit_that_the_cap_refuses_says_what_is_short_and_never_reads_the_rows(data, ledger, reads):
    ss.fit(Independent(), table(data, cap=1.2), BUDGET)
    before = ledger.read_bytes()
    reads.clear()
    with pytest.raises(BudgetRefused, match=r"asked epsilon 1, remaining 0\.2 of 1\.2.* 0\.237142 too much"):
        ss.fit(Independent(), table(data, cap=1.2), BUDGET)
    assert reads == []
    assert ledger.read_bytes() == before
    assert ss.fit(Independent(), table(data), Budget(0.1, 1e-9)).certificate["ledger"]["releases"] == 2


def test_a_cap_holds_for_fits_that_do_not_name_it(data):
    ss.fit(Independent(), table(data, cap=1.2), BUDGET)
    with pytest.raises(BudgetRefused):
        ss.fit(Independent(), table(data), BUDGET)


def test_on_the_command_line_a_refusal_by_the_cap_is_exit_code_3(tmp_path, capsys, reads):
    recipe = small.write_recipe(tmp_path)
    small.edit(recipe, "delta = 1e-9\n", 'delta = 1e-9\nledger = "people.ledger"\nledger_epsilon = 1.2\n')
    assert cli.run(["fit", str(recipe), "-o", str(tmp_path / "first")]) == 0
    reads.clear()
    assert cli.run(["fit", str(recipe), "-o", str(tmp_path / "second"), "--again"]) == 3
    assert "asked epsilon 1, remaining 0.2 of 1.2" in capsys.readouterr().err
    assert reads == []
    assert not (tmp_path / "second").exists()
    assert cli.run(["ledger", "show", str(tmp_path / "people.ledger")]) == 0
    shown = capsys.readouterr().out
    assert "epsilon 1 spent at delta 1e-09, 0.2 left of 1.2" in shown
    assert "done" in shown
    assert cli.run(["ledger", "show", str(tmp_path / "people.ledger"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == read_ledger(tmp_path / "people.ledger")


def test_data_declared_public_are_not_charged_and_everything_is_stamped(tmp_path, capsys):
    recipe = small.write_recipe(tmp_path)
    small.edit(recipe, "declared_size = 100", "declared_size = 100\npublic = true")
    for name in ("one", "two"):
        assert cli.run(["fit", str(recipe), "-o", str(tmp_path / name)]) == 0
        assert "NOT A PRIVATE RELEASE" in capsys.readouterr().out.splitlines()[2]
        certificate = ss.Release.load(tmp_path / name).certificate
        assert certificate["private"] is False
        assert "NOT A PRIVATE RELEASE" in certificate["warning"]
        assert (certificate["ledger"]["spent_epsilon"], certificate["ledger"]["releases"]) == (0, 0)
        assert "NOT A PRIVATE RELEASE" in summary(certificate).splitlines()[0]
    assert not list(tmp_path.glob("people.ledger*"))


def test_public_data_with_a_ledger_are_refused(data, ledger):
    with pytest.raises(UsageError, match="public"):
        table(data, public=True)
    assert not ledger.exists()


# What is refused with nothing charged


@pytest.mark.parametrize("change", [lambda b: b + b"1,a,3,yes\n", lambda b: b[:-1], lambda b: b.replace(b"1", b"2", 1)])
@pytest.mark.parametrize("was", ["done", "open"])
def test_a_changed_data_file_is_refused(was, change, data):
    if was == "done":
        ss.fit(ladder(), table(data), BUDGET)
    else:
        interrupted(data)
    data.write_bytes(change(data.read_bytes()))
    refused(data, "other data", mechanism=ladder())


def test_the_ledger_of_other_data_is_refused(data, ledger, tmp_path):
    ss.fit(Independent(), table(data), BUDGET)
    other = tmp_path / "others.csv"
    small.people(50).to_csv(other, index=False)
    before = ledger.read_bytes()
    with pytest.raises(LedgerError, match="other data"):
        ss.fit(Independent(), ss.open_table(other, schema=small.SCHEMA, ledger=ledger), BUDGET)
    assert ledger.read_bytes() == before


def test_data_may_be_renamed(data, ledger):
    """A ledger knows its data by what they are."""
    ss.fit(Independent(), table(data), BUDGET)
    moved = data.rename(data.with_name("moved.csv"))
    assert ss.fit(Independent(), table(moved), BUDGET).certificate["ledger"]["releases"] == 2


@pytest.mark.parametrize("key", [None, b"", b"short", b"x" * 33])
def test_a_key_that_is_missing_or_damaged_is_refused(key, data, ledger):
    ss.fit(Independent(), table(data), BUDGET)
    file = ledger.with_name("people.ledger.key")
    file.unlink()
    if key is not None:
        file.write_bytes(key)
    refused(data, "copy")


def test_another_key_is_refused(data, ledger):
    ss.fit(Independent(), table(data), BUDGET)
    ledger.with_name("people.ledger.key").write_bytes(b"x" * 32)
    refused(data, "other data")


@pytest.mark.parametrize("torn", [0, 5, 31])
def test_a_key_that_was_never_completed_is_made_anew(torn, data, ledger):
    """A full disk or a kill may leave such a key; no ledger was made with it."""
    ledger.with_name("people.ledger.key").write_bytes(b"x" * torn)
    ss.fit(Independent(), table(data), BUDGET)
    assert ledger.with_name("people.ledger.key").stat().st_size == 32


def test_a_ledger_in_a_folder_that_does_not_exist_is_refused(data):
    with pytest.raises(LedgerError, match="No such file"):
        ss.fit(Independent(), ss.open_table(data, schema=small.SCHEMA, ledger=data.parent / "no" / "ledger"), BUDGET)


def test_a_ledger_that_cannot_be_opened_is_refused(data, ledger):
    ledger.mkdir()
    refused(data, "cannot be opened")


def test_a_cap_is_set_once(data):
    ss.fit(Independent(), table(data, cap=2), BUDGET)
    before = small.tree(data.parent)
    for cap in (1.5, 3):
        with pytest.raises(UsageError, match="set once"):
            ss.fit(Independent(), table(data, cap=cap), BUDGET)
    assert small.tree(data.parent) == before


@pytest.mark.parametrize("content", [b"", chained([])])
def test_a_ledger_that_was_emptied_is_refused(content, data, ledger):
    """It would be a refund of everything."""
    ss.fit(Independent(), table(data), BUDGET)
    ledger.write_bytes(content)
    refused(data, "emptied")


def test_a_ledger_that_was_removed_is_not_begun_anew_beside_its_journal(data, ledger):
    ss.fit(Independent(), table(data), BUDGET)
    ledger.unlink()
    with pytest.raises(LedgerError, match="emptied"):
        ss.fit(Independent(), table(data), BUDGET)


@pytest.mark.parametrize(
    "lines",
    [
        [None],
        [3],
        [[]],
        [{}],
        [{"kind": "ledger", "format": "stratsynth-ledger/2"}],
        [{"kind": "ledger", "format": "stratsynth-ledger/1"}],
        [{"kind": "ledger", "format": "stratsynth-ledger/1", "delta": "1", "data": "", "cap_epsilon": []}],
        [{"kind": "ledger", "format": "stratsynth-ledger/1", "delta": 1e-9, "data": "", "cap_epsilon": 1}, 7],
        [{"kind": "ledger", "format": "stratsynth-ledger/1", "delta": 1e-9, "data": "", "cap_epsilon": 1}, {}],
        [
            {"kind": "ledger", "format": "stratsynth-ledger/1", "delta": 1e-9, "data": "", "cap_epsilon": 1},
            {"kind": "reserve", "run": 3},
        ],
    ],
    ids=lambda lines: str(lines)[-50:],
)
def test_what_is_soundly_chained_and_no_ledger_is_refused(lines, data, ledger):
    forged(ledger, lines)
    ledger.with_name("people.ledger.key").write_bytes(b"x" * 32)
    with pytest.raises(LedgerError):
        read_ledger(ledger)
    with pytest.raises(LedgerError):
        ss.fit(Independent(), table(data), BUDGET)
    assert lines_of(ledger) == lines


def test_guarantees_for_different_neighbours_are_not_added_up(tmp_path):
    from stratsynth.accounting.account import Request
    from stratsynth.accounting.budget import Budget
    from stratsynth.accounting.ledger_file import FileLedger
    from stratsynth.accounting.process import ProcessLedger

    added, replaced = (Budget(1, 1e-9, neighbours) for neighbours in ("add-remove", "replace"))
    for ledger in (FileLedger(tmp_path / "a.ledger", lambda key: "data", 30.0), ProcessLedger()):
        ledger.open(Request("a" * 64, "test", added, added.zcdp(), 0)).close()
        with pytest.raises(UsageError, match="added"):
            ledger.open(Request("b" * 64, "test", replaced, replaced.zcdp(), 0))
        ledger.open(Request("c" * 64, "test", added, added.zcdp(), 0)).close()  # and the ledger is sound


# Versions


def by_another(ledger, version):
    """Let the ledger's reservations be another version's, which had other identities for the same fits."""
    lines = lines_of(ledger)
    for line in lines:
        if "identity" in line:
            line["identity"] = line["identity"][::-1]
        if "run" in line:
            line["run"] = f"other-{line['run']}"
        if line["kind"] == "reserve":
            line.pop("version", None)
            if version is not None:
                line["version"] = version
    forged(ledger, lines)
    for folder in sorted(ledger.parent.glob("people.ledger.journal/*"), reverse=True):
        folder.rename(folder.with_name(f"other-{folder.name}"))


def test_a_reservation_says_which_version_made_it(data, ledger):
    ss.fit(Independent(), table(data), BUDGET)
    assert [line["version"] for line in lines_of(ledger) if line["kind"] == "reserve"] == [ss.__version__]


@pytest.mark.parametrize(("version", "named"), [(None, "0.1.0 or before"), ("0.0.9", "0.0.9")])
@pytest.mark.parametrize("seed", [None, 5])
def test_a_fit_that_another_version_began_is_not_charged_twice(version, named, seed, data, ledger, reads):
    interrupted(data, seed=seed)
    by_another(ledger, version)
    before, state = len(reads), small.tree(data.parent)
    with pytest.raises(LedgerError, match=f"unfinished fit of ladder .* begun by stratsynth {named};.* another seed"):
        ss.fit(ladder(), table(data), BUDGET, seed=seed)
    assert len(reads) == before
    assert small.tree(data.parent) == state
    ss.fit(ladder(), table(data), BUDGET, seed=6)  # the remedy, charged
    assert kinds(ledger).count("reserve") == 2


def test_a_fit_that_another_version_finished_or_that_is_another_is_in_nobodys_way(data, ledger):
    ss.fit(ladder(), table(data), BUDGET)
    by_another(ledger, None)
    lines = lines_of(ledger)
    ss.fit(ladder(), table(data), BUDGET)
    assert len(lines_of(ledger)) > len(lines)
    interrupted(data)
    by_another(ledger, "0.0.9")
    ss.fit(Independent(), table(data), BUDGET)
    ss.fit(ladder(), table(data), Budget(2, 1e-9))


def test_a_fit_of_this_version_with_other_settings_is_a_new_one(data, ledger):
    interrupted(data)
    ss.fit(ladder(rungs=3), table(data), BUDGET)
    assert kinds(ledger).count("reserve") == 2


def test_what_a_grid_would_be_refused_is_foreseen(data, ledger):
    interrupted(data, seed=5)
    by_another(ledger, "0.0.9")
    opened = table(data)
    request = requested(ladder(), opened, BUDGET, seed=5)
    with pytest.raises(LedgerError, match=r"0\.0\.9"):
        coming(opened.ledger, [request])


def test_a_ledger_of_an_unknown_format_says_who_wrote_it(data, ledger):
    ss.fit(Independent(), table(data), BUDGET)
    lines = lines_of(ledger)
    lines[0]["format"], lines[1]["version"] = "stratsynth-ledger/2", "7.0"
    forged(ledger, lines)
    refused(data, r"not a ledger of format stratsynth-ledger/1, but was written by stratsynth 7\.0\.")
