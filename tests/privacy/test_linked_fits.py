"""Whole fits of two linked tables: what a household moves, what it costs, and that nothing else of it is let out."""

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers import homes, recompute
from stratsynth.accounting.account import Request
from stratsynth.accounting.budget import Neighbours
from stratsynth.accounting.process import ProcessLedger
from stratsynth.accounting.units import per_unit
from stratsynth.adapters import Linked
from stratsynth.adapters.linked import mechanism
from stratsynth.data.open_linked import open_tables
from stratsynth.driver.lockstep import run
from stratsynth.driver.private import PrivateAnswers
from stratsynth.errors import UsageError
from stratsynth.mechanisms import prepare
from stratsynth.noise import SeededEntropy
from stratsynth.testing.privacy_loss import exact_answers, privacy_loss
from stratsynth.testing.record import identical

BUDGET = ss.Budget(2, 1e-9)
HOWS = {
    "mst chain": Linked(base="mst", children="chain"),
    "aim chain": Linked(base={"name": "aim", "rounds": 4, "model_cells": 2**14}, children="chain"),
    "mst independent": Linked(base="mst", children="independent"),
    "mst with a prior": Linked(base="mst", children="chain", split={"parent": 0.4, "second": 0.4, "others": 0.2}),
}
PRIOR = ss.Prior.linked(*homes.tables(400, seed=7), citation="last year's file")


def fitted(how, parents, persons, given=None, budget=BUDGET):
    """Run a fit's program; return (its model, the recorder, the account)."""
    prepared = prepare(how, homes.SCHEMA.counted, budget, 250, PRIOR if how is HOWS["mst with a prior"] else None)
    table = open_tables(parents, persons, schema=homes.SCHEMA, declared_size=250)
    account = ProcessLedger().open(Request("", "", prepared.budget, per_unit(prepared.allot), 0))
    recorder = homes.Recorder(PrivateAnswers(table.backend.rows, account, SeededEntropy(0), prepared.admit), given)
    steps = how.steps(prepared.public, prepared.allot, np.random.default_rng(0))
    return run(steps, prepared.public.schema, recorder), recorder, account


def without(parents, persons, keys):
    return parents[~parents["SERIALNO"].isin(keys)], persons[~persons["SERIALNO"].isin(keys)]


@pytest.fixture(scope="module", params=HOWS, ids=lambda name: name.replace(" ", "-"))
def done(request):
    parents, persons = homes.tables(250)
    return (parents, persons), HOWS[request.param], fitted(HOWS[request.param], parents, persons)


def cost(recorder, here, there, neighbours):
    """Return the rho of telling two worlds apart by all answers of a fit."""
    asked = [a for batch in recorder.asked for a in batch]
    replies = [reply for batch in recorder.replies for reply in batch]
    pairs = zip(asked, *(exact_answers(homes.rows(*world), asked) for world in (here, there)), replies, strict=True)
    return sum(privacy_loss(a, one, two, neighbours, reply) for a, one, two, reply in pairs)


def test_a_whole_household_moves_no_answer_by_more_than_was_paid(done):
    world, _, (_, recorder, account) = done
    spent = account.spending.spent()
    assert spent <= account.allot.amount
    sizes = world[1].groupby("SERIALNO").size()
    costs = [
        cost(recorder, world, without(*world, [key]), Neighbours.ADD_REMOVE)
        for key in (sizes.idxmax(), sizes.idxmin(), *sizes.index[:3])
    ]
    assert max(costs) <= spent
    assert costs[0] > spent / 4  # of the largest; nine persons cost what one does, and not 81 times that


def test_a_household_exchanged_or_a_person_more_costs_what_the_certificate_says(done):
    (parents, persons), how, (_, recorder, account) = done
    exchanged = account.spending.step("replace")
    sizes = persons.groupby("SERIALNO").size()
    large, small = sizes.idxmax(), sizes.idxmin()
    moved = persons.assign(SERIALNO=persons["SERIALNO"].where(persons["SERIALNO"] != small, -1))
    moved = moved[moved["SERIALNO"] >= 0]
    person = persons[persons["SERIALNO"] == large].index[-1]
    for other in (
        (parents, pd.concat([moved, persons[persons["SERIALNO"] == large].assign(SERIALNO=small)])),
        (parents, persons.drop(index=person)),
        (parents, persons.assign(AGEP=persons["AGEP"].where(persons.index != person, 3))),
    ):
        assert cost(recorder, (parents, persons), other, Neighbours.ADD_REMOVE) <= exchanged
    assert how.adaptive or exchanged < 3 * account.spending.spent()


@pytest.mark.parametrize("how", ["mst independent", "aim chain"])
def test_with_neighbours_that_exchange_a_household_it_is_within_what_was_paid(how):
    """Also for one that counts nothing, and for a person who joins: that is an exchange of their household."""
    parents, persons = homes.tables(250)
    _, recorder, account = fitted(HOWS[how], parents, persons, budget=ss.Budget(2, 1e-9, "replace"))
    spent = account.spending.spent()
    assert spent <= account.allot.amount
    sizes = persons.groupby("SERIALNO").size()
    large, small = sizes.idxmax(), sizes.idxmin()
    mine, others = persons[persons["SERIALNO"] == large], persons[persons["SERIALNO"] != small]
    costs = [
        cost(recorder, (parents, persons), (parents, other), Neighbours.REPLACE)
        for other in (
            pd.concat([others, mine.assign(SERIALNO=small)]),
            others,
            pd.concat([persons, mine[:1].assign(SERIALNO=small, SPORDER=7)]),
        )
    ]
    assert max(costs) <= spent
    assert costs[0] > spent / 8


