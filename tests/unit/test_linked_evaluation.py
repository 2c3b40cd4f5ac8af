"""Evaluations of two linked tables: queries like PrivPetal's, one household at a time; page, files and command."""

import json

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers import homes
from stratsynth import cli
from stratsynth.adapters import Linked
from stratsynth.errors import UsageError
from stratsynth.evaluation import LinkedColumns, evaluate_linked, linked_metadata, linked_queries
from stratsynth.evaluation.linked.evaluation import counted_parents
from stratsynth.evaluation.linked.queries import SIZES, HouseholdQuery
from stratsynth.evaluation.linked.rows import LinkedCodes

COLUMNS = LinkedColumns.of(homes.SCHEMA)


def filled(n, seed):
    """Return (households, persons) whose incomes are those of the persons."""
    parents, persons = homes.tables(n, seed)
    sums = persons.groupby("SERIALNO")["PINCP"].sum()
    return parents.assign(HINCP=sums.reindex(parents["SERIALNO"]).to_numpy()), persons


REAL, OTHER = filled(250, 0), filled(200, 7)


def test_queries_count_households_as_a_reader_would():
    """One household after another, in plain Python: two persons have to be different ones."""
    rows, rng = LinkedCodes.read(*REAL, COLUMNS), np.random.default_rng(1)
    found = 0
    for number in range(80):
        query = HouseholdQuery.draw(COLUMNS, 1 + number % 2, rng)
        mask = query.met(rows)
        for home in range(len(rows.size)):
            own = np.flatnonzero(rows.home == home)
            fits = [
                [all(rows.child[name][i] in levels for name, levels in person.items()) for i in own]
                for person in query.persons
            ]
            pairs = (
                any(fits[0])
                if len(fits) == 1
                else any(a and b for i, a in enumerate(fits[0]) for j, b in enumerate(fits[1]) if i != j)
            )
            expected = (
                min(len(own), SIZES) in query.sizes
                and all(rows.parent[name][home] in levels for name, levels in query.household.items())
                and pairs
            )
            assert mask[home] == expected
        found += int(mask.sum())
    assert found > 50


def test_a_query_selects_a_fifth_of_the_domain():
    drawn = [HouseholdQuery.draw(COLUMNS, 2, np.random.default_rng(seed)) for seed in range(300)]
    parts = []
    for query in drawn:
        own = [(COLUMNS.parent, query.household), *((COLUMNS.child, person) for person in query.persons)]
        assert all(1 <= len(some) <= 2 for _, some in own)
        parts.append(
            np.prod([len(levels) / schema.size(name) for schema, some in own for name, levels in some.items()])
        )
        assert min(query.sizes) >= 2
    assert 0.1 < np.mean(parts) < 0.35


def test_the_same_tables_have_no_error_and_counts_are_brought_to_one_size():
    same = linked_queries(REAL, REAL, COLUMNS, number=40)
    assert (same["value"] == 0).all()
    assert same["floor"].mean() < same["ceiling"].mean()
    twice = tuple(
        pd.concat([frame, frame.assign(SERIALNO=frame["SERIALNO"] + 10_000)], ignore_index=True) for frame in REAL
    )
    assert (linked_queries(REAL, twice, COLUMNS, number=40)["value"] == 0).all()
    again = linked_queries(REAL, OTHER, COLUMNS, number=40)
    assert again["query"].tolist() == same["query"].tolist()
    assert again["value"].mean() > 0.05


def test_an_evaluation_has_all_kinds_by_size_and_by_group():
    found = evaluate_linked(REAL, OTHER, homes.SCHEMA, "SEX", queries=30, repetitions=2)
    assert list(found.means["kind"]) == ["H", "HP", "P2", "W", "S", "G"]
    means = found.means.set_index("kind")
    assert (means.loc[["W", "S"], "ceiling"] > means.loc[["W", "S"], "floor"]).all()
    assert {name for name, _ in found.frames()} == {"means", "errors", "queries", "broken"}
    assert found.facts["real household"] == 250
    page = found.page("this release", None)
    assert page.internal
    assert [section.name for section in page.sections] == ["kinds", "w", "s", "g", "queries", "rules"]
    assert "no figure here compares with a published one" in str(page.sections[-2].text)
    assert "G" not in set(evaluate_linked(REAL, OTHER, homes.SCHEMA, queries=2, repetitions=1).errors["kind"])


def test_households_of_kinds_that_a_fit_leaves_out_are_left_out():
    parents, _ = REAL
    other = parents.assign(KIND=np.where(np.arange(len(parents)) < 40, 2, 1))
    assert counted_parents(homes.SCHEMA, other).num_rows == len(parents) - 40
    found = evaluate_linked((other, REAL[1]), REAL, homes.SCHEMA, queries=2, repetitions=1)
    assert found.facts["real household"] == len(parents) - 40


