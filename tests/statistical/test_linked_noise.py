"""Linked tables, by chance: noise of counted tables of persons, and an audit on households of full size."""

import numpy as np
import pytest

from helpers.audits import judged_twice
from stratsynth.accounting.budget import Budget
from stratsynth.adapters import Linked
from stratsynth.driver.lockstep import Asked
from stratsynth.evaluation.audit.audited import AuditedAnswers
from stratsynth.evaluation.audit.linked import (
    HOMES,
    MOST,
    SIZES,
    UNSHARED,
    _shared,
    _unshared,
    _with,
    _world,
    linked_pair,
)
from stratsynth.evaluation.audit.mechanism import audit_linked
from stratsynth.questions import Counts
from stratsynth.testing.privacy_loss import exact_answers

ACCEPT, REJECT = 1e-9, 1e-20
LONG = 1e9
"""Seconds that an audit may take: on a busy machine it makes no fewer runs than it was told."""
SLOTS = {"second": ("second.SEX",), "others": ("others.AGE",), "rest": ("rest.AGE", "rest.SEX")}


def law(sigma):
    def pmf(x):
        w = np.exp(-(x.astype(float) ** 2) / (2 * sigma**2))
        return w / w.sum()

    return pmf


@pytest.mark.parametrize("slot", SLOTS)
def test_the_noise_of_weighted_counts_is_that_of_one_household(slot, chi_square):
    """Sigma is 60 / sqrt(2 rho): 60 is what a household weighs; 0.7 and 1.3 times as much are told from it."""
    rows = _shared(_world(np.random.default_rng(0), 30))
    rho = 0.4
    question = Counts((SLOTS[slot],), rho=rho)
    asked = Asked((), HOMES.counted, question)
    (exact,) = exact_answers(rows, [asked])
    answered = AuditedAnswers(rows).again([asked], 4_000)
    noise = np.concatenate([table.values.ravel() - np.ravel(exact.tables[0]) for ((table,),) in answered]).astype(int)
    sigma = HOMES.counted.row_weight.most / np.sqrt(2 * rho)
    assert chi_square(noise, law(sigma), sigma) > ACCEPT
    for wrong in (0.7 * sigma, 1.3 * sigma):
        assert chi_square(noise, law(wrong), wrong) < REJECT


def test_a_household_of_full_size_weighs_what_one_person_does_and_unshared_rows_do_not():
    rng = np.random.default_rng(1)
    base = _world(rng, 10)
    asked = [Asked((), HOMES.counted, Counts((("others.SEX",),), rho=1.0))]
    moved = {}
    for kind in (_shared, _unshared):
        (before,) = exact_answers(kind(base), asked)
        for size in (3, MOST + 2):
            (after,) = exact_answers(kind(_with(base, rng, size, alike=True)), asked)
            moved[kind, size] = int(np.abs(np.asarray(after.tables[0]) - np.asarray(before.tables[0])).sum())
    assert moved[_shared, 3] == moved[_shared, MOST + 2] == 60
    assert (moved[_unshared, 3], moved[_unshared, MOST + 2]) == (60, 60 * MOST)
    assert SIZES[0] == MOST


BASES = {
    "counts, one after another": (Linked(base="mst", children="chain"), 40, 1_000),
    "choices, independent": (Linked(base={"name": "aim", "rounds": 1}, children="independent"), 10_000, 400),
}


@pytest.mark.parametrize("base", BASES)
def test_an_audit_finds_nothing_and_catches_weights_that_are_not_shared(base):
    how, declared, runs = BASES[base]
    report = judged_twice(lambda: audit_linked(how, runs=runs, seconds=LONG, neighbours=7, declared=declared))
    assert report.passed, report.to_text()
    (found,) = report.audits
    assert found.unit == ("sqrt(2 rho)" if base.startswith("choices") else "mu")
    assert found.verdict == "within"
    controls = {control.name: control for control in found.controls}
    assert controls["noise x 0.5"].state in ("caught", "no power")
    assert controls[UNSHARED].state == "caught"
    assert controls[UNSHARED].lower > 1.5 * found.claim


def test_the_canary_costs_all_that_is_charged():
    """All of the tables' price; of the choices' some per cent less than all, by the tables that noise had chosen."""
    pair, broken = linked_pair(Linked(base="mst", children="chain"), Budget(3, 1e-6), 7)
    spent = sum(float(charge.amount) for charge in pair.run.charges)
    assert 0.9 * spent < float(pair.cost) <= spent * (1 + 1e-9)
    assert float(broken.cost) > 10 * spent
