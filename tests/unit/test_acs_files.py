"""Files of the survey: found, verified, loaded; shares of groups and codes from them."""

import zipfile

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers import bureau
from stratsynth.census import acs
from stratsynth.census.acs.source import StateFile
from stratsynth.errors import UsageError
from stratsynth.strata import crossing


def test_names_and_addresses_are_the_bureaus():
    new, old = StateFile("PA", 2018), StateFile("ny", 2016, "5-Year")
    assert (new.name, new.archive) == ("psam_p42.csv", "csv_ppa.zip")
    assert (old.name, old.archive) == ("ss16pny.csv", "csv_pny.zip")
    assert new.url == "https://www2.census.gov/programs-surveys/acs/data/pums/2018/1-Year/csv_ppa.zip"
    assert old.url.endswith("/2016/5-Year/csv_pny.zip")


@pytest.mark.parametrize(
    "place", ["psam_p42.csv", "csv_ppa.zip", "2018/1-Year/psam_p42.csv", "2018/1-Year/csv_ppa.zip"]
)
def test_it_is_found_where_the_bureau_and_folktables_put_it(tmp_path, place):
    path = tmp_path / "data" / place
    if path.suffix == ".zip":
        bureau.archive(path, "psam_p42.csv", 50, 2018)
    else:
        bureau.csv(path, 50, 2018)
    done = acs.load(tmp_path / "pa.parquet", state="PA", year=2018, source=tmp_path / "data")
    assert (done.path, done.rows, done.kept) == (path, 50, 50)
    frame = pd.read_parquet(tmp_path / "pa.parquet")
    assert {"SERIALNO", "PWGTP", "RELP", "OCCP"} <= set(frame)
    assert "PWGTP1" not in frame
    assert frame["OCCP"].dropna().isin(["0010", "4720", "9130"]).all()
    assert frame["AGEP"].dtype == "int64"


def test_what_does_not_apply_is_null_and_not_zero(tmp_path):
    path = bureau.csv(tmp_path / "psam_p42.csv", 400, 2018)
    acs.load(tmp_path / "pa.parquet", state="PA", year=2018, source=path)
    frame = pd.read_parquet(tmp_path / "pa.parquet")
    assert (frame["ESR"].isna() == (frame["AGEP"] < 16)).all()
    assert (frame["PINCP"].isna() == (frame["AGEP"] < 15)).all()


@pytest.mark.parametrize(
    ("task", "keep"),
    [
        ("ACSEmployment", lambda f: f["AGEP"] >= 0),
        ("ACSPublicCoverage", lambda f: (f["AGEP"] < 65) & (f["PINCP"] <= 30000)),
    ],
)
def test_a_task_keeps_its_columns_and_rows(tmp_path, task, keep):
    path, raw = tmp_path / "psam_p42.csv", bureau.people(500, 2018).assign(FER="", PUBCOV="1")
    raw.to_csv(path, index=False)
    done = acs.load(tmp_path / "t.parquet", state="PA", year=2018, task=task, source=path)
    numbers = raw.assign(PINCP=pd.to_numeric(raw["PINCP"]))
    assert done.kept == int(keep(numbers).sum())
    assert set(done.columns) == {*acs.schema(task=task, year=2018).names, "PWGTP"}


def test_a_loaded_file_fits_its_schema(tmp_path):
    path = bureau.csv(tmp_path / "psam_p42.csv", 800, 2018)
    acs.load(tmp_path / "pa.parquet", state="PA", year=2018, task="ACSEmployment", source=path)
    schema = acs.schema(task="ACSEmployment", year=2018)
    found = acs.check(tmp_path / "pa.parquet", schema, 2018)
    assert found.fits
    assert (found.rows, found.left_out) == (800, 0)
    assert "INTERNAL" in found.text()
    assert "17 structural rules, 0 of them broken." in found.text()


def test_without_a_file_it_says_which_and_where(tmp_path):
    (tmp_path / "data").mkdir()
    with pytest.raises(UsageError) as caught:
        acs.load(tmp_path / "ny.parquet", state="NY", year=2018, source=tmp_path / "data")
    for part in ("psam_p36.csv", "csv_pny.zip", "https://www2.census.gov/", str(tmp_path / "data"), "--download"):
        assert part in str(caught.value)
    assert list(tmp_path.rglob("*.parquet")) == []


