"""The chapter of a release's report that answers questions in the page."""

import dataclasses
import html
import json
import re

import pandas as pd
import pytest

from helpers import browser, small
from stratsynth import Budget, Categorical, Numeric, Schema, fit, open_table
from stratsynth.adapters import CoinPress, Fixed
from stratsynth.release.page.frame import release_page
from stratsynth.report.html import render


def page_of(release):
    return render(
        release_page(release.certificate, release.measurements, release.model.schema, returns=release.model.returns)
    )


def data_of(page):
    return json.loads(html.unescape(re.search(r'data-asked="(.*?)"', page).group(1)))


@pytest.fixture(scope="module")
def release():
    return small.clear_release()  # at epsilon 1 noise may hide a hundred people, and their rates


def test_the_page_holds_the_answers_of_query(release):
    asked = {one["columns"]: one for one in data_of(page_of(release))}
    assert set(asked) == {"SEX", "GROUP", "AGE", "AGE, as numbers", "WORK"}
    assert asked["WORK"]["levels"] == ["N", "yes", "no"]
    found = {(statistic, group): rows for statistic, group, rows, _ in asked["WORK"]["answers"]}
    query = release.query(["WORK"], by=["SEX", "GROUP"]).set_index(["SEX", "GROUP"])
    figures = ["estimate", "noise_low", "noise_high", "low", "high"]
    for row, (_, cell) in zip(found["count", "SEX 1, GROUP a"], query.loc["1", "a"].iterrows(), strict=True):
        assert row == pytest.approx([cell[name] for name in figures], rel=1e-4)
    assert ("rate", "everybody") in found


def test_the_page_holds_means_and_quantiles_with_what_their_intervals_are(release):
    (asked,) = (one for one in data_of(page_of(release)) if one["columns"] == "AGE, as numbers")
    assert asked["levels"] == ["mean", "1st decile", "lower quartile", "median", "upper quartile", "9th decile"]
    found = {group: (rows, note) for _, group, rows, note in asked["answers"]}
    rows, note = found["SEX 1, GROUP a"]
    figures = ["estimate", "noise_low", "noise_high", "low", "high"]
    for place, statistic in ((0, "mean"), (3, "quantile")):
        query = release.query(["AGE"], by=["SEX", "GROUP"], statistic=statistic).set_index(["SEX", "GROUP"])
        assert rows[place] == pytest.approx(query.loc[("1", "a"), figures].tolist(), rel=1e-4)
    assert note.startswith("Intervals of quantiles reach to the ends of their bins, and hold at least as often.")
    assert None in [value for row in found["SEX 1, GROUP b"][0] for value in row], "noise hides some of a few people"


def test_the_page_has_bounds_where_strata_lack_a_table(release):
    stratum, clique = (release.measurements[name].to_pylist() for name in ("stratum", "clique"))
    kept = [not (s == "1|b" and c == "WORK") for s, c in zip(stratum, clique, strict=True)]
    lacking = dataclasses.replace(release, measurements=release.measurements.filter(kept))
    asked = {one["columns"]: one for one in data_of(page_of(lacking))}
    found = {(statistic, group): (rows, note) for statistic, group, rows, note in asked["WORK"]["answers"]}
    rows, note = found["count", "everybody"]
    query = lacking.query(["WORK"])
    assert set(query.status) == {"bounded"}
    assert rows[1] == pytest.approx(
        query.loc[1, ["estimate", "noise_low", "noise_high", "low", "high"]].tolist(), rel=1e-4
    )
    assert note.startswith("Bounds: some groups have no such table")
    assert ("count", "SEX 1, GROUP b") not in found
    assert found["count", "SEX 1, GROUP a"][1] == ""


def test_releases_without_tables_have_no_such_chapter():
    assert 'class="ask"' not in page_of(fit(CoinPress(columns=["AGE"]), small.table(), small.BUDGET))


def test_no_level_ends_the_data():
    evil = '"><script>alert(1)</script>&amp;'
    schema = Schema({"A": Categorical(levels=(evil, "b")), "B": Categorical(levels=("1", "2"))})
    frame = pd.DataFrame({"A": ["b"] * 20, "B": ["1", "2"] * 10})
    release = fit(Fixed(), open_table(frame, schema=schema, declared_size=20), small.BUDGET)
    page = page_of(release)
    assert "<script>alert" not in page
    assert data_of(page)[0]["levels"][0] == evil


def test_measured_means_are_not_called_bounds_and_large_numbers_keep_their_ends():
    columns = {
        "SEX": Categorical(levels=("1", "2")),
        "PAY": Numeric(lower=0, upper=900_001, edges=(0, 100_001, 900_001), clip=500_000),
    }
    frame = pd.DataFrame({"SEX": ["1", "2"] * 2_000, "PAY": [50_000, 700_000] * 2_000})
    release = fit(Fixed(), open_table(frame, schema=Schema(columns), declared_size=4_000), Budget(8, 1e-9))
    (asked,) = (one for one in data_of(page_of(release)) if one["columns"] == "PAY, as numbers")
    ((_, _, rows, note),) = (answer for answer in asked["answers"] if answer[1] == "everybody")
    mean, quantile = (
        release.query(["PAY"], statistic="mean"),
        release.query(["PAY"], statistic="quantile", quantile=0.9),
    )
    assert set(mean.status) == {"ok"}
    assert "Those of the mean" not in note
    assert note.endswith(f"raise the mean by 0 to {mean.above[0]:,.0f}, in as many cases.")
    assert rows[5][1:3] == quantile.loc[0, ["noise_low", "noise_high"]].tolist() == [100_001, 900_001]


@browser.needed
def test_lists_choose_among_the_answers(tmp_path):
    tables = [["SEX", "WORK"], ["AGE"]]
    release = fit(Fixed(tables=tables), small.table(), Budget(5, 1e-9))
    (tmp_path / "page.html").write_text(page_of(release), encoding="utf-8")
    with browser.Browser() as tab:
        tab.open(tmp_path / "page.html")
        assert tab.complaints() == []
        assert [url for url in tab.requests() if not url.startswith("file:")] == []
        assert tab.run("document.querySelector('.ask .unscripted')") is None
        pick = (
            "(() => {{ const list = document.querySelectorAll('.ask select')[{0}]; list.value = {1!r};"
            " list.dispatchEvent(new Event('change')); }})()"
        )
        tab.run(pick.format(0, "SEX x WORK"))
        tab.run(pick.format(1, "share of the group"))
        tab.run(pick.format(3, "2, yes"))
        rows = tab.run("[...document.querySelectorAll('.ask tbody tr')].map((row) => row.innerText)")
        (row,) = rows
        estimate = release.query(["SEX", "WORK"], statistic="rate").set_index(["SEX", "WORK"]).estimate["2", "yes"]
        assert row.split("\t")[:2] == ["2, yes", f"{100 * estimate:.1f} %"]
        tab.open(tmp_path / "page.html", width=375, phone=True)
        assert tab.run("document.documentElement.scrollWidth") <= 375
        tab.picture(tmp_path / "page.png")
