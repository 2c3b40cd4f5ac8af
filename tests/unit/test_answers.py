"""Questions to a release: estimates, intervals that hold, and what is not estimable."""

import dataclasses
import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

from helpers import small
from stratsynth import Budget, Groups, Stratified, Weights, fit
from stratsynth.adapters import MST, Fixed, Independent, Pooled
from stratsynth.answers import Query
from stratsynth.answers.ask import answers
from stratsynth.answers.intervals import RatioOfSums
from stratsynth.answers.release_answers import HIDDEN
from stratsynth.answers.squares import Squares
from stratsynth.answers.tables import Leaf, Noisy, Tables
from stratsynth.errors import ReleaseError, SchemaError, Unsupported, UsageError
from stratsynth.evaluation.scores.coverage import interval_coverage, real_values
from stratsynth.evaluation.scores.marginals import coded
from stratsynth.models.intervals import NORMAL_95
from stratsynth.noise import SeededEntropy
from stratsynth.release.measurements import COLUMNS
from stratsynth.release.opening import open_answers
from stratsynth.schema import Unit

FIGURES = ["estimate", "noise_sd", "noise_low", "noise_high", "low", "high", "status", "above", "model", "note"]
FIGURES += ["design_low", "design_high"]


@pytest.fixture(scope="module")
def stratified():
    return small.small_release()


@pytest.fixture(scope="module")
def clear():
    """So little noise that counts are exact to within one."""
    return fit(small.stratified(), small.table(), Budget(25, 1e-6, first=0), entropy=SeededEntropy(1))


def rows():
    """The rows as a fit of the schema reads them."""
    frame = small.people()
    return frame.assign(AGE=frame.AGE.clip(0, 9), WORK=frame.WORK.where(frame.WORK != "zebra", "no"))


@pytest.mark.parametrize("statistic", ["count", "share", "rate", "mean"])
@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_the_order_of_a_quantile_is_of_no_other_statistic(stratified, statistic, quantile):
    with pytest.raises(UsageError, match=rf"{quantile} is the order of a quantile, and a {statistic} is asked for"):
        stratified.query(["AGE"], statistic=statistic, quantile=quantile)
    median = stratified.query(["AGE"], statistic="quantile")
    assert median.equals(stratified.query(["AGE"], statistic="quantile", quantile=0.5))


def test_a_frame_has_the_groups_then_the_cells_then_the_figures(stratified):
    found = stratified.query(["WORK"], by=["SEX"])
    assert list(found.columns) == ["SEX", "WORK", *FIGURES]
    assert found.SEX.tolist() == ["1"] * 3 + ["2"] * 3
    assert found.WORK.tolist() == ["N", "yes", "no"] * 2
    assert (found.noise_low < found.estimate).all()
    assert (found.estimate < found.noise_high).all()
    assert (found.low <= found.noise_low).all()
    assert (found.high >= found.noise_high).all()


def test_with_hardly_any_noise_estimates_are_what_the_rows_say(clear):
    real = rows()
    counts = clear.query(["WORK"], by=["SEX", "GROUP"]).set_index(["SEX", "GROUP", "WORK"]).estimate
    truth = real.groupby(["SEX", "GROUP", "WORK"]).size()
    assert all(round(value) == truth.get(cell, 0) for cell, value in counts.items())
    rate = clear.query(["WORK"], by=["SEX"], where={"GROUP": "a"}, statistic="rate").set_index(["SEX", "WORK"]).estimate
    inside = real[real.GROUP == "a"]
    for sex, work in itertools.product("12", ("N", "yes", "no")):
        true = (work == inside[sex == inside.SEX].WORK).mean()
        assert rate[sex, work] == pytest.approx(true, abs=0.02)
    share = clear.query(["WORK"], by=["SEX"], statistic="share").estimate
    assert share.sum() == pytest.approx(1, abs=1e-9)
    middles = real.AGE.map(lambda age: (1.0, 4.0, 7.5)[0 if age < 3 else 1 if age < 6 else 2])
    mean = clear.query(["AGE"], by=["SEX"], statistic="mean").set_index("SEX").estimate
    assert mean.to_dict() == pytest.approx(middles.groupby(real.SEX).mean().to_dict(), abs=0.15)
    gap = clear.query(["AGE"], by=["SEX"], statistic="mean", versus={"SEX": "1"}).set_index("SEX").estimate
    assert gap["2"] == pytest.approx(mean["2"] - mean["1"], abs=1e-9)
    assert gap["1"] == 0