def test_a_certificate_of_exchanged_households_says_so(tmp_path):
    table = open_tables(*homes.tables(250), schema=homes.SCHEMA, declared_size=250)
    release = ss.fit(HOWS["mst independent"], table, ss.Budget(2, 1e-9, "replace"))
    assert ss.verify(release.save(tmp_path / "release", rows=5)).ok
    assert release.certificate["prices"]["replace"] == pytest.approx(2)
    counts = [charge for charge in release.certificate["charges"] if charge["kind"] == "counts"]
    assert all((c["sensitivity"]["replace"] / 60) ** 2 == pytest.approx(2 * c["cliques"]) for c in counts)
    assert all(c["rho"] == pytest.approx(60**2 * c["cliques"] / c["sigma"] ** 2) for c in counts)


def test_one_household_exchanged_changes_nothing_but_the_answers(done):
    """With the same answers: questions, charges, problems and model are those of the other world, to the last bit."""
    (parents, persons), how, (model, recorder, account) = done
    sizes = persons.groupby("SERIALNO").size()
    one, two = sizes.idxmax(), sizes.idxmin()
    other = pd.concat(
        [persons[persons["SERIALNO"] != two], persons[persons["SERIALNO"] == one].assign(SERIALNO=two)],
        ignore_index=True,
    )
    there, again, spent = fitted(how, parents, other, given=recorder.replies)
    assert len(again.asked) == len(recorder.asked)
    for batch, same in zip(recorder.asked, again.asked, strict=True):
        assert [a.question.replayed() for a in batch] == [a.question.replayed() for a in same]
    assert spent.spending.charges == account.spending.charges
    assert identical(there.state(), model.state())


def test_the_certificate_adds_up_and_says_what_is_protected():
    table = open_tables(*homes.tables(250), schema=homes.SCHEMA, declared_size=250)
    release = ss.fit(HOWS["mst chain"], table, BUDGET)
    recompute.check(release.certificate)
    assert release.certificate["unit"] == {
        "column": "SERIALNO", "max_rows": 1, "tables": ("household", "person"),
    }  # fmt: skip
    assert release.certificate["row_weight"]["max"] == 60
    sensitivities = {c["sensitivity"]["add-remove"] for c in release.certificate["charges"] if c["kind"] == "choose"}
    assert sensitivities == {1}
    prices = release.certificate["prices"]
    assert prices["add-remove"] == pytest.approx(2)
    assert 2 < prices["replace"] < 2 * prices["add-remove"]


def test_empty_files_are_asked_and_charged_as_full_ones_are():
    """Sizes of later steps come from the parent's noisy answers, and the steps themselves from public facts."""
    parents, persons = homes.tables(250)
    charges = [
        [(c.path, c.kind, c.amount, c.sensitivity) for c in fitted(HOWS["mst chain"], *world)[2].spending.charges]
        for world in ((parents, persons), (parents[:0], persons[:0]))
    ]
    assert charges[0] == charges[1]


def files(folder):
    parents, persons = homes.tables(60)
    paths = folder / "households.csv", folder / "persons.csv"
    parents.to_csv(paths[0], index=False)
    persons.to_csv(paths[1], index=False)
    return paths


def test_one_ledger_is_of_both_files(tmp_path):
    paths, ledger = files(tmp_path), tmp_path / "homes.ledger"
    table = open_tables(*paths, schema=homes.SCHEMA, declared_size=60, ledger=ledger)
    ss.fit(HOWS["mst independent"], table, BUDGET, seed=0)
    for path, schema in zip(paths, (homes.HOUSEHOLD, homes.PERSON), strict=True):
        with pytest.raises(UsageError, match="has an account already"):
            ss.open_table(path, schema=schema, declared_size=60)
    with pytest.raises(UsageError, match="has an account already"):
        open_tables(*paths, schema=homes.SCHEMA, declared_size=60)


def test_rows_of_either_file_that_change_are_other_data(tmp_path):
    paths, ledger = files(tmp_path), tmp_path / "homes.ledger"

    def fit():
        table = open_tables(*paths, schema=homes.SCHEMA, declared_size=60, ledger=ledger)
        return ss.fit(HOWS["mst independent"], table, BUDGET, seed=0)

    fit()
    for path in paths:
        before = path.read_bytes()
        path.write_bytes(before + before.splitlines(keepends=True)[-1])
        with pytest.raises(ss.StratsynthError, match="other data"):
            fit()
        path.write_bytes(before)


def test_an_interrupted_fit_goes_on_without_a_second_charge(tmp_path, monkeypatch):
    """It ends after the parents' answers are there; an equal fit is given these again, and asks for the rest."""
    table = open_tables(*files(tmp_path), schema=homes.SCHEMA, declared_size=60, ledger=tmp_path / "homes.ledger")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(mechanism, "_part_with", interrupted)  # asked of the parents' fitted model
    with pytest.raises(KeyboardInterrupt):
        ss.fit(HOWS["mst independent"], table, BUDGET, seed=0)
    monkeypatch.undo()
    release = ss.fit(HOWS["mst independent"], table, BUDGET, seed=0)
    assert release.certificate["ledger"]["releases"] == 1
    assert release.certificate["ledger"]["spent_epsilon"] == pytest.approx(2)
    recompute.check(release.certificate)
