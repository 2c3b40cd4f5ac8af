"""Rows by the measured sizes of groups, and one number for one count wherever a release states it."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from helpers import small
from stratsynth import Release, Stratified, Weights, cli, fit, open_table, verify
from stratsynth.adapters import MST, ClippedMean, Independent
from stratsynth.answers.sizes import SizeEstimates, SizeOfGroup, size_estimates
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms import Mechanism
from stratsynth.release.declared import rows_by_size
from stratsynth.release.page.frame import release_page
from stratsynth.release.page.summary import summary
from stratsynth.report import html
from stratsynth.strata.groups import Groups
from stratsynth.stratified import stratify

WRONG = {("1", "a"): 0.05, ("1", "b"): 0.2, ("2", "a"): 0.55, ("2", "b"): 0.2}
ROWS = 3000


def wrong_shares():
    rows = [{"SEX": s, "GROUP": g, "share": w} for (s, g), w in WRONG.items()]
    return Weights.public(pd.DataFrame(rows), citation="a yearbook")


def made(how: Mechanism | None = None, **options) -> Release:
    how = how or Stratified(Independent(), ["SEX", "GROUP"], wrong_shares())
    return fit(how, open_table(small.people(ROWS), schema=small.SCHEMA, declared_size=ROWS), small.BUDGET, **options)


@pytest.fixture(scope="module")
def declared():
    return made(seed=1)


def test_rows_follow_what_is_asked_for_and_the_certificate_says_it(declared):
    measured = made(groups="measured")
    for release, part in ((declared, 0.05), (measured, 1 / 3)):
        drawn = release.sample(6000, seed=1)
        assert ((drawn.SEX == "1") & (drawn.GROUP == "a")).mean() == pytest.approx(part, abs=0.03)
    assert measured.statement.weights.groups == "measured"
    assert "groups" not in declared.certificate["weights"]
    assert [n.kind for n in declared.statement.notices] == ["declared_shares"]
    assert measured.statement.notices == ()
    assert "As many as the measured sizes say" in summary(measured.certificate)
    assert "they follow the measured sizes" in " ".join(summary(measured.certificate).split())
    parts = {c.stratum: c.rows for c in measured.statement.declared_and_measured if c.share is not None}
    assert sum(parts.values()) == pytest.approx(1)
    assert list(measured.model.weights.values()) == pytest.approx(list(parts.values()))
    assert measured.certificate["charges"] == declared.certificate["charges"], "nothing more is charged"


def test_a_release_is_made_anew_for_nothing(declared):
    again = declared.by_measured_sizes()
    assert again.statement.weights.groups == "measured"
    assert again.by_measured_sizes().certificate == again.certificate
    assert again.measurements is declared.measurements
    assert again.certificate["ledger"] == declared.certificate["ledger"]


def test_its_ledger_holds_what_was_fixed_before_the_rows_followed_anything(tmp_path):
    small.people(ROWS).to_csv(tmp_path / "people.csv", index=False)
    ledger = tmp_path / "people.ledger"
    table = open_table(tmp_path / "people.csv", schema=small.SCHEMA, declared_size=ROWS, ledger=ledger)
    release = fit(Stratified(Independent(), ["SEX", "GROUP"], wrong_shares()), table, small.BUDGET, groups="measured")
    assert verify(release.save(tmp_path / "release", rows=50), ledger=ledger).ok


def test_a_group_that_nothing_counts_keeps_its_share(tmp_path):
    """Its declared size is too small for a table of its own, and only everybody's counts it."""
    shares = {("1", "a"): 0.499, ("1", "b"): 0.3, ("2", "a"): 0.2, ("2", "b"): 0.001}
    rows = pd.DataFrame([{"SEX": s, "GROUP": g, "share": w} for (s, g), w in shares.items()])
    weights = Weights.public(rows, citation="a yearbook")
    release = made(stratify("pooled", {"base": "mst"}, ["SEX", "GROUP"], weights, Groups()), groups="measured")
    assert [c.stratum for c in release.statement.declared_and_measured] == ["", "1|a", "1|b", "2|a"]
    parts = {stratum.label: weight for stratum, weight in release.model.weights.items()}
    assert parts["2|b"] == 0.001
    assert sum(parts.values()) == pytest.approx(1)
    assert "1 more group: not counted" in " ".join(summary(release.certificate).split())
    assert verify(release.save(tmp_path / "release", rows=50)).ok


def test_samples_are_refused_whose_sizes_would_all_have_the_same_noise(declared):
    assert len(declared.samples(2, 10, seed=1)) == 2
    with pytest.raises(Unsupported, match="rows by measured sizes"):
        declared.by_measured_sizes().samples(2, 10, seed=1)


