"""Laws of numbers within bins that a release draws by: slopes from noisy counts, public numbers, certificate, file."""

import json
import shutil
from functools import cache

import numpy as np
import pandas as pd
import pytest

from stratsynth import Budget, Categorical, Numeric, Prior, Release, Schema, Stratified, Weights, fit, open_table
from stratsynth.adapters import AIM, MST, Fixed, Independent
from stratsynth.certificate import InsideStated
from stratsynth.errors import ReleaseError
from stratsynth.files import npz
from stratsynth.mechanisms import make
from stratsynth.noise import SeededEntropy
from stratsynth.release import laws
from stratsynth.release.laws import TailCounts, fitted_tail, starts_of
from stratsynth.release.notices import inside_line
from stratsynth.release.sensitivity import weight_sensitivity
from stratsynth.schema.inside import Tail, middles, numbers
from stratsynth.schema.rules import Rule
from stratsynth.verifying import verify

EDGES = (0, 1_000, 10_000, 30_000, 100_000, 200_000, 300_000, 4_000_001)
INCOME = Numeric(
    lower=0, upper=4_000_000, edges=EDGES, spikes=(0,), integer=True, shape="pareto", tail=(2, 6), transform_unit=1_000
)
SEX = Categorical(levels=("1", "2"))
SCHEMA = Schema({"SEX": SEX, "PINCP": INCOME})
SHARES = pd.DataFrame({"SEX": ["1", "2"], "share": [0.7, 0.3]})
BY_SEX = Weights.public(SHARES, citation="made up for testing")
STARTS = [1, 2, 3, 4, 5, 6, 7]


