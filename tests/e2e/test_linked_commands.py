"""Every command on a release of two linked tables: what it says is true of both, and what it cannot do it refuses."""

import json

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import stratsynth as ss
from helpers import homes
from helpers.releases import copied, edited, rewritten, tied_again
from stratsynth import cli
from stratsynth.adapters import Linked


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("homes")
    for frame, name in zip(homes.tables(300), ("households", "persons"), strict=True):
        frame.to_csv(folder / f"{name}.csv", index=False)
    (folder / "homes.toml").write_text(homes.SCHEMA.to_toml(), encoding="utf-8")
    (folder / "recipe.toml").write_text(homes.RECIPE, encoding="utf-8")
    assert cli.run(["fit", str(folder / "recipe.toml")]) == 0
    return folder


def said(capsys, *words):
    """Return (exit code, all that was printed, in one line) of a command."""
    code = cli.run([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, " ".join((out + err).split())


def test_the_certificate_says_what_one_person_is_worth(place, capsys):
    release = ss.Release.load(place / "release")
    code, text = said(capsys, "certificate", place / "release")
    assert code == 0
    worth = f"hidden with an epsilon of {release.statement.prices['replace']:.4g}"
    assert "For one person Of a single person the household of which stays, whether it is there" in text
    assert worth in text
    assert "each of the household that its own key names" in text
    assert "a record or a person" not in text
    assert repr(release) == "Release(linked; epsilon 4, delta 1e-09; 6 columns)"
    assert json.loads(said(capsys, "certificate", place / "release", "--json")[1])["unit"]["tables"] == [
        "household",
        "person",
    ]


def test_the_registry_has_two_tables_and_no_counted_column(place, capsys):
    words = ["--name", "x", "--slug", "x", "--curator", "me", "--use", "test", "--region", "US"]
    code, text = said(
        capsys, "certificate", place / "release", "--registry", *words, "--published", "2024-01-01", "--author", "me"
    )
    assert code == 0
    assert "(household: TEN, HINCP, KIND; person: AGEP, SEX, PINCP), made by the mechanism linked" in text
    assert "Pairs of tables of any numbers of rows, linked by SERIALNO. A household has: TEN, one of 2" in text
    assert "parent." not in text


def test_what_made_it_is_cited_and_its_base_too(place, capsys):
    code, text = said(capsys, "cite", place / "release", "--format", "apa")
    assert code == 0
    assert "Winning the NIST Contest" in text


def test_the_plan_counts_households_and_not_people(place, capsys):
    code, text = said(capsys, "plan", place / "recipe.toml")
    assert code == 0
    assert "stratum households rounds" in text


def test_without_a_number_as_many_are_drawn_as_were_declared(place, capsys, tmp_path):
    code, _ = said(capsys, "sample", place / "release", "-o", tmp_path / "drawn")
    assert code == 0
    assert pq.read_metadata(tmp_path / "drawn" / "household.parquet").num_rows == 300


REFUSED = {
    "compare": (("compare", "recipe.toml", "-o", "out"), "releases of one table"),
    "lens": (("lens", "recipe.toml", "-o", "out"), "the loss of two linked tables is not split"),
    "means": (("means", "recipe.toml"), "releases two linked tables, not means"),
    "predict": (("predict", "release", "persons.csv", "-o", "p.csv"), "does not predict"),
    "benchmark": (("benchmark", "release", "recipe.toml", "-o", "out"), "no section [benchmark]"),
    "measured sizes": (("weights", "measured", "release", "-o", "out"), "this one does not"),
    "sensitivity": (("weights", "sensitivity", "release"), "no strata"),
    "within": (("sample", "release", "-n", "3", "-o", "release/more"), "lies in the release"),
    "spelling": (("sample", "release", "-n", "3", "-o", "out", "--as", "persons.csv"), "--as writes one file"),
    "balance": (("sample", "release", "-n", "3", "-o", "out", "--balance", "TEN"), "two linked tables: of the options"),
    "other schema": (("schema", "check", "households.csv", "--schema", "homes.toml"), "--child"),
    "again": (("fit", "recipe.toml", "-o", "out"), "this recipe is done"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_done_is_refused_with_the_reason(what, place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    words, why = REFUSED[what]
    code, text = said(capsys, *words)
    assert code == 2
    assert why in text
    assert "Traceback" not in text
    assert not (place / "out").exists()


def test_verify_reads_the_ledger_and_names_households(place, capsys):
    code, text = said(capsys, "verify", place / "release", "--ledger", place / "homes.ledger")
    assert code == 0
    assert "that the keys tell one household from another" in text
    assert "each person had as many rows" not in text


def fewer(folder):
    rewritten(folder / "person.parquet", lambda table: table.slice(1))


def moved_answer(folder):
    path = folder / "measurements.parquet"
    table = pq.read_table(path)
    place = table.column_names.index("sigma")
    pq.write_table(table.set_column(place, "sigma", pc.multiply(table.column("sigma"), 0.5)), path)
    tied_again(folder)


def heavier(folder):
    edited(folder, lambda record: record["row_weight"].update(max=30))


def one_table(folder):
    edited(folder, lambda record: record["unit"].update(tables=None))


def two_rows(folder):
    edited(folder, lambda record: record["unit"].update(max_rows=2))


def better(folder):
    edited(folder, lambda record: record["prices"].update(replace=4.1))


@pytest.mark.parametrize("change", [fewer, moved_answer, heavier, one_table, two_rows, better])
def test_a_changed_release_does_not_verify(change, place, capsys, tmp_path):
    folder = copied(place / "release", tmp_path / "copy")
    change(folder)
    code, _ = said(capsys, "verify", folder, "--ledger", place / "homes.ledger")
    assert code == 1


def test_the_base_named_with_settings_is_cited(tmp_path):
    table = ss.open_tables(*homes.tables(100), schema=homes.PLAIN, declared_size=100)
    release = ss.fit(Linked(base={"name": "aim", "rounds": 2}), table, ss.Budget(4, 1e-9), seed=0)
    assert "AIM: an adaptive" in release.cite("apa")