def refused(tmp_path, says, path=None, **keys):
    with pytest.raises(UsageError, match=says):
        acs.load(tmp_path / "out.parquet", **{"state": "PA", "year": 2018, "source": path or tmp_path, **keys})
    assert not (tmp_path / "out.parquet").exists()


def test_another_state_year_or_file_is_refused_by_name(tmp_path):
    refused(tmp_path, "is of state 36, not 42", bureau.csv(tmp_path / "a.csv", 9, 2018, state="36"))
    refused(
        tmp_path,
        "RELSHIPP is a column of 2019 to 2024, not of 2018; in 2018 it is RELP",
        bureau.csv(tmp_path / "b.csv", 9, 2019),
    )
    older = bureau.people(9, 2018).assign(SERIALNO=[f"2017{i:09}" for i in range(9)])
    older.to_csv(tmp_path / "c.csv", index=False)
    refused(tmp_path, "records of 2017, not of 2018", tmp_path / "c.csv")
    (tmp_path / "d.csv").write_text("SERIALNO,NP\n1,2\n", encoding="utf-8")
    refused(tmp_path, "no column AGEP", tmp_path / "d.csv")
    bureau.people(0, 2018).to_csv(tmp_path / "e.csv", index=False)
    refused(tmp_path, "holds no record", tmp_path / "e.csv")
    refused(
        tmp_path, "no column OCCPP; did you mean 'OCCP'", bureau.csv(tmp_path / "f.csv", 9, 2018), columns=["OCCPP"]
    )
    bureau.people(9, 2018).drop(columns="ST").to_csv(tmp_path / "g.csv", index=False)
    refused(tmp_path, "neither ST nor STATE", tmp_path / "g.csv")
    refused(tmp_path, "horizon", tmp_path / "f.csv", horizon="3-Year")
    refused(tmp_path, "there is no file", tmp_path / "none.csv")
    refused(tmp_path, "columns, or a task", tmp_path / "f.csv", columns=["SEX"], task="ACSIncome")