def test_what_real_rows_answer_is_what_pandas_counts():
    real, codes = rows(), coded(small.people(), small.SCHEMA)
    queries = [
        Query(["WORK"], by=["SEX"], statistic="rate"),
        Query(["AGE"], by=["GROUP"], statistic="quantile"),
        Query(where={"SEX": "1", "WORK": ["yes", "no"]}),
        Query(["AGE"], statistic="mean"),
    ]
    rate, median, count, mean = real_values(codes, small.SCHEMA, queries, {"AGE": real.AGE.to_numpy(float)})
    assert rate.tolist() == pytest.approx(
        [(w == real[s == real.SEX].WORK).mean() for s in "12" for w in ("N", "yes", "no")]
    )
    assert count.tolist() == pytest.approx([((real.SEX == "1") & real.WORK.isin(["yes", "no"])).sum()])
    assert mean.tolist() == [real.AGE.mean()]
    ages = [sorted(real[group == real.GROUP].AGE) for group in "ab"]
    assert median.tolist() == [some[(len(some) - 1) // 2] for some in ages]  # half do not exceed it


def test_groups_add_up_and_so_do_levels(stratified):
    whole = stratified.query().estimate[0]
    for query in ({"columns": ["WORK"]}, {"columns": ["AGE"], "by": ["SEX"]}, {"by": ["SEX", "GROUP"]}):
        assert stratified.query(**query).estimate.sum() == pytest.approx(whole, abs=1e-6)
    parts = stratified.query(["WORK"], by=["GROUP"]).groupby("WORK").estimate.sum()
    assert parts.to_dict() == pytest.approx(stratified.query(["WORK"]).set_index("WORK").estimate.to_dict(), abs=1e-6)


def test_what_no_table_covers_is_not_estimable_and_says_what_is_near(stratified):
    found = stratified.query(["WORK", "AGE"])
    assert set(found.status) == {"not_estimable"}
    assert found[FIGURES[:6]].isna().to_numpy().all()
    assert found.note[0] == "no measured table covers WORK x AGE; there are WORK; AGE"
    assert found.model.sum() == pytest.approx(stratified.query().estimate[0], rel=1e-6)


def test_groups_that_lack_a_table_are_named_with_a_question_that_has_an_answer(stratified):
    """The group of women of b lacks its table of WORK, as a small group of `pooled` may."""
    gone = [
        not (stratum == "2|b" and clique == "WORK")
        for stratum, clique in zip(
            stratified.measurements["stratum"].to_pylist(), stratified.measurements["clique"].to_pylist(), strict=True
        )
    ]
    release = dataclasses.replace(stratified, measurements=stratified.measurements.filter(gone))
    [note] = set(release.query(["WORK"], by=["SEX"]).note) - {""}
    assert note.startswith("1 group of 4 without a table of WORK: 2|b")
    assert "; there is an answer where GROUP is a" in note
    assert set(release.query(["WORK"], by=["SEX"], where={"GROUP": "a"}).status) <= {"ok", "small"}


def test_a_group_that_may_be_empty_has_counts_and_no_rates():
    release = fit(small.stratified(), small.table(), Budget(0.05, 1e-9), entropy=SeededEntropy(3))
    assert "not_estimable" not in set(release.query(["WORK"], by=["SEX", "GROUP"]).status)
    found = release.query(["WORK"], by=["SEX", "GROUP"], statistic="rate")
    empty = found[(found.SEX == "2") & (found.GROUP == "b")]
    assert set(empty.status) == {"not_estimable"}
    assert set(empty.note) == {HIDDEN}
    assert set(release.query(["AGE"], by=["SEX", "GROUP"], statistic="quantile").status) >= {"not_estimable"}


def public_sizes(release, people, verdict="agrees"):
    """Release whose certificate states this public size for one group."""
    stated = [
        {**each, "declared": people, "share": None, "verdict": verdict} if each["stratum"] == "1|a" else each
        for each in release.certificate["declared_and_measured"]
    ]
    return dataclasses.replace(release, certificate={**release.certificate, "declared_and_measured": stated})


@pytest.mark.parametrize("statistic", ["rate", "mean", "quantile"])
def test_a_group_that_noise_hides_by_its_public_size_has_no_quotient_however_large_it_looks(clear, statistic):
    columns = ["WORK"] if statistic == "rate" else ["AGE"]
    asked = {"columns": columns, "by": ["SEX", "GROUP"], "statistic": statistic}

    def known(release):
        found = release.query(**asked)
        return set(found[(found.SEX == "1") & (found.GROUP == "a")].status)

    assert "not_estimable" not in known(clear)
    assert known(public_sizes(clear, 0.01)) == {"not_estimable"}
    assert "not_estimable" not in known(public_sizes(clear, 0.01, "far more"))  # what was declared is wrong
    whole = public_sizes(clear, 0.01).query(columns, by=["SEX"], statistic=statistic)
    assert "not_estimable" not in set(whole.status)


@pytest.mark.parametrize(("rows", "known"), [(28.0, False), (32.0, True)])
def test_rates_need_a_denominator_that_is_far_from_nobody(rows, known):
    """The sum of five cells of variance 20 has a deviation of 10: less than 30 rows may be none."""
    values = np.array([[rows, 0.0, 0.0, 0.0, 0.0]])
    table = Noisy(("AGE",), values[0], 5.0**2 * 4 / 5)
    squares = Squares(Tables(WORLD, frozenset(), (Leaf("", {}, [table]),), ()))
    found = [answers(squares, [Query(["AGE"], statistic=s)])[0] for s in ("share", "mean", "quantile")]
    assert [bool(np.isfinite(one.estimate[0])) for one in found] == [known] * 3
    assert all(one.measured.all() for one in found)


def test_the_ends_of_a_quotient_are_where_its_test_just_passes():
    numbers = [np.array([x]) for x in (40.0, 100.0, 90.0, 30.0, 160.0, 40.0)]
    found = RatioOfSums(*numbers, share=True).answer(0.95, 1.0)
    a, b, va, c, vb, _ = (x[0] for x in numbers)
    for r, sampling in ((found.noise_low[0], 0), (found.noise_high[0], 0), (found.low[0], 1), (found.high[0], 1)):
        spread = va - 2 * r * c + r**2 * vb + sampling * b * r * (1 - r)
        assert abs(a - r * b) == pytest.approx(NORMAL_95 * math.sqrt(spread), rel=1e-9)
    assert found.estimate[0] == 0.4


def test_merged_strata_and_noisy_weights_and_pooled_fits_are_answered():
    merged = Stratified(
        Independent(),
        ["SEX", "GROUP"],
        Weights.public(small.shares_frame(), citation="made up for testing"),
        Groups(merge={"GROUP": {"either": ["a", "b"]}}),
    )
    release = fit(merged, small.table(), Budget(25, 1e-6, first=0), entropy=SeededEntropy(1))
    real = rows()
    found = release.query(by=["SEX", "GROUP"]).set_index(["SEX", "GROUP"]).estimate
    assert {cell: round(value) for cell, value in found.items()} == real.groupby(["SEX", "GROUP"]).size().to_dict()
    assert set(release.query(["WORK"], by=["GROUP"]).status) == {"not_estimable"}
    assert set(release.query(["WORK"], by=["SEX"]).status) <= {"ok", "small"}
    noisy = Stratified(Fixed(tables=[["WORK"]]), ["SEX"], Weights.private(share=0.5))
    one = fit(noisy, small.table(), small.BUDGET).query(by=["SEX"]).noise_sd[0]
    two = (
        fit(Stratified(Fixed(tables=[["WORK"]]), ["SEX"], small.even(small.SCHEMA, "SEX")), small.table(), small.BUDGET)
        .query(by=["SEX"])
        .noise_sd[0]
    )
    # half of rho on counts of the groups, half on three cells each: 1 / (1/2 + 1/6) against 1 / (1/3)
    assert (one / two) ** 2 == pytest.approx((1 / (1 / 2 + 1 / 6)) / 3, rel=1e-6)
    pooled = fit(
        Pooled(base="mst", by=["SEX"], weights=small.even(small.SCHEMA, "SEX"), share=0.5),
        small.table(),
        Budget(20, 1e-6, first=0),
    )
    assert set(pooled.query(["WORK"]).status) <= {"ok", "small"}


def test_strata_that_are_divided_again_are_answered(tmp_path):
    inner = Stratified(Independent(), ["GROUP"], small.even(small.SCHEMA.without(["SEX"]), "GROUP"))
    how = Stratified(inner, ["SEX"], small.even(small.SCHEMA, "SEX"))
    release = fit(how, small.table(), Budget(25, 1e-6, first=0), entropy=SeededEntropy(1))
    found = release.query(["WORK"], by=["SEX", "GROUP"]).set_index(["SEX", "GROUP", "WORK"]).estimate
    truth = rows().groupby(["SEX", "GROUP", "WORK"]).size()
    assert all(round(value) == truth.get(cell, 0) for cell, value in found.items())
    saved = release.save(tmp_path / "release")
    assert open_answers(saved).frame(Query(by=["SEX"])).equals(release.query(by=["SEX"]))


def test_rows_of_one_unit_widen_the_sampling_error():
    table = Noisy(("AGE",), TRUE[1], 1.0)
    unit = dataclasses.replace(WORLD, unit=Unit(column="PERSON", max_rows=4))
    one, four = (
        answers(Squares(Tables(schema, frozenset(), (Leaf("", {}, [table]),), ())), [Query(["AGE"], statistic="mean")])
        for schema in (WORLD, unit)
    )
    assert four[0].noise_high[0] == one[0].noise_high[0]
    wide, narrow = (answer[0].high[0] - answer[0].estimate[0] for answer in (four, one))
    assert wide / narrow == pytest.approx(2, abs=0.02)


def test_the_names_of_merges_survive_saving(tmp_path):
    merged = Stratified(
        Independent(), ["GROUP"], small.even(small.SCHEMA, "GROUP"), Groups(merge={"GROUP": {"either": ["a", "b"]}})
    )
    release = fit(merged, small.table(), small.BUDGET)
    again = type(release).load(release.save(tmp_path / "release"))
    assert again.query(by=["GROUP"]).equals(release.query(by=["GROUP"]))


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"columns": ["WORKS"]}, SchemaError, "did you mean 'WORK'"),
        ({"columns": ["WORK"], "by": ["WORK"]}, UsageError, "both columns and by"),
        ({"columns": ["WORK"], "where": {"SEX": "3"}}, SchemaError, "no level '3'"),
        ({"columns": ["WORK"], "where": {"SEX": 3}}, SchemaError, "no level '3'"),
        ({"columns": ["WORK"], "where": {"SEX": "3"}}, SchemaError, "its levels are 1, 2$"),
        ({"columns": ["WORK"], "where": {"AGE": "4"}}, SchemaError, "the bins of its numbers are 0-2, 3-5, 6-9$"),
        ({"columns": 5}, UsageError, "columns is a list of columns"),
        ({"columns": ["WORK", "AGE", "WORK"]}, UsageError, "columns names WORK twice"),
        ({"columns": ["WORK"], "by": ["SEX"], "versus": {"SEX": ["1"]}}, UsageError, "versus has one level of SEX"),
        ({"columns": ["WORK"], "where": "SEX=1"}, UsageError, "a table from columns to levels"),
        ({"columns": ["WORK"], "statistic": "mean"}, UsageError, "is not numeric"),
        ({"columns": ["AGE", "WORK"], "statistic": "mean"}, UsageError, "of one column"),
        ({"columns": ["AGE"], "statistic": "median"}, UsageError, 'must be "count" or'),
        ({"columns": ["WORK"], "level": 1}, UsageError, "below 1"),
        ({"columns": ["WORK"], "versus": {"SEX": "1"}}, UsageError, "not among the columns"),
        ({"columns": ["AGE"], "statistic": "quantile", "by": ["SEX"], "versus": {"SEX": "1"}}, Unsupported, "quantile"),
    ],
)
def test_questions_that_make_no_sense_are_refused(stratified, wrong, error, message):
    with pytest.raises(error, match=message):
        stratified.query(**wrong)


