"""Published tables as a prior: how they are read, what they bring, and what wrong ones cost."""

import json
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers import small
from helpers.priors import CITATION, SCHEMA, distance, last_year, people
from helpers.small import even
from stratsynth import (
    Budget,
    Prior,
    PublishedTable,
    Release,
    StratsynthError,
    Weights,
    cli,
    fit,
    open_table,
    plan,
    verify,
)
from stratsynth.adapters.pooled import Pooled
from stratsynth.mechanisms import make, prepare
from stratsynth.mechanisms.known import Known
from stratsynth.noise import SeededEntropy
from stratsynth.priors import releases
from stratsynth.priors.releases import release_of
from stratsynth.schema import Schema
from stratsynth.schema.weight import RowWeight
from stratsynth.strata import Stratum

FAST = {"gem": {"iterations": 20, "components": 32, "hidden": [16], "latent": 8}}
NAMES = ("independent", "mst", "aim", "gem")


def counted(columns: list[str], frame: pd.DataFrame | None = None) -> pd.DataFrame:
    """Every cell of some columns with its count, among very many people of the year before."""
    frame = people(100_000, 3) if frame is None else frame
    cells = pd.MultiIndex.from_product([SCHEMA.levels(c) for c in columns], names=columns)
    return frame.groupby(columns).size().reindex(cells, fill_value=0).rename("count").reset_index()


def published(*cliques: list[str]) -> Prior:
    return Prior.tables([PublishedTable(counted(clique), CITATION) for clique in cliques])


def wrong() -> Prior:
    """The levels of two tables of pairs in another order."""
    frames = [counted(["A", "B"]), counted(["C", "D"])]
    for frame in frames:
        frame["count"] = frame["count"].to_numpy()[::-1]
    return Prior.tables([PublishedTable(frame, CITATION) for frame in frames])


def fitted(name: str, prior: Prior | None, *, epsilon: float = 0.1, seed: int = 0) -> Release:
    how, rows = make(name, FAST.get(name, {})), people(3_000, 11)
    table = open_table(rows, schema=SCHEMA, declared_size=3_000, public=True)
    return fit(how, table, Budget(epsilon, 1e-9), seed=seed, prior=prior, entropy=SeededEntropy(seed))


@cache
def alone(name: str, epsilon: float, seed: int) -> Release:
    """Release of the same fit without a prior, which no test changes."""
    return fitted(name, None, epsilon=epsilon, seed=seed)


def off(release: Release, columns: list[str]) -> float:
    return distance(release.sample(3_000, seed=1), people(3_000, 11), columns)


@pytest.mark.parametrize("name", NAMES)
def test_a_published_column_is_nearly_known(name: str):
    without = np.mean([off(alone(name, 0.1, s), ["A"]) for s in range(3)])
    given = np.mean([off(fitted(name, published(["A"]), seed=s), ["A"]) for s in range(3)])
    assert given < 0.12
    assert given < without


@pytest.mark.parametrize("name", ["mst", "aim", "gem"])
def test_a_published_table_tells_how_columns_go_together(name: str):
    columns = ["B", "C", "D"]
    without = np.mean([off(alone(name, 0.1, s), columns) for s in range(2)])
    given = np.mean([off(fitted(name, published(columns), seed=s), columns) for s in range(2)])
    assert given < 0.5 * without


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_wrong_table_is_left(name: str, epsilon: float):
    without = np.mean([off(alone(name, epsilon, s), ["A", "B"]) for s in range(3)])
    given = np.mean([off(fitted(name, wrong(), epsilon=epsilon, seed=s), ["A", "B"]) for s in range(3)])
    assert given < 1.1 * without + 0.02


