"""INTERNAL reports: stamped, never in a release, and what they say is what was computed."""

import itertools
import math

import pandas as pd
import pytest

from helpers.pages import Page
from stratsynth import Categorical, Schema, census
from stratsynth.errors import UsageError
from stratsynth.evaluation import evaluate
from stratsynth.evaluation.comparisons.page import comparison_page
from stratsynth.evaluation.evaluations.output import write
from stratsynth.evaluation.evaluations.page import evaluation_page, in_a_paragraph
from stratsynth.evaluation.report.groups import GroupErrors, ScoreWithInterval, series_of, smallest_groups, verdict
from stratsynth.report.html import render

COLUMNS = ("AGEP", "SEX", "RAC1P", "ESR", "DIS")
SCHEMA = census.schema().restrict(COLUMNS)
HOSTILE = "<script>alert(1)</script>"


def people(rows, offset=0):
    return census.make(rows, offset=offset)[list(COLUMNS)]


@pytest.fixture(scope="module")
def evaluation():
    real, made = people(900), people(700, 5000)
    vanilla = people(700, 9000).replace({"RAC1P": {"3": "1"}})
    others = census.holdout(400)[list(COLUMNS)]
    return evaluate(
        real,
        made,
        SCHEMA,
        ["SEX", "RAC1P"],
        k=2,
        beside={"vanilla": vanilla},
        holdout=others,
        target="DIS",
        positive="1",
        area="RAC1P",
    )


def compared(**instead):
    """A comparison of two mechanisms, in the columns that a comparison has."""
    rows = []
    cells = itertools.product(("aim", "mst"), ("vanilla", "stratified", "pooled"), (0.5, 1.0, 4.0), (0, 1, 2))
    for place, (mechanism, strata, epsilon, seed) in enumerate(cells):
        for group, n in (("big", 5000), ("small", 40), (None, 5040)):
            value = (place % 7 + 1 + seed) / (10 * epsilon) * (3 if group == "small" else 1)
            base = {
                "mechanism": mechanism,
                "stratification": strata,
                "epsilon": epsilon,
                "seed": seed,
                "n": n,
                "metric": "workload_error",
                "scope": "group" if group else "everybody",
                "RACE": group,
                "clique": None,
                "value": value,
                "low": value / 2,
                "high": value * 2,
                "status": "ok",
            }
            rows += [base, base | {"clique": "A,B", "value": value * 1.5}]
    for group, n in (("big", 5000), ("small", 40), (None, 5040)):
        rows.append(
            {
                **rows[0],
                "mechanism": "subsample",
                "stratification": "subsample",
                "epsilon": math.nan,
                "n": n,
                "scope": "group" if group else "everybody",
                "RACE": group,
                "value": 0.01,
            }
        )
    return pd.DataFrame(rows).assign(**instead)


def test_an_evaluation_is_a_page_with_every_section(evaluation):
    page = Page(evaluation_page(evaluation)).check()
    for said in (
        "INTERNAL",
        "Disparity card",
        "Error by column and group",
        "The worst tables",
        "What it is good for",
        "How alike it is",
        "No certificate came with the table",
        "How to cite",
    ):
        assert said in page.text, said
    assert all(name.startswith("INTERNAL-") for name in page.files())


def test_the_card_shows_every_declared_group_with_the_figures_of_the_files(evaluation):
    table, _ = Page(evaluation_page(evaluation, name="stratified")).numbers("INTERNAL-disparity-card")
    assert len(table) == 19
    assert set(table[0]) >= {"SEX", "RAC1P", "stratified error", "vanilla error", "chance alone", "stamp"}
    frame = evaluation.workload
    frame = frame[(frame["scope"] == "group") & (frame["SEX"] == "1") & (frame["RAC1P"] == "2")].set_index("table")
    row = next(r for r in table if (r["SEX"], r["RAC1P"]) == ("1", "2"))
    for name, source in (("stratified error", "release"), ("vanilla error", "vanilla"), ("chance alone", "subsample")):
        assert float(row[name]) == pytest.approx(frame.loc[source, "value"], abs=1e-6)
    assert [r["stratified error"] for r in table if r["status"] == "not_estimable"].count("") >= 1


def test_an_evaluation_without_groups_or_what_takes_long_is_a_page_too():
    plain = evaluate(people(200), people(200, 900), SCHEMA, k=1, apart=False)
    page = Page(evaluation_page(plain)).check()
    assert "Error by column and group" not in page.text
    assert "Can a model tell" not in page.text
    assert plain.propensity is None
    assert plain.correlations is None