def test_many_questions_at_once_are_answered_as_one_by_one(stratified):
    levels = [{"SEX": "1"}, {"SEX": "2", "GROUP": ["a", "b"]}, {"SEX": "2"}, {}]
    queries = [Query(["WORK"], where=where, statistic=s) for where in levels for s in ("count", "share", "rate")]
    queries += [Query(["AGE"], where=where, statistic=s) for where in levels for s in ("mean", "quantile")]
    found = stratified.answers.frames(queries)
    assert list(found.columns) == ["query", "cell", *FIGURES]
    for number, query in enumerate(queries):
        one = stratified.answers.frame(query)
        here = found[found["query"] == number].reset_index(drop=True)
        assert np.allclose(here[FIGURES[:6]], one[FIGURES[:6]], equal_nan=True)
    assert found.cell[0] == "WORK=N"


@pytest.mark.parametrize(
    ("column", "old", "new"),
    [
        ("clique", "AGE", "AGE,AGE"),
        ("clique", "AGE", "HEIGHT"),
        ("clique", "AGE", "SEX"),
        ("sigma", None, -1.0),
        ("sigma", None, math.nan),
        ("cell", 0, 7),
    ],
)
def test_damaged_measurements_are_refused_by_name(column, old, new):
    release = fit(Independent(), small.table(), small.BUDGET)
    frame = release.measurements.to_pandas()
    wrong = frame[column] == old if old is not None else frame[column] > 0
    frame[column] = frame[column].astype(object).mask(wrong, new)
    table = pa.Table.from_pandas(frame, preserve_index=False).cast(COLUMNS)
    with pytest.raises(ReleaseError, match="measurements are damaged"):
        dataclasses.replace(release, measurements=table).query(["AGE"])


