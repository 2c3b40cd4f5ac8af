"""Fits that start from a prior: what is refused, what they gain, and what a wrong prior costs."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.priors import CITATION, SCHEMA, distance, last_year, people, shuffled
from helpers.small import even
from stratsynth import Budget, Prior, Release, Stratified, StratsynthError, fit, open_table, plan
from stratsynth.adapters.tilted import TiltedLearner
from stratsynth.mechanisms import make, prepare
from stratsynth.models import Mixture
from stratsynth.noise import SeededEntropy
from stratsynth.planning.rehearsal import rehearse

BUDGET = Budget(epsilon=0.3, delta=1e-9)
FAST = {"gem": {"iterations": 5, "components": 16, "hidden": [8], "latent": 4}}
NAMES = ("independent", "mst", "aim", "gem")


def table(rows: int = 3_000, drift: float = 0.0):
    return open_table(people(rows, 11, drift), schema=SCHEMA, declared_size=rows, public=True)


def fitted(name: str, prior: Prior | None, *, epsilon: float = 0.3, seed: int = 0, drift: float = 0.0) -> Release:
    how = make(name, FAST.get(name, {}))
    return fit(how, table(drift=drift), Budget(epsilon, 1e-9), seed=seed, prior=prior, entropy=SeededEntropy(seed))


@pytest.mark.parametrize("name", NAMES)
def test_a_right_prior_brings_what_a_small_budget_cannot_measure(name: str):
    truth, columns = people(3_000, 11), ["B", "C", "D"]
    without, given = (
        np.mean([distance(fitted(name, prior, seed=s).sample(3_000, seed=s), truth, columns) for s in range(2)])
        for prior in (None, last_year())
    )
    assert given < 0.6 * without
    assert given < 0.25


@pytest.mark.parametrize("name", ["mst", "aim"])
def test_a_shuffled_prior_is_left(name: str):
    release = fitted(name, shuffled(), epsilon=3)
    assert release.model.kind == "graphical"
    assert fitted(name, last_year(), epsilon=1).model.kind == "blended"


@pytest.mark.parametrize("name", ["mst", "aim", "gem"])
def test_a_fit_asks_and_fits_its_own_model_as_it_would_without_a_prior(name: str):
    alone = fitted(name, None, epsilon=1)
    for prior in (last_year(), shuffled()):
        release = fitted(name, prior, epsilon=1)  # the noise is the same, as long as the questions are
        assert release.measurements.equals(alone.measurements)
        own = getattr(release.model, "own", release.model)
        if own.kind != "tilted_rows":  # which had next to all of the release
            np.testing.assert_allclose(own.marginal(("A", "B")), alone.model.marginal(("A", "B")), atol=1e-9)


def test_where_a_prior_is_as_good_as_the_own_model_both_together_are_better():
    truth, cliques = people(3_000, 11), list(combinations(SCHEMA.names, 3))
    codes = {name: np.array([SCHEMA.levels(name).index(value) for value in truth[name]]) for name in SCHEMA.names}
    real = {
        c: np.bincount(np.ravel_multi_index([codes[n] for n in c], SCHEMA.shape(c)), minlength=SCHEMA.cells(c)) / 3_000
        for c in cliques
    }
    models = [fitted("aim", last_year(100), epsilon=0.2, seed=seed).model for seed in range(4)]
    ours, prior, both = (
        np.mean([np.abs(one.marginal(c).ravel() - real[c]).sum() for one in some for c in cliques])
        for some in ([m.own for m in models], [m.tilted for m in models], models)
    )
    assert both < 0.95 * min(ours, prior)


@pytest.mark.parametrize("name", ["mst", "aim", "pooled"])
def test_a_wrong_prior_costs_hardly_anything(name: str, request: pytest.FixtureRequest):
    truth, columns = people(3_000, 11), ["B", "C", "D"]
    strata = {"by": ["G"], "weights": even(SCHEMA, "G")} if name == "pooled" else {}

    seeds, most = (24, 1.15) if request.config.getoption("slow") else (8, 1.4)

    def off(prior: Prior | None) -> float:
        found, left = [], []
        for seed in range(seeds):
            how = make(name, strata)
            release = fit(how, table(), Budget(3, 1e-9), seed=seed, prior=prior, entropy=SeededEntropy(seed))
            rows = release.sample(3_000, seed=seed)
            found.append(distance(rows[rows.G.eq("0")], truth[truth.G.eq("0")], columns))
            parts = release.model.parts.values() if name == "pooled" else [release.model]
            left.append({part.kind for part in parts} == {"graphical"})
        assert sum(left) > seeds / 2  # given up, in strata too, but where few tables happen to speak for it
        return float(np.mean(found))

    # seeds differ by more than this; a prior's rows released, or measured for, cost several times as much
    assert off(shuffled()) < most * off(None)


def test_a_drift_in_one_column_is_followed_and_reported():
    release = fitted("independent", last_year(), epsilon=3, drift=0.3)
    assert release.model.oneway("A") == pytest.approx([0.2, 0.3, 0.5], abs=0.04)
    assert release.model.off["A"] == pytest.approx(0.3, abs=0.05)
    assert release.model.off["C"] < 0.03


def test_a_rehearsal_of_columns_counts_the_fit_of_the_prior_s_rows_without_it(monkeypatch):
    monkeypatch.setattr(TiltedLearner, "fit", None)
    budget = Budget(1, 1e-9)
    fits = [rehearse(prepare("independent", SCHEMA, budget, 1_000, prior)).fits for prior in (None, last_year())]
    assert fits == [0, 1]


def test_strata_and_pooled_start_from_their_own_rows():
    weights = even(SCHEMA, "G")
    for how in (Stratified(make("mst", {}), ["G"], weights), make("pooled", {"by": ["G"], "weights": weights})):
        release = fit(how, table(), BUDGET, seed=0, prior=last_year(), entropy=SeededEntropy(3))
        assert isinstance(release.model, Mixture)
        assert {part.kind for part in release.model.parts.values()} <= {"blended", "tilted_rows"}
        truth, rows = people(3_000, 11), release.sample(3_000, seed=1)
        assert (rows.G == "1").mean() == pytest.approx(0.5, abs=0.01)
        for group in ("0", "1"):
            mine, real = (frame[frame.G.eq(group)] for frame in (rows, truth))
            assert distance(mine, real, ["B", "C", "D"]) < 0.5


def test_a_release_with_a_prior_is_stored_and_says_what_it_started_from(tmp_path: Path):
    release = fitted("aim", last_year())
    release.save(tmp_path / "release", rows=500, seed=1)
    again = Release.load(tmp_path / "release")
    pd.testing.assert_frame_equal(again.sample(400, seed=5), release.sample(400, seed=5))
    stated = json.loads((tmp_path / "release" / "certificate.json").read_text())
    assert stated["prior"]["citation"] == CITATION
    assert stated["prior"]["sha256"] == last_year().rows(SCHEMA).stated["sha256"]
    assert any(CITATION in line for line in stated["not_protected"])
    report = (tmp_path / "release" / "report.html").read_text()
    assert "How far the prior was off" in report
    assert "are none of the prior" in report


def test_the_same_seed_and_answers_give_the_same_release_and_another_prior_is_another_fit():
    one, two = (fitted("aim", last_year()) for _ in range(2))
    pd.testing.assert_frame_equal(one.sample(300, seed=2), two.sample(300, seed=2))
    how = prepare("aim", SCHEMA, BUDGET, 3_000, last_year())
    assert how.public.prior is not None


def test_a_plan_says_what_is_assumed_of_the_prior():
    found = plan("aim", SCHEMA, BUDGET, declared_size=3_000, prior=last_year(2_000))
    assert found.prior is not None
    assert found.prior["worth_at_most"] == 1_200
    assert "the word of 1,200 people at most" in " ".join(str(found).split())
    assert plan("aim", SCHEMA, BUDGET, declared_size=3_000).prior is None


def test_the_private_rows_are_refused_as_a_prior_before_anything_is_charged(tmp_path: Path):
    frame, path, copy = people(200, 6), tmp_path / "people.csv", tmp_path / "copy.csv"
    frame.to_csv(path, index=False)
    copy.write_bytes(path.read_bytes())
    ledger = tmp_path / "people.ledger"
    for given in (path, copy):
        private = open_table(path, schema=SCHEMA, ledger=ledger, declared_size=200)
        with pytest.raises(StratsynthError, match="prior: it is the private table itself"):
            fit("mst", private, BUDGET, prior=Prior.public(given, citation=CITATION))
    private = open_table(frame, schema=SCHEMA, declared_size=200)
    for same in (frame, frame.copy()):
        with pytest.raises(StratsynthError, match="prior: it is the private table itself"):
            fit("mst", private, BUDGET, prior=Prior.public(same, citation=CITATION))
    assert not ledger.exists() or "fit" not in ledger.read_text()


def test_a_file_that_has_an_account_is_no_public_prior(tmp_path: Path):
    path = tmp_path / "people.csv"
    people(200, 6).to_csv(path, index=False)
    fit("mst", open_table(path, schema=SCHEMA, ledger=tmp_path / "l", declared_size=200), BUDGET)
    with pytest.raises(StratsynthError, match="account"):
        Prior.public(path, citation=CITATION)


def test_an_account_that_was_opened_since_is_noticed(tmp_path: Path):
    path = tmp_path / "people.csv"
    people(200, 6).to_csv(path, index=False)
    prior = Prior.public(path, citation=CITATION)
    fit("mst", open_table(path, schema=SCHEMA, ledger=tmp_path / "l", declared_size=200), BUDGET)
    with pytest.raises(StratsynthError, match="account"):
        fit("mst", table(), BUDGET, prior=prior)


def test_values_of_the_private_table_are_not_named_where_it_is_given_as_its_own_prior(tmp_path: Path):
    path, link = tmp_path / "people.csv", tmp_path / "link.csv"
    frame = people(200, 6)
    frame.assign(**{frame.columns[0]: "secret-code"}).to_csv(path, index=False)
    link.symlink_to(path)
    for given in (path, link):
        with pytest.raises(StratsynthError) as refused:
            fit(
                "mst",
                open_table(path, schema=SCHEMA, declared_size=200),
                BUDGET,
                prior=Prior.public(given, citation=CITATION),
            )
        assert "private table itself" in str(refused.value)
        assert "secret" not in str(refused.value)


def test_what_stands_behind_a_release_is_kept_and_its_rows_are_no_public_file(tmp_path: Path):
    private = open_table(people(3_000, 8), schema=SCHEMA, declared_size=3_000)
    fit("mst", private, Budget(epsilon=1, delta=1e-9)).save(tmp_path / "first", rows=500, seed=0)
    again = open_table(people(3_000, 9), schema=SCHEMA, declared_size=3_000)
    fit("mst", again, BUDGET, prior=Prior.release(tmp_path / "first")).save(tmp_path / "second", rows=500, seed=0)
    third = Prior.release(tmp_path / "second")
    assert third.stated["release"]["prior"]["release"]["guarantee"]["epsilon"] == 1
    with pytest.raises(StratsynthError, match=r"is of a release; take Prior\.release"):
        Prior.public(tmp_path / "first" / "synthetic.parquet", citation=CITATION)


def test_mechanisms_that_do_not_start_from_a_prior_refuse_it():
    with pytest.raises(StratsynthError, match="does not start from a prior"):
        fit("clipped_mean", table(), BUDGET, prior=last_year())
    with pytest.raises(StratsynthError, match="a Prior is wanted"):
        fit("aim", table(), BUDGET, prior=people(10, 1))


def test_a_private_release_is_a_prior_and_both_guarantees_are_stated(tmp_path: Path):
    private = open_table(people(3_000, 8), schema=SCHEMA, declared_size=3_000)
    fit("mst", private, Budget(epsilon=1, delta=1e-9)).save(tmp_path / "old", rows=2_000, seed=0)
    release = fit("mst", table(), BUDGET, prior=Prior.release(tmp_path / "old"), entropy=SeededEntropy(0))
    assert release.certificate["prior"]["origin"] == "release"
    assert release.certificate["prior"]["release"]["guarantee"]["epsilon"] == 1
    assert "ledger" in release.certificate["prior"]["release"]
    assert any("both guarantees together" in line for line in release.certificate["not_protected"])
    (tmp_path / "old" / "synthetic.parquet").write_bytes(b"another file")
    with pytest.raises(StratsynthError, match=r"synthetic\.parquet"):
        Prior.release(tmp_path / "old")


def test_a_release_that_is_not_private_is_no_prior(tmp_path: Path):
    fitted("mst", None).save(tmp_path / "open", rows=100, seed=0)
    with pytest.raises(StratsynthError, match="no private release"):
        Prior.release(tmp_path / "open")


def test_groups_that_the_prior_lacks_start_as_they_would_without_it():
    frame = people(2_000, 1)
    prior = Prior.public(frame[frame.G == "0"], citation=CITATION)
    how = Stratified(make("mst", {}), ["G"], even(SCHEMA, "G"))
    release = fit(how, table(), BUDGET, seed=0, prior=prior, entropy=SeededEntropy(3))
    assert [part.kind for part in release.model.parts.values()] == ["tilted_rows", "graphical"]
    assert release.certificate["prior"]["without_groups"] == ["1"]
    assert [n["kind"] for n in release.certificate["notices"] if "no rows of 1" in n["text"]] == ["prior_groups"]
    found = plan(how, SCHEMA, BUDGET, declared_size=3_000, prior=prior)
    assert "it has no rows of 1: these groups start" in " ".join(str(found).split())
    alone = fit(how, table(), BUDGET, seed=0, entropy=SeededEntropy(3))
    one, two = (list(r.model.parts.values())[1].marginal(("A", "B")) for r in (release, alone))
    np.testing.assert_allclose(one, two)  # the same noise, and the same model
    pooled = make("pooled", {"by": ["G"], "weights": even(SCHEMA, "G")})
    parts = fit(pooled, table(), BUDGET, seed=0, prior=prior, entropy=SeededEntropy(3)).model.parts
    assert {part.kind for part in parts.values()} <= {"blended", "tilted_rows"}
    assert "without_groups" not in fit(how, table(), BUDGET, prior=last_year()).certificate["prior"]
