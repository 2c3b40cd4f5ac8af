"""Comparison of paid answers with declared sizes: post-processing, in certificate, report and on the terminal."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from helpers.command import stratsynth
from helpers.small import SCHEMA, people
from stratsynth import Categorical, Numeric, Schema, Stratified, Weights, fit, open_table
from stratsynth.adapters import MST, ClippedMean, Independent
from stratsynth.certificate import Certificate
from stratsynth.errors import NoticeWarning
from stratsynth.noise import SeededEntropy
from stratsynth.release.certificate import read_certificate
from stratsynth.release.equivalence import EquivalenceTest
from stratsynth.release.notices import measured_line
from stratsynth.release.page.summary import summary
from stratsynth.schema.weight import RowWeight
from stratsynth.strata import crossing

BY = ["SEX", "GROUP"]
BUDGET = replace(small.BUDGET, first=0)  # a first question would stop many of these fits
TRUE = {("1", "a"): 2 / 6, ("2", "a"): 2 / 6, ("1", "b"): 1 / 6, ("2", "b"): 1 / 6}


def shares(given):
    return pd.DataFrame([{"SEX": s, "GROUP": g, "share": w} for (s, g), w in given.items()])


def made(rows, size, how=None, schema=SCHEMA, seed=1):
    how = how or Stratified(Independent(), by=BY, weights=Weights.public(shares(TRUE), citation="a yearbook"))
    table = open_table(people(rows), schema=schema, declared_size=size)
    return fit(how, table, BUDGET, entropy=SeededEntropy(seed)).certificate


def kinds(certificate):
    return [notice["kind"] for notice in certificate.get("notices", [])]


@pytest.mark.parametrize("how", [None, MST(), Stratified(MST(), by=BY, weights=Weights.private(share=0.2))])
def test_a_fit_that_read_what_was_declared_says_how_much_and_warns_of_nothing(how):
    found = made(6000, 6000, how)
    first = found["declared_and_measured"][0]
    assert (first["what"], first["declared"], first["verdict"]) == ("declared_size", 6000, "agrees")
    assert abs(first["measured"] - 6000) < 5 * first["noise_sd"] < 200
    assert kinds(found) == []
    assert re.search("Declared and measured  Declared 6,000; measured (6,0|5,9)", summary(found))


def test_rows_that_the_schema_rejects_leave_a_release_with_nothing_in_it():
    found = made(0, 5000)
    assert kinds(found) == ["empty"]
    warned = summary(found).split("\n")
    assert warned[0].startswith("*** NOT PRIVATE")
    assert warned[1].startswith("*** NOTHING IN IT: declared 5,000; measured ")
    assert "schema check" in summary(found)


@pytest.mark.parametrize(
    ("rows", "declared", "words"),
    [(50, 5000, "far fewer"), (3000, 5000, "fewer"), (6000, 60, "far more"), (6000, 4000, "more")],
)
def test_a_declared_size_that_is_wrong_is_noticed(rows, declared, words):
    found = made(rows, declared, MST())
    assert kinds(found) == ["declared_size"]
    assert f": {words} people were read than declared" in found["notices"][0]["text"]


def test_a_group_far_from_its_declared_share_is_named():
    wrong = {**TRUE, ("1", "a"): 0.02, ("2", "a"): 2 / 6 + 2 / 6 - 0.02}
    found = made(6000, 6000, Stratified(Independent(), BY, Weights.public(shares(wrong), citation="made up")))
    assert "declared_shares" in kinds(found)
    assert "1|a (declared 120, measured " in found["notices"][0]["text"]


NEW_YORK = [(12_159, 9_318, 22), (10_080, 7_845, 24), (588, 360, 24), (58_590, 68_143, 76), (16_170, 11_216, 23)]
"""Declared, measured and noise of five groups of a state's file, of which four were said to agree."""