def test_choices_are_said_where_tables_were_chosen(stratified):
    assert stratified.answers.conditions == ()
    (said,) = fit(MST(), small.table(), small.BUDGET).answers.conditions
    assert "chosen from earlier noisy answers" in said


TRUE = np.array([[300, 40, 160, 9, 90], [2000, 700, 10, 400, 900], [50, 5, 30, 0, 12]], dtype=float)
QUESTIONS = [
    Query(["AGE"], by=["SEX"]),
    Query(["AGE"], by=["SEX"], statistic="rate"),
    Query(["AGE"], statistic="share"),
    Query(["AGE"], by=["SEX"], statistic="mean"),
    Query(["AGE"], by=["SEX"], statistic="quantile"),
    Query(["AGE"], by=["SEX"], statistic="rate", versus={"SEX": "a"}),
]
WORLD = type(small.SCHEMA)(
    {
        "SEX": type(small.SCHEMA.column("SEX"))(levels=("a", "b", "c")),
        "AGE": type(small.SCHEMA.column("AGE"))(lower=0, upper=4, integer=True),
    }
)


def intervals(times, counted, stated, rng):
    """Rates at which intervals at 90 % hold: of noise, and of noise and sampling, by group and for everybody."""
    held = {query: [[], []] for query in map(id, QUESTIONS)}
    whole = TRUE.sum()
    asked = [Query(q.columns, q.where, q.by, q.statistic, 0.9, versus=q.versus) for q in QUESTIONS]
    true = [a.estimate for a in answers(exact(TRUE), asked)]
    for _ in range(times):
        people = rng.multinomial(int(whole), TRUE.ravel() / whole).reshape(TRUE.shape).astype(float)
        leaves = [
            Leaf(str(i), {"SEX": [i]}, [Noisy(("AGE",), people[i] + rng.normal(0, counted, 5), stated**2)])
            for i in range(3)
        ]
        everybody = Noisy(("AGE",), people.sum(axis=0) + rng.normal(0, counted, 5), stated**2)
        squares = Squares(Tables(WORLD, frozenset({"SEX"}), tuple(leaves), (everybody,)))
        own = [a.estimate for a in answers(exact(people), asked)]
        for i, answer in enumerate(answers(squares, asked)):
            known = np.isfinite(answer.estimate) & (answer.noise_sd > 0) & np.isfinite(own[i])
            held[id(QUESTIONS[i])][0] += ((answer.noise_low <= own[i]) & (own[i] <= answer.noise_high))[known].tolist()
            held[id(QUESTIONS[i])][1] += ((answer.low <= true[i]) & (true[i] <= answer.high))[known].tolist()
    return [[float(np.mean(part)) for part in held[id(query)]] for query in QUESTIONS]