def test_reports_are_the_same_for_the_same_figures(evaluation):
    for page in (lambda: evaluation_page(evaluation), lambda: comparison_page(compared())):
        assert render(page()) == render(page())
    shuffled = compared().sample(frac=1, random_state=1)
    assert render(comparison_page(shuffled)).count("<tr") == render(comparison_page(compared())).count("<tr")


def test_it_is_written_beside_the_figures_but_never_into_a_release(evaluation, tmp_path):
    write(evaluation, tmp_path / "out", called="mine")
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8") == render(
        evaluation_page(evaluation, name="mine")
    )
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "certificate.json").write_text("{}", encoding="utf-8")
    for place in (tmp_path / "release" / "out", tmp_path / "release" / "a" / "out"):
        with pytest.raises(UsageError, match="release"):
            write(evaluation, place)
    assert [p.name for p in (tmp_path / "release").iterdir()] == ["certificate.json"]
    with pytest.raises(UsageError, match="exists already"):
        write(evaluation, tmp_path / "out")


def test_hostile_labels_are_shown_as_they_are():
    schema = Schema(
        {
            HOSTILE: Categorical(levels=("</title><b>", "2"), labels={"2": HOSTILE}),
            "B": Categorical(levels=("1", "2")),
        }
    )
    frame = pd.DataFrame({HOSTILE: ["</title><b>", "2"] * 30, "B": ["1", "1", "2"] * 20})
    found = evaluate(frame, frame, schema, [HOSTILE], k=2, beside={f"{HOSTILE}!": frame})
    page = Page(evaluation_page(found, name=HOSTILE)).check()
    assert page.text.count(HOSTILE) > 5


@pytest.mark.parametrize("name", ["subsample", "release", "SEX", "scope", "error"])
def test_a_table_beside_cannot_have_a_name_that_is_taken(name):
    with pytest.raises(UsageError, match="rename"):
        evaluate(people(50), people(50), SCHEMA, "SEX", beside={name: people(50)})


def test_a_release_beside_is_measured_as_if_it_were_alone(evaluation):
    alone = evaluate(
        people(900), people(700, 9000).replace({"RAC1P": {"3": "1"}}), SCHEMA, ["SEX", "RAC1P"], k=2, apart=False
    )
    mine = evaluation.workload[evaluation.workload["table"] == "vanilla"].drop(columns="table").reset_index(drop=True)
    theirs = alone.workload[alone.workload["table"] == "release"].drop(columns="table").reset_index(drop=True)
    pd.testing.assert_frame_equal(mine, theirs)


# What is said of the smallest groups


def group(name, n, vanilla, stratified, chance=0.05, width=0.01):
    errors = {
        k: ScoreWithInterval(v, v - width, v + width) for k, v in (("vanilla", vanilla), ("stratified", stratified))
    }
    return GroupErrors(name, n, errors, chance, levels={"RACE": name})


EVERYBODY = GroupErrors("everybody", 1000, {"vanilla": ScoreWithInterval(0.1), "stratified": ScoreWithInterval(0.09)})
LARGER = [group(f"L{i}", 500 + i, 0.3, 0.2) for i in range(5)]


@pytest.mark.parametrize(
    ("few", "says"),
    [
        (
            [group("a", 20, 0.2, 0.9), group("b", 30, 0.3, 0.8)],
            "error larger in both of them: it is 0.20 to 0.30 under",
        ),
        (
            [group("a", 20, 0.9, 0.2), group("b", 30, 0.8, 0.3)],
            "error smaller in both of them: it is 0.80 to 0.90 under",
        ),
        ([group("a", 20, 0.5, 0.505), group("b", 30, 0.5, 0.495)], "no difference beyond chance in both of them"),
        ([group("a", 20, 0.9, 0.2), group("b", 30, 0.2, 0.8)], "smaller in a (0.90 to 0.20) and larger in b (0.20 to"),
        ([group("a", 20, math.nan, 0.7), group("b", 30, 0.2, 0.8)], "The vanilla release lost a altogether"),
        ([group("a", 20, 0.7, math.nan), group("b", 30, 0.2, 0.8)], "The stratified release lost a altogether"),
    ],
)
def test_the_paragraph_says_what_happened_to_the_smallest_groups(few, says):
    text = smallest_groups([*LARGER, *few], EVERYBODY, "stratified", "vanilla", "Stratification")
    assert text.startswith("The smallest groups are a (20 people) and b (30 people).")
    assert says in text, text
    assert "Of the 5 larger groups, the error became smaller in 5; over everybody the error went from 0.10 to" in text


