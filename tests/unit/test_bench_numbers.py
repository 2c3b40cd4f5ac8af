"""`scripts/bench census --only numbers` and the figures of credit: what they print, with a file and without."""

import numpy as np
import pandas as pd
import pytest

from benches import __main__ as bench
from benches import frames, numbers
from stratsynth import Numeric, Schema

SCHEMA = Schema({"pay": Numeric(lower=0, upper=999_999, integer=True, special=("-1",))})


def fitted(mean, group=5.0, multiples=(99.0, 97.0)):
    """Figures of one fit, as `numbers.shown` takes them."""
    errors = {("PINCP", name): {"value": mean} for name in (*numbers.SHOWN, "above 100000", "no number")}
    return {"errors": errors, "groups": {"SEX 1": group}, "multiples": {"WAGP": list(multiples)}}


def test_multiples_of_100_leave_zeros_and_codes_out():
    frame = pd.DataFrame({"pay": [0, 0, -1, 100, 250, 3_000, 1]})
    assert numbers.multiples(frame, SCHEMA, "pay") == 50
    assert np.isnan(numbers.multiples(frame[:3], SCHEMA, "pay"))


def test_errors_are_held_to_what_was_asked_for_from_the_size_on():
    found = {f.name: f for f in numbers.shown("x", [fitted(3.0), fitted(-5.0)], 40_000, weighed=False)}
    mean = found["x: PINCP, mean"]
    assert (mean.value, mean.spread, mean.repetitions, mean.reached) == (-1.0, 4.0, 2, False)
    assert found["x: PINCP, mean, rms"].value == pytest.approx(np.sqrt(17))
    assert found["x: PINCP, median"].reached is None, "from 150,000 people on"
    assert found["x: PINCP, mean of SEX 1"].reached
    assert found["x: PINCP, share above 100000"].unit == "points"
    [wages] = [figure for name, figure in found.items() if "multiples" in name]
    assert (wages.value, wages.reached) == (2.0, True)
    heavy = {f.name: f for f in numbers.shown("x", [fitted(11.0)], 40_000, weighed=True)}
    assert heavy["x: PINCP, mean"].reached
    few = {f.name: f for f in numbers.shown("x", [fitted(3.0)], 20_000, weighed=False)}
    assert few["x: PINCP, mean"].reached is None


def test_it_runs_without_a_file_and_says_so(monkeypatch, capsys):
    monkeypatch.setattr(numbers, "COLUMNS", ("SEX", "RAC1P", "PINCP"))
    monkeypatch.setattr("sys.argv", ["bench", "census", "--only", "numbers", "--sizes", "400", "--epsilons", "3"])
    assert bench.main() == 0
    said = capsys.readouterr().out
    assert "built-in census (no --acs), 400 records, epsilon 3: PINCP, mean " in said
    assert "WAGP" not in said
    monkeypatch.setattr("sys.argv", ["bench", "census"])
    with pytest.raises(SystemExit):
        bench.main()
    assert "census needs --acs FILE" in capsys.readouterr().err


def test_columns_of_credit_are_shown_one_by_one(monkeypatch):
    few = frames.bills(600)[["limit", "paid_2", "late"]]
    monkeypatch.setattr(frames, "bills", lambda: few)
    found = frames.run(epsilons=(3.0,))
    names = [figure.name.strip() for figure in found]
    assert [name for name in names if name.startswith("limit: multiples")] == ["limit: multiples of 100, real 100.0 %"]
    assert {"paid_2: mean", "paid_2: P99"} <= {*names}
    assert any(name.startswith("worst mean, of ") for name in names)
    assert "epsilon 3" in names[0]
