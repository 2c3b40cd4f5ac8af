"""`stratsynth check`: all that can be known before budget is spent, and nothing that is spent or written."""

import json

import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from stratsynth import census, cli

LEDGER = 'delta = 1e-9\nledger = "people.ledger"\n'


@pytest.fixture
def recipe(tmp_path):
    """A recipe whose rows fit its schema."""
    path = small.write_recipe(tmp_path)
    small.people().replace({"zebra": "yes"}).to_csv(tmp_path / "people.csv", index=False)
    return path


def verdicts(recipe):
    return {outcome.name: (outcome.verdict, outcome.text) for outcome in ss.check(recipe).outcomes}


def test_a_sound_recipe_passes_and_nothing_is_written(recipe, capsys):
    small.edit(recipe, "delta = 1e-9\n", LEDGER)
    before = small.tree(recipe.parent)
    assert cli.run(["check", str(recipe)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith(
        "INTERNAL: computed from the data without a charge; not for publication. None of 13 checks fails"
    )
    for said in ("recipe.toml is valid", "people.csv: 100 records", "A fit would lose 0 of 100 records", "0 spent"):
        assert said in out
    assert "Nothing was charged or written" in out
    assert cli.run(["check", str(recipe), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["INTERNAL"], found["ok"], len(found["checks"])) == (True, True, 13)
    assert small.tree(recipe.parent) == before
    assert "INTERNAL" in ss.check(ss.Recipe.read(recipe))._repr_html_()


FAULTS = {
    "no recipe": (lambda path: path.unlink(), "recipe", "there is no recipe"),
    "a comma": (lambda path: small.edit(path, "epsilon = 1.0", "epsilon = 1,0"), "recipe", "is not TOML"),
    "no data": (lambda path: (path.parent / "people.csv").unlink(), "data", "there is no such file"),
    "a column less": (
        lambda path: small.people().rename(columns={"SEX": "sex "}).to_csv(path.parent / "people.csv", index=False),
        "data",
        "SEX: did you mean 'sex '",
    ),
    "words for codes": (
        lambda path: (
            small.people().replace({"SEX": {"1": "M", "2": "F"}}).to_csv(path.parent / "people.csv", index=False)
        ),
        "values",
        "A fit would lose 100 of 100 records (100 %); more than 1 %: exit code 1. Unknown values: SEX has 'F' in 50",
    ),
    "a size that is wrong": (
        lambda path: small.edit(path, "declared_size = 100", "declared_size = 20_000"),
        "declared_size",
        "20,000 declared, and there are 100 records. Declare a published figure, and not this one",
    ),
    "no shares": (lambda path: (path.parent / "shares.csv").unlink(), "shares and prior", "there is no file"),
    "shares in per cent": (
        lambda path: small.shares_frame().assign(share=[40, 10, 50, 0]).to_csv(path.parent / "shares.csv", index=False),
        "shares and prior",
        "add up to 100",
    ),
    "an account that is used up": (
        lambda path: small.edit(path, "delta = 1e-9\n", f"{LEDGER}ledger_epsilon = 0.5\n"),
        "account",
        "it does not fit; the largest epsilon that does is 0.5",
    ),
    "a release that exists": (lambda path: (path.parent / "release").mkdir(), "places", "exists already"),
    "no folder for the ledger": (
        lambda path: small.edit(path, "delta = 1e-9\n", 'delta = 1e-9\nledger = "none/people.ledger"\n'),
        "places",
        "there is no folder",
    ),
    "the private table as prior": (
        lambda path: small.edit(
            path, "[mechanism]\n", '[prior]\npath = "people.csv"\ncitation = "made up"\n[mechanism]\n'
        ),
        "shares and prior",
        "it is the private table itself",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_fit_would_stumble_over_fails_by_its_name(recipe, capsys, fault):
    make, name, says = FAULTS[fault]
    make(recipe)
    before = small.tree(recipe.parent)
    verdict, text = verdicts(recipe)[name]
    assert verdict == "FAILS"
    assert says in text
    assert cli.run(["check", str(recipe)]) == 1
    assert capsys.readouterr().err == ""
    assert small.tree(recipe.parent) == before


def test_a_copy_of_the_private_table_among_public_inputs_fails(recipe):
    text = (recipe.parent / "people.csv").read_text(encoding="utf-8")
    (recipe.parent / "copy.csv").write_text(text, encoding="utf-8")
    small.edit(recipe, "[mechanism]\n", '[prior]\npath = "copy.csv"\ncitation = "made up"\n[mechanism]\n')
    found = verdicts(recipe)
    assert found["same rows"][0] == "FAILS"
    assert "it is the private table itself" in found["same rows"][1]


def test_checks_that_need_one_that_failed_are_skipped(recipe):
    (recipe.parent / "schema.toml").unlink()
    found = verdicts(recipe)
    assert found["schema"][0] == "FAILS"
    assert found["values"] == ("not checked", "needs schema, data")
    assert found["places"][0] == "ok"


def test_people_and_records_are_told_apart(recipe):
    schema = ss.Schema(small.SCHEMA.columns, row_weight=ss.Schema.load(recipe.parent / "schema.toml").row_weight)
    text = schema.to_toml().replace("format", 'weight = { column = "W", max = 30 }\nformat', 1)
    (recipe.parent / "schema.toml").write_text(text, encoding="utf-8")
    people = small.people().replace({"zebra": "yes"})
    people["W"] = [20] * 90 + [40] * 10
    people.to_csv(recipe.parent / "people.csv", index=False)
    found = verdicts(recipe)
    assert found["declared_size"][0] == "FAILS"
    assert "It is the number of records (100); where rows have weights, declare the people" in found["declared_size"][1]
    assert (
        "10 weights are above 30 and count as that: the release lacks 100 of 2,200 people (4.5 %)"
        in (found["weights of rows"][1])
    )
    small.edit(recipe, "declared_size = 100", "declared_size = 2_200")
    assert verdicts(recipe)["declared_size"][0] == "ok"


def test_public_data_have_no_account(recipe):
    small.edit(recipe, "declared_size = 100", "declared_size = 100\npublic = true")
    found = verdicts(recipe)
    assert found["account"] == ("ok", "nothing is charged for public data")
    assert found["same rows"] == ("ok", "the data are public")


def test_a_canary_of_the_rows_is_in_no_file_afterwards(recipe):
    people = pd.read_csv(recipe.parent / "people.csv", dtype=str)
    people.loc[0, "SEX"] = "canary-77"
    people.to_csv(recipe.parent / "people.csv", index=False)
    before = set(small.tree(recipe.parent))
    assert "'canary-77' in 1" in str(ss.check(recipe))  # INTERNAL
    assert set(small.tree(recipe.parent)) == before


def test_a_prior_that_is_most_of_the_private_table_is_asked_about(recipe):
    """One row left out decides nothing in a fit; here whoever holds the rows is told how many both have."""
    people, names = census.make(300, seed=1), ["SEX", "RAC1P", "AGEP", "SCHL", "MAR", "OCC", "PINCP"]
    census.schema().restrict(names).write_toml(recipe.parent / "census.toml")
    people.to_csv(recipe.parent / "people.csv", index=False)
    people[1:].to_csv(recipe.parent / "last.csv", index=False)
    recipe.write_text(
        '[data]\npath = "people.csv"\nschema = "census.toml"\ndeclared_size = 300\n'
        '[prior]\npath = "last.csv"\ncitation = "made up"\n'
        '[mechanism]\nname = "mst"\n[budget]\nepsilon = 1.0\ndelta = 1e-9\n[release]\ndirectory = "release"\n',
        encoding="utf-8",
    )
    verdict, text = verdicts(recipe)["same rows"]
    assert verdict == "note"
    assert "of 299 rows of the public table, 299 are also among the 300 private ones" in text
    assert "are these the same people? Their rows are not public then." in text
    people.assign(AGEP=people.AGEP.sample(frac=1, random_state=1).to_numpy()).to_csv(
        recipe.parent / "last.csv", index=False
    )
    assert verdicts(recipe)["same rows"][0] == "ok"