@pytest.mark.parametrize("base", ["mst", "aim", "gem"])
def test_a_stratum_of_pooled_leaves_a_table_that_everybody_contradicts(base: str):
    rows, cells = people(4_000, 3), counted(["A", "G"])
    cells["count"] = cells["count"].to_numpy()[::-1]
    weights = Weights.public(pd.DataFrame({"G": ["0", "1"], "share": [0.9, 0.1]}), citation=CITATION)
    how = Pooled(base={"name": base, **FAST.get(base, {})}, by=["G"], weights=weights)
    table = open_table(rows, schema=SCHEMA, declared_size=4_000, public=True)
    prior = Prior.tables([PublishedTable(cells, CITATION)])
    release = fit(how, table, Budget(0.3, 1e-9), prior=prior, seed=0, entropy=SeededEntropy(3))
    found = release.sample(4_000, seed=0)
    assert distance(found[found.G == "1"], rows[rows.G == "1"], ["A"]) < 0.2  # the table is off by .6


def test_rows_and_tables_go_together():
    rows = Prior.public(people(500, 4), citation=CITATION, tables=[PublishedTable(counted(["A", "B"]), CITATION)])
    release = fitted("aim", rows)
    assert release.certificate["prior"]["tables"][0]["columns"] == ["A", "B"]
    assert release.certificate["prior"]["rows"] == 500
    alone = fitted("aim", Prior.public(people(500, 4), citation=CITATION))
    assert off(release, ["A", "B"]) <= off(alone, ["A", "B"]) + 0.01


def test_it_is_stated_planned_and_verified(tmp_path: Path):
    private = open_table(people(3_000, 11), schema=SCHEMA, declared_size=3_000)
    prior = published(["A"], ["B", "C"])
    release = fit("mst", private, Budget(1, 1e-9), prior=prior)
    release.save(tmp_path / "release", rows=100, seed=0)
    stated = json.loads((tmp_path / "release" / "certificate.json").read_text())
    assert [table["columns"] for table in stated["prior"]["tables"]] == [["A"], ["B", "C"]]
    assert stated["prior"]["tables"][0]["people"] == 100_000
    assert any(line.startswith("Tables of the prior: ") for line in stated["not_protected"])
    assert not any(line.startswith("Rows of the prior") for line in stated["not_protected"])
    assert verify(tmp_path / "release").ok
    found = plan("mst", SCHEMA, Budget(1, 1e-9), declared_size=3_000, prior=prior)
    assert "table of B x C" in str(found)
    assert "taken to be exact for its population" in " ".join(str(found).split())


def test_strata_take_what_a_table_says_of_them():
    stratum = Stratum((("G", ("1",)),))
    public = prepare("mst", SCHEMA, Budget(1, 1e-9), 3_000, published(["A", "G"], ["B"])).public
    inside = public.within(stratum, 0.1)
    (known,) = inside.known
    real = people(100_000, 3)
    assert known.clique == ("A",)
    assert known.shares == pytest.approx(real[real.G == "1"].A.value_counts(normalize=True).sort_index(), abs=1e-9)
    assert [one.clique for one in public.without(["G"]).known] == [("A",), ("B",)]
    how = make("pooled", {"by": ["G"], "weights": even(SCHEMA, "G"), "base": "mst"})
    table = open_table(people(3_000, 11), schema=SCHEMA, declared_size=3_000, public=True)
    release = fit(how, table, Budget(0.1, 1e-9), seed=0, prior=published(["A", "G"]), entropy=SeededEntropy(3))
    rows = release.sample(4_000, seed=2)
    for group in "01":
        real = people(3_000, 11)
        assert distance(rows[group == rows.G], real[group == real.G], ["A"]) < 0.2


def test_standard_errors_and_sums():
    frame = counted(["A", "B"]).assign(error=100.0)
    known = Prior.tables([PublishedTable(frame, CITATION)]).in_schema(SCHEMA).tables[0]
    assert known.error == pytest.approx(0.001)
    assert known.without(["B"]).error == pytest.approx(0.002)  # of four cells together
    assert known.variance(("A", "B"), 1e6) > 1e6 * 1e6 * 0.001**2
    assert Known(("A",), np.array([0.5, 0.5])).variance(("A",), 1_000) == pytest.approx(250)


