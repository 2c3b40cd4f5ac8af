"""Strata, weights and budgets from the command line, on the built-in census: planned, fitted, certified, refused."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from helpers import recompute
from helpers.command import python
from stratsynth import census, cli
from stratsynth.cli import run
from stratsynth.schema import Rule

CHECKER = Path(__file__).parents[3] / "shared" / "tools" / "check_release.py"
COLUMNS = ("SEX", "RAC1P", "AGEP", "MAR", "ESR")
SIZE = 3000

RECIPE = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 3000

[strata]
by = ["SEX", "RAC1P"]
{strata}

[weights]
{weights}

[mechanism]
name = "{mechanism}"

[budget]
epsilon = 1.0
delta = 1e-9
{budget}

[release]
rows = 1000
directory = "release"
"""
PUBLIC = 'source = "public"\npath = "shares.csv"\ncitation = "the built-in census"'
NATIVE = 'merge.RAC1P = { Native = ["3", "4", "5", "7"] }'
LADDER = """\
small = "merge"
threshold = 150
hierarchy.RAC1P = { Native = ["3", "4", "5"], Few = ["Native", "7", "9"], Others = ["Few", "6", "8"] }
hierarchy.SEX = { Both = ["1", "2"] }"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """The files that recipes speak of."""
    folder = tmp_path_factory.mktemp("census")
    people, shares = census.make(SIZE), census.shares(("SEX", "RAC1P"))
    people.to_csv(folder / "people.csv", index=False)
    children = Rule(when={"AGEP": "< 15"}, never={"MAR": ("1", "2", "3", "4")})
    replace(census.schema().restrict(COLUMNS), rules=(children,)).write_toml(folder / "schema.toml")
    shares.to_csv(folder / "shares.csv", index=False)
    for column in ("SEX", "RAC1P"):
        shares.groupby(column, as_index=False).share.sum().to_csv(folder / f"{column}.csv", index=False)
    shares.assign(low=0.8 * shares.share, high=1.3 * shares.share).to_csv(folder / "ranges.csv", index=False)
    shares.assign(SEX="1").groupby(["SEX"], as_index=False).share.sum().to_csv(folder / "men.csv", index=False)
    census.shares(("SEX", "AGEP")).to_csv(folder / "ages.csv", index=False)
    census.holdout(500)[list(COLUMNS)].to_csv(folder / "holdout.csv", index=False)
    counts = people.groupby(["SEX", "RAC1P"]).size()
    exact = shares.assign(count=[int(counts.get((s, r), 0)) for s, r in zip(shares.SEX, shares.RAC1P, strict=True)])
    exact.drop(columns="share").to_csv(folder / "counts.csv", index=False)
    factor = shares.assign(factor=[0.5 if r == "1" else 1 for r in shares.RAC1P]).drop(columns="share")
    factor.to_csv(folder / "budgets.csv", index=False)
    factor.assign(factor=2).to_csv(folder / "too_much.csv", index=False)
    pd.DataFrame({"SEX": ["1", "2"], "share": [0.7, 0.3]}).to_csv(folder / "other.csv", index=False)
    return folder


@pytest.fixture
def place(inputs, tmp_path, monkeypatch):
    """A folder of its own with these files."""
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(strata="", weights=PUBLIC, budget="", mechanism="independent", **changes):
    text = RECIPE.format(strata=strata, weights=weights, budget=budget, mechanism=mechanism)
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    Path("recipe.toml").write_text(text, encoding="utf-8")
    tomllib.loads(text)


def ask(capsys, *arguments):
    """Output of a command; it must succeed and complain about nothing."""
    code = cli.run([str(a) for a in arguments])
    said = capsys.readouterr()
    assert (code, said.err) == (0, "")
    return said.out


def everything(capsys):
    """Plan, fit and certificate: in words, and as programs read them."""
    plan = (
        " ".join(ask(capsys, "plan", "recipe.toml").split()),
        json.loads(ask(capsys, "plan", "recipe.toml", "--json")),
    )
    ask(capsys, "fit", "recipe.toml")
    certificate = json.loads(ask(capsys, "certificate", "release", "--json"))
    recompute.check(certificate)
    assert len(pd.read_parquet("release/synthetic.parquet")) == 1000
    if CHECKER.is_file():
        code = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
        done = python(code, CHECKER, "release", "--rows", 1000, "--private", "people.csv", cwd=Path.cwd())
        assert done.returncode == 0, done.stdout + done.stderr
    return *plan, certificate, " ".join(ask(capsys, "certificate", "release").split())


MARGINS = """\
source = "raked"
margins = [{ path = "SEX.csv", citation = "table of sexes" }, { path = "RAC1P.csv", citation = "table of races" }]"""
SOURCES = {
    "public": (PUBLIC, ["declared_size"], "public: the built-in census"),
    "public, with bounds": (
        PUBLIC.replace("shares.csv", "ranges.csv"),
        ["declared_size"],
        "bounds of the group's size",
    ),
    "holdout, published": (
        'source = "holdout"\npath = "holdout.csv"\ncitation = "PUMS 2019"',
        ["declared_size"],
        "holdout: PUMS 2019",
    ),
    "holdout, cut": (
        'source = "holdout"\npath = "holdout.csv"\nconfidential = true',
        ["declared_size", "holdout_people"],
        "NOT PROTECTED: holdout_people",
    ),
    "private": ('source = "private"\nshare = 0.1', ["declared_size"], "guesses"),
    "private, with a prior": (
        'source = "private"\nshare = 0.1\nprior = { path = "shares.csv", citation = "2010 Census" }',
        ["declared_size"],
        "those of 2010",
    ),
    "raked": (
        MARGINS,
        ["declared_size"],
        "raked (worst source: public): table of sexes; table of races",
    ),
    "raked from a holdout": (
        MARGINS + '\nstart = { source = "holdout", path = "holdout.csv", confidential = true }',
        ["declared_size", "holdout_people"],
        "worst source: confidential holdout",
    ),
    "invariant": ('source = "invariant"\npath = "counts.csv"', ["declared_size", "group_counts"], "exact counts"),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_of_weights_is_planned_fitted_and_certified(source, place, capsys):
    weights, unprotected, says = SOURCES[source]
    write(weights=weights)
    words, plan, certificate, summary = everything(capsys)
    assert says in words
    assert certificate["unprotected"] == plan["unprotected"] == unprotected
    assert certificate["weights"]["source"] == plan["weights"]["source"] == source.split(",", maxsplit=1)[0].split()[0]
    assert certificate["weights"]["citation"] in summary
    bounded = source in {"public, with bounds", "holdout, published", "holdout, cut"}
    assert all((s["size_low"] is not None) == bounded for s in plan["strata"])
    assert (plan["weights_sigma"] is not None) == source.startswith("private")
    assert certificate["strata"] == {"by": ["SEX", "RAC1P"], "cells": 18, "merged": []}
    first, *everybody = [c["rho"] for c in certificate["charges"] if not c["path"]]
    left = certificate["guarantee"]["rho"] - first  # by the first question
    assert everybody == pytest.approx([0.1 * left] if source.startswith("private") else [])


def test_a_named_merge(place, capsys):
    write(strata=NATIVE)
    words, plan, certificate, summary = everything(capsys)
    assert "1|Native RAC1P 3 + 4 + 5 + 7 declared" in words
    assert "1|Native is RAC1P 3 + 4 + 5 + 7 (declared)" in summary
    assert plan["merged"] == certificate["strata"]["merged"]
    assert len(plan["strata"]) == certificate["strata"]["groups"] == 12
    rows = pd.read_parquet("release/synthetic.parquet")
    shares = rows.groupby("SEX").size() / 1000
    public = census.shares(("SEX",)).set_index("SEX").share
    assert (shares - public).abs().max() < 2e-3
    measured = pd.read_parquet("release/measurements.parquet")
    native = measured[(measured.stratum == "1|Native") & (measured.clique == "RAC1P")]
    assert list(native.cell) == [0, 1, 2, 3]
    assert run(["sample", "release", "-n", "20", "--where", "RAC1P=4", "--where", "RAC1P=3", "-o", "few.csv"]) == 0
    note = capsys.readouterr().err
    assert note.startswith("stratsynth: note: rows are drawn of RAC1P=3|4")
    assert "fitted only together with others, as 1|Native, 2|Native" in note
    assert set(pd.read_csv("few.csv", dtype=str).RAC1P) <= {"3", "4"}


def test_small_groups_are_merged_along_a_hierarchy(place, capsys):
    write(strata=LADDER, mechanism="mst")
    words, plan, certificate, _ = everything(capsys)
    assert [m["stratum"] for m in certificate["strata"]["merged"]] == ["1|Others", "2|Others"]
    assert "below public size x epsilon 150: merged along the hierarchy" in words
    assert all("x epsilon 1 is below 150" in m["why"] for m in plan["merged"])
    assert certificate["strata"]["small"]["below"] == {}
    rows = pd.read_parquet("release/synthetic.parquet")
    assert set(rows.RAC1P[rows.RAC1P.isin(list("345679"))]), "merged races are still in the release"


def test_a_small_group_without_anything_wider_stays_and_the_plan_says_so(place, capsys):
    write(strata=LADDER.replace("150", "500").replace(', "6", "8"]', "]"))
    words, plan, certificate, summary = everything(capsys)
    left = [s["stratum"] for s in plan["strata"] if s["small"]]
    assert left == list(certificate["strata"]["small"]["below"])
    assert left == ["Both|2", "Both|Others", "Both|6", "Both|8"]
    assert "no wider group to merge them into: Both|2" in words
    assert ": Both|2: " in summary


def test_small_groups_are_given_one_way_tables(place, capsys):
    write(strata='small = "one-way"\nthreshold = 100', mechanism="mst", enough=("epsilon = 1.0", "epsilon = 20.0"))
    words, plan, certificate, _ = everything(capsys)
    few = {s["stratum"] for s in plan["strata"] if s["one_way"]}
    assert few == set(certificate["strata"]["small"]["below"])
    assert words.count("one-way tables only") == len(few) + 1
    measured = pd.read_parquet("release/measurements.parquet")
    pairs = measured[measured.clique.str.contains(",")].stratum.unique()
    assert not few & set(pairs)
    assert {"1|1", "1|2", "2|1", "2|2"} <= set(pairs)  # in the others pairs would be noise


def test_age_bands(place, capsys):
    write(
        strata="bands.AGEP = [15, 65]",
        by=('["SEX", "RAC1P"]', '["SEX", "AGEP"]'),
        file=("shares.csv", "ages.csv"),
    )
    words, plan, _, _ = everything(capsys)
    assert {s["stratum"] for s in plan["strata"]} == {f"{s}|{a}" for s in "12" for a in ("0-14", "15-64", "65-95")}
    assert "2|65-95" in words
    rows = pd.read_parquet("release/synthetic.parquet")
    assert not ((rows.AGEP < 15) & (rows.MAR != "5")).any()
    young = census.shares(("AGEP",)).share[:4].sum()
    assert abs((rows.AGEP < 15).mean() - young) < 3e-3


def test_budgets_of_strata(place, capsys):
    write(budget='strata = "budgets.csv"')
    words, plan, certificate, summary = everything(capsys)
    assert "strata get what their budgets say" in words
    own = certificate["strata"]["epsilon"]
    assert own == plan["budgets"]
    assert {label: e for label, e in own.items() if e < 1} == {"1|1": 0.5, "2|1": 0.5}
    assert certificate["guarantee"]["epsilon"] == max(own.values())
    assert "1|1 0.5" in summary
    assert {s["stratum"]: s["epsilon"] for s in plan["strata"]} == pytest.approx(own, rel=1e-6)
    ask(capsys, "plan", "recipe.toml", "--plot", "plan.png")


def test_a_picture_shows_bounds_and_small_groups(place, capsys):
    write(strata='small = "one-way"\nthreshold = 100', weights=PUBLIC.replace("shares.csv", "ranges.csv"))
    ask(capsys, "plan", "recipe.toml", "--plot", "plan.png")
    assert Path("plan.png").read_bytes().startswith(b"\x89PNG")


REFUSED = {
    "a source that is unknown": ({"weights": 'source = "guess"'}, "it is one of public, raked, holdout"),
    "a source that is a list": ({"weights": 'source = ["public"]'}, "it is one of public"),
    "a margin's source that is a list": (
        {"weights": MARGINS.replace("}]", ", source = []}]")},
        "it is one of public",
    ),
    "no source": ({"weights": 'path = "shares.csv"'}, "source"),
    "public without a citation": ({"weights": 'source = "public"\npath = "shares.csv"'}, "where the shares were"),
    "public with an empty citation": (
        {"weights": 'source = "public"\npath = "shares.csv"\ncitation = " "'},
        "need a citation",
    ),
    "public without a file": ({"weights": 'source = "public"\ncitation = "c"'}, "path is missing"),
    "a key of another source": ({"weights": PUBLIC + "\nshare = 0.1"}, "no key 'share' with source 'public'"),
    "a misspelt key": ({"weights": PUBLIC.replace("citation", "cittation")}, "did you mean 'citation'"),
    "a key of the wrong kind": ({"weights": 'source = "private"\nshare = "much"'}, "share must be a number"),
    "a holdout of unknown origin": ({"weights": 'source = "holdout"\npath = "holdout.csv"'}, "confidential = true"),
    "private for nothing": ({"weights": 'source = "private"\nshare = 0.0'}, "part of the budget"),
    "private without a share": ({"weights": 'source = "private"'}, "share is missing"),
    "private, as a prior": (
        {"weights": 'source = "private"\nshare = 0.1\nprior = { source = "private", share = 0.1 }'},
        "prior",
    ),
    "private, and small groups": (
        {"weights": 'source = "private"\nshare = 0.1', "strata": LADDER},
        "give them a public prior",
    ),
    "raked without margins": ({"weights": 'source = "raked"\nmargins = []'}, "made of public"),
    "raked from private counts": (
        {"weights": 'source = "raked"\nmargins = [{ source = "private", share = 0.1 }]'},
        "made of public",
    ),
    "raked with a sample for a margin": (
        {"weights": MARGINS.replace("}]", '}, { source = "holdout", path = "holdout.csv", citation = "made up" }]')},
        "belongs in `start`",
    ),
    "margins that are texts": ({"weights": 'source = "raked"\nmargins = ["SEX.csv"]'}, "made of tables"),
    "a margin without a citation": ({"weights": 'source = "raked"\nmargins = [{ path = "SEX.csv" }]'}, "citation"),
    "a column without a margin": (
        {"weights": 'source = "raked"\nmargins = [{ path = "SEX.csv", citation = "made up" }]'},
        "no margin knows RAC1P",
    ),
    "margins that contradict each other": (
        {"weights": MARGINS.replace("}]", '}, { path = "other.csv", citation = "made up" }]')},
        "contradict each other",
    ),
    "a margin that misses a level": ({"weights": MARGINS.replace("SEX.csv", "men.csv")}, "no share for SEX=2"),
    "shares by other columns": ({"weights": PUBLIC.replace("shares.csv", "SEX.csv")}, "shares are by SEX"),
    "exact counts without a file": ({"weights": 'source = "invariant"'}, "path is missing"),
    "an unknown key of strata": ({"strata": "merges = {}"}, "did you mean 'merge'"),
    "a merge of a level that is not there": ({"strata": 'merge.RAC1P = { x = ["3", "33"] }'}, "33"),
    "a merge of one level": ({"strata": 'merge.RAC1P = { x = ["3"] }'}, "at least two"),
    "merges that overlap": ({"strata": 'merge.RAC1P = { x = ["3", "4"], y = ["4", "5"] }'}, "overlap"),
    "a merge of another column": ({"strata": 'merge.MAR = { x = ["1", "2"] }'}, "add it to `by`"),
    "bands of categories": ({"strata": "bands.RAC1P = [3]"}, "merge its levels instead"),
    "small without a threshold": ({"strata": 'small = "one-way"'}, "go together"),
    "an unknown policy": ({"strata": 'small = "drop"\nthreshold = 3'}, '"keep" or "merge" or "one-way"'),
    "merging without a hierarchy": ({"strata": 'small = "merge"\nthreshold = 100'}, "needs a hierarchy"),
    "small groups by exact counts": (
        {"weights": 'source = "invariant"\npath = "counts.csv"', "strata": LADDER},
        "these are not (invariant)",
    ),
    "small groups by people set aside": (
        {"weights": 'source = "holdout"\npath = "holdout.csv"\nconfidential = true', "strata": LADDER},
        "these are not (confidential holdout)",
    ),
    "small groups of unknown size": (
        {"strata": LADDER, "size": ("declared_size = 3000\n", "")},
        "declare a size",
    ),
    "budgets above the fit's": ({"budget": 'strata = "too_much.csv"'}, "at most the fit's 1"),
    "budgets without figures": ({"budget": 'strata = "shares.csv"'}, "`factor` or `epsilon`"),
    "budgets when records are exchanged": (
        {"budget": 'strata = "budgets.csv"\nneighbours = "replace"'},
        'use neighbours = "add-remove"',
    ),
    "budgets that do not cover private counts": (
        {"budget": 'strata = "budgets.csv"', "weights": 'source = "private"\nshare = 0.9'},
        "smaller share",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_honest_or_makes_no_sense_is_refused_with_the_remedy(case, place, capsys, monkeypatch):
    settings, says = REFUSED[case]
    write(**settings)

    def forbidden(*arguments, **others):
        pytest.fail("rows were read")

    monkeypatch.setattr("stratsynth.data.backends.load_rows", forbidden)
    for command in ("plan", "fit"):
        if "size" in settings and command == "plan":
            continue  # a plan needs a size in any case
        assert cli.run([command, "recipe.toml"]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert says in said.err
        assert 1 <= len(said.err.splitlines()) <= 2
    assert not Path("release").exists()


def test_budgets_without_strata_are_refused(place, capsys):
    write(budget='strata = "budgets.csv"')
    text = Path("recipe.toml").read_text(encoding="utf-8")
    start, end = text.index("[strata]"), text.index("[mechanism]")
    Path("recipe.toml").write_text(text[:start] + text[end:], encoding="utf-8")
    assert cli.run(["plan", "recipe.toml"]) == 2
    assert "there are no strata" in capsys.readouterr().err
