"""`scripts/reproduce_lens`: what it prints, writes and refuses; and that its words follow from its figures."""

import numpy as np
import pandas as pd
import pytest

from stratsynth.errors import UsageError
from studies.lens import STUDY, beside, cases, claims, experiments, sweeps


@pytest.fixture
def small(monkeypatch):
    for where, name, value in (
        (cases, "ROWS", 300),
        (cases, "WORLDS", cases.WORLDS[:1]),
        (cases, "MOST", 300),
        (cases, "CENSUS", 600),
        (experiments, "STEPS", 8),
    ):
        monkeypatch.setattr(where, name, value)
    monkeypatch.setattr(experiments, "mitigation", lambda among, repeats: gaps(among, 0.1, 0.05))
    monkeypatch.setattr(sweeps, "FITTED_WAYS", ("none", "gamma1 alone"))
    monkeypatch.setattr(beside, "METHODS", {name: beside.METHODS[name] for name in beside.METHODS if name != "fermi"})
    monkeypatch.setattr(sweeps, "by_budget", lambda among, repeats: gaps(among, 0.1, 0.05).assign(epsilon=1.0))


def gaps(among, none, surrogate):
    """Two fits of two ways, with these gaps between the groups."""
    rows = [
        {
            "world": case.name,
            "model": "network",
            "mitigation": way,
            "repeat": i,
            "group": group,
            "n": 100,
            "excess": (gap + 1e-4 * i) * (group == "b"),
        }
        for case in among
        for way, gap in (("none", none), ("gamma1 alone", surrogate))
        for i in range(2)
        for group in ("a", "b", "everybody")
    ]
    return pd.DataFrame(rows)


@pytest.mark.slow
def test_it_prints_tables_and_words_and_writes_them(small, tmp_path, capsys):
    assert STUDY.main(["--runs", "2", "--repeats", "2", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "Output perturbation" in said
    assert "In words, on simulated people (alike, but few):" in said
    assert "In words, on public data (census by sex; census by race):" in said
    assert "Larger traces go with larger parts of noise in one step (Theorem 4): holds" in said
    assert (
        "network, gamma1 alone: the gap between the groups is narrower by more than chance in 1 of 1 (alike, but few), "
        "and wider in 0." in said
    )
    assert "in 2 of 2 (census by sex; census by race)" in said
    assert "The condition of Theorem 3 is met by 0 of 24 ordered pairs of groups" in said
    assert "fair_sgd at epsilon 1, gamma1 alone: the gap is narrower by more than chance in 1 of 1 cases" in said
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "output.csv",
        "training.csv",
        "steps.csv",
        "mitigation.csv",
        "beside.csv",
        "theorem.csv",
        "epsilons.csv",
        "clips.csv",
        "ratios.csv",
        "budgets.csv",
        "traces.png",
        "training.png",
        "mitigation.png",
        "sweeps.png",
    }
    training = pd.read_csv(tmp_path / "out" / "training.csv")
    assert training["excess"].to_numpy() == pytest.approx((training["clipping"] + training["noise"]).to_numpy())


def test_what_a_reader_brings_takes_the_place_of_the_census(tmp_path):
    rng = np.random.default_rng(0)
    law = tmp_path / "law.csv"
    pd.DataFrame(
        {
            "lsat": rng.integers(10, 48, 80),
            "ugpa": 3.0,
            "zfygpa": 0.1,
            "zgpa": 0.2,
            "fam_inc": 3,
            "tier": 2,
            "fulltime": 1.0,
            "race": rng.choice(["White", "Non-White"], 80),
            "pass_bar": rng.integers(0, 2, 80),
        }
    ).to_csv(law, index=False)
    (case,) = cases.brought(None, law, rng)
    assert case.name == "law school by race"
    assert case.people.x.shape == (80, 7)  # without target and group, and without the only level of `fulltime`
    assert case.people.labels == ("Non-White", "White")
    frame = experiments.steps([case], rng)
    assert set(frame["group"]) == {"Non-White", "White", "everybody"}
    with pytest.raises(UsageError, match="not the Adult data"):
        cases.brought(law, None, rng)


def test_claims_are_counted_among_groups_that_differ():
    frame = pd.DataFrame(
        {
            "world": ["u", "u", "v", "v", "w", "w"],
            "group": ["a", "b"] * 3,
            "n": 50,
            "trace": [1.0, 2.0, 1.0, 2.0, 1.0, 1.01],
            "risk": [1.0, 2.0, 2.0, 1.0, 5.0, 1.0],
        }
    )
    assert claims.ordered(frame, "trace", "risk") == (1, 2)
    assert claims.claim("It is so", (1, 2)).endswith("fails, 1 of 2.")
    assert claims.claim("It is so", (2, 2)).endswith("holds, 2 of 2.")
    assert claims.claim("It is so", (0, 0)).endswith("nothing to compare.")


def test_groups_of_a_few_rows_are_not_compared():
    frame = pd.DataFrame({"world": "u", "group": ["a", "b", "c"], "n": [50, 50, 5], "trace": [1, 2, 3.0], "risk": 1.0})
    assert claims.ordered(frame, "trace", "risk")[1] == 1


def test_a_mitigation_that_widens_the_gap_is_not_praised():
    case = type("Case", (), {"name": "made up"})
    (said,) = claims._mitigated(claims.gaps(gaps([case], 0.1, 0.2)))
    assert said.endswith("in 0 of 1, and wider in 1 (made up).")


@pytest.mark.slow
def test_long_mitigations_are_fitted(monkeypatch):
    """Of one world; a clip that adapts helps where the minority is nearer to the boundary."""
    case = cases.simulated(np.random.default_rng(0))[2]
    gap = claims.gaps(experiments.mitigation([case], 3))["gap"]
    assert gap[case.name, "logistic", "global_adapt"] < gap[case.name, "logistic", "none"]
    assert np.isfinite(gap[case.name, "network"]).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--runs", "1"], "at least 2"), (["--out", "."], "exists already"), (["--law", "none.csv"], "no file")],
)
def test_wrong_arguments_are_refused_in_a_line(arguments, words, capsys):
    assert STUDY.main(arguments) == 2
    assert words in capsys.readouterr().err
