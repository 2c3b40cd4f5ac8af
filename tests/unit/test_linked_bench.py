"""The bench of linked tables, on few households: every figure is there, and rules hold."""

import subprocess
import sys

import pytest

from benches import __main__ as bench
from benches import linked
from stratsynth.evaluation.linked.tables import KINDS
from studies import figures


def test_a_small_fit_has_all_figures(monkeypatch):
    monkeypatch.setattr(linked, "HOUSEHOLDS", 500)
    found = linked.main({"acs": None, "households": None, "rows": 400, "epsilon": 4.0, "seed": 0, "base": "mst"})
    assert [kind for kind, *_ in found["means"]] == [
        kind for kind in KINDS if kind in {row[0] for row in found["means"]}
    ]
    assert {"H", "P2", "P3", "W"} <= {kind for kind, *_ in found["means"]}
    assert found["broken"] == 0
    assert {row[0]: row[-1] for row in found["shares"]}["HINCP is the sum"] == 1.0
    figures = linked._figures("small", found, linked.TARGETS[4.0])
    assert [figure.reached for figure in figures if "break a rule" in figure.name] == [True]
    assert sum(figure.reached is not None for figure in figures) == 8


def test_the_peak_of_a_run_is_that_of_its_largest_process(monkeypatch):
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    for own, most in ((1.0, 1e6), (1e6, 1e6)):
        monkeypatch.setattr(figures, "peak_megabytes", lambda own=own: own)
        assert max(own, 5) <= figures.peak_of_all() <= most


@pytest.mark.parametrize("option", ["--seeds", "--rows", "--jobs", "--samples"])
@pytest.mark.parametrize("value", ["0", "-1", "x"])
def test_a_number_below_one_is_refused_before_anything_is_measured(option, value, capsys):
    with pytest.raises(SystemExit):
        bench._parser().parse_args(["small", f"{option}={value}"])
    assert f"argument {option}: must be a whole number from 1 on" in capsys.readouterr().err