@pytest.mark.parametrize(("declared", "measured", "noise"), NEW_YORK)
def test_no_group_agrees_that_noise_cannot_explain_and_the_margin_does_not_hold(declared, measured, noise):
    total = (210_150, 77**2, noise**2)
    found = EquivalenceTest(0.05, 19).share(declared / 210_150, measured, noise**2, total)
    assert found.verdict == "differs"
    assert found.value == pytest.approx(measured / declared - 1)
    assert found.low < found.value < found.high
    assert abs(found.z) > 6


def test_a_small_difference_agrees_however_sure_and_is_stated():
    """Equivalence: 4.5 per cent at 72 standard deviations is within a margin of 5, and beyond one of 4."""
    within, beyond = (EquivalenceTest(m, 19).size(19_867_000, 18_967_320, 12_547**2) for m in (0.05, 0.04))
    assert (within.verdict, beyond.verdict) == ("agrees", "differs")
    assert within.z == pytest.approx(-71.7, abs=0.1)
    assert (round(within.low, 3), round(within.high, 3)) == (-0.047, -0.043)


def test_what_noise_hides_is_neither_agreed_nor_refused():
    assert EquivalenceTest(0.05, 19).size(100, 100, 15**2).verdict == "not to be told"
    assert EquivalenceTest(0.05, 1).size(1000, 1051, 1).verdict == "not to be told", "the margin is in the interval"
    assert EquivalenceTest(0.05, 1).size(None, 1000, 1).verdict == "not declared"


def test_of_a_sample_of_few_records_nothing_is_told():
    total = (10_000, 25.0, 25.0)
    assert EquivalenceTest(0.05, 5).share(0.01, 200, 25.0, total).verdict == "differs"
    assert EquivalenceTest(0.05, 5, records=2_000).share(0.01, 200, 25.0, total).verdict == "not to be told"
    known, sampled = (EquivalenceTest(0.05, 5, records=n).share(0.3, 3000, 25.0, total) for n in (None, 2_000))
    assert (known.verdict, sampled.verdict) == ("agrees", "not to be told")
    assert sampled.low < known.low < known.high < sampled.high


def test_everything_that_was_compared_is_stated():
    wrong = {**TRUE, ("1", "a"): 0.02, ("2", "a"): 2 / 6 + 2 / 6 - 0.02}
    weights = Weights.public(shares(wrong), citation="a yearbook", records=5_000)
    found = made(6000, 6000, Stratified(Independent(), BY, weights))
    assert found["agreement"] == {
        "margin": 0.05, "level": 0.95, "correction": "Bonferroni", "statements": 5, "records": 5_000
    }  # fmt: skip
    assert {c["stratum"]: c["verdict"] for c in found["declared_and_measured"]} == {
        "": "agrees", "1|a": "differs", "1|b": "not to be told", "2|a": "differs", "2|b": "not to be told"
    }  # fmt: skip
    text = " ".join(summary(found).split())
    assert "1|a 120 " in text
    assert "Agrees: the interval lies within 5 %; differs: it lies beyond; else it is not to be told" in text
    assert "counted in 5,000 records" in text
    assert "of 4 groups 0 agree with their declared shares within 5 %, 2 differ by more" in text


def test_the_margin_is_the_recipes_own():
    how = Stratified(Independent(), BY, Weights.public(shares(TRUE), citation="a yearbook"))
    table = open_table(people(6000), schema=SCHEMA, declared_size=5500)
    stated = [fit(how, table, BUDGET, margin=m, entropy=SeededEntropy(1)).certificate for m in (0.05, 0.2)]
    assert [s["declared_and_measured"][0]["verdict"] for s in stated] == ["differs", "agrees"]
    assert [kinds(s) for s in stated] == [["declared_size"], []]
    for margin in (0, 1, -0.1, "much"):
        with pytest.raises(ss.errors.UsageError, match="margin"):
            fit(how, table, BUDGET, margin=margin)


def test_every_notice_is_a_warning():
    wrong = Weights.public(shares({**TRUE, ("1", "a"): 0.02, ("2", "a"): 4 / 6 - 0.02}), citation="a yearbook")
    table = open_table(people(6000), schema=SCHEMA, declared_size=60_000)
    with pytest.warns(NoticeWarning) as said:
        release = fit(Stratified(Independent(), BY, wrong), table, BUDGET, entropy=SeededEntropy(1))
    assert [str(w.message) for w in said] == [n["text"] for n in release.certificate["notices"]]
    assert kinds(release.certificate) == ["declared_size", "declared_shares"]


