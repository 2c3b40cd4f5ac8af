"""Whole fits of two linked tables in strata: a household is in one of them, and pays for that one alone."""

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
from stratsynth.data.open_linked import open_tables
from stratsynth.driver.lockstep import run
from stratsynth.driver.private import PrivateAnswers
from stratsynth.errors import WeightsError
from stratsynth.mechanisms import prepare
from stratsynth.noise import SeededEntropy
from stratsynth.testing.privacy_loss import exact_answers, privacy_loss
from stratsynth.testing.record import identical

BUDGET, N = ss.Budget(2, 1e-9), 200
BY_KIND = pd.DataFrame({"KIND": ["1", "2", "quarters"], "share": [0.6, 0.15, 0.25]})
BY_AREA = pd.DataFrame([(k, a) for k in "1234" for a in "ns"], columns=["KIND", "AREA"]).assign(share=1 / 8)
QUARTERS = ss.Groups(merge={"KIND": {"quarters": ["3", "4"]}})


def public(frame):
    return ss.Weights.public(frame, citation="made up")


HOWS = {
    "kinds": ss.Stratified(Linked(base="mst", children="chain"), ["KIND"], public(BY_KIND), QUARTERS),
    "aim by kind and area": ss.Stratified(
        Linked(base={"name": "aim", "rounds": 2, "model_cells": 2**14}), ["KIND", "AREA"], public(BY_AREA)
    ),
}


def fitted(how, parents, persons, given=None):
    """Run a fit's program; return (its model, the recorder, the account)."""
    prepared = prepare(how, homes.OF_KINDS.counted, BUDGET, N)
    table = open_tables(parents, persons, schema=homes.OF_KINDS, declared_size=N)
    account = ProcessLedger().open(Request("", "", prepared.budget, per_unit(prepared.allot), 0))
    recorder = homes.Recorder(PrivateAnswers(table.backend.rows, account, SeededEntropy(0), prepared.admit), given)
    steps = how.steps(prepared.public, prepared.allot, np.random.default_rng(0))
    return run(steps, prepared.public.schema, recorder), recorder, account


@pytest.fixture(scope="module", params=HOWS, ids=lambda name: name.replace(" ", "-"))
def done(request):
    world = homes.tables_of_kinds(N)
    return world, HOWS[request.param], fitted(HOWS[request.param], *world)


def cost(recorder, here, there):
    """Return the rho of telling two worlds apart by all answers of a fit."""
    asked = [a for batch in recorder.asked for a in batch]
    replies = [reply for batch in recorder.replies for reply in batch]
    rows = (homes.rows(*world, homes.OF_KINDS) for world in (here, there))
    pairs = zip(asked, *(exact_answers(each, asked) for each in rows), replies, strict=True)
    return sum(privacy_loss(a, one, two, Neighbours.ADD_REMOVE, reply) for a, one, two, reply in pairs)


def unit_of(parents, persons, kind):
    """Return the key of the unit of a kind with the most persons."""
    keys = parents[parents["KIND"] == kind]["SERIALNO"]
    return persons[persons["SERIALNO"].isin(keys)].groupby("SERIALNO").size().reindex(keys, fill_value=0).idxmax()


def test_a_unit_of_any_kind_pays_for_its_own_stratum_alone(done):
    (parents, persons), _, (_, recorder, account) = done
    spent = account.spending.spent()
    assert spent <= account.allot.amount
    for kind in (1, 2, 3, 4):
        key = unit_of(parents, persons, kind)
        left = parents[parents["SERIALNO"] != key], persons[persons["SERIALNO"] != key]
        paid = cost(recorder, (parents, persons), left)
        assert 0 < paid <= spent
        assert kind != 1 or paid > spent / 5


