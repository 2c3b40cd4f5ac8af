"""A record that moves from one stratum to another is seen by both: parallel composition does not cover it."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from helpers import small
from stratsynth.accounting.budget import PRICED, Neighbours
from stratsynth.accounting.charges import Charge, Spending
from stratsynth.errors import UsageError
from stratsynth.layout.layout import lay_out
from stratsynth.schema import Categorical, Schema
from stratsynth.strata import Stratum
from stratsynth.strata.groups import Groups

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "goldens.json").read_text(encoding="utf-8"))
THREE = Schema({"GROUP": Categorical(levels=("a", "b", "c"))})
EVEN = small.even(THREE, "GROUP")


def test_the_certificate_states_the_price_of_a_move():
    """Twice the rho, which is not twice the epsilon, and not the epsilon of one record more or fewer."""
    prices = small.small_release().certificate["prices"]
    assert prices["add-remove"] == pytest.approx(1, rel=1e-5)
    assert prices["move"] == pytest.approx(GOLDEN["prices_of_(1,1e-9)_zcdp"]["move_between_strata_2rho"], rel=1e-5)


def spent(*paths):
    charges = [Charge(path, "counts", 1.0, {Neighbours.ADD_REMOVE: 1.0, Neighbours.REPLACE: 2**0.5}) for path in paths]
    return Spending(Neighbours.ADD_REMOVE, charges).spent()


def merge(*levels, name):
    return (Stratum.of({"RACE": levels}, [name]),)


def test_the_name_of_a_merge_makes_no_stratum():
    """Levels do: people asked under two names pay twice, and people who share a name pay once."""
    assert spent(merge("1", "2", name="x"), merge("1", "2", name="y")) == 2
    assert spent(merge("1", "2", name="x"), merge("2", "3", name="y")) == 2
    assert spent(merge("1", "2", name="x"), merge("3", "4", name="x")) == 1
    assert Stratum.of({"RACE": ("1", "2")}, ["x"]) == Stratum.of({"RACE": ("1", "2")}, ["y"])
    assert Stratum.of({"RACE": ("1", "2")}, ["x"]) != Stratum.of({"RACE": ("3", "4")}, ["x"])


def test_a_ledger_and_a_certificate_say_which_levels_and_not_which_name():
    (one,), (other,) = merge("1", "2", name="x"), merge("3", "4", name="x")
    assert one.to_dict() != other.to_dict()
    assert Stratum.from_dict(one.to_dict()) == one
    charge = Charge((one,), "counts", 1.0, dict.fromkeys(PRICED, 1.0))
    assert Charge.from_dict(charge.to_dict(), charge.currency) == charge
    assert Fraction(charge.amount) == 1


@pytest.mark.parametrize("name", ["b", "x|y", " ", "x\ny"])
def test_a_merge_is_not_called_like_a_level_or_a_path(name):
    """Two groups of one name could not be told apart in what is released."""
    with pytest.raises(UsageError):
        lay_out(THREE, ("GROUP",), Groups(merge={"GROUP": {name: ["a", "c"]}}), EVEN, None, 100, 1.0)
