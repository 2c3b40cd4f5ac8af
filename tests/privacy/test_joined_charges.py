"""Very many charges are joined in a certificate: they add up to the same, and every number of it is held by verify."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stratsynth as ss
from helpers import recompute, small
from helpers.certificates import statement
from helpers.releases import copied, edited, record_of
from stratsynth import Stratified, fit
from stratsynth.accounting import joined as joining
from stratsynth.accounting.budget import PRICED, Currency, Neighbours
from stratsynth.accounting.charges import Charge, Spending
from stratsynth.accounting.joined import entries, joined
from stratsynth.adapters import MST
from stratsynth.certificate import Certificate
from stratsynth.errors import ReleaseError
from stratsynth.strata import Stratum

CHECKER = Path(__file__).parents[3] / "shared" / "tools" / "check_release.py"
MOVED = {PRICED[0]: 1.0, PRICED[1]: 2.0}
STRATA = [Stratum.of({"SEX": "1"}), Stratum.of({"SEX": "2"})]
STEPS = ("add-remove", "move", "replace-within-group", "replace")


def choice(amount=0.25, candidates=3, path=(), **others):
    return Charge(path, "choose", amount, MOVED, {"epsilon": 0.5, "candidates": candidates}, **others)


charges = st.lists(
    st.builds(
        choice,
        amount=st.sampled_from([0.1, 0.2, 1 / 3]),
        candidates=st.integers(1, 4),
        path=st.sampled_from([(), (STRATA[0],), (STRATA[1],)]),
    ),
    max_size=20,
)


@given(charges)
def test_joined_charges_add_up_to_the_same_in_every_step(single):
    several = joined(single)
    before, after = (Spending(Neighbours.ADD_REMOVE, each) for each in (single, several))
    assert [before.step(step) for step in STEPS] == [after.step(step) for step in STEPS]
    assert len(several) == entries(single) == len({(c.path, c.amount) for c in single})
    assert statement(charges=[c.to_dict() for c in several]).answers == len(single)
    assert [Charge.from_dict(c.to_dict(), Currency.ZCDP) for c in several] == several


def test_one_that_stands_alone_is_written_as_ever_and_each_of_several_keeps_its_candidates():
    single = [choice(candidates=5), choice(amount=0.5), choice(candidates=2)]
    first, second = (c.to_dict() for c in joined(single))
    assert second == single[1].to_dict()
    assert "times" not in second
    assert (first["rho"], first["each"], first["times"], first["candidates"]) == (0.5, 0.25, 2, [5, 2])
    spending = Spending(Neighbours.ADD_REMOVE, joined(single))
    spending.withdraw(0)
    assert spending.spent() == 0


def test_what_is_joined_already_is_joined_again_with_all_its_answers():
    two, three = ([choice(candidates=n) for n in range(1, number + 1)] for number in (2, 3))
    again = joined([*joined(two), *joined(three), choice(candidates=9)])
    assert [(c.times, c.details["candidates"]) for c in again] == [(6, [1, 2, 1, 2, 3, 9])]
    assert joined(again) == again


@pytest.mark.parametrize(
    "wrong",
    [
        {"times": 0},
        {"times": -2},
        {"times": 1},
        {"times": 2.0},
        {"times": True},
        {"times": 3},
        {"times": 10**9},
        {"each": 0.1},
        {"rho": 0.25},
        {"times": "2"},
    ],
)
def test_a_number_of_answers_that_does_not_go_with_its_price_is_refused(wrong):
    record = {**choice(times=2).to_dict(), **wrong}
    with pytest.raises(ValueError, match="as many times"):
        Charge.from_dict(record, Currency.ZCDP)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A release whose charges are joined, and its ledger, where every charge stands alone."""
    folder = tmp_path_factory.mktemp("place")
    frame = small.people(3_000)  # pairs are chosen where records are many
    frame.to_csv(folder / "people.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining, "MOST_SINGLE", 0)
        table = ss.open_table(
            folder / "people.csv",
            schema=small.SCHEMA,
            declared_size=len(frame),
            ledger=folder / "people.ledger",
            ledger_epsilon=2,
        )
        shares = pd.DataFrame({"SEX": ["1", "2"], "share": [0.5, 0.5]})
        weights = ss.Weights.public(shares, citation="made up for testing")
        fit(Stratified(MST(), ["SEX"], weights), table, small.BUDGET).save(folder / "release", seed=0)
    return folder


def test_a_release_with_joined_charges_holds_and_says_how_many_there_were(place):
    record = record_of(place / "release")
    assert any(c.get("times", 1) > 1 for c in record["charges"])
    assert recompute.total_rho(record["charges"]) <= record["guarantee"]["rho"] * (1 + 1e-9)
    number = Certificate.from_dict(record).answers
    verdict = ss.verify(place / "release", ledger=place / "people.ledger")
    assert not verdict.findings
    said = " ".join(verdict.checked)
    assert f"{number} charges come to" in said
    assert f"all {number} charges of this fit" in said
    assert ss.Release.load(place / "release").sample(10, seed=0).shape[0] == 10
    if CHECKER.is_file():
        done = subprocess.run([sys.executable, CHECKER, place / "release"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def _fewer(record):
    entry = next(c for c in record["charges"] if c.get("times", 1) > 1)
    entry["times"] -= 1
    if entry["times"] == 1:
        del entry["times"]
        entry["rho"] = entry.pop("each")
    else:
        entry["rho"] = entry["times"] * entry["each"]


def _cheaper(record):
    entry = next(c for c in record["charges"] if c.get("times", 1) > 1)
    entry["each"] /= 2
    entry["rho"] = entry["times"] * entry["each"]


@pytest.mark.parametrize("change", [_fewer, _cheaper])
def test_one_answer_fewer_or_cheaper_than_the_ledger_holds_is_found(place, tmp_path, change):
    release = copied(place / "release", tmp_path / "release")
    edited(release, change)
    verdict = ss.verify(release, ledger=place / "people.ledger")
    assert any("holds no fit" in finding for finding in verdict.findings)


@pytest.mark.parametrize("times", [1, True, 1.0])
def test_one_answer_is_not_written_as_several(times):
    with pytest.raises(ValueError, match="as many times"):
        Charge.from_dict({**choice().to_dict(), "times": times}, Currency.ZCDP)


def test_a_charge_as_large_as_a_float_can_be_damages_the_certificate(place, tmp_path):
    release = copied(place / "release", tmp_path / "release")

    def change(record):
        for entry in record["charges"]:
            entry.update(rho=1e308 * entry.get("times", 1) if "times" not in entry else entry["times"] * 1e307)
            if "times" in entry:
                entry["each"] = 1e307

    edited(release, change)
    with pytest.raises(ReleaseError, match=r"damaged|contradicts"):
        ss.Release.load(release)


def test_a_total_that_is_not_as_many_times_the_price_damages_the_certificate(place, tmp_path):
    release = copied(place / "release", tmp_path / "release")

    def change(record):
        next(c for c in record["charges"] if c.get("times", 1) > 1)["rho"] /= 2

    edited(release, change)
    with pytest.raises(ReleaseError, match="as many times"):
        ss.Release.load(release)