def test_a_unit_that_moves_to_another_stratum_costs_what_the_certificate_says(done):
    """A home becomes vacant, a vacant one quarters, an area another: both strata are touched."""
    (parents, persons), how, (_, recorder, account) = done
    home, vacant = (unit_of(parents, persons, kind) for kind in (1, 2))
    here = parents["SERIALNO"]
    emptied = parents.assign(
        KIND=parents["KIND"].where(here != home, 2), VACS=parents["VACS"].where(here != home, "sale")
    )
    lived = parents.assign(KIND=parents["KIND"].where(here != vacant, 3))
    one = pd.DataFrame({"SERIALNO": [vacant], "SPORDER": [1], "AGEP": [30], "SEX": [1]})
    others = [
        (emptied, persons[persons["SERIALNO"] != home]),
        (lived, pd.concat([persons, one])),
        (parents.assign(AREA=np.where(here == home, "n", parents["AREA"])), persons),
        (parents.assign(AREA=np.where(here == home, "s", parents["AREA"])), persons),
    ]
    costs = [cost(recorder, (parents, persons), other) for other in others]
    assert max(costs) <= account.spending.step("replace")
    assert "AREA" not in how.by or max(costs[2:]) <= account.spending.step("move")
    assert costs[0] > account.spending.spent() / 5


def test_one_unit_exchanged_changes_nothing_but_the_answers(done):
    """With the same answers: questions, charges and model are those of the other world, to the last bit."""
    (parents, persons), how, (model, recorder, account) = done
    home, vacant = (unit_of(parents, persons, kind) for kind in (1, 2))
    other = (
        parents.assign(KIND=parents["KIND"].where(parents["SERIALNO"] != home, 2), VACS="sale"),
        persons[~persons["SERIALNO"].isin([home, vacant])],
    )
    there, again, spent = fitted(how, *other, given=recorder.replies)
    assert [[a.question.replayed() for a in batch] for batch in again.asked] == [
        [a.question.replayed() for a in batch] for batch in recorder.asked
    ]
    assert spent.spending.charges == account.spending.charges
    assert identical(there.state(), model.state())


def test_empty_files_are_asked_and_charged_as_full_ones_are():
    worlds = homes.tables_of_kinds(N), tuple(each[:0] for each in homes.tables_of_kinds(N))
    charges = [
        [(c.path, c.kind, c.amount, c.sensitivity) for c in fitted(HOWS["kinds"], *world)[2].spending.charges]
        for world in worlds
    ]
    assert charges[0] == charges[1]


def test_the_certificate_adds_up_by_strata():
    table = open_tables(*homes.tables_of_kinds(N), schema=homes.OF_KINDS, declared_size=N)
    release = ss.fit(HOWS["kinds"], table, BUDGET)
    recompute.check(release.certificate)
    paths = {tuple(sorted(c["path"][0].items())) for c in release.certificate["charges"]}
    assert paths == {(("KIND", "1"),), (("KIND", "2"),), (("KIND", "3|4"),)}
    assert release.certificate["prices"]["add-remove"] == pytest.approx(2)


@pytest.mark.parametrize("which", [0, 1])
def test_neither_private_file_is_a_table_of_shares(which, tmp_path):
    """By object, by place and by content: both files are compared, before anything is charged."""
    shares = pd.DataFrame({"KIND": ["1", "2", "3", "4"], "share": 0.25})
    parents = shares.assign(SERIALNO=range(4), TEN=1, AREA="n", VACS=["", "sale", "", ""])
    persons = shares.assign(SERIALNO=range(4), SPORDER=1, AGEP=40, SEX=1)
    private = (parents, persons)
    paths = tmp_path / "households.csv", tmp_path / "persons.csv"
    for frame, path in zip(private, paths, strict=True):
        frame.to_csv(path, index=False)
    copy = tmp_path / "copy.csv"
    copy.write_bytes(paths[which].read_bytes())
    for table, given in (
        (open_tables(*private, schema=homes.OF_KINDS, declared_size=4), private[which]),
        (open_tables(*paths, schema=homes.OF_KINDS, declared_size=4), paths[which]),
        (open_tables(*paths, schema=homes.OF_KINDS, declared_size=4), copy),
    ):
        how = ss.Stratified(Linked(base="mst"), ["KIND"], ss.Weights.holdout(given, citation="made up"))
        with pytest.raises(WeightsError, match="private table itself"):
            ss.fit(how, table, BUDGET)
        assert table.ledger.reserved == ()
