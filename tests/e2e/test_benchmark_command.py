"""Published totals from the command line: a recipe, a release that is there, refusals, plan and check."""

import json

import pandas as pd
import pytest

from helpers import small
from helpers.command import stratsynth

CITED = "Statistics Office, Population 2024, table"
SEX_AGE = "SEX,AGE,people\n1,0..2,100\n1,3..9,300\n2,0..2,250\n2,3..9,350\n"
BENCHMARK = f"""\
[benchmark]
tables = [
  {{ path = "sex_age.csv", citation = "{CITED} 1", year = 2024, count = "people" }},
  {{ path = "work.csv", citation = "{CITED} 2" }},
]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("totals")
    path = small.write_recipe(folder)
    small.people(3000).assign(WORK=["yes", "N", "no"] * 1000).to_csv(folder / "people.csv", index=False)
    small.edit(path, "declared_size = 100", "declared_size = 3000")
    (folder / "sex_age.csv").write_text(SEX_AGE, encoding="utf-8")
    (folder / "work.csv").write_text("WORK,count\nN,300\nyes|no,700\n", encoding="utf-8")
    (folder / "totals.toml").write_text(BENCHMARK, encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        file.write(BENCHMARK)
    plain = path.read_text(encoding="utf-8").replace(BENCHMARK, "")
    (folder / "plain.toml").write_text(plain, encoding="utf-8")
    assert stratsynth("fit", "plain.toml", "-o", "plain", cwd=folder).returncode == 0
    return folder


def men(path):
    rows = pd.read_csv(path, dtype=str)
    return (rows["SEX"] == "1").mean()


def test_a_recipe_with_totals_from_plan_to_sample(folder):
    assert stratsynth("plan", "recipe.toml", cwd=folder).returncode == 0
    checked = stratsynth("check", "recipe.toml", cwd=folder)
    assert "same rows: ok" in checked.stdout
    fitted = stratsynth("fit", "recipe.toml", "-o", "raked", cwd=folder)
    assert fitted.returncode == 0, fitted.stderr
    assert "Raked to 2 tables of published totals" in " ".join(fitted.stdout.split())
    assert "Published, measured, synthetic" in stratsynth("certificate", "raked", cwd=folder).stdout
    verified = stratsynth("verify", "raked", cwd=folder)
    assert verified.returncode == 0, verified.stdout
    assert stratsynth("sample", "raked", "-n", "1000", "--seed", "1", "-o", "rows.csv", cwd=folder).returncode == 0
    assert men(folder / "rows.csv") == pytest.approx(0.4, abs=0.005)
    record = json.loads(stratsynth("certificate", "raked", "--json", cwd=folder).stdout)
    assert record["benchmark"]["rows"] == 50
    assert [table["columns"] for table in record["benchmark"]["tables"]] == [["SEX", "AGE"], ["WORK"]]


def test_a_release_that_is_there_is_raked(folder):
    made = stratsynth("benchmark", "plain", "totals.toml", "-o", "made", "-n", "500", "--seed", "3", cwd=folder)
    assert made.returncode == 0, made.stderr
    said = " ".join(made.stdout.split())
    assert "500 rows by published totals, in made; nothing was charged" in said
    assert "Kish efficiency" in said
    rows = pd.read_parquet(folder / "made" / "synthetic.parquet")
    assert len(rows) == 500
    assert (rows["SEX"] == "1").mean() == pytest.approx(0.4, abs=0.01)
    assert stratsynth("verify", "made", cwd=folder).returncode == 0
    again = stratsynth("benchmark", "made", "totals.toml", "-o", "twice", cwd=folder)
    assert again.returncode == 2
    assert "raked before" in again.stderr


def test_what_is_wrong_is_refused_in_a_line(folder):
    def refused(text, *command):
        (folder / "wrong.toml").write_text(text, encoding="utf-8")
        run = stratsynth(*(command or ("benchmark", "plain", "wrong.toml", "-o", "wrong")), cwd=folder)
        assert run.returncode == 2, run.stderr
        assert "Traceback" not in run.stderr
        assert not (folder / "wrong").exists()
        return run.stderr

    assert "has no section [benchmark]" in refused("x = 1\n")
    assert "tables is missing" in refused("[benchmark]\n")
    assert "has no key 'table'" in refused("[benchmark]\ntable = 1\n")
    assert "path is missing" in refused(f'[benchmark]\ntables = [{{ citation = "{CITED} 1" }}]\n')
    assert "needs a citation" in refused('[benchmark]\ntables = [{ path = "work.csv" }]\n')
    assert "there is no file" in refused(f'[benchmark]\ntables = [{{ path = "no.csv", citation = "{CITED} 1" }}]\n')
    assert "trim must be a number above 1" in refused(BENCHMARK + "trim = 0.5\n").replace("\n", " ")
    exact = BENCHMARK.replace('table 2" }', 'table 2", exact = true }')
    assert "declare them in the fit" in refused(exact)
    (folder / "work2.csv").write_text("SEX,WORK,count\n1,N,1\n", encoding="utf-8")
    lacking = BENCHMARK.replace("work.csv", "work2.csv")
    assert "has no line for SEX 2" in refused(lacking)
    recipe = (folder / "recipe.toml").read_text(encoding="utf-8")
    (folder / "wrong_work.csv").write_text("AGE,count\n0..2,100\n3..9,900\n", encoding="utf-8")
    contradicts = recipe.replace("work.csv", "wrong_work.csv")
    for command in ("plan", "fit"):
        said = refused(contradicts, command, "wrong.toml", *(("-o", "wrong") if command == "fit" else ()))
        assert "sex_age.csv and wrong_work.csv contradict each other" in " ".join(said.split())


def test_exact_totals_are_the_first_line_of_a_plan_and_of_a_fit(folder):
    text = (folder / "recipe.toml").read_text(encoding="utf-8").replace('table 2" }', 'table 2", exact = true }')
    (folder / "exact.toml").write_text(text, encoding="utf-8")
    planned = stratsynth("plan", "exact.toml", cwd=folder)
    assert "NOT PROTECTED: exact totals of the private rows, work.csv" in " ".join(planned.stdout.split())
    fitted = stratsynth("fit", "exact.toml", "-o", "exact", cwd=folder)
    assert fitted.returncode == 0, fitted.stderr
    said = " ".join(fitted.stdout.split())
    assert said.index("NOT PROTECTED: exact totals of the private rows, by WORK") < said.index("Guarantee")
    assert stratsynth("verify", "exact", cwd=folder).returncode == 0
