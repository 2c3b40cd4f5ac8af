"""The bench of linked tables, on few households: every figure is there, and rules hold."""

from benches import linked
from stratsynth.evaluation.linked.tables import KINDS


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
