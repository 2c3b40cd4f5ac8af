"""The bench of linked tables, on few households: every figure is there, and rules hold."""

import subprocess
import sys

import pandas as pd
import pytest

from benches import __main__ as bench
from benches import linked
from benches.linked_lists import NAMED_TABLES, lists
from stratsynth.census import acs
from stratsynth.evaluation import LinkedColumns
from stratsynth.evaluation.linked.rows import LinkedCodes
from stratsynth.evaluation.linked.tables import KINDS
from studies import figures

FAMILY = {"TYPEHUGQ": "1", "TEN": "1", "BLD": "2", "HINCP": 60_000}
OF_A_PERSON = {"HISP": "1", "SCHL": "16", "ESR": "1"}


@pytest.fixture(scope="module")
def rows():
    """A married couple with three children, out of order, and a person alone."""
    above = [{"SERIALNO": "a", "NP": 5, "HHT": "1", **FAMILY}, {"SERIALNO": "b", "NP": 1, "HHT": "6", **FAMILY}]
    people = [("a", 1, 44, "2", "1", "40000"), ("a", 2, 41, "1", "1", "20000"), ("a", 3, 9, "1", "5", "N")]
    people += [("a", 4, 2, "2", "5", "N"), ("a", 5, 13, "1", "5", "N"), ("b", 1, 70, "2", "2", "60000")]
    names = ["SERIALNO", "SPORDER", "AGEP", "SEX", "MAR", "PINCP"]
    below = pd.DataFrame(people, columns=names).assign(RAC1P="1", **OF_A_PERSON)
    return LinkedCodes.read(pd.DataFrame(above), below, LinkedColumns.of(acs.linked_schema(year=2024)))


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
    assert sum(figure.reached is not None for figure in figures) == 10
    assert [what for what, *_ in found["lists"]] == [*linked.LISTS.values(), linked.NAMED]


def test_the_prototypes_lists_are_as_long_as_its_report_says(rows):
    kinds = [table.kind for table in lists(rows.columns)]
    assert {kind: kinds.count(kind) for kind in kinds} == {"P2": 28, "W": 20, "S": 10}
    assert [what for what, *_ in linked._lists(rows, rows)] == [*linked.LISTS.values(), linked.NAMED]
    assert {value for _, value, *_ in linked._lists(rows, rows)} == {0.0}


def test_the_prototypes_tables_of_a_family_by_hand(rows):
    tables = {(table.kind, table.name): table.cells(rows) for table in lists(rows.columns)}
    gaps = tables["W", "gap between siblings"]
    assert sorted(gaps.cell.tolist()) == [4, 7]  # 2, 9 and 13 years
    counted = tables["W", "children x size"]
    assert (counted.cell // rows.columns.top).tolist() == [3]  # of households of two and more alone
    married = tables["W", "married persons x size"]
    assert (married.cell // rows.columns.top).tolist() == [2]
    age = tables["W", "AGEP: first x second"]
    assert age.cell.tolist() == [8 * 19 + 8]
    assert [len(tables["S", f"AGEP: first x {what}, 5 rows"].cell) for what in ("second", "each other")] == [1, 4]
    assert len(tables["S", "AGEP: first x second, 4 rows"].cell) == 0
    assert NAMED_TABLES == 12


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
