"""The noisy sums that a release publishes: their layout, what they say, and what verify makes of them."""

import dataclasses
import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.small import even
from stratsynth import Budget, Categorical, Numeric, Release, Schema, Stratified, fit, open_table, verify
from stratsynth.adapters import ClippedMean, CoinPress, FairSGD, GroupRegression, Independent
from stratsynth.answers import Query
from stratsynth.driver import private
from stratsynth.errors import ReleaseError, UsageError
from stratsynth.release.measurements import COLUMNS, SUMS

pytestmark = pytest.mark.usefixtures("seeded_noise")

SCHEMA = Schema(
    {
        "g": Categorical(levels=("a", "b")),
        "h": Categorical(levels=("1", "2", "3")),
        "x": Numeric(lower=0, upper=100),
        "y": Numeric(lower=0, upper=10),
    }
)


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    g = rng.choice(["a", "b"], size=n, p=[0.7, 0.3])
    x = np.clip(rng.normal(np.where(g == "a", 30, 60), 10), 0, 100)
    h = rng.choice(["1", "2", "3"], size=n)
    return pd.DataFrame({"g": g, "h": h, "x": x, "y": np.clip(x / 10 + rng.normal(size=n), 0, 10)})


PEOPLE = people()


def released(how, epsilon=1.0, schema=SCHEMA):
    return fit(how, open_table(PEOPLE, schema=schema, declared_size=3000), Budget(epsilon, 1e-9))


def press(**given):
    return CoinPress(columns=["x", "y"], scale={"x": 20, "y": 2}, **given)


@pytest.fixture(scope="module")
def means():
    return released(Stratified(press(), by=["g"], weights=even(SCHEMA, "g")))


@pytest.fixture(scope="module")
def fitted():
    return released(GroupRegression(target="x", features=["g", "h"], groups=["g"], stage_one=0.3, iterations=20))


def blocks(release):
    frame = release.measurements.to_pandas()
    sums = frame[frame["sum"] != ""]
    return [
        (key, json.loads(key[3]), part)
        for key, part in sums.groupby(["stratum", "question", "clique", "sum"], observed=True, sort=False)
    ]


def test_a_release_of_means_holds_every_sum_that_it_was_made_of(means):
    assert means.measurements.schema.equals(SUMS)
    found = blocks(means)
    assert len(found) == sum(charge["kind"] == "total" for charge in means.certificate["charges"])
    for group, part in (("a", PEOPLE[PEOPLE.g == "a"]), ("b", PEOPLE[PEOPLE.g == "b"])):
        for key, said, rows in found:
            if key[0] != group:
                continue
            (name,), (centre,), (scale,) = said["columns"], said["centre"], said["scale"]
            values = (part[name] - centre) / scale
            clipped = (values**2 if said["square"] else values).clip(-said["clip"], said["clip"])
            noise = rows.value.iloc[0] * rows.grid.iloc[0] - clipped.sum()
            assert abs(noise) < 6 * rows.sigma.iloc[0] * rows.grid.iloc[0]


def test_the_estimate_is_worked_out_again_from_the_published_sums(means):
    for group in "ab":
        sums = [(said, rows) for key, said, rows in blocks(means) if key[0] == group]
        # both columns share the count, which is the only sum far beyond the bounds
        (size,) = (rows.value.iloc[0] * rows.grid.iloc[0] for said, rows in sums if said["centre"][0] < 0)
        for name in "xy":
            said, rows = [(s, r) for s, r in sums if s["columns"] == [name] and not s["square"] and s["centre"][0] > 0][
                -1
            ]
            mean = said["centre"][0] + rows.value.iloc[0] * rows.grid.iloc[0] * said["scale"][0] / size
            told = means.estimates().query("stratum == @group and column == @name")
            assert told["value"].iloc[0] == pytest.approx(mean)