def test_structures_are_those_of_a_census_alone():
    schema = ss.census.linked_schema()
    one, other = (ss.census.make_households(150, offset=offset) for offset in (0, 5_000))
    found = evaluate_linked(one, other, schema, "RAC1P", kinds=("W",), queries=4, repetitions=1)
    assert "three generations" in set(found.shares["structure"])
    assert "shares" in {section.name for section in found.page("x", None).sections}


@pytest.fixture
def place(tmp_path):
    for frame, name in zip(REAL, ("households", "persons"), strict=True):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "made").mkdir()
    for frame, name in zip(OTHER, ("household", "person"), strict=True):
        frame.to_csv(tmp_path / "made" / f"{name}.csv", index=False)
    (tmp_path / "homes.toml").write_text(homes.SCHEMA.to_toml(), encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(
        '[data]\nparent = "households.csv"\nchild = "persons.csv"\nschema = "homes.toml"\ndeclared_size = 250\n'
        '[mechanism]\nname = "linked"\nbase = "mst"\n[budget]\nepsilon = 4\ndelta = 1e-9\n',
        encoding="utf-8",
    )
    return tmp_path


def test_the_command_takes_a_recipe_or_two_files(place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    assert cli.run(["evaluate", "--real", "recipe.toml", "--synthetic", "made", "--by", "SEX", "-o", "one"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("INTERNAL")
    assert "two persons of one household, by its size" in " ".join(said.split())
    words = ["--real", "households.csv", "--child", "persons.csv", "--schema", "homes.toml", "--synthetic", "made"]
    assert cli.run(["evaluate", *words, "-o", "two", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["INTERNAL"]
    assert set(pd.read_csv("one/queries.csv")["stamp"]) == {"INTERNAL"}
    assert (place / "two" / "report.html").is_file()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--real", "recipe.toml", "--child", "persons.csv", "--synthetic", "made"], "leave --child out"),
        (["--real", "households.csv", "--child", "persons.csv", "--synthetic", "made"], "name the schema"),
        (["--real", "recipe.toml", "--synthetic", "made", "--holdout", "made"], "--holdout is of one table"),
        (["--real", "recipe.toml", "--synthetic", "made", "--marginals-only"], "--marginals-only is of one table"),
        (["--real", "recipe.toml", "--synthetic", "."], "has no household.parquet"),
        (["--real", "recipe.toml", "--synthetic", "made", "--by", "RACE"], "no column of the child"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(place, capsys, monkeypatch, words, why):
    monkeypatch.chdir(place)
    assert cli.run(["evaluate", *words, "-o", "out"]) == 2
    assert why in " ".join(capsys.readouterr().err.split())
    assert not (place / "out").exists()


def test_a_group_that_is_no_column_is_refused():
    with pytest.raises(UsageError, match="no column of the child"):
        evaluate_linked(REAL, OTHER, homes.SCHEMA, "TEN")


# SDMetrics


def test_metadata_name_both_tables_and_their_key():
    found = linked_metadata(homes.SCHEMA)
    assert found["tables"]["household"]["primary_key"] == "SERIALNO"
    assert found["tables"]["person"]["columns"]["AGEP"] == {"sdtype": "numerical"}
    assert found["relationships"][0]["child_foreign_key"] == "SERIALNO"
    dates = ss.LinkedSchema(
        parent=homes.PLAIN.parent,
        child=ss.Schema({"DAY": ss.Temporal("2020-01-01", "2020-12-31", bins=4)}),
        key="id",
        order="DAY",
    )
    assert linked_metadata(dates)["tables"]["person"]["columns"]["DAY"] == {"sdtype": "datetime"}


def test_the_multi_table_report_of_sdmetrics_runs_on_what_is_drawn():
    reports = pytest.importorskip("sdmetrics.reports", reason="SDMetrics is not installed here (PyPI)")
    table = ss.open_tables(*REAL, schema=homes.SCHEMA, declared_size=250)
    release = ss.fit(Linked(base="mst"), table, ss.Budget(4, 1e-9), seed=0)
    real, made = (
        dict(zip(homes.SCHEMA.names, tables, strict=True)) for tables in (REAL, release.sample_tables(250, seed=1))
    )
    by = REAL[1].groupby("SERIALNO")
    young = REAL[1][(REAL[1]["AGEP"] < 18) & (REAL[1]["SPORDER"] > 1)].groupby("SERIALNO").size()
    keys = real["household"]["SERIALNO"]
    real["household"] = real["household"].assign(
        NP=by.size().reindex(keys).to_numpy(), N18=young.reindex(keys, fill_value=0).to_numpy()
    )
    for name, frame in made.items():  # as files of the Bureau have them: numbers where we write texts
        real[name] = real[name].astype(
            {c: str for c in frame if frame[c].dtype == object or frame[c].dtype == "string"}
        )
    report = reports.QualityReport()
    report.generate(real, made, linked_metadata(homes.SCHEMA), verbose=False)
    assert 0.3 < report.get_score() <= 1
    assert set(report.get_properties()["Property"]) >= {"Cardinality", "Intertable Trends"}
