"""The report of a release: certificate and measurements, nothing else, in words and pictures."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pytest

from helpers import small
from helpers.pages import Page
from stratsynth import Budget, Categorical, Schema, Stratified, Weights, fit, open_table
from stratsynth.adapters import MST, Independent
from stratsynth.mechanisms import UNDECLARED
from stratsynth.noise import SeededEntropy
from stratsynth.release.limits import OF_THIS
from stratsynth.release.measurements import COLUMNS
from stratsynth.release.page.frame import release_page
from stratsynth.release.page.measured import measured, sizes
from stratsynth.report.html import render
from stratsynth.strata.groups import Groups

HOSTILE = "<script>alert(1)</script>"


def page_of(release, moved=None):
    schema = release.model.schema
    return Page(release_page(release.certificate, release.measurements, schema, moved)).check()


@pytest.fixture(scope="module")
def release():
    return small.small_release(seed=3)


def test_it_says_what_was_promised_and_what_was_not(release):
    page = page_of(release, {"rows": 40, "redrawn": 4, "mended": 1, "strata": {}})
    for said in (
        "Epsilon is 1 and delta is 1e-09",
        "factor of at most 2.72",
        "1 in 1,000,000,000",
        "by SEX and GROUP",
        "made up for testing",
        "The number of records that was declared",
        "10.00% of 40 rows",
        "How to cite",
        release.certificate["schema"]["sha256"],
        "not kept in a file",
    ):
        assert said in page.text, said
    assert "INTERNAL" not in page.html


def test_it_is_the_same_for_the_same_release_and_is_in_the_folder(release, tmp_path):
    folder = release.save(tmp_path / "release", rows=10, seed=1)
    page = render(release_page(release.certificate, release.measurements, release.model.schema))
    assert (folder / "report.html").read_text(encoding="utf-8") == page


def test_every_released_count_of_a_column_is_in_its_numbers(release):
    table, document = page_of(release).numbers("counts")
    frame = release.measurements.to_pandas()
    assert len(table) == len(document["rows"]) == len(frame)
    said = {(r["group"], r["column"], i): float(r["count"]) for i, r in enumerate(table)}
    assert sorted(said.values()) == sorted(frame["value"].astype(float))
    mine = frame[(frame["stratum"] == "1|a") & (frame["clique"] == "AGE")]
    theirs = [r for r in table if r["group"] == "1|a" and r["column"] == "AGE"]
    assert [r["level"] for r in theirs] == ["0-2", "3-5", "6-9"]
    assert [float(r["count"]) for r in theirs] == mine["value"].tolist()
    assert [float(r["sigma"]) for r in theirs] == pytest.approx(mine["sigma"].tolist(), rel=1e-4)


def test_a_reader_chooses_among_the_groups(release):
    page = page_of(release)
    groups = [a["value"] for a in page.all("option")]
    assert groups == ["SEX 1, GROUP a", "SEX 1, GROUP b", "SEX 2, GROUP a", "SEX 2, GROUP b"]
    assert [a["data-group"] for a in page.all("figure") if "data-group" in a] == groups


def test_without_strata_there_is_nothing_to_choose():
    page = page_of(fit(Independent(), small.table(), small.BUDGET, seed=1))
    assert page.all("select") == []
    assert "all records were measured together" in page.text


def test_sizes_are_the_weighted_mean_of_what_the_tables_add_up_to():
    table = pa.table(
        {
            "stratum": ["", "", "", "", ""],
            "question": [0] * 5,
            "clique": ["A", "A", "B", "B", "B"],
            "cell": [0, 1, 0, 1, 2],
            "value": [10, 20, 5, 5, 5],
            "sigma": [2.0, 2.0, 1.0, 1.0, 1.0],
        },
        schema=COLUMNS,
    )
    (size,) = sizes(measured(table), None)
    assert size.value == pytest.approx((30 / 8 + 15 / 3) / (1 / 8 + 1 / 3))
    assert size.sigma == pytest.approx((1 / 8 + 1 / 3) ** -0.5)


def test_a_table_measured_twice_is_one_with_less_noise():
    table = pa.table(
        {
            "stratum": ["x"] * 4,
            "question": [0, 0, 1, 1],
            "clique": ["A"] * 4,
            "cell": [0, 1, 0, 1],
            "value": [10, 0, 20, 6],
            "sigma": [2.0, 2.0, 1.0, 1.0],
        },
        schema=COLUMNS,
    )
    (found,) = measured(table)
    assert found.values == pytest.approx([18, 4.8])
    assert (found.sigma, found.times) == (pytest.approx(0.8**0.5), 2)


def test_sizes_are_close_to_the_truth_when_noise_is_small():
    release = fit(small.stratified(), small.table(), Budget(25, 1e-9), seed=1, entropy=SeededEntropy(5))
    found = {s.group: s.value for s in sizes(measured(release.measurements), None)}
    truth = small.people().groupby(["SEX", "GROUP"]).size()
    assert found["1|a"] == pytest.approx(truth["1", "a"], abs=4)
    assert found["2|b"] == pytest.approx(truth["2", "b"], abs=4)


def test_what_is_not_private_or_unverified_says_so_at_the_top(release):
    seeded = fit(small.stratified(), small.table(), small.BUDGET, seed=1, entropy=SeededEntropy(1))
    assert "NOT PRIVATE" in page_of(seeded).text
    claimed = {**release.certificate, "unverified": ["somebody: its own claim of epsilon 1"]}
    page = Page(release_page(claimed, release.measurements, release.model.schema)).check()
    assert "UNVERIFIED: the guarantee rests on somebody" in page.text
    assert "model was fitted to counts" not in page.text


def test_mechanisms_that_measure_pairs_have_one_too():
    page = page_of(fit(MST(), small.table(), small.BUDGET, seed=1))
    assert "McKenna" in page.text
    table, _ = page.numbers("tables-measured")
    assert any("," in row["columns"] for row in table)


def test_merged_groups_have_their_names_and_only_their_levels():
    weights = Weights.public(small.shares_frame(), citation="made up")
    groups = Groups(merge={"GROUP": {"any": ["a", "b"]}})
    release = fit(Stratified(Independent(), ["SEX", "GROUP"], weights, groups), small.table(), small.BUDGET, seed=1)
    page = page_of(release)
    assert release.certificate["strata"]["merged"]
    assert "1|any is GROUP a + b" in page.text
    table, _ = page.numbers("counts")
    assert {r["group"] for r in table} == set(release.measurements.to_pandas()["stratum"])
    assert not any(r["level"].startswith("cell ") for r in table)


def test_hostile_labels_and_levels_are_shown_as_they_are():
    schema = Schema(
        {
            HOSTILE: Categorical(levels=("</title><b>", "'\"&"), labels={"'\"&": HOSTILE}),
            "B": Categorical(levels=("1", "2")),
        }
    )
    people = pd.DataFrame({HOSTILE: ["</title><b>", "'\"&"] * 10, "B": ["1", "2"] * 10})
    table = open_table(people, schema=schema, declared_size=20)
    shares = pd.DataFrame({HOSTILE: ["</title><b>", "'\"&"], "share": [0.5, 0.5]})
    weights = Weights.public(shares, citation=f"{HOSTILE} 2020")
    release = fit(Stratified(Independent(), [HOSTILE], weights), table, small.BUDGET, seed=1)
    page = page_of(release)
    assert page.text.count(HOSTILE) > 3
    assert len(page.all("script")) == 1


def test_what_unprotected_may_say_is_explained():
    assert set(OF_THIS) == {
        "declared_size",
        "exact_totals",
        "holdout_people",
        "group_counts",
        "row_count",
        UNDECLARED,
    }


def test_eighteen_groups_and_twenty_columns_stay_below_two_megabytes():
    rng, parts = np.random.default_rng(0), []
    schema = Schema(
        {
            "G": Categorical(levels=tuple(f"g{i}" for i in range(18))),
            **{
                f"COLUMN{i}": Categorical(levels=tuple(f"level number {j}" for j in range(6 + 2 * i)))
                for i in range(20)
            },
        }
    )
    for g in schema.levels("G"):
        for c in schema.names[1:]:
            n = schema.size(c)
            values = {"value": rng.integers(-50, 5000, n), "sigma": 20.0, "cell": range(n), "clique": c, "stratum": g}
            parts.append(pd.DataFrame({**values, "question": 0}))
    table = pa.Table.from_pandas(pd.concat(parts), preserve_index=False).select(COLUMNS.names).cast(COLUMNS)
    certificate = dict(small.small_release(seed=1).certificate)
    charge = certificate["charges"][0]
    certificate["charges"] = [{**charge, "path": [{"G": g}]} for g in schema.levels("G")]
    certificate["strata"] = {"by": ["G"], "cells": 18, "merged": []}
    html = render(release_page(certificate, table, schema))
    page = Page(html).check()
    assert len(html.encode()) < 2_000_000
    drawn = len(page.numbers("counts")[1]["rows"])
    assert drawn <= 4000
    assert "are in measurements.parquet" in page.text
    assert len(page.numbers("group-sizes")[1]["rows"]) == 18


def test_a_release_without_tables_has_a_report(release):
    html = render(release_page(release.certificate, COLUMNS.empty_table(), release.model.schema))
    assert "No count of a single column" in Page(html).check().text


def test_what_was_spent_on_everybody_first_and_who_was_not_measured_is_said(release):
    charges = [{**release.certificate["charges"][0], "path": []}, *release.certificate["charges"]]
    table = release.measurements.filter(pa.compute.not_equal(release.measurements["stratum"].cast("string"), "2|b"))
    page = Page(release_page({**release.certificate, "charges": charges}, table, release.model.schema)).check()
    assert "A part of epsilon was spent on everybody together" in page.text
    assert "each group gets the whole" not in page.text
    assert "In 1 more group no single column was measured" in page.text
    whole = page_of(release)
    assert "each group gets the whole of it" in whole.text
    assert "no single column was measured" not in whole.text


def test_a_release_of_public_data_and_one_whose_account_names_no_delta_have_a_page_too():
    made = fit(small.stratified(), small.table(), small.BUDGET)
    ledger = dict(made.certificate["ledger"])
    for key in ("spent_delta", "note"):
        ledger.pop(key, None)
    for account, words in (
        ({**ledger, "note": "data declared public: nothing is charged"}, "Data declared public: nothing is charged."),
        (ledger, "this one included"),
    ):
        certificate = {**made.certificate, "ledger": account}
        assert words in render(release_page(certificate, made.measurements, made.model.schema, None))
