"""The list of sums that may be asked for: closed, and of classes of this package alone."""

import inspect
from dataclasses import dataclass

import numpy as np
import pytest

from stratsynth.driver.lockstep import Asked
from stratsynth.driver.sums import exact_sums
from stratsynth.errors import MechanismError, StratsynthError
from stratsynth.questions import Columns, Query, Sum, Total, admission, sums
from stratsynth.questions.admission import is_known, known
from stratsynth.questions.sums.base import check_query
from stratsynth.schema import Numeric, Schema
from stratsynth.schema.rows import CodedRows

SCHEMA = Schema({"X": Numeric(lower=0, upper=1, bins=2)})
ROWS = CodedRows(SCHEMA, {"X": np.zeros(3, np.uint8)}, {"X": np.full(3, 0.5)}, 3)
SETTINGS = ("X",), (0.0,), (1.0,), 1.0


@dataclass(frozen=True)
class Twice(Columns):
    """Adds each row twice, and says that it moves the sum by one clip."""

    def exact(self, rows, which):
        return [2 * block for block in super().exact(rows, which)]


def test_every_sum_of_the_package_is_known():
    modules = [module for _, module in inspect.getmembers(sums, inspect.ismodule)]
    found = {kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass)}
    defined = {kind for kind in found if issubclass(kind, Sum) and kind is not Sum}
    assert len(defined) > 10
    assert defined == {kind for kind in admission._PARTS if issubclass(kind, Sum)}
    assert Query is Sum


@pytest.mark.parametrize("pretends", [False, True])
def test_a_sum_that_comes_later_is_refused(pretends, monkeypatch):
    if pretends:
        monkeypatch.setattr(Twice, "__module__", Columns.__module__)
    with pytest.raises(StratsynthError, match="no others"):
        known(Twice)
    assert not is_known(Twice(*SETTINGS))


def test_a_sum_of_another_package_is_refused_while_the_list_is_open(monkeypatch):
    monkeypatch.setattr(admission, "_PARTS", {})
    with pytest.raises(StratsynthError, match="no others"):
        known(Twice)
    assert known(Columns) is Columns


def test_a_class_of_ones_own_is_neither_checked_nor_summed():
    with pytest.raises(MechanismError, match="not one of the known queries"):
        check_query("total", Twice(*SETTINGS), SCHEMA)
    with pytest.raises(MechanismError, match="not one of the known queries"):
        exact_sums(Twice(*SETTINGS), ROWS)


def test_a_method_of_ones_own_is_refused_and_sums_nothing():
    query, wanted = Columns(*SETTINGS), exact_sums(Columns(*SETTINGS), ROWS)
    object.__setattr__(query, "exact", lambda *_: [np.array([10**9])])
    with pytest.raises(MechanismError, match="none of its fields"):
        Asked((), SCHEMA, Total(query, 0.1))
    assert [block.tolist() for block in exact_sums(query, ROWS)] == [block.tolist() for block in wanted]
