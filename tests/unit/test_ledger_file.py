"""The ledger of a data file, in one process: what is charged, refused, resumed and shown."""

import json
import os
import stat
from dataclasses import dataclass

import pytest
from stratsynth.adapters import Independent

import stratsynth as ss
from helpers import small
from helpers.crash import Ladder, chained, digest, lines_of
from helpers.search import found_below
from stratsynth import Budget, cli
from stratsynth.accounting.ledger import Request
from stratsynth.accounting.ledger_file import FileAccount, FileLedger, read_ledger
from stratsynth.driver.noisy import Answerer
from stratsynth.errors import BudgetRefused, LedgerError, UsageError
from stratsynth.fitting import fitted
from stratsynth.noise import SeededEntropy
from stratsynth.release.summary import summary
from stratsynth.sources import CsvSource

BUDGET = Budget(1, 1e-9)


@dataclass(frozen=True)
class Watched(Ladder):
    """A ladder that keeps the answers it was given, and may stop at one of its rungs."""

    def __post_init__(self):
        object.__setattr__(self, "seen", [])
        object.__setattr__(self, "stop", None)

    def steps(self, public, allot, rng):
        asked = Ladder.steps(self, public, allot, rng)
        question = next(asked)
        while True:
            if self.stop == len(self.seen):
                raise KeyboardInterrupt
            answer = yield question
            self.seen.append(digest(answer))
            try:
                question = asked.send(answer)
            except StopIteration as done:
                return done.value


def ladder(stop=None, rungs=6):
    """The same fit each time, whether it is interrupted or not."""
    made = Watched(rungs)
    object.__setattr__(made, "stop", stop)
    return made


def interrupted(data, stop=3, **settings):
    """Run a ladder into an interrupt; returns what it had seen."""
    made = ladder(stop)
    with pytest.raises(KeyboardInterrupt):
        ss.fit(made, table(data), BUDGET, **settings)
    return made.seen


@pytest.fixture
def data(tmp_path):
    small.people().to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


@pytest.fixture
def ledger(data):
    return data.with_name("people.ledger")


def table(data, cap=None, **settings):
    return ss.open_table(
        data, schema=small.SCHEMA, declared_size=100, ledger=data.with_name("people.ledger"), ledger_epsilon=cap,
        **settings,
    )  # fmt: skip


def kinds(ledger):
    return [line["kind"] for line in lines_of(ledger)]


@pytest.fixture
def reads(monkeypatch):
    """How often the rows were read."""
    reads = []
    proper = CsvSource.read
    monkeypatch.setattr(CsvSource, "read", lambda self, columns: reads.append(self) or proper(self, columns))
    return reads


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
    assert "people.ledger: epsilon 1.77839 of at most 2 over 3 release(s)" in summary(certificate)


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
    assert cli.run(["fit", str(recipe), "-o", str(tmp_path / "second")]) == 3
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


def refused(data, match, kind=LedgerError, mechanism=None):
    """A fit that is refused, and leaves the folder as it was."""
    before = small.tree(data.parent)
    with pytest.raises(kind, match=match):
        ss.fit(mechanism or Independent(), table(data), BUDGET)
    assert small.tree(data.parent) == before


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
        [{"kind": "ledger", "format": "stratsynth-ledger/1", "delta": 1e-9, "data": "", "cap_epsilon": 1},
         {"kind": "reserve", "run": 3}],
    ],
    ids=lambda lines: str(lines)[-50:],
)  # fmt: skip
def test_what_is_soundly_chained_and_no_ledger_is_refused(lines, data, ledger):
    ledger.write_bytes(chained(lines))
    ledger.with_name("people.ledger.key").write_bytes(b"x" * 32)
    with pytest.raises(LedgerError):
        read_ledger(ledger)
    with pytest.raises(LedgerError):
        ss.fit(Independent(), table(data), BUDGET)
    assert lines_of(ledger) == lines


# The order: charge, sync, read, store, answer