def exact(values):
    return Squares(Tables(WORLD, frozenset(), (Leaf("", {}, [Noisy(("SEX", "AGE"), values, 1e-12)]),), ()))


def test_intervals_hold_as_often_as_they_say():
    for query, held in zip(QUESTIONS, intervals(150, 6.0, 6.0, np.random.default_rng(0)), strict=True):
        # those of quantiles at least as often; cells of one fit are correlated, and the test below says what this sees
        most = 1.0 if query.statistic == "quantile" else 0.945
        assert 0.855 < min(held) <= max(held) <= most


def test_the_same_test_fails_where_noise_is_understated_or_overstated():
    for counted in (6.0 / 0.7, 6.0 / 1.4):
        found = intervals(100, counted, 6.0, np.random.default_rng(1))
        exactly = [noise for query, (noise, _) in zip(QUESTIONS, found, strict=True) if query.statistic != "quantile"]
        assert all(abs(noise - 0.9) > 0.045 for noise in exactly)


def test_published_intervals_hold_what_the_rows_say_group_by_group():
    release = fit(small.stratified(), small.table(), Budget(2, 1e-9), entropy=SeededEntropy(5))
    found = interval_coverage(small.people(), release, by=["SEX"])
    assert list(found.columns) == ["SEX", "n", "value", "low", "high", "not_estimable", "status"]
    assert found.n.tolist() == [8, 8]  # of GROUP, AGE and WORK
    assert (found.value > 0.6).all()
    nothing = interval_coverage(small.people(), fit(Independent(), small.table(), small.BUDGET), by=["SEX"])
    assert nothing.status.tolist() == ["not_estimable"] * 2
    assert math.isnan(nothing.value[0])