def test_shares_with_their_errors_and_replicates_serve_as_a_published_table():
    """As `census shares` writes them where the file has replicate weights."""
    shares = counted(["A"]).assign(share=[0.2, 0.3, 0.5]).drop(columns="count")
    plain = Prior.tables([PublishedTable(shares.assign(error=0.01), CITATION)]).in_schema(SCHEMA)
    written = shares.assign(standard_error=0.01, **{f"share_{i}": 0.3 for i in range(1, 81)})
    assert Prior.tables([PublishedTable(written, CITATION)]).in_schema(SCHEMA).stated == plain.stated
    with pytest.raises(StratsynthError, match="a column share_1, which is none of the schema"):
        Prior.tables([PublishedTable(shares.assign(share_1=0.3), CITATION)]).in_schema(SCHEMA)


def test_codes_and_names_are_mapped():
    frame = counted(["A"]).rename(columns={"A": "Alpha"}).replace({"Alpha": {"0": "none"}})
    frame = pd.concat([frame, pd.DataFrame({"Alpha": ["abroad"], "count": [50]})])
    how = {"rename": {"A": "Alpha"}, "recode": {"A": {"none": "0"}}}
    with pytest.raises(StratsynthError, match="has the value 'abroad' of A"):
        Prior.tables([PublishedTable(frame, CITATION)], **how).in_schema(SCHEMA)
    found = Prior.tables([PublishedTable(frame, CITATION)], **how, unknown="drop").in_schema(SCHEMA)
    assert found.tables[0].shares == pytest.approx(counted(["A"])["count"] / 100_000)
    assert found.stated["tables"][0]["left_out"] == 1


def test_different_values_of_one_level_add_up_and_the_same_value_twice_does_not():
    frame = pd.DataFrame({"A": ["0", "none", "1", "2"], "count": [10, 20, 30, 40], "error": [3.0, 4.0, 0, 0]})
    how = {"recode": {"A": {"none": "0"}}}
    known = Prior.tables([PublishedTable(frame, CITATION)], **how).in_schema(SCHEMA).tables[0]
    assert known.shares == pytest.approx([0.3, 0.3, 0.4])
    assert known.error == pytest.approx((25 / 3) ** 0.5 / 100)
    for again in ("none", " none "):
        more = pd.concat([frame, frame.iloc[1:2].assign(A=again)])
        with pytest.raises(StratsynthError, match=r"lines 3 and 6 .* both give the figure of A=none"):
            Prior.tables([PublishedTable(more, CITATION)], **how).in_schema(SCHEMA)


def test_an_error_of_all_there_is_can_be_stored():
    frame = counted(["A"]).drop(columns="count").assign(share=[0.2, 0.3, 0.5], error=1.0)
    assert published_of(frame).stated["tables"][0]["error"] == 1


def twice() -> pd.DataFrame:
    """A table of twelve cells whose first line is there again."""
    frame = counted(["A", "B"])
    return pd.concat([frame, frame.iloc[:1]])


def abroad(lines: int) -> pd.DataFrame:
    """A table with lines of a value that the schema does not know."""
    return pd.concat([counted(["A"]), pd.DataFrame({"A": ["abroad"] * lines, "count": [50] * lines})])


REFUSED = {
    "no citation": (lambda: PublishedTable(counted(["A"]), ""), "needs a citation"),
    "no table": (lambda: Prior.tables([]), "no table is given"),
    "a frame alone": (lambda: Prior.tables([counted(["A"])]), "a list of PublishedTable"),
    "no figures": (lambda: published_of(counted(["A"]).drop(columns="count")), "`share` or a column `count`"),
    "figures twice": (lambda: published_of(counted(["A"]).assign(share=0.1)), "`share` or a column `count`"),
    "an unknown column": (
        lambda: published_of(counted(["A"]).rename(columns={"A": "Z"})),
        "which is none of the schema",
    ),
    "no column": (lambda: published_of(pd.DataFrame({"share": [1.0]})), "no column of the schema"),
    "a cell missing": (lambda: published_of(counted(["A", "B"]).iloc[1:]), "no line for A=0 B=0"),
    "a figure below 0": (lambda: published_of(counted(["A"]).assign(count=-1)), "no number from 0"),
    "no number": (lambda: published_of(counted(["A"]).assign(count="many")), "no number from 0"),
    "all 0": (lambda: published_of(counted(["A"]).assign(count=0)), "all 0"),
    "a cell twice": (lambda: published_of(twice()), "lines 2 and 14 of a published table of A, B both give .* A=0 B=0"),
    "a cell twice, to be dropped": (
        lambda: Prior.tables([PublishedTable(abroad(2), CITATION)], unknown="drop").in_schema(SCHEMA),
        "lines 5 and 6 .* A=abroad",
    ),
    "an error without an end": (
        lambda: published_of(counted(["A"]).assign(count=1e-300, error=1e15)),
        "standard errors of a published table of A come to inf",
    ),
    "an error above all": (
        lambda: published_of(counted(["A"]).drop(columns="count").assign(share=[0.2, 0.3, 0.5], error=1.01)),
        "come to 1.01 times all",
    ),
    "shares of something else": (
        lambda: published_of(counted(["A"]).drop(columns="count").assign(share=0.2)),
        "add up to 0.6",
    ),
}


