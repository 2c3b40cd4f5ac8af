"""`scripts/reproduce_lens`: what it prints, writes and refuses; and that its words follow from its figures."""

import pandas as pd
import pytest
from stratsynth.evaluation.lens import experiments, reproduce

SMALL = {"ROWS": 300, "STEPS": 8, "WORLDS": experiments.WORLDS[:2]}


@pytest.fixture
def small(monkeypatch):
    for name, value in SMALL.items():
        monkeypatch.setattr(experiments, name, value)
    monkeypatch.setattr(experiments, "mitigation", lambda repeats, rng: gaps(0.1, 0.05))


def gaps(none, surrogate):
    """Two fits of each mitigation, with these gaps between the groups."""
    rows = []
    for name, gap in (("none", none), ("surrogate", surrogate), ("group_clip", none), ("global_adapt", none)):
        rows += [
            {"world": "made up", "mitigation": name, "repeat": i, "majority": 0.0, "minority": gap + 1e-4 * i,
             "everybody": gap / 2}
            for i in range(2)
        ]  # fmt: skip
    return pd.DataFrame(rows)


def test_it_prints_tables_and_words_and_writes_them(small, tmp_path, capsys):
    assert reproduce.main(["--runs", "2", "--repeats", "2", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "Output perturbation" in said
    assert "Larger traces go with larger parts of noise in one step (Theorem 4): holds" in said
    assert "surrogate narrows the gap between the groups by more than chance in 1 of 1 worlds: made up." in said
    assert "Simulated with gamma2 0.1, tanh: the gap is narrower by more than chance in" in said
    assert "group_clip narrows the gap between the groups by more than chance in 0 of 1 worlds." in said
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "output.csv", "training.csv", "steps.csv", "mitigation.csv", "networks.csv", "training.png",
    }  # fmt: skip
    training = pd.read_csv(tmp_path / "out" / "training.csv")
    assert training["excess"].to_numpy() == pytest.approx((training["clipping"] + training["noise"]).to_numpy())


def test_claims_are_counted_among_groups_that_differ():
    frame = pd.DataFrame({
        "world": ["u", "u", "v", "v", "w", "w"], "group": ["a", "b"] * 3, "trace": [1.0, 2.0, 1.0, 2.0, 1.0, 1.01],
        "risk": [1.0, 2.0, 2.0, 1.0, 5.0, 1.0],
    })  # fmt: skip
    assert reproduce._ordered(frame, "trace", "risk") == (1, 2)
    assert reproduce._claim("It is so", (1, 2)).endswith("fails, 1 of 2.")
    assert reproduce._claim("It is so", (2, 2)).endswith("holds, 2 of 2.")
    assert reproduce._claim("It is so", (0, 0)).endswith("nothing to compare.")


def test_a_mitigation_that_widens_the_gap_is_not_praised():
    found = reproduce._gaps(gaps(0.1, 0.2), reproduce.FITTED).set_index(reproduce.FITTED)
    assert not reproduce._better(found, "made up", "surrogate")


@pytest.mark.slow
def test_long_mitigations_are_fitted():
    """Of one world; a clip that adapts helps where the minority's gradients are long."""
    import numpy as np

    frame = experiments.mitigation(3, np.random.default_rng(0))
    gap = frame.assign(gap=(frame["majority"] - frame["minority"]).abs()).groupby(["world", "mitigation"])["gap"].mean()
    assert gap["nearer to the boundary", "global_adapt"] < gap["nearer to the boundary", "none"]


@pytest.mark.parametrize(("arguments", "words"), [(["--runs", "1"], "at least 2"), (["--out", "."], "exists already")])
def test_wrong_arguments_are_refused_in_a_line(arguments, words, capsys):
    assert reproduce.main(arguments) == 2
    assert words in capsys.readouterr().err