def test_laplace_noise_is_stated_by_its_deviation():
    release = released(ClippedMean(columns=["x"], scale={"x": 20}))
    charges = [charge["scale"] for charge in release.certificate["charges"]]
    for scale, (_, said, rows) in zip(charges, blocks(release), strict=True):
        assert said["noise"] == "laplace"
        assert rows.sigma.iloc[0] * rows.grid.iloc[0] == pytest.approx(math.sqrt(2) * scale)


def test_a_regression_publishes_moments_with_their_features_and_gradients_without_coefficients(fitted):
    found = [said for _, said, _ in blocks(fitted)]
    first, second = found[:2]
    assert (first["sum"], first["block"], second["block"]) == ("moments", 0, 1)
    assert first["features"] == ["1", "g=b", "h=2", "h=3"]
    gradients = [said for said in found if said["sum"] == "gradients"]
    assert len(gradients) == 20
    assert gradients[0]["thetas"] == {"shape": [1, 4]}
    (rows,) = [part for _, said, part in blocks(fitted) if said["sum"] == "moments" and said["block"] == 1]
    assert rows.cell.tolist() == [0, 1, 2, 3]
    target = PEOPLE.x / 50 - 1
    exact = [target.sum(), target[PEOPLE.g == "b"].sum(), target[PEOPLE.h == "2"].sum(), target[PEOPLE.h == "3"].sum()]
    assert np.all(np.abs(rows.value * rows.grid - exact) < 6 * rows.sigma * rows.grid)


def test_steps_on_samples_are_not_published():
    schema = Schema({**SCHEMA.columns, "y": Categorical(levels=("0", "1"))})
    frame = PEOPLE.assign(y=(PEOPLE.y > 4).astype(int).astype(str))
    table = open_table(frame, schema=schema, declared_size=3000)
    release = fit(FairSGD(target="y", features=["x", "h"], groups=["g"], iterations=5), table, Budget(1, 1e-9))
    assert release.measurements.num_rows == 0


def test_verify_holds_sums_against_their_charges(means, fitted, tmp_path):
    for number, release in enumerate((means, fitted)):
        verdict = verify(release.save(tmp_path / str(number)))
        assert verdict.ok, verdict.findings
        assert any("noisy sums that were charged" in said for said in verdict.checked)
    frame = means.measurements.to_pandas()
    frame.loc[0, "sigma"] /= 2
    forged = dataclasses.replace(means, measurements=pa.Table.from_pandas(frame, SUMS, preserve_index=False))
    verdict = verify(forged.save(tmp_path / "forged"))
    assert any("sums with noise of deviation" in said for said in verdict.findings)
    fewer = dataclasses.replace(means, measurements=means.measurements.slice(2))
    verdict = verify(fewer.save(tmp_path / "fewer"))
    assert verdict.ok
    assert any(said.startswith("2 noisy sums that were charged and are not") for said in verdict.unchecked)


def test_a_release_of_an_older_version_without_sums_is_still_one(means, tmp_path):
    older = dataclasses.replace(means, measurements=COLUMNS.empty_table())
    folder = older.save(tmp_path / "older")
    assert pq.read_schema(folder / "measurements.parquet").names == COLUMNS.names
    assert verify(folder).ok
    again = Release.load(folder)
    assert again.measurements.num_rows == 0
    assert again.query(["x"], statistic="mean")["status"].tolist() == ["ok"]


def test_a_release_of_tables_has_the_columns_that_it_always_had():
    assert released(Independent()).measurements.column_names == COLUMNS.names


def test_other_columns_are_refused(means, tmp_path):
    folder = means.save(tmp_path / "release")
    file = folder / "measurements.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["sum"]), file)
    with pytest.raises(ReleaseError):
        Release.load(folder)


def test_the_numbers_of_sums_have_a_limit(monkeypatch):
    monkeypatch.setattr(private, "MOST_SUMS", 30)
    release = released(GroupRegression(target="x", features=["g", "h"], groups=["g"], stage_one=0.3, iterations=20))
    assert sum(len(part) for *_, part in blocks(release)) <= 30
    assert len(blocks(release)) > 2


