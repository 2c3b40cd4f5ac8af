"""Comparison of paid answers with declared sizes: post-processing, in certificate, report and on the terminal."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from helpers.command import stratsynth
from helpers.small import BUDGET, SCHEMA, people
from stratsynth import Categorical, Numeric, Schema, Stratified, Weights, fit, open_table
from stratsynth.adapters import MST, ClippedMean, Independent
from stratsynth.certificate import Certificate
from stratsynth.noise import SeededEntropy
from stratsynth.release.certificate import read_certificate
from stratsynth.release.notices import measured_line
from stratsynth.release.page.summary import summary
from stratsynth.schema.weight import RowWeight
from stratsynth.strata import crossing

BY = ["SEX", "GROUP"]
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


def test_noise_makes_no_notice():
    """Four groups and everybody, 60 fits: a false notice has probability 0.001 a fit."""
    assert [kinds(made(600, 600, seed=seed)) for seed in range(60)].count([]) >= 59


def test_a_size_below_the_noise_is_not_judged():
    found = made(24, 24)
    assert {c["verdict"] for c in found["declared_and_measured"]} <= {"cannot tell", "nothing"}


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
    assert found["declared_and_measured"][0]["verdict"] == "far fewer"


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
    people(0).to_csv(tmp_path / "people.csv", index=False)
    run = stratsynth("fit", recipe, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    first, _, second, *_ = run.stdout.split("\n")
    assert first.startswith("A release with NOTHING IN IT was written to ")
    assert second.startswith("*** NOTHING IN IT: declared 5,000; measured ")
    assert kinds(read_certificate(tmp_path / "release")) == ["empty"]
    assert "NOTHING IN IT" in (tmp_path / "release" / "report.html").read_text("utf-8")
    assert ss.Release.load(tmp_path / "release").certificate["notices"]


def test_strata_are_those_of_the_layout():
    labels = [c["stratum"] for c in made(6000, 6000)["declared_and_measured"][1:]]
    assert labels == [s.label for s in crossing(SCHEMA, BY)]