def published_of(frame: pd.DataFrame):
    return Prior.tables([PublishedTable(frame, CITATION)]).in_schema(SCHEMA)


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused(case):
    make_it, said = case
    with pytest.raises(StratsynthError, match=said):
        make_it()


def test_a_file_with_an_account_or_of_a_release_is_no_published_table(tmp_path: Path):
    path = tmp_path / "people.csv"
    people(200, 6).to_csv(path, index=False)
    fit("mst", open_table(path, schema=SCHEMA, ledger=tmp_path / "l", declared_size=200), Budget(1, 1e-9))
    with pytest.raises(StratsynthError, match="account"):
        PublishedTable(path, CITATION)
    fitted("mst", None).save(tmp_path / "release", rows=50, seed=0)
    with pytest.raises(StratsynthError, match=r"take Prior\.release"):
        PublishedTable(tmp_path / "release" / "measurements.parquet", CITATION)


def test_a_folder_is_no_published_table_and_is_not_searched(tmp_path: Path, monkeypatch):
    fitted("mst", None).save(tmp_path / "release", rows=50, seed=0)
    monkeypatch.setattr(Path, "rglob", lambda *_: pytest.fail("the folder was searched"))
    with pytest.raises(StratsynthError, match=r"take Prior\.release"):
        PublishedTable(tmp_path / "release", CITATION)
    with pytest.raises(StratsynthError, match="is a folder; a published table is one CSV file"):
        PublishedTable(tmp_path, CITATION)


def test_a_folder_of_too_many_files_is_no_prior(tmp_path: Path, monkeypatch):
    (tmp_path / "data").mkdir()
    for name in "abc":
        (tmp_path / "data" / f"{name}.parquet").touch()
    assert release_of(tmp_path / "data") is None
    monkeypatch.setattr(releases, "MOST", 2)
    with pytest.raises(StratsynthError, match="holds more than 2 files and folders; name the file, or"):
        release_of(tmp_path / "data")
    with pytest.raises(StratsynthError, match="holds more than 2 files"):
        Prior.public(tmp_path / "data", citation=CITATION)


def test_the_private_table_is_refused_as_a_published_one(tmp_path: Path):
    path = tmp_path / "people.csv"
    counted(["A"]).to_csv(path, index=False)
    schema = type(SCHEMA)({"A": SCHEMA.column("A")})
    prior = Prior.tables([PublishedTable(path, CITATION)])
    with pytest.raises(StratsynthError, match="prior: it is the private table itself"):
        fit(
            "mst", open_table(path, schema=schema, ledger=tmp_path / "l", declared_size=3), Budget(1, 1e-9), prior=prior
        )


COUNTED = Schema({name: SCHEMA.column(name) for name in "AB"}, row_weight=RowWeight(1_000, column="count", mean=500))
"""Of rows that are counted already: as such, a private file has the form of a published table."""