def people(n=6_000, slope=3.0, seed=1):
    """Return rows whose incomes above 30,000 follow a Pareto law; those of women are smaller."""
    rng = np.random.default_rng(seed)
    high = 30_000 * (1 - rng.random(n)) ** (-1 / slope)
    income = np.where(rng.random(n) < 0.3, high, rng.integers(0, 30_000, n)).clip(0, 4_000_000).astype(int)
    sex = np.where(rng.random(n) < 0.7, "1", "2")
    return pd.DataFrame({"SEX": sex, "PINCP": np.where(sex == "2", income // 2, income)})


def exact(slope, n=1_000_000.0, noise=1.0):
    """Return exact numbers of records from each bin on, of a law that is Pareto above 10,000."""
    above = np.array([n, 0.9 * n, *(0.5 * n * (10_000 / e) ** slope for e in EDGES[2:-1])])
    return TailCounts(np.concatenate([above[:1], above]), np.full(8, noise), n)


@pytest.mark.parametrize(("slope", "begin"), [(2.2, 5), (3.0, 5), (5.0, 6)])
def test_the_slope_of_exact_counts_is_recovered(slope, begin):
    tail, why = fitted_tail(INCOME, exact(slope, noise=1e-6), STARTS)
    assert tail == Tail(7, pytest.approx(slope), begin)
    assert why == ""


@pytest.mark.parametrize(("slope", "cut"), [(1.2, 2.0), (9.0, 6.0)])
def test_a_slope_beyond_the_declared_ones_is_cut_to_them(slope, cut):
    assert fitted_tail(INCOME, exact(slope), STARTS)[0].slope == cut


def test_bins_that_noise_hides_are_joined():
    counts = exact(3.0, n=1_000.0)  # 500 above 10,000; 18.5 above 30,000; .5 and less from 100,000 on
    tail, _ = fitted_tail(INCOME, counts, STARTS)
    assert tail == Tail(4, pytest.approx(3.0), 3)
    noisy = TailCounts(counts.above, np.full(8, 8.0), 1_000.0)  # 18.5 is less than 2.5 standard deviations
    assert fitted_tail(INCOME, noisy, STARTS) == (None, laws.WIDE)  # 500 of 1,000 are no tail
    assert fitted_tail(INCOME, TailCounts(counts.above, np.full(8, 1e4), 1_000.0), STARTS) == (None, laws.HIDDEN)
    flat = TailCounts(np.full(8, 250.0), np.ones(8), 1_000.0)
    assert fitted_tail(INCOME, flat, STARTS) == (Tail(7, 4.0), laws.FLAT)


def test_a_rule_that_names_a_part_of_the_bins_splits_no_tail():
    rule = Rule(when={"SEX": "1"}, never={"PINCP": ">= 200000"})
    assert starts_of(SCHEMA, "PINCP") == STARTS
    assert starts_of(Schema(SCHEMA.columns, rules=(rule,)), "PINCP") == [6, 7]


MECHANISMS = {
    "independent": Independent(),
    "mst": MST(),
    "aim": AIM(rounds=1),
    "fixed": Fixed(tables=[["SEX", "PINCP"]]),
    "strata": Stratified(MST(), ["SEX"], BY_SEX),
    "gem": make("gem", {"components": 4, "hidden": [3], "latent": 2, "iterations": 1, "rounds": 1, "least": 20}),
    "pooled": make("pooled", {"base": "mst", "share": 0.5, "weights": BY_SEX, "by": ["SEX"]}),
}


@cache
def standard(name):
    return released(MECHANISMS[name])


def released(how, frame=None, schema=SCHEMA, **options):
    rows = people() if frame is None else frame
    table = open_table(rows, schema=schema, declared_size=len(rows))
    return fit(how, table, Budget(3, 1e-9), entropy=SeededEntropy(7), seed=1, **options)


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NoticeWarning")
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_that_measures_the_column_gives_everybody_one_law(name):
    release = standard(name)
    (stated,) = release.statement.inside
    tail = release.inside["PINCP"].tail
    assert stated.fitted
    assert stated.slope == tail.slope == pytest.approx(3.0, abs=0.8)
    assert stated.start in EDGES
    assert stated.bins == len(tail.bins(INCOME))
    frame = people()
    drawn = release.sample(30_000, seed=3)
    high, known = (rows.loc[rows["PINCP"] >= 30_000, "PINCP"] for rows in (drawn, frame))
    assert name == "gem" or high.mean() == pytest.approx(known.mean(), rel=0.05)  # which is hardly trained here
    # of men and of women alike: numbers above the start follow the law of everybody
    for sex in ("1", "2"):
        own = drawn.loc[(drawn["SEX"].astype(str) == sex) & (drawn["PINCP"] >= stated.start), "PINCP"]
        codes = tail.redrawn(INCOME, np.full(50_000, 7), np.random.default_rng(1))
        law = numbers(INCOME, codes, np.random.default_rng(2).random(50_000), release.inside["PINCP"])
        assert np.log(own).mean() == pytest.approx(np.log(law).mean(), abs=5 * np.log(law).std() / len(own) ** 0.5)


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NoticeWarning")
def test_a_column_that_nothing_measured_has_the_middle_of_its_slopes_and_the_certificate_says_why():
    release = released(Fixed(tables=[["SEX"]]))
    (stated,) = release.statement.inside
    assert (stated.slope, stated.start, stated.bins, stated.fitted, stated.why) == (
        4,
        300_000,
        1,
        False,
        laws.UNMEASURED,
    )


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NoticeWarning")
def test_means_of_what_if_weights_follow_the_law():
    release = standard("strata")
    (result,) = weight_sensitivity(release, columns=["PINCP"]).results
    assert result.value == pytest.approx(release.sample(200_000, seed=1)["PINCP"].mean(), rel=0.02)


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NoticeWarning")
def test_a_condition_on_bins_of_the_tail_holds():
    release = released(MST(), people(3_000))
    level = "300000-4000000"
    assert release.inside["PINCP"].tail.first < 7
    assert (release.sample(50, seed=1, where={"PINCP": level})["PINCP"] >= 300_000).all()


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NoticeWarning")
def test_a_folder_keeps_the_laws_and_releases_without_them_load(tmp_path):
    release = standard("mst")
    folder = release.save(tmp_path / "release", rows=500, seed=5)
    again = Release.load(folder)
    assert again.inside["PINCP"].tail == release.inside["PINCP"].tail
    assert again.sample(500, seed=5).equals(release.sample(500, seed=5))
    assert (
        pd.read_parquet(folder / "synthetic.parquet")["PINCP"].tolist() == again.sample(500, seed=5)["PINCP"].tolist()
    )
    assert json.loads((folder / "certificate.json").read_text())["inside"][0]["column"] == "PINCP"
    (folder / "model" / "inside.npz").write_bytes(b"")
    with pytest.raises(ReleaseError, match=r"inside\.npz is not the file"):
        Release.load(folder)
    (folder / "model" / "inside.npz").unlink()
    with pytest.raises(ReleaseError, match=r"inside\.npz is missing"):
        Release.load(folder)
    plain = released(
        MST(), schema=Schema({"SEX": SEX, "PINCP": Numeric(lower=0, upper=4_000_000, edges=EDGES, integer=True)})
    )
    other = plain.save(tmp_path / "plain", rows=10)
    assert not (other / "model" / "inside.npz").exists()
    assert Release.load(other).inside == {}
    shutil.copy(release.save(tmp_path / "third", rows=10) / "model" / "inside.npz", other / "model" / "inside.npz")
    with pytest.raises(ReleaseError, match="exchanged"):
        Release.load(other)


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NoticeWarning")
def test_verify_recomputes_the_laws_and_the_page_says_that_a_tail_is_a_model(tmp_path):
    folder = standard("mst").save(tmp_path / "release", rows=50)
    said = "Tails follow from the noisy counts in measurements.parquet, within the declared slopes."
    assert said in verify(folder).checked
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "drawn from a Pareto law of slope" in page
    assert "It is a model, made of how many there are" in page
    record = json.loads((folder / "certificate.json").read_text())
    other = {**record["inside"][0], "slope": record["inside"][0]["slope"] + 0.1}
    (folder / "certificate.json").write_text(json.dumps({**record, "inside": [other]}))
    assert any("states other laws of numbers within bins" in each for each in verify(folder).findings)
    (folder / "certificate.json").write_text(json.dumps({k: v for k, v in record.items() if k != "inside"}))
    assert any("states other laws of numbers within bins" in each for each in verify(folder).findings)
    npz.write(folder / "model" / "inside.npz", npz.State({"format": "stratsynth-inside/1", "columns": {}}))
    (folder / "certificate.json").write_text(json.dumps(record))
    assert any("draws numbers within bins by other laws" in each for each in verify(folder).findings)


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        (
            InsideStated("x", "even", rounded=True),
            ["by the declared shape, even", "multiples of the units that the schema declares"],
        ),
        (InsideStated("x", "log", prior=1), ["by the declared shape, log", "In 1 bin they are drawn as the prior's"]),
        (
            InsideStated("x", "pareto", 4.0, (2, 6), 300_000, 1, why=laws.HIDDEN),
            ["from 300,000 on", "slope 4.00, the middle of the schema's 2 to 6, as noise hides"],
        ),
        (
            InsideStated("x", "pareto", 2.5, (2, 6), 300_000, 3, fitted=True),
            [
                "fitted to noisy counts of everybody within the schema's 2 to 6. It",
                "over the last 3 bins, drawn as one",
            ],
        ),
        (
            InsideStated("x", "pareto", 2.0, (2, 6), 300_000, 1, fitted=True, prior=12),
            [
                "2 to 6; the counts would have it smaller. It",
                "In 12 bins, those of the tail among them where it has rows",
            ],
        ),
    ],
)
def test_a_law_in_words(stated, words):
    line = inside_line(stated)
    assert all(each in line for each in words)


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NoticeWarning")
def test_numbers_of_a_prior_are_drawn_within_bins():
    keys = {name: getattr(INCOME, name) for name in ("lower", "upper", "edges", "integer")}
    schema = Schema({"SEX": SEX, "PINCP": Numeric(**keys, within="prior")})
    last = people(4_000, seed=9)
    last.loc[last["PINCP"].between(10_000, 29_999), "PINCP"] = 12_345
    last = last[last["PINCP"] < 200_000]
    release = released(MST(), schema=schema, prior=Prior.public(last, citation="made up for testing"))
    drawn = release.sample(20_000, seed=1)["PINCP"]
    inside = drawn[drawn.between(10_000, 29_999)]
    assert (inside.between(12_000, 12_700)).mean() > 0.98  # 4,000 numbers at one place, .05 at each of 127 others
    (stated,) = release.statement.inside
    assert stated.prior == 5
    assert stated.slope is None
    assert middles(schema.columns["PINCP"], release.inside["PINCP"])[2] == pytest.approx(12_345, rel=0.02)
    without = released(MST(), schema=schema)
    assert without.statement.inside[0].prior == 0
    assert without.inside == {}
