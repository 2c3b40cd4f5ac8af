"""Pages of two linked tables: what is protected comes first, and pictures are those of the rows beside the page."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import stratsynth as ss
from helpers import homes, small
from stratsynth import Numeric, Schema
from stratsynth.adapters import Linked
from stratsynth.release.drawn_rows import DrawnRows
from stratsynth.release.page import words
from stratsynth.release.page.families import families, generations
from stratsynth.release.page.frame import release_page


@pytest.fixture(scope="module")
def release():
    table = ss.open_tables(*homes.tables(300), schema=homes.SCHEMA, declared_size=300)
    return ss.fit(Linked(base="mst", children="chain"), table, ss.Budget(4, 1e-9), seed=0)


def drawn(release, n=250):
    return release.model.linked_tables(n, np.random.default_rng(2))


def page(release, tables):
    record = {**release.certificate, "drawn": {"parents": 1, "rows": 2, "backed_off": {"REM": 3}, "relaxed": 4}}
    record["drawn"]["other_bands"] = 0
    schema, returns = release.model.schema, release.model.returns
    return release_page(record, release.measurements, schema, returns=returns, tables=tables)


def test_the_first_sentence_says_what_is_protected_and_its_worth_for_one_person(release):
    first = page(release, drawn(release)).lead[0]
    assert first == (
        "Protected is one household with all its person rows: whether it is in the data is hidden with epsilon 4 and "
        f"delta 1e-09; for a single person of a household that stays, that is worth an epsilon of "
        f"{release.statement.prices['replace']:.4g}."
    )
    assert release.statement.prices["replace"] > 4
    assert words.protected(small.small_release(seed=2).statement) == []


def test_pictures_are_of_the_rows_that_were_drawn(release):
    tables = drawn(release)
    parents, persons = (table.to_pandas() for table in tables.values())
    (chapter,) = [each for each in page(release, tables).sections if each.name == "families"]
    assert chapter.title == "The households"
    assert "REM in 3" in dict(chapter.facts)["Drawn with less"]
    shown = {figure.title: figure for figure in chapter.figures}
    share = {name: value for _, name, value in shown["How large a household is"].numbers.rows}
    size = persons.groupby("SERIALNO").size()
    assert share["2 person rows"] == pytest.approx((size == 2).mean())
    two = {row[0]: row[1:] for row in shown["N18 by size"].numbers.rows}["2"]
    met = parents[parents["NP"] == 2]
    assert two == pytest.approx([(met["N18"] == young).mean() for young in range(3)] + [0.0])
    first, second = (persons.groupby("SERIALNO")["AGEP"].nth(i).reset_index(drop=True) for i in (0, 1))
    pair = shown["AGEP of the first two"].numbers
    assert sum(sum(row[1:]) for row in pair.rows) == pytest.approx(1)
    assert len(second) == (size > 1).sum()
    apart = [row for row in shown["How far apart they are in AGEP"].numbers.rows if row[0].startswith("Second")]
    own = persons.assign(before=persons["AGEP"].shift())[persons["SPORDER"] == 2]
    assert {name: s for _, name, s in apart}["0"] == pytest.approx((own["AGEP"] == own["before"]).mean())
    income = {row[0]: row for row in shown["HINCP by size"].numbers.rows}
    assert income["1"][1] == (size == 1).sum()
    assert income["1"][3] == pytest.approx(parents.loc[parents["NP"] == 1, "HINCP"].median())
    assert [row[0] for row in shown["The table person"].numbers.rows] == ["AGEP", "SEX", "PINCP"]
    columns = dict(shown["The table household"].numbers.rows)
    assert list(columns) == ["TEN", "HINCP", "KIND", "NP", "N18"]
    assert columns["NP"].startswith(f"1 to {parents['NP'].max()}, median")
    assert len(first) == len(parents)


def test_generations_are_counted_upwards_by_the_adult_age():
    numbers = np.array([70, 40, 10, 52, 30, np.nan, 0, 17, 34, 36])
    home = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    assert generations(home, numbers, 18, 4).tolist() == [3, 2, 2, 0]


def test_measured_columns_are_chosen_by_counted_table(release):
    (chapter,) = [each for each in page(release, drawn(release)).sections if each.name == "columns"]
    assert list(chapter.groups) == [
        "households with their first person",
        "second person rows",
        "third and further person rows",
    ]


def test_tables_without_a_row_have_no_pictures_and_the_least_schema_has_some(release):
    assert not [each for each in page(release, drawn(release, 0)).sections if each.name == "families"]
    parents = pa.table({"SERIALNO": [1, 2, 3], "TEN": ["1", "2", "2"]})
    persons = pa.table({"SERIALNO": [1, 1, 3], "SPORDER": [1, 2, 1], "SEX": ["1", "2", "1"]})
    tables = {"household": parents, "person": persons}
    (chapter,) = families(homes.PLAIN, tables, release.statement)
    titles = [figure.title for figure in chapter.figures]
    assert titles == ["How large a household is", "The table household", "The table person"]
    assert DrawnRows(homes.PLAIN, tables).size.tolist() == [2, 0, 1]
    assert DrawnRows(homes.PLAIN, tables).place.tolist() == [0, 1, 0]


def test_dates_are_spelt_as_dates():
    visit = Schema({"DAY": ss.Temporal("2020-01-01", "2020-12-31", bins=4), "COST": Numeric(0, 10, bins=2)})
    linked = ss.LinkedSchema(
        parent=homes.PLAIN.parent, child=visit, key="id", order="DAY", difference="DAY", names=("patient", "visit")
    )
    days = pd.to_datetime(["2020-02-01", "2020-03-01", "2020-05-01"])
    tables = {
        "patient": pa.table({"id": [1, 2], "TEN": ["1", "2"]}),
        "visit": pa.table({"id": [1, 1, 2], "DAY": pa.array(days.date), "COST": [1.0, 2.5, 3.0]}),
    }
    (chapter,) = families(linked, tables, small.small_release(seed=2).statement)
    shown = {figure.title: figure for figure in chapter.figures}
    assert "2020−" not in str(shown["The table visit"].numbers.rows)
    assert "2020-02-01 to 2020-05-01" in str(shown["The table visit"].numbers.rows)
    assert "Generations" not in shown