def test_noise_makes_no_notice():
    """Four groups and everybody, 60 fits: a false notice has probability 0.001 a fit."""
    assert [kinds(made(600, 600, seed=seed)) for seed in range(60)].count([]) >= 59


def test_a_size_below_the_noise_is_not_judged():
    found = made(24, 24)
    assert {c["verdict"] for c in found["declared_and_measured"]} == {"not to be told"}


def many(rows, shares_of):
    """Ninety groups, drawn by `shares_of` their number."""
    levels = tuple(map(str, range(90)))
    schema = Schema({"G": Categorical(levels=levels), "X": Categorical(levels=("0", "1"))})
    rng = np.random.default_rng(3)
    true = rng.dirichlet(np.ones(90) * 5)
    g = rng.choice(90, size=rows, p=true)
    counts = np.bincount(g, minlength=90)
    frame = pd.DataFrame({"G": g.astype(str), "X": "0"})
    weights = Weights.public(pd.DataFrame({"G": levels, "count": shares_of(true, counts)}), citation="a yearbook")
    how = Stratified(Independent(), by=["G"], weights=weights)
    return fit(how, open_table(frame, schema=schema, declared_size=rows), BUDGET, entropy=SeededEntropy(1)).certificate


def test_exact_counts_of_the_rows_passed_as_public_are_noticed():
    found = many(200_000, lambda true, counts: counts)
    assert kinds(found) == ["shares_too_close"]
    assert "not public" in " ".join(summary(found).split()).split("***")[3]


def test_shares_of_the_population_that_rows_were_drawn_from_are_not_too_close():
    assert kinds(many(200_000, lambda true, counts: true * 1e6)) == []


def test_means_that_count_are_compared_too():
    schema = Schema({"AGE": Numeric(lower=0, upper=99, edges=(0, 50, 99))})
    frame = pd.DataFrame({"AGE": np.arange(4000) % 90})
    found = fit(ClippedMean(), open_table(frame, schema=schema, declared_size=40_000), BUDGET).certificate
    assert found["declared_and_measured"][0]["verdict"] == "differs"
    assert "far fewer people were read" in found["notices"][0]["text"]


def test_weighted_rows_are_not_compared_with_a_number_of_records():
    assert "declared_and_measured" not in made(600, 600, MST(), replace(SCHEMA, row_weight=RowWeight(3)))


def test_nothing_more_is_charged_and_old_certificates_are_summed_up():
    found = made(0, 5000)
    assert found["ledger"]["releases"] == 1
    old = {k: v for k, v in found.items() if k not in ("declared_and_measured", "notices")}
    assert measured_line(Certificate.from_dict(old)) == ""
    assert "Declared and measured" not in summary(old)


def test_terminal_certificate_and_report_say_it(tmp_path):
    recipe = small.write_recipe(tmp_path)
    small.edit(recipe, "declared_size = 100", "declared_size = 5000")
    small.edit(recipe, "delta = 1e-9", "delta = 1e-9\nfirst = 0")
    people(0).to_csv(tmp_path / "people.csv", index=False)
    run = stratsynth("fit", recipe, cwd=tmp_path)
    assert run.returncode == 4, run.stderr
    first, _, second, *_ = run.stdout.split("\n")
    assert first.startswith("A release with NOTHING IN IT was written to ")
    assert second.startswith("*** NOTHING IN IT: declared 5,000; measured ")
    assert kinds(read_certificate(tmp_path / "release")) == ["empty"]
    assert "NOTHING IN IT" in (tmp_path / "release" / "report.html").read_text("utf-8")
    assert ss.Release.load(tmp_path / "release").certificate["notices"]


def test_strata_are_those_of_the_layout():
    labels = [c["stratum"] for c in made(6000, 6000)["declared_and_measured"][1:]]
    assert labels == [s.label for s in crossing(SCHEMA, BY)]