def test_every_charge_is_on_the_disk_before_the_rows_are_read_and_every_answer_before_it_is_seen(
    data, ledger, monkeypatch
):
    synced, looks = set(), []
    sync, answer = os.fsync, Answerer.answer

    def on_disk(path):
        return (path.stat().st_ino, path.stat().st_size) in synced

    def note(handle):
        sync(handle)
        synced.add((os.fstat(handle).st_ino, os.fstat(handle).st_size))

    def look(self, asked):
        looks.append(kinds(ledger).count("charge"))
        assert on_disk(ledger), "read before the charge was on the disk"
        return answer(self, asked)

    class Careful(Watched):
        def steps(self, public, allot, rng):
            asked = Ladder.steps(self, public, allot, rng)
            question = next(asked)
            while True:
                given = yield question
                self.seen.append(digest(given))
                stored = sorted(ledger.parent.glob("people.ledger.journal/*/*.npz"))
                assert len(stored) == len(self.seen)
                assert on_disk(stored[-1]), "seen before it was on the disk"
                try:
                    question = asked.send(given)
                except StopIteration as done:
                    return done.value

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(Answerer, "answer", look)
    ss.fit(Careful(), table(data), BUDGET)
    assert looks == [1, 2, 3, 4, 5, 6]
    # And the test would notice.
    monkeypatch.setattr(FileAccount, "charge", lambda *arguments: None)
    with pytest.raises(AssertionError, match="on the disk"), monkeypatch.context() as broken:
        broken.setattr(os, "fsync", lambda handle: None)
        ss.fit(Careful(), table(data), Budget(0.5, 1e-9))