def test_a_copy_of_the_private_table_is_refused_as_a_published_one(tmp_path: Path):
    frame, path, ledger = counted(["A", "B"]), tmp_path / "people.csv", tmp_path / "people.ledger"
    frame.to_csv(path, index=False)
    copies = [tmp_path / "copies" / name for name in ("copy.csv", "copy.txt")]
    copies[0].parent.mkdir()
    for copy in copies:
        shutil.copy(path, copy)
    on_disk = open_table(path, schema=COUNTED, declared_size=100_000, ledger=ledger)
    in_memory = open_table(frame, schema=COUNTED, declared_size=100_000)
    for table, given in (
        *((on_disk, copy) for copy in (*copies, str(copies[0]))),
        (in_memory, frame.copy()),
        (in_memory, frame.set_axis(range(7, 7 + len(frame)))),
    ):
        prior = Prior.tables([PublishedTable(given, CITATION)])
        with pytest.raises(StratsynthError, match="prior: it is the private table itself"):
            fit("mst", table, Budget(1, 1e-9), prior=prior)
    assert in_memory.ledger.reserved == ()
    release = fit("independent", on_disk, Budget(1, 1e-9))
    assert release.certificate["ledger"]["releases"] == 1


def test_a_copy_of_the_private_table_is_refused_beside_public_rows():
    frame = counted(["A", "B"])
    prior = Prior.public(people(300, 3)[["A", "B"]], citation=CITATION, tables=[PublishedTable(frame.copy(), CITATION)])
    with pytest.raises(StratsynthError, match="prior: it is the private table itself"):
        fit("mst", open_table(frame, schema=COUNTED, declared_size=100_000), Budget(1, 1e-9), prior=prior)


def test_other_tables_of_the_same_form_are_taken(tmp_path: Path):
    frame, path = counted(["A", "B"]), tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    other = frame.assign(count=frame["count"].to_numpy()[::-1])
    other.to_csv(tmp_path / "other.csv", index=False)
    assert (tmp_path / "other.csv").stat().st_size == path.stat().st_size
    for data, given in ((path, tmp_path / "other.csv"), (frame, other), (path, other), (frame, tmp_path / "other.csv")):
        table = open_table(data, schema=COUNTED, declared_size=100_000)
        prior = Prior.tables([PublishedTable(given, CITATION)])
        assert fit("independent", table, Budget(0.1, 1e-9), prior=prior).certificate["prior"]["tables"]


def test_mechanisms_that_take_no_tables_refuse_them_and_other_tables_are_another_fit():
    with pytest.raises(StratsynthError, match="does not start from a prior"):
        fitted("fixed", published(["A"]))
    one, two = (prepare("mst", SCHEMA, Budget(1, 1e-9), 3_000, published([c])).prior for c in "AB")
    assert one is not None
    assert two is not None
    assert one.digest != two.digest
    assert last_year().in_schema(SCHEMA).digest != one.digest


RECIPE = """
[prior]
rename = { SEX = "sex" }

[[prior.tables]]
path = "sex.csv"
citation = "made up, table 1"
"""


def test_from_the_command_line(tmp_path: Path, monkeypatch, capsys):
    path = small.write_recipe(tmp_path)
    path.write_text(f"{path.read_text()}\n{RECIPE}")
    (tmp_path / "sex.csv").write_text("sex,share,error\n1,0.4,0.01\n2,0.6,0.01\n")
    monkeypatch.chdir(tmp_path)
    assert cli.run(["plan", "recipe.toml"]) == 0
    assert "Prior table of SEX: made up, table 1; standard error 0.01" in " ".join(capsys.readouterr().out.split())
    assert cli.run(["fit", "recipe.toml"]) == 0
    assert cli.run(["verify", "release"]) == 0
    for old, new, said in (
        ('path = "sex.csv"', 'path = "nowhere.csv"', "no file"),
        ('citation = "made up, table 1"\n', "", "citation"),
        ('path = "sex.csv"', 'path = "people.csv"', "private table itself"),
        ('path = "sex.csv"', 'file = "sex.csv"', "file"),
        ("[prior]", '[prior]\ncitation = "of nothing"', "is about rows"),
        ("[prior]", '[prior]\norigin = "release"', "path is missing"),
    ):
        text = path.read_text()
        assert old in text
        head, tail = text.split("[prior]", 1)
        path.write_text(head + ("[prior]" + tail).replace(old, new, 1))
        capsys.readouterr()
        assert cli.run(["fit", "recipe.toml", "-o", "other"]) == 2, old
        assert said in capsys.readouterr().err
        path.write_text(text)