def test_noise_is_given_as_the_reason_only_where_stratification_did_harm():
    few = [group("a", 20, 0.2, 0.9), group("b", 30, 0.3, 0.8)]
    assert "noise does not shrink" in smallest_groups([*LARGER, *few], EVERYBODY, "stratified", "vanilla")
    better = [group("a", 20, 0.9, 0.2), group("b", 30, 0.8, 0.3)]
    assert "noise does not shrink" not in smallest_groups([*LARGER, *better], EVERYBODY, "stratified", "vanilla")


def test_groups_without_people_are_counted_and_one_group_is_a_sentence():
    nobody = group("c", 0, math.nan, math.nan)
    text = smallest_groups([group("a", 20, 0.2, 0.9), nobody], EVERYBODY, "stratified", "vanilla")
    assert "The smallest group is a (20 people)." in text
    assert "1 declared group has no real person" in text
    assert "none can be compared" in smallest_groups([nobody], EVERYBODY, "stratified", "vanilla")


@pytest.mark.parametrize(
    ("vanilla", "stratified", "says"), [(0.5, 0.4, "smaller"), (0.4, 0.5, "larger"), (0.5, 0.49, "no different")]
)
def test_a_change_is_one_where_intervals_have_nothing_in_common(vanilla, stratified, says):
    assert verdict(group("a", 1, vanilla, stratified), "stratified", "vanilla").startswith(says)


def test_the_paragraph_of_an_evaluation_is_computed_from_it(evaluation):
    text = in_a_paragraph(evaluation, "stratified", "vanilla")
    sizes = evaluation.workload.query("table == 'release' and scope == 'group' and n > 0").nsmallest(3, "n")["n"]
    assert all(f" {n} pe" in text for n in sizes), text


def test_usual_names_keep_their_colours():
    assert series_of(["pooled", "mine", "vanilla"]) == {"pooled": 2, "mine": 1, "vanilla": 0}


# Comparisons


def test_a_comparison_is_a_page_with_means_over_seeds():
    page = Page(comparison_page(compared())).check()
    for said in ("Disparity card: mst", "Disparity card: aim", "mst, by epsilon", "Error by group and method"):
        assert said in page.text, said
    table, _ = page.numbers("INTERNAL-error-by-epsilon-mst")
    assert len(table) == 3 * 3 * 3
    frame = compared()
    mine = frame[
        (frame["mechanism"] == "mst")
        & (frame["stratification"] == "pooled")
        & (frame["epsilon"] == 4)
        & (frame["RACE"] == "small")
        & frame["clique"].isna()
    ]
    row = next(r for r in table if (r["stratification"], r["epsilon"], r["group"]) == ("pooled", "4.0", "RACE small"))
    assert float(row["error"]) == pytest.approx(mine["value"].mean(), abs=1e-6)
    assert float(row["low"]) == pytest.approx(mine["value"].min(), abs=1e-6)
    assert float(row["chance alone"]) == 0.01


def test_a_comparison_of_one_epsilon_and_seed_without_groups_is_a_page():
    frame = compared().query("epsilon == 1 and seed == 0 and scope == 'everybody'").drop(columns="RACE")
    page = Page(comparison_page(frame, metric="workload_error", facts={"Data": "public"})).check()
    assert "Error against epsilon" not in page.text
    assert "public" in page.text


def test_hostile_names_in_a_comparison_are_shown_as_they_are():
    page = Page(comparison_page(compared(mechanism=HOSTILE, RACE=HOSTILE, clique=None), title=HOSTILE)).check()
    assert page.text.count(HOSTILE) > 5


@pytest.mark.parametrize(
    ("frame", "settings", "says"),
    [
        (compared().drop(columns="seed"), {}, "lacks the column seed"),
        (compared().iloc[:0], {}, "empty"),
        (compared(), {"metric": "beauty"}, "beauty"),
        (compared(), {"epsilon": 2.0}, "no epsilon 2"),
        (compared(scope="elsewhere"), {}, "no figure"),
    ],
)
def test_what_is_no_comparison_is_refused(frame, settings, says):
    with pytest.raises(UsageError, match=says):
        comparison_page(frame, **settings)