def test_a_charge_that_cannot_be_written_reads_nothing(data, ledger, monkeypatch, reads):
    proper = os.pwrite

    def full(handle, content, offset):
        if b'"charge"' in content:
            raise OSError(28, "No space left on device")
        return proper(handle, content, offset)

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", full)
        with pytest.raises(LedgerError, match="No space left"):
            ss.fit(Independent(), table(data), BUDGET)
    assert reads == []
    assert kinds(ledger) == ["ledger", "reserve"]
    ss.fit(Independent(), table(data), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge", "done"]


def test_rows_that_cannot_be_read_leave_the_charge_standing(data, ledger, monkeypatch):
    def fail(self, columns):
        raise UsageError("cannot be read")

    with monkeypatch.context() as broken:
        broken.setattr(CsvSource, "read", fail)
        with pytest.raises(UsageError):
            ss.fit(Independent(), table(data), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge"]


# Resuming


@pytest.mark.parametrize("stop", range(6))
def test_a_resumed_fit_is_given_the_same_answers_and_charged_no_second_time(stop, data, ledger):
    seen = interrupted(data, stop)
    assert len(seen) == stop
    again = ladder()
    certificate = ss.fit(again, table(data), BUDGET).certificate
    assert again.seen[:stop] == seen
    assert kinds(ledger) == ["ledger", "reserve", *["charge"] * 6, "done"]
    assert len(certificate["charges"]) == 6
    assert certificate["ledger"]["releases"] == 1
    assert not list(ledger.parent.glob("people.ledger.journal/*/*.npz"))


def test_a_resumed_fit_has_the_same_model_as_one_that_was_not_interrupted(data):
    """Randomness of the mechanism's own is that of the first run."""
    with fitted(ladder(), table(data), BUDGET, seed=None) as first, pytest.raises(ZeroDivisionError):
        raise ZeroDivisionError
    with fitted(ladder(), table(data), BUDGET) as first:
        pass
    assert first.model is not None


def test_what_is_asked_anew_is_charged_anew_and_refused_beyond_the_allotment(data, ledger, reads):
    """A mechanism that asks something else when it is resumed finds no answer and no money."""
    interrupted(data, 6)
    reads.clear()

    class Fickle(Watched):
        def steps(self, public, allot, rng):
            return Independent.steps(Independent(), public, allot, rng)

    fickle = Fickle()
    Fickle.__qualname__ = Watched.__qualname__  # the same settings, other steps: as after an update of its package
    with pytest.raises(BudgetRefused, match="before reading"):
        ss.fit(fickle, table(data), BUDGET)
    assert reads == []
    assert kinds(ledger) == ["ledger", "reserve", *["charge"] * 6]


def test_another_budget_seed_or_mechanism_is_another_fit(data, ledger):
    interrupted(data)
    ss.fit(ladder(), table(data), Budget(0.5, 1e-9))
    ss.fit(ladder(), table(data), BUDGET, seed=3)
    ss.fit(ladder(rungs=5), table(data), BUDGET)
    assert kinds(ledger).count("reserve") == 4
    assert [fit["state"] for fit in read_ledger(ledger)["fits"]] == ["open", "done", "done", "done"]


def test_seeded_noise_never_gets_into_a_release_that_says_it_is_private(data):
    seen = interrupted(data, entropy=SeededEntropy(1))
    again = ladder()
    certificate = ss.fit(again, table(data), BUDGET).certificate
    assert certificate["private"] is True
    assert set(again.seen).isdisjoint(seen)


def test_one_process_at_a_time_runs_a_fit(data, ledger):
    with fitted(ladder(), table(data), BUDGET):
        with pytest.raises(LedgerError, match="another process is running this very fit"):
            ss.fit(ladder(), table(data), BUDGET)
        ss.fit(ladder(rungs=2), table(data), BUDGET)  # another fit need not wait
    assert kinds(ledger).count("reserve") == 2
    assert kinds(ledger).count("charge") == 8


@pytest.fixture
def stored(data, ledger):
    """The journal's files after an interrupt at the last rung."""
    interrupted(data, 5)
    return sorted(ledger.parent.glob("people.ledger.journal/*/*.npz"))


def test_every_byte_of_a_journalled_answer_flipped_is_detected_or_harmless(data, ledger, stored):
    """The same answer comes back, or none: never another one, and never a second draw."""
    account = FileLedger(ledger, lambda key: lines_of(ledger)[0]["data"]).open(the_request(ledger))
    paid = [(line["moment"], line["asked"]) for line in lines_of(ledger) if line["kind"] == "charge"]
    expected = account.recall(*paid[2])
    content = stored[2].read_bytes()
    harmless = 0
    for at in range(len(content)):
        stored[2].write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            state = account.recall(*paid[2])
        except LedgerError:
            continue
        harmless += 1
        assert state.facts == expected.facts
        assert all((state.arrays[name] == array).all() for name, array in expected.arrays.items())
    assert harmless < len(content) / 2
    account.close()


def the_request(ledger):
    """The request of the ladder that the ledger was opened for."""
    [line] = [line for line in lines_of(ledger) if line["kind"] == "reserve"]
    return Request(line["identity"], "ladder", BUDGET, BUDGET.zcdp(), None)


@pytest.mark.parametrize("content", [b"", b"PK", b"not an archive"])
def test_a_damaged_journal_is_refused_and_nothing_is_read(content, data, stored, reads):
    stored[2].write_bytes(content)
    reads.clear()
    refused(data, "journal", mechanism=ladder())
    assert reads == []


def test_an_answer_that_was_seen_and_is_gone_is_not_drawn_again(data, ledger, stored, reads):
    """The next question was charged, so the answer had been given: another draw would be a second look."""
    stored[2].unlink()
    reads.clear()
    refused(data, "journal", mechanism=ladder())
    assert reads == []


def test_an_answer_that_fills_the_disk_is_charged_and_drawn_when_there_is_room(data, ledger, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr("stratsynth.storage.os.fsync", full_for(".npz.part"))
        with pytest.raises(LedgerError, match=r"No space left.*The charge stands"):
            ss.fit(ladder(), table(data), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge"]
    ss.fit(ladder(), table(data), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", *["charge"] * 6, "done"]


def full_for(ending):
    """A sync that fails for files of one kind."""
    proper = os.fsync

    def sync(handle):
        if os.readlink(f"/proc/self/fd/{handle}").endswith(ending):
            raise OSError(28, "No space left on device")
        proper(handle)

    return sync


# The release and the ledger's last line


def recipe_on_a_ledger(folder):
    recipe = small.write_recipe(folder)
    small.edit(recipe, "delta = 1e-9\n", 'delta = 1e-9\nledger = "people.ledger"\n')
    return recipe


def test_the_release_is_on_the_disk_before_the_ledger_says_that_the_fit_is_done(tmp_path, monkeypatch):
    """Then the journal goes: a power cut must not leave empty files and a fit that cannot be resumed."""
    recipe = recipe_on_a_ledger(tmp_path)
    synced, missing = set(), []
    sync, finish = os.fsync, FileAccount.finish

    def note(handle):
        sync(handle)
        synced.add(os.fstat(handle).st_ino)

    def check(self):
        release = tmp_path / "release"
        missing.extend(p for p in [tmp_path, release, *release.rglob("*")] if p.stat().st_ino not in synced)
        finish(self)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(FileAccount, "finish", check)
    assert cli.run(["fit", str(recipe)]) == 0
    assert [str(p.relative_to(tmp_path)) for p in missing] == []


def test_a_recipe_that_another_process_finishes_meanwhile_is_not_paid_twice(tmp_path, monkeypatch, capsys):
    """It had found no release when it looked; it must look again before it reserves anything."""
    recipe = recipe_on_a_ledger(tmp_path)
    proper = FileLedger.open

    def late(self, request):
        monkeypatch.setattr(FileLedger, "open", proper)
        assert cli.run(["fit", str(recipe)]) == 0
        return proper(self, request)

    monkeypatch.setattr(FileLedger, "open", late)
    assert cli.run(["fit", str(recipe)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert kinds(tmp_path / "people.ledger").count("reserve") == 1


def test_what_a_killed_process_left_of_a_release_is_in_nobodys_way(tmp_path, monkeypatch):
    """In a container every process has the same number."""
    recipe = recipe_on_a_ledger(tmp_path)
    stale = tmp_path / f".release.{os.getpid()}.part"
    stale.mkdir()
    (stale / "certificate.json").write_text("{", encoding="utf-8")
    assert cli.run(["fit", str(recipe)]) == 0
    ss.Release.load(tmp_path / "release")


# What is in the ledger's files


def test_the_ledger_its_key_and_its_journal_are_for_their_owner_alone(data, ledger):
    old = os.umask(0o022)
    try:
        interrupted(data)
    finally:
        os.umask(old)
    modes = {p: stat.S_IMODE(p.stat().st_mode) for p in ledger.parent.rglob("people.ledger*")}
    modes |= {p: stat.S_IMODE(p.stat().st_mode) for p in ledger.parent.glob("people.ledger.journal/**/*")}
    assert len(modes) >= 8
    wrong = {p.name: oct(mode) for p, mode in modes.items() if mode != (0o700 if p.is_dir() else 0o600)}
    assert wrong == {}


def test_no_file_beside_the_ledger_holds_a_private_value(tmp_path):
    canaries = ["canaryLEVELqx8", "8113685477580712", "canaryTEXTqx7"]
    people = small.people().astype(object)
    people.loc[::3, "WORK"] = canaries[0]
    people.loc[::2, "AGE"] = canaries[1]
    people["extra"] = canaries[2]
    data = tmp_path / "people.csv"
    people.to_csv(data, index=False)
    interrupted(data)
    assert len(list(tmp_path.rglob("*.npz"))) == 3
    data.rename(tmp_path.parent / f"{tmp_path.name}.csv")
    assert found_below(canaries, tmp_path) == []


def test_neither_key_nor_fingerprint_is_published(tmp_path, capsys):
    recipe = recipe_on_a_ledger(tmp_path)
    assert cli.run(["fit", str(recipe)]) == 0
    assert cli.run(["ledger", "show", str(tmp_path / "people.ledger")]) == 0
    key = (tmp_path / "people.ledger.key").read_bytes()
    fingerprint = lines_of(tmp_path / "people.ledger")[0]["data"]
    secrets = [fingerprint.encode(), bytes.fromhex(fingerprint), key, key.hex().encode()]
    published = [p.read_bytes() for p in (tmp_path / "release").rglob("*") if p.is_file()]
    published.append(capsys.readouterr().out.encode())
    assert not [1 for content in published for secret in secrets if secret in content]


def test_two_ledgers_of_the_same_data_know_them_by_different_fingerprints(data, tmp_path):
    """A plain hash would let anybody who guesses a table confirm the guess."""
    for name in ("one", "two"):
        ss.fit(Independent(), ss.open_table(data, schema=small.SCHEMA, ledger=tmp_path / name), BUDGET)
    one, two = (lines_of(tmp_path / name)[0]["data"] for name in ("one", "two"))
    assert one != two
