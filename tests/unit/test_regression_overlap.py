"""Groups that overlap: a record is asked in one of each family, and pays for all of them."""

import numpy as np
import pytest

from helpers.regressing import SCHEMA, exactly, people
from stratsynth import Budget, Categorical, Schema, fit, open_table
from stratsynth.accounting.budget import Neighbours
from stratsynth.accounting.charges import Spending
from stratsynth.adapters import GroupRegression
from stratsynth.errors import UsageError
from stratsynth.mechanisms import prepare
from stratsynth.release.page.words import strata

FAMILIES = [["G"], ["C"]]
LABELS = ["G=a", "G=b", "C=p", "C=q", "C=r"]


def regression(**settings):
    return GroupRegression(**{"target": "Y", "features": ["X"], "groups": FAMILIES, "iterations": 3, **settings})


@pytest.mark.parametrize("accounting", ["combined", "parallel", "paper"])
@pytest.mark.parametrize("mode", ["DPNoSE", "DPSE"])
def test_what_the_families_cost_adds_up_to_the_budget(accounting, mode):
    if mode == "DPSE" and accounting == "combined":
        return
    budget = Budget(1, 1e-9)
    _, asked = exactly(regression(accounting=accounting, mode=mode), people(200), budget=budget)
    charges = [charge for _, each in asked for charge in each]
    spent = float(Spending(Neighbours.ADD_REMOVE, charges).spent())
    assert spent <= budget.zcdp().amount
    if mode == "DPNoSE" and accounting != "paper":
        assert spent == pytest.approx(budget.zcdp().amount, rel=1e-6)
    if accounting != "combined":
        split = [c for c in charges if c.path]
        by_family = [[c for c in split if c.path[0].columns == tuple(f)] for f in FAMILIES]
        alone = [float(Spending(Neighbours.ADD_REMOVE, cs).spent()) for cs in by_family]
        assert float(Spending(Neighbours.ADD_REMOVE, split).spent()) == pytest.approx(sum(alone))


def test_all_ways_of_asking_descend_alike():
    frame = people(400, slopes=(0.5, 0.2))
    found = [
        exactly(regression(accounting=a, objective="balanced", most_weight=1e6), frame)[0].theta
        for a in ("combined", "parallel", "paper")
    ]
    assert np.allclose(found[0], found[1], atol=1e-3)
    assert np.allclose(found[0], found[2], atol=1e-3)


def test_groups_are_named_after_their_columns():
    model, _ = exactly(regression(loss_bounds={"C=q": 0.5}), people(100))
    assert [group["group"] for group in model.facts["groups"]] == LABELS
    with pytest.raises(UsageError, match="not a group"):
        exactly(regression(loss_bounds={"q": 0.5}), people(100))
    sizes = dict.fromkeys(LABELS, 10)
    exactly(regression(sizes=sizes, sizes_citation="made up"), people(100))
    with pytest.raises(UsageError, match="lacks C=r"):
        exactly(regression(sizes=dict.fromkeys(LABELS[:-1], 1), sizes_citation="made up"), people(100))


def test_certificate_and_report_say_that_they_add_up():
    table = open_table(people(200), schema=SCHEMA, declared_size=200)
    release = fit(regression(accounting="parallel"), table, Budget(1, 1e-6))
    found = release.certificate["strata"]
    assert (found["by"], found["families"], found["groups"]) == (["G", "C"], FAMILIES, 5)
    assert "add up" in strata(release.statement)
    assert "5 groups that overlap: by G and C" in strata(release.statement)


@pytest.mark.parametrize("groups", [[["G"], "C"], [["G", "G"]], [[]], "G", [[["G"]]], [["G"], 3]])
def test_what_is_no_list_of_families_is_refused(groups):
    with pytest.raises(UsageError, match="groups is a list"):
        GroupRegression(groups=groups)


def test_more_crossings_than_weights_are_refused_before_anything_is_asked():
    columns = {f"C{i}": Categorical(levels=tuple(map(str, range(100)))) for i in range(4)}
    schema = Schema({**columns, "Y": SCHEMA.column("Y")})
    groups = [[name] for name in columns]
    with pytest.raises(UsageError, match="100,000,000 crossings"):
        prepare(GroupRegression(groups=groups, iterations=1), schema, Budget(1, 1e-9), 100)
    assert prepare(GroupRegression(groups=groups, accounting="parallel"), schema, Budget(1, 1e-9), 100).allot.rho > 0