def sizes(**values):
    groups = {label: SizeOfGroup(float(value), 4.0, 4.0) for label, value in values.items()}
    return SizeEstimates(SizeOfGroup(sum(values.values()), 8.0, 8.0), groups)


def test_sizes_below_0_have_no_rows_and_the_others_add_up():
    shares = {"a": 0.5, "b": 0.3, "c": 0.2}
    found = rows_by_size(shares, sizes(a=60, b=44, c=-4))
    assert found == pytest.approx({"a": 0.58, "b": 0.42, "c": 0.0})
    assert rows_by_size(shares, sizes(a=30, b=10)) == pytest.approx({"a": 0.6, "b": 0.2, "c": 0.2})
    assert rows_by_size(shares, sizes(a=-3, b=1, c=-1)) == shares, "nothing was measured but noise"
    assert rows_by_size(shares, sizes()) == shares


def test_sizes_are_the_dense_least_squares():
    """Three groups and everybody: the estimates and covariances of the normal equations."""
    values, variances, pooled = np.array([10.0, 20.0, 33.0]), np.array([1.0, 4.0, 9.0]), (70.0, 2.0)
    design = np.vstack([np.eye(3), np.ones(3)])
    weight = np.diag(1 / np.array([*variances, pooled[1]]))
    covariance = np.linalg.inv(design.T @ weight @ design)
    wanted = covariance @ design.T @ weight @ np.array([*values, pooled[0]])
    found = size_estimates(["a", "b", "c"], values, variances, pooled)
    assert [found.groups[x].value for x in "abc"] == pytest.approx(wanted.tolist())
    assert [found.groups[x].variance for x in "abc"] == pytest.approx(np.diag(covariance).tolist())
    assert [found.groups[x].with_total for x in "abc"] == pytest.approx(covariance.sum(axis=0).tolist())
    assert (found.total.value, found.total.variance) == pytest.approx((wanted.sum(), covariance.sum()))
    assert size_estimates(["a"], values[:1], np.array([np.inf]), None) is None


@pytest.mark.parametrize("name", ["independent", "pooled", "mst"])
def test_one_count_has_one_number(name):
    """Certificate, query, and the page's table of sizes and its answers state the same estimate."""
    by = ["SEX", "GROUP"]
    how = {
        "independent": lambda: Stratified(Independent(), by, wrong_shares()),
        "pooled": lambda: stratify("pooled", {"base": "mst"}, by, wrong_shares(), Groups()),
        "mst": MST,
    }[name]()
    release = made(how)
    stated = release.statement.declared_and_measured
    frame = release.query(["SEX", "GROUP"])
    counted = {f"{r.SEX}|{r.GROUP}": (r.estimate, r.noise_sd) for r in frame.itertuples()}
    everybody = release.query().iloc[0]
    assert (stated[0].measured, stated[0].noise_sd) == pytest.approx((everybody.estimate, everybody.noise_sd))
    for c in stated[1:]:
        assert (c.measured, c.noise_sd) == pytest.approx(counted[c.stratum])
    text = html.render(release_page(release.certificate, release.measurements, release.model.schema))
    asked = json.loads(re.search(r'data-asked="([^"]*)"', text)[1].replace("&#34;", '"').replace("&quot;", '"'))
    work = next(a for a in asked if a["columns"] == "WORK")
    answer = next(figures for kind, group, figures, _ in work["answers"] if (kind, group) == ("count", "everybody"))
    assert sum(row[0] for row in answer) == pytest.approx(stated[0].measured, rel=1e-3)
    if name != "mst":
        assert "Declared, measured, synthetic" in text
        assert f"{stated[1].measured:,.0f}" in text


def test_a_group_that_noise_hides_is_no_fact():
    table = open_table(small.people(40), schema=small.SCHEMA, declared_size=40)
    how = Stratified(Independent(), ["SEX", "GROUP"], small.even(small.SCHEMA, "SEX", "GROUP"))
    release = fit(how, table, small.BUDGET, seed=1)
    text = html.render(release_page(release.certificate, release.measurements, release.model.schema))
    assert "about 0 records" not in text
    assert re.search(r"has fewer than [\d,]+ records, at 95 per cent", text)


def test_a_release_by_measured_sizes_verifies_and_edits_are_found(declared, tmp_path):
    for name, release in (("declared", declared), ("measured", declared.by_measured_sizes())):
        folder = release.save(tmp_path / name, seed=1)
        assert verify(folder).ok, verify(folder).to_text()
        assert any("compared as measurements.parquet" in line for line in verify(folder).checked)
        for edit in EDITS:
            record = json.loads((folder / "certificate.json").read_text("utf-8"))
            before = json.dumps(record)
            edit(record)
            if json.dumps(record) == before:
                continue
            other = tmp_path / "edited"
            shutil.copytree(folder, other)
            (other / "certificate.json").write_text(json.dumps(record), "utf-8")
            assert not verify(other).ok, edit.__name__
            shutil.rmtree(other)


