"""docs/census.md: its commands run in order, on people of the built-in census in the form of the Bureau's files."""

import re
import shlex
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers import bureau
from stratsynth import cli
from stratsynth.census import acs, holdout, make
from stratsynth.recipes.recipe import Recipe

PAGE = Path(__file__).parents[2] / "docs" / "census.md"
PEOPLE = 1500
SAME = ["AGEP", "SEX", "RAC1P", "SCHL", "MAR", "CIT", "MIL", "DEAR", "DEYE", "DREM", "DIS", "ESR", "COW"]
JOBS = np.array(["0010", "2310", "4020", "5740", "7750", "9830"])


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def commands():
    return [line.removeprefix("stratsynth ") for block in blocks("sh") for line in block.splitlines()]


def person_records(people, year):
    """People of the built-in census as the survey's file has them."""
    rng = np.random.default_rng(1)
    areas = acs.schema(["PUMA"], year=2024, state="PA").levels("PUMA")
    frame = people[SAME].astype("string").replace("N", "")
    for name in ("WKHP", "PINCP", "POVPIP"):
        frame[name] = people[name].astype("Int64").astype("string").fillna("")
    jobs = people["OCC"].astype("string").to_numpy()
    frame["OCCP"] = [JOBS[int(job) - 1] if job != "N" else "" for job in jobs]
    frame.loc[frame["COW"] == "9", "OCCP"] = "9920"
    frame.insert(0, "SERIALNO", [f"{year}HU{i:07}" for i in range(len(people))])
    frame["PUMA"], frame["PWGTP"] = rng.choice(areas, len(people)), rng.integers(1, 99, len(people))
    return frame.assign(SPORDER="1", STATE="42")


@pytest.fixture
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data" / "2024" / "1-Year"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "csv_ppa.zip", "w") as file:
        file.writestr("psam_p42.csv", person_records(make(PEOPLE), 2024).to_csv(index=False))
    with zipfile.ZipFile(folder / "csv_hpa.zip", "w") as file:
        file.writestr("psam_h42.csv", bureau.households(200, 2024).to_csv(index=False))
    (tmp_path / "earlier").mkdir()
    person_records(holdout(PEOPLE), 2023).to_csv("earlier/psam_p42.csv", index=False)
    [recipe] = blocks("toml")
    assert 'name = "pooled"\nbase = "mst"\n' in recipe
    small = recipe.replace('name = "pooled"\nbase = "mst"\n', 'name = "independent"\n').replace("134_000", str(PEOPLE))
    Path("recipe.toml").write_text(small, encoding="utf-8")


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("last", ["sample", pytest.param("evaluate", marks=pytest.mark.slow)])
def test_the_commands_run_in_order(capsys, last):
    page = [command for command in commands() if last == "evaluate" or not command.startswith("evaluate")]
    assert len(page) == len(commands()) - (last != "evaluate")
    for command in page:
        code = cli.run(shlex.split(command))
        said = capsys.readouterr()
        assert code == 0, (command, said.out, said.err)
        if command.startswith("census check"):
            assert f"A fit would lose 0 of {PEOPLE:,} records (0 %)" in said.out
            assert "0 of them broken" in said.out
        if command.startswith("check"):
            assert "None of 13 checks fails" in said.out
        if command.startswith("certificate"):
            assert "OCCP: counted in 27 groups of its 530 codes" in " ".join(said.out.split())
    occupations = set(acs.schema(["OCCP"], year=2024).levels("OCCP"))
    assert set(pd.read_parquet("release/synthetic.parquet")["OCCP"]) <= occupations
    assert (pd.read_csv("women.csv", dtype=str)["SEX"] == "2").all()
    assert Path("evaluation/report.html").is_file() == (last == "evaluate")


def test_it_takes_at_most_twelve_commands():
    assert len(blocks("sh")[0].splitlines()) <= 12


def test_the_recipe_is_one(tmp_path):
    (tmp_path / "recipe.toml").write_text(blocks("toml")[0], encoding="utf-8")
    assert Recipe.read(tmp_path / "recipe.toml").mechanism.name == "pooled"


def test_the_folktables_program_runs(tmp_path, monkeypatch):
    pytest.importorskip("folktables")
    monkeypatch.chdir(tmp_path)
    bureau.csv(tmp_path / "data" / "2018" / "1-Year" / "psam_p42.csv", 400, 2018)
    [program] = blocks("py")
    names = {}
    exec(program.replace("128_000", "400").replace('"aim"', '"independent"'), names)  # noqa: S102 - the page is ours
    assert names["features"].shape == (400, 16)
    assert len(names["label"]) == len(names["group"]) == 400