@pytest.mark.parametrize("kind", ["parquet, as text", "parquet, as numbers", "csv.gz"])
def test_other_forms_of_the_file_are_loaded_alike(tmp_path, kind):
    people = bureau.people(300, 2018)
    people["OCCP"] = people["OCCP"].replace({"": None})
    plain = _written(people, tmp_path / "plain.csv")
    other = tmp_path / f"other.{kind.partition(',')[0]}"
    if kind == "csv.gz":
        people.to_csv(other, index=False)
    else:
        codes = ["ST", "OCCP", "PUMA", "SEX", "PINCP", "WKHP"]
        typed = people[codes].apply(pd.to_numeric).astype("Int64") if "numbers" in kind else people[codes]
        people.replace({"": None}).assign(**{name: typed[name].replace({"": None}) for name in codes}).to_parquet(other)
    columns = ["SEX", "AGEP", "OCCP", "PUMA", "PINCP", "WKHP"]
    for path, out in ((plain, "a.csv"), (other, "b.csv")):
        assert acs.load(tmp_path / out, state="PA", year=2018, source=path, columns=columns).rows == 300
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == (tmp_path / "b.csv").read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="is of state 42, not 36"):
        acs.load(tmp_path / "c.csv", state="NY", year=2018, source=other)
    people.assign(SERIALNO=[f"2017{i:09}" for i in range(300)]).astype(str).to_parquet(tmp_path / "old.parquet")
    refused(tmp_path, "records of 2017, not of 2018", tmp_path / "old.parquet", columns=["SEX"])


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.csv", b"", "is empty, 0 bytes"),
        ("semi.csv", b"SERIALNO;AGEP\n1;2\n", "separated by semicolons"),
        ("homes.csv", b"SERIALNO,NP,HINCP\n1,2,3\n", "those of housing units"),
        ("small.csv", b"serialno,agep\n1,2\n", "in other letters or with spaces"),
        ("twice.csv", b"AGEP,AGEP\n1,2\n", "two columns of one name"),
        ("cut.parquet", b"PAR1 and no more", "is damaged"),
        ("cut.csv.gz", b"\x1f\x8b\x08 and no more", "is damaged"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told_why(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    refused(tmp_path, reason, tmp_path / name)


def test_a_damaged_archive_is_refused(tmp_path):
    path = bureau.archive(tmp_path / "csv_ppa.zip", "psam_p42.csv", 5000, 2018)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    refused(tmp_path, "damaged", path)
    path.write_bytes(bytes(content[: len(content) // 2]))
    refused(tmp_path, "damaged", path)
    bureau.archive(path, "psam_p36.csv", 9, 2018)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("psam_p37.csv", "x\n")
    refused(tmp_path, "holds no psam_p42.csv", path)


def test_a_row_cut_short_is_refused(tmp_path):
    path = bureau.csv(tmp_path / "psam_p42.csv", 100, 2018)
    path.write_bytes(path.read_bytes()[:-20])
    refused(tmp_path, "damaged", path)


def served(content):
    def fetch(url, file):
        assert url.startswith("https://www2.census.gov/")
        if isinstance(content, BaseException):
            file.write(b"half of")
            raise content
        file.write(content)

    return fetch


def test_a_download_is_kept_whole_or_not_at_all(tmp_path):
    sound = bureau.archive(tmp_path / "x.zip", "psam_p42.csv", 60, 2018).read_bytes()
    folder = tmp_path / "data"
    keys = {"state": "PA", "year": 2018, "source": folder, "download": True}
    for content, says in (
        (OSError(404, "the server says 404"), "cannot be fetched .the server says 404.*put it at"),
        (b"<html>Not found</html>", "no whole zip file; nothing of it was kept"),
        (sound[: len(sound) // 2], "no whole zip file"),
        (KeyboardInterrupt(), None),
    ):
        expected = pytest.raises(UsageError, match=says) if says else pytest.raises(KeyboardInterrupt)
        with expected:
            acs.load(tmp_path / "pa.parquet", fetch=served(content), **keys)
        assert [p for p in folder.rglob("*") if p.is_file()] == []
    done = acs.load(tmp_path / "pa.parquet", fetch=served(sound), **keys)
    assert (done.rows, done.path.name) == (60, "csv_ppa.zip")
    again = acs.load(tmp_path / "pa.parquet", fetch=served(OSError("never asked")), **keys)
    assert again.path == done.path


def test_nothing_is_fetched_unless_it_is_asked_for(tmp_path):
    with pytest.raises(UsageError, match="add --download"):
        acs.load(tmp_path / "o.parquet", state="PA", year=2018, source=tmp_path, fetch=served(b""))


@pytest.mark.network
def test_without_a_network_it_says_what_to_do(tmp_path):
    with pytest.raises(UsageError, match=r"cannot be fetched .*put it at .*csv_ppa\.zip"):
        acs.load(tmp_path / "o.parquet", state="PA", year=2018, source=tmp_path, download=True)


def test_shares_are_weighted_totals(tmp_path):
    frame = bureau.people(3000, 2017)
    frame.to_csv(tmp_path / "earlier.csv", index=False)
    found = acs.shares(tmp_path / "earlier.csv", ["SEX", "RAC1P"], year=2017, smooth=0)
    assert len(found.frame) == 18
    weights = frame["PWGTP"].astype(float)
    own = weights[(frame["SEX"] == "2") & (frame["RAC1P"] == "6")].sum() / weights.sum()
    said = found.frame.set_index(["SEX", "RAC1P"])["share"]
    assert said["2", "6"] == pytest.approx(own)
    assert said.sum() == pytest.approx(1)
    assert found.empty == 10
    assert "2017" in found.citation
    assert "weighted by PWGTP of 3,000 records" in found.citation
    plain = acs.shares(tmp_path / "earlier.csv", ["SEX"], year=2017, smooth=0, weight=None).frame
    assert plain["share"].tolist() == pytest.approx((frame["SEX"].value_counts(normalize=True))[["1", "2"]].tolist())


def test_groups_that_the_file_misses_are_rare_and_not_impossible(tmp_path):
    bureau.csv(tmp_path / "earlier.csv", 1000, 2017)
    found = acs.shares(tmp_path / "earlier.csv", ["RAC1P"], year=2017)
    share = found.frame.set_index("RAC1P")["share"]["4"]
    assert share == pytest.approx(0.5 / (1000 + 9 * 0.5))
    assert "0.5 records of average weight added" in found.citation


@pytest.mark.parametrize("year", [2023, None])
def test_a_file_is_never_cited_as_of_another_year_or_state(tmp_path, year):
    path = bureau.csv(tmp_path / "p_36.csv", 200, 2024, state="36")
    if year is not None:
        with pytest.raises(UsageError, match=r"p_36\.csv is of 2024, as its serial numbers say, not of 2023"):
            acs.shares(path, ["SEX"], year=year)
    with pytest.raises(UsageError, match=r"is of NY, as its column of states says, not of PA"):
        acs.shares(path, ["SEX"], state="PA")
    found = acs.shares(path, ["SEX"])
    assert "American Community Survey 2024, public-use microdata, person records, NY: totals" in found.citation
    assert found.year == 2024


def test_names_speak_where_columns_do_not(tmp_path):
    people = bureau.people(100, 2016).drop(columns="ST")
    folder = tmp_path / "earlier"
    folder.mkdir()
    found = acs.shares(_written(people, folder / "ss16pny.csv"), ["SEX"])
    assert "Survey 2016, public-use microdata, person records, NY:" in found.citation
    with pytest.raises(UsageError, match="is of 2016, as its name says, not of 2015"):
        acs.shares(folder / "ss16pny.csv", ["SEX"], year=2015)
    with pytest.raises(UsageError, match=r"nothing in people\.csv says of which year"):
        acs.shares(_written(people, tmp_path / "people.csv"), ["SEX"])
    assert (
        acs.shares(_written(people, tmp_path / "psam_p42.csv"), ["SEX"], year=2016).citation.count("records, PA") == 1
    )


def test_a_file_of_five_years_is_cited_with_them(tmp_path):
    parts = [bureau.people(20, year).rename(columns={"ST": "STATE"}) for year in (2020, 2022, 2024)]
    found = acs.shares(_written(pd.concat(parts), tmp_path / "five.csv"), ["SEX"])
    assert "American Community Survey 2020 to 2024," in found.citation
    parts = [bureau.people(20, year).rename(columns={"ST": "STATE"}) for year in (2018, 2024)]
    with pytest.raises(UsageError, match="holds records of 2018 to 2024"):
        acs.shares(_written(pd.concat(parts), tmp_path / "six.csv"), ["SEX"])


def test_an_excerpt_is_never_cited_as_the_bureaus_own(tmp_path):
    names = {"SERIALNO": "DENSITY", "DIS": "DVET", "MAR": "MSP", "SCHL": "EDU"}
    excerpt = bureau.people(100, 2018).rename(columns=names).drop(columns="ST")
    path = _written(excerpt, tmp_path / "texas_2018.csv")
    with pytest.raises(UsageError, match=r"has columns of NIST's excerpts .* name it with --origin"):
        acs.shares(path, ["SEX"], year=2018)
    with pytest.raises(UsageError, match="names the Census Bureau alone"):
        acs.shares(path, ["SEX"], year=2018, origin="U.S. Census Bureau, American Community Survey 2018")
    nist = "NIST Diverse Communities Data Excerpts, Texas"
    assert acs.shares(path, ["SEX"], origin=nist).citation.startswith(f"{nist}, 2018: totals")
    with pytest.raises(UsageError, match="is of 2018, as its name says, not of 2019"):
        acs.shares(path, ["SEX"], year=2019, origin=nist)
    with pytest.raises(UsageError, match="--origin names 2017"):
        acs.shares(path, ["SEX"], origin=f"{nist} 2017")
    with pytest.raises(UsageError, match="'x' is too short"):
        acs.shares(path, ["SEX"], origin="x")
    bare = _written(bureau.people(50, 2018).drop(columns="SERIALNO"), tmp_path / "bare.csv")
    with pytest.raises(UsageError, match="has no SERIALNO, so nothing shows that it is the Bureau's file of 2018"):
        acs.shares(bare, ["SEX"], year=2018)


def test_replicate_weights_give_shares_their_standard_errors(tmp_path):
    people, rng = bureau.people(400, 2024), np.random.default_rng(3)
    weights = people["PWGTP"].to_numpy(float)
    replicates = pd.DataFrame({f"PWGTP{i}": rng.integers(-5, 400, 400) for i in range(1, 81)})
    path = _written(pd.concat([people.drop(columns="PWGTP1"), replicates], axis=1), tmp_path / "psam_p42.csv")
    found = acs.shares(path, ["SEX", "RAC1P"], smooth=0).frame.set_index(["SEX", "RAC1P"])
    here = ((people["SEX"] == "2") & (people["RAC1P"] == "6")).to_numpy()
    share = weights[here].sum() / weights.sum()
    own = [replicates[name].to_numpy()[here].sum() / replicates[name].sum() for name in replicates]
    assert found["standard_error"]["2", "6"] == pytest.approx(np.sqrt(4 / 80 * sum((r - share) ** 2 for r in own)))
    assert found["standard_error"]["2", "4"] == pytest.approx(1 / 400)  # nobody: the share of one record
    assert "standard_error" not in acs.shares(path, ["SEX"], weight=None).frame
    weighted = ss.Weights.public(found.reset_index(), citation="made up")
    schema = acs.schema(["SEX", "RAC1P"], year=2024)
    strata = crossing(schema, ["SEX", "RAC1P"])
    errors = weighted.resolve(strata, schema).errors
    assert errors[strata[0]] == pytest.approx(found["standard_error"]["1", "1"])
    simple = pd.DataFrame({"SEX": ["1", "2"], "share": [0.4, 0.6], "standard_error": (0.24 / 500) ** 0.5})
    half = crossing(acs.schema(["SEX"], year=2024), ["SEX"])
    assert ss.Weights.public(simple, citation="made up").resolve(half, schema).effective_records == pytest.approx(500)
    assert (
        ss.Weights.public(simple[["SEX", "share"]], citation="made up").resolve(half, schema).effective_records is None
    )
    merged = weighted.resolve(strata, schema).merged({strata[0]: strata[:2]}).errors[strata[0]]
    assert merged == pytest.approx(np.hypot(*found["standard_error"].to_numpy()[:2]))
    with pytest.raises(UsageError, match="standard_error goes beside"):
        ss.Weights.public(pd.DataFrame({"SEX": ["1"], "standard_error": [0.1]}), citation="made up")


def test_shares_serve_as_weights_and_within_groups(tmp_path):
    bureau.csv(tmp_path / "earlier.csv", 1000, 2018)
    by_age = acs.shares(tmp_path / "earlier.csv", ["AGEP", "DIS"], year=2018)
    schema = acs.schema(["AGEP", "DIS", "OCCP"], year=2018)
    weights = ss.Weights.public(by_age.frame, citation=by_age.citation)
    how = ss.Stratified("independent", ["AGEP", "DIS"], weights)
    assert len(ss.plan(how, schema, ss.Budget(epsilon=1, delta=1e-9), declared_size=10_000).strata) == 50
    jobs = acs.shares(tmp_path / "earlier.csv", ["OCCP"], year=2018, smooth=0)
    jobs.frame.to_csv(tmp_path / "jobs.csv", index=False)
    drawn = acs.schema(["OCCP"], year=2018, within=[tmp_path / "jobs.csv"], citation=jobs.citation).column("OCCP")
    assert sum(share > 0 for share in drawn.shares.values()) == 4  # three occupations, and N


def test_shares_of_what_is_not_public_or_not_of_the_year_are_refused(tmp_path):
    path = bureau.csv(tmp_path / "people.csv", 100, 2018)
    (tmp_path / "people.ledger").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match=r"has an account, people\.ledger"):
        acs.shares(path, ["SEX"], year=2018)
    other = bureau.people(100, 2018).assign(SEX=np.where(np.arange(100) < 3, "9", "1"))
    other.to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(UsageError, match="SEX in 3; is the file of 2018"):
        acs.shares(tmp_path / "other.csv", ["SEX"], year=2018)
    with pytest.raises(UsageError, match="no weight"):
        acs.shares(_written(other.assign(PWGTP="", SEX="1"), tmp_path / "w.csv"), ["SEX"], year=2018)
    with pytest.raises(ss.StratsynthError, match="PWGTP"):
        acs.shares(_written(other.drop(columns="PWGTP"), tmp_path / "v.csv"), ["SEX"], year=2018)


def _written(frame, path):
    frame.to_csv(path, index=False)
    return path


def test_a_check_names_columns_of_another_year_and_counts_what_breaks_rules(tmp_path):
    schema = acs.schema(task="ACSEmployment", year=2019)
    path = bureau.csv(tmp_path / "old.csv", 50, 2018)
    found = acs.check(path, schema, 2019)
    assert not found.fits
    assert "The file has RELP, not RELSHIPP: the file is of another year." in found.text()
    broken = bureau.people(200, 2019)
    broken["MIL"] = "4"
    found = acs.check(_written(broken, tmp_path / "new.csv"), schema, 2019)
    young = int((broken["AGEP"] < 17).sum())
    assert {count for rule, count in found.rules if count} == {young}
    assert not found.fits
    assert "PWGTP1" in found.text()


def test_a_check_names_column_and_code_and_ends_by_what_matters(tmp_path):
    schema, people = acs.schema(["AGEP", "SEX", "OCCP"], year=2024), bureau.people(1000, 2024)
    people.loc[:2, "OCCP"] = "3900"
    found = acs.check(_written(people, tmp_path / "few.csv"), schema, 2024)
    assert found.fits
    assert "A fit would lose 3 of 1,000 records (0.3 %); not more than 1 %: exit code 0." in found.text()
    assert "OCCP has values that the schema does not know in 3 records: '3900' in 3" in found.text()
    people["SEX"] = people["SEX"].replace({"1": "M", "2": "F"})
    found = acs.check(_written(people, tmp_path / "all.csv"), schema, 2024)
    assert not found.fits
    assert "(1e+02 %)" not in found.text()
    assert "exit code 1" in found.text()


def test_a_rule_that_a_handful_break_says_what_may_be_done_about_it(tmp_path):
    schema, people = acs.schema(["AGEP", "MIL"], year=2024), bureau.people(1000, 2024)
    child = people.index[people["AGEP"] < 17][0]
    people.loc[child, "MIL"] = "4"
    found = acs.check(_written(people, tmp_path / "one.csv"), schema, 2024)
    assert found.fits
    assert "1 records (0.1 %): AGEP < 17: never MIL" in found.text()
    assert "must not follow from these numbers: nobody paid for them" in found.text()
    assert "exit code 1" not in found.text()


def test_people_beyond_the_largest_weight_are_counted(tmp_path):
    people = bureau.people(100, 2024)
    people["PWGTP"] = [100] * 99 + [401]
    schema = acs.schema(["SEX"], year=2024, weight=300, weight_mean=103)
    found = acs.check(_written(people, tmp_path / "w.csv"), schema, 2024).text()
    assert (
        "1 records stand for more people than the largest weight: the release lacks 101 of 10,301 people (0.98 %)"
        in found
    )


def test_the_guard_of_a_state_breaks_no_rule(tmp_path):
    people = bureau.people(200, 2024)
    soldier = people.index[people["AGEP"] > 20][0]
    people.loc[soldier, ["ESR", "COW", "MIL"]] = "4", "4", "3"
    found = acs.check(_written(people, tmp_path / "p.csv"), acs.schema(["AGEP", "ESR", "COW", "MIL"], year=2024), 2024)
    assert not any(count for rule, count in found.rules if rule.startswith("ESR 4 5: never COW 1 2 3 6 7 8"))
    assert any(rule.startswith("ESR 4 5: never COW 1 2 3 6 7 8") for rule, _ in found.rules)