def agrees(record):
    record["declared_and_measured"][1]["verdict"] = "agrees"


def larger(record):
    record["declared_and_measured"][1]["measured"] *= 1.2


def other_share(record):
    record["declared_and_measured"][1]["share"] = 1 / 3


def wider_margin(record):
    record["agreement"]["margin"] = 0.9


def fewer_statements(record):
    record["agreement"]["statements"] = 1


def no_agreement(record):
    del record["agreement"]


def no_comparison(record):
    del record["declared_and_measured"][1]


def no_notice(record):
    record["notices"] = [n for n in record.get("notices", []) if n["kind"] != "declared_shares"]


def other_notice(record):
    for notice in record.get("notices", []):
        notice["text"] = "all is well"


def follows_shares(record):
    record["weights"].pop("groups", None)


def follows_sizes(record):
    record["weights"]["groups"] = "measured"


def other_rows(record):
    record["declared_and_measured"][1]["rows"] = 0.25


EDITS = (
    agrees, larger, other_share, wider_margin, fewer_statements, no_agreement, no_comparison, no_notice, other_notice,
    follows_shares, follows_sizes, other_rows,
)  # fmt: skip


def test_a_certificate_of_an_older_version_is_left_with_its_words(declared, tmp_path):
    """Words of 0.3.0, others than today's, by a tolerance that nothing stated."""
    folder = declared.save(tmp_path / "release", seed=1)
    record = json.loads((folder / "certificate.json").read_text("utf-8"))
    del record["agreement"]
    for each in record["declared_and_measured"]:
        for key in ("share", "difference", "low", "high", "rows"):
            each.pop(key, None)
        each["verdict"] = "cannot tell"
    (folder / "certificate.json").write_text(json.dumps(record), "utf-8")
    verdict = verify(folder)
    assert verdict.ok
    assert any("an older version wrote them" in line for line in verdict.unchecked)
    release = Release.load(folder)
    assert "Declared and measured" in summary(release.certificate)
    with pytest.raises(UsageError, match="Older versions did not state"):
        release.by_measured_sizes()


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (MST(), "has no strata"),
        (ClippedMean(), "has no strata"),
        (Stratified(Independent(), ["SEX"], Weights.private(share=0.2)), "private weights are measured already"),
    ],
)
def test_rows_by_measured_sizes_are_refused_before_anything_is_charged(how, why):
    table = small.table()
    with pytest.raises(UsageError, match=why):
        fit(how, table, small.BUDGET, groups="measured")
    with pytest.raises(UsageError, match='groups must be "declared" or "measured"'):
        fit(how, table, small.BUDGET, groups="counted")
    assert table.ledger.open is not None
    assert fit(MST(), table, small.BUDGET).certificate["ledger"]["releases"] == 1


def test_the_commands(declared, tmp_path, capsys):
    folder = declared.save(tmp_path / "release", seed=1)

    def run(*arguments):
        code = cli.run([str(a) for a in arguments])
        return code, capsys.readouterr()

    code, said = run("weights", "measured", folder, "-o", tmp_path / "second")
    assert code == 0
    assert "nothing was charged" in said.out
    assert verify(tmp_path / "second").ok
    assert pq.read_metadata(tmp_path / "second" / "synthetic.parquet").num_rows == ROWS
    code, said = run("sample", folder, "-n", 2000, "--groups", "measured", "-o", tmp_path / "rows.csv")
    assert code == 0
    drawn = pd.read_csv(tmp_path / "rows.csv", dtype=str)
    assert ((drawn.SEX == "1") & (drawn.GROUP == "a")).mean() > 0.25
    assert run("sample", folder, "-n", 9, "--groups", "real", "-o", tmp_path / "b.csv")[0] == 2
    code, said = run("weights", "sensitivity", folder)
    assert re.search(r"The certificate measured other sizes of (\d\|[ab](, )?)+ than their", " ".join(said.out.split()))
    assert "differs" in said.out


@pytest.mark.parametrize("inside", ["x.csv", "x.parquet", "model/x.csv", "parts"])
def test_no_sample_is_written_into_a_release(declared, tmp_path, capsys, inside):
    folder = declared.save(tmp_path / "release", rows=10)
    assert cli.run(["sample", str(folder), "-n", "5", "-o", str(folder / inside)]) == 2
    assert "lies in the release" in capsys.readouterr().err
    assert verify(folder).ok