# Questions that means answer


def test_a_mean_is_answered_from_the_estimate_with_its_intervals(means):
    told = means.query(["x"], by=["g"], statistic="mean", level=0.9)
    stated = means.estimates(0.9).query("column == 'x' and stratum != ''")
    assert told["g"].tolist() == ["a", "b"]
    for one, other in (("estimate", "value"), ("low", "lower"), ("high", "upper"), ("noise_sd", "noise")):
        assert told[one].tolist() == pytest.approx(stated[other].tolist())
    assert (told["noise_low"] > told["low"]).all()
    assert (told["status"] == "ok").all()
    (whole,) = means.query(["x"], statistic="mean").itertuples()
    assert whole.estimate == pytest.approx(means.estimates().query("column == 'x' and stratum == ''")["value"].iloc[0])
    assert "shares" in whole.note
    (one,) = means.query(["x"], where={"g": "b"}, statistic="mean").itertuples()
    assert one.estimate == pytest.approx(told["estimate"][1])
    assert means.query(["x"], where={"g": ["a", "b"]}, statistic="mean")["estimate"].iloc[0] == whole.estimate


def test_differences_of_means_add_both_errors(means):
    told = means.query(["x"], by=["g"], statistic="mean", versus={"g": "a"})
    apart = means.query(["x"], by=["g"], statistic="mean")
    assert told["estimate"].tolist() == pytest.approx((apart["estimate"] - apart["estimate"][0]).tolist())
    assert told["noise_sd"].tolist() == pytest.approx([0.0, math.hypot(*apart["noise_sd"])])
    assert told["low"][0] == told["high"][0] == 0


def test_what_no_mean_covers_says_which_there_are(means, fitted):
    told = means.query(["x"], by=["h"], statistic="mean")
    assert (told["status"] == "not_estimable").all()
    assert told["note"][0] == "there are means of everybody and of groups by g alone"
    with pytest.raises(UsageError, match="holds means alone"):
        means.query(["g"])
    with pytest.raises(UsageError, match="numeric"):
        means.query(["h"], statistic="mean")
    many = means.answers.many([Query([name], statistic="mean") for name in "xy"])
    assert many["query"] == [0, 1]
    assert fitted.query(["g"])["status"].tolist() == ["ok", "ok"]
    assert fitted.query(["x"], by=["g"], statistic="mean")["status"].tolist() == ["not_estimable"] * 2


def test_a_mean_on_a_scale_and_a_clipped_one_say_so():
    schema = Schema({**SCHEMA.columns, "x": Numeric(lower=0, upper=100, transform="log")})
    told = released(press(), schema=schema).query(["x"], statistic="mean")
    assert told["status"].tolist() == ["not_estimable"]
    assert "on its scale, log" in told["note"][0]
    narrow = CoinPress(columns=["x"], centre={"x": 40}, radius={"x": 5}, scale={"x": 3})
    assert "were taken for these ends" in released(narrow).query(["x"], statistic="mean")["note"][0]


def test_intervals_of_means_hold_the_real_means():
    exact = PEOPLE.groupby("g").x.mean()
    hits, fits = 0, 120
    for _ in range(fits):
        told = released(Stratified(press(), by=["g"], weights=even(SCHEMA, "g"))).query(
            ["x"], by=["g"], statistic="mean"
        )
        hits += int(((told["noise_low"] <= exact.tolist()) & (exact.tolist() <= told["noise_high"])).sum())
    assert 0.89 < hits / (2 * fits) < 0.99


def test_the_report_says_how_many_sums_there_are(means, tmp_path):
    page = (means.save(tmp_path / "release") / "report.html").read_text(encoding="utf-8")
    sums = sum(charge["kind"] == "total" for charge in means.certificate["charges"])
    assert f"{sums} noisy sums, in measurements.parquet" in page
