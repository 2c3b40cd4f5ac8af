"""An interrupted fit goes on where linear algebra rounds otherwise: with other threads, or on another processor.

What a program compares candidates with is worked out from earlier answers in floating point. Another processor gives
other last bits, and the fit is the same.
"""

import contextlib

import numpy as np
import pytest

import stratsynth as ss
from helpers.byhand import frame_of, schema_of
from helpers.fits import OnStep
from helpers.ledgers import kinds, lines_of
from stratsynth import Budget, Stratified, Weights
from stratsynth.accounting.history import read_ledger
from stratsynth.adapters import AIM, GEM, MST, Pooled
from stratsynth.errors import BudgetRefused
from stratsynth.fitting import FitOptions, fitted
from stratsynth.questions import Columns, Design, Distance, Gradients, Independence, Losses

ROWS = 2_000
SHARES = (0.6, 0.4)
SCHEMA = schema_of({"g": 2, "a": 3, "b": 2, "c": 4})
BUDGET = Budget(3, 1e-9, first=0)  # moments are counted from the first question of the mechanism
TINY = GEM(components=16, hidden=[8], latent=4, iterations=5, rounds=3, least=20)


def people():
    rng = np.random.default_rng(0)
    g = np.repeat(range(2), [round(ROWS * share) for share in SHARES])
    a = rng.integers(3, size=ROWS)
    c = np.where(rng.random(ROWS) < 0.8, a, rng.integers(4, size=ROWS))
    return frame_of({"g": g, "a": a, "b": (rng.random(ROWS) < 0.3 + 0.3 * g).astype(int), "c": c})


def weights():
    frame = people().groupby("g").size().div(ROWS).rename("share").reset_index()
    return Weights.public(frame, citation="made up for testing")


FITS = {
    "aim": AIM(),
    "gem": TINY,
    "mst": MST(),
    "stratified mst": Stratified(MST(), ["g"], weights()),
    "pooled aim": Pooled(base=AIM(), by=["g"], weights=weights()),
    "pooled gem": Pooled(base=TINY, by=["g"], weights=weights()),
}


def nudged(monkeypatch):
    """Every reference's last bits, as another kernel rounds them; returns how often."""
    proper, calls = Distance.__init__, []

    def other(self, clique, reference, *more, **settings):
        calls.append(clique)
        moved = np.nextafter(np.asarray(reference, np.float64), np.inf) if np.size(reference) else reference
        proper(self, clique, moved, *more, **settings)

    own = Independence.__init__

    def another(self, cliques, shares, *more, **settings):
        calls.extend(cliques)
        own(self, cliques, tuple(np.nextafter(share, np.inf) for share in shares), *more, **settings)

    monkeypatch.setattr(Distance, "__init__", other)
    monkeypatch.setattr(Independence, "__init__", another)
    return calls


@pytest.fixture
def place(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def table(place):
    return ss.open_table(place / "people.csv", schema=SCHEMA, declared_size=ROWS, ledger=place / "people.ledger")


def stopped(how, place, at, seed=5):
    """Interrupted after the answers of a moment; False where the fit was done before."""
    ticks = []

    def tick():
        ticks.append(None)
        if len(ticks) == at:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt), fitted(how, table(place), BUDGET, FitOptions(seed=seed), OnStep(tick)):
        raise KeyboardInterrupt
    return len(ticks) == at


@pytest.mark.parametrize("name", FITS)
def test_an_interrupted_fit_goes_on_where_numbers_are_rounded_otherwise(name, place, monkeypatch):
    how = FITS[name]
    assert stopped(how, place, 3 if "mst" in name else 8)
    charged = [line for line in lines_of(place / "people.ledger") if line["kind"] == "charge"]
    calls = nudged(monkeypatch)
    release = ss.fit(how, table(place), BUDGET, seed=5)
    assert calls
    after = lines_of(place / "people.ledger")
    assert [line for line in after if line["kind"] == "charge"][: len(charged)] == charged
    moments = [line["moment"] for line in after if line["kind"] == "charge"]
    assert moments == list(range(len(moments)))
    assert release.certificate["ledger"]["spent_epsilon"] <= BUDGET.epsilon * (1 + 1e-9)
    assert read_ledger(place / "people.ledger")["fits"][0]["state"] == "done"


@pytest.mark.parametrize("name", ["aim", "gem"])
def test_it_would_not_go_on_if_questions_were_known_by_every_number(name, place, monkeypatch):
    """So that the tests above test something."""
    from stratsynth.driver import private

    monkeypatch.setattr(private, "journal_key", lambda asked, charges: private.exact_key(asked))
    assert stopped(FITS[name], place, 8)
    nudged(monkeypatch)
    with pytest.raises(BudgetRefused, match="asks something else than before"):
        ss.fit(FITS[name], table(place), BUDGET, seed=5)


def test_a_question_that_was_charged_and_not_answered_is_answered_once(place, monkeypatch):
    """Nobody has seen the first draw: the question of now is answered under the same charge."""
    from stratsynth.accounting.file_account import FileAccount

    with monkeypatch.context() as killed:
        proper = FileAccount.store

        def store(self, moment, asked, answers):
            if moment == 3:
                raise KeyboardInterrupt
            proper(self, moment, asked, answers)

        killed.setattr(FileAccount, "store", store)
        assert stopped(AIM(), place, 99) is False
    before = kinds(place / "people.ledger")
    assert before.count("charge") == 4
    nudged(monkeypatch)
    ss.fit(AIM(), table(place), BUDGET, seed=5)
    moments = [line["moment"] for line in lines_of(place / "people.ledger") if line["kind"] == "charge"]
    assert moments == list(range(len(moments)))


CHANGES = {
    "another candidate": lambda scores: scores[1:] or scores,
    "another order": lambda scores: scores[::-1],
    "another weight": lambda scores: [Distance(s.clique, s.reference, 2 * s.weight, s.offset) for s in scores],
    "another norm": lambda scores: [Distance(s.clique, s.reference, s.weight, s.offset, "largest") for s in scores],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_choice_among_other_candidates_is_not_answered_by_the_old_number(change, place, monkeypatch):
    """The answer in the journal is a number of the list that was asked about."""
    from stratsynth.adapters import mst
    from stratsynth.questions import choose

    assert stopped(MST(), place, 3)
    monkeypatch.setattr(mst, "choose", lambda scores, rho: choose(CHANGES[change](list(scores)), rho=rho))
    with pytest.raises(BudgetRefused, match="asks something else"):
        ss.fit(MST(), table(place), BUDGET, seed=5)


def test_sums_around_another_centre_are_the_same_question():
    """COINPRESS narrows down a centre by earlier answers, and clips by their size."""
    here, there = (
        Columns(("a",), (centre,), (1.0,), clip) for centre, clip in ((1.0, 2.0), (1.0 + 1e-15, 2.0 + 1e-15))
    )
    assert here.replayed() == there.replayed()
    assert here.replayed() != Columns(("a",), (1.0,), (1.0,), 2.1).replayed()
    assert here.replayed() != Columns(("a",), (1.0,), (1.0,), 2.0, "l1").replayed()


@pytest.mark.parametrize("kind", [Gradients, Losses])
def test_gradients_at_rounded_coefficients_are_the_same_question(kind):
    here, there = (
        kind(Design(("a",)), "y", "linear", np.full((2, 3), theta), clip)
        for theta, clip in ((0.3, 2.0), (0.3 + 1e-16, 2.0))
    )
    assert here.replayed() == there.replayed()
    assert kind(Design(("a",)), "y", "linear", np.full((1, 3), 0.3), 2.0).replayed() != here.replayed()
