"""A draw of rows of a very small or merged group by name comes with a warning, in Python and on the terminal."""

import warnings

import pandas as pd
import pytest

import stratsynth as ss
from helpers.command import stratsynth
from stratsynth import Budget, Categorical, Schema, Stratified, Weights, fit, open_table
from stratsynth.adapters import Independent
from stratsynth.errors import FewPeopleWarning
from stratsynth.noise import SeededEntropy
from stratsynth.strata.groups import Groups

RACES = ("1", "2", "3", "4", "9")
SCHEMA = Schema(
    {
        "SEX": Categorical(levels=("1", "2")),
        "RAC1P": Categorical(levels=RACES),
        "X": Categorical(levels=("a", "b")),
    }
)
SHARES = {"1": 0.4, "2": 0.0492, "3": 0.04, "4": 0.0008, "9": 0.01}
MERGE = Groups(hierarchy={"RAC1P": {"Native": ["3", "4"]}}, small="merge", threshold=50)
BY = ["SEX", "RAC1P"]


def rows(n=10_000):
    return pd.DataFrame(
        {
            "SEX": [("1", "2")[i % 2] for i in range(n)],
            "RAC1P": [RACES[(i // 2) % 5] for i in range(n)],
            "X": "a",
        }
    )


def released(groups):
    shares = pd.DataFrame([{"SEX": s, "RAC1P": r, "share": w} for s in "12" for r, w in SHARES.items()])
    how = Stratified(Independent(), BY, Weights.public(shares, citation="a yearbook"), groups or Groups())
    table = open_table(rows(), schema=SCHEMA, declared_size=10_000)
    return fit(how, table, Budget(1, 1e-9), entropy=SeededEntropy(2))


@pytest.fixture(scope="module", params=[None, MERGE], ids=["kept", "merged"])
def release(request):
    return released(request.param)


def said(release, **asked):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        release.sample(**asked)
    return [str(w.message) for w in found if w.category is FewPeopleWarning]


def test_a_condition_on_a_small_group_is_told(release):
    (text,) = said(release, n=20, where={"RAC1P": "4"})
    assert "RAC1P=4, about 16 people by declared figures" in text
    assert ("fitted only together with others, as 1|Native, 2|Native" in text) == bool(
        release.certificate["strata"]["merged"]
    )


def test_numbers_by_group_and_balanced_groups_are_told(release):
    assert len(said(release, n_by_group={("1", "4"): 5, ("2", "1"): 5})) == 1
    (text,) = said(release, n=20, balance=["RAC1P"])
    assert "RAC1P=4" in text
    assert "RAC1P=1," not in text


def test_large_groups_everybody_and_whole_merges_are_not(release):
    assert said(release, n=20) == []
    assert said(release, n=20, where={"RAC1P": "1"}) == []
    assert said(release, n=20, where={"SEX": "1"}) == []
    assert said(release, n=20, where={"X": "a"}) == []
    assert said(release, n=20, where={"RAC1P": ["3", "4"]}) == []
    assert said(release, n_by_group={("1", "4"): 0, ("2", "1"): 5}) == []


def test_the_certificate_lists_them(release):
    listed = {(g["levels"]["SEX"][0], g["levels"]["RAC1P"][0]): g for g in release.certificate["small_groups"]}
    assert listed["1", "4"]["people"] == pytest.approx(8)
    assert listed["1", "4"]["few"]
    merged = bool(release.certificate["strata"]["merged"])
    assert listed["1", "4"]["fitted_in"] == ("1|Native" if merged else None)
    assert (("1", "3") in listed) == merged
    assert ("1", "1") not in listed


def test_the_terminal_says_it_on_stderr_and_draws_all_the_same(release, tmp_path):
    release.save(tmp_path / "r", rows=10)
    run = stratsynth("sample", "r", "-n", 5, "--where", "RAC1P=4", "-o", "s.csv", cwd=tmp_path)
    assert run.returncode == 0
    assert run.stderr.startswith("stratsynth: note: rows are drawn of RAC1P=4, about 16 people")
    assert len(pd.read_csv(tmp_path / "s.csv")) == 5
    assert ss.Release.load(tmp_path / "r").certificate["small_groups"]
