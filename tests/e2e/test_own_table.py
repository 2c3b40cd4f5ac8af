"""The second step, one's own table, from the command line: draft, review, check, fit, sample."""

import numpy as np
import pandas as pd
import pytest

from helpers.command import complaint, stratsynth
from stratsynth import cli

pytestmark = pytest.mark.usefixtures("seeded_noise")

ROWS = 1_200
RECIPE = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 1200

[mechanism]
name = "mst"

[budget]
epsilon = 10.0
delta = 1e-9
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(1)
    bill = np.where(rng.random(ROWS) < 0.3, 0, np.round(np.exp(rng.normal(7, 1.4, ROWS)), 2))
    born = pd.Timestamp("1960-01-01") + pd.to_timedelta(rng.integers(0, 15_000, ROWS), unit="D")
    people = pd.DataFrame(
        {
            "person_id": [f"P{i:06d}" for i in range(ROWS)],
            "sex": rng.choice(["f", "m"], ROWS),
            "children": rng.integers(0, 5, ROWS),
            "bill": bill,
            "born": born.strftime("%Y-%m-%d"),
            "shift": [f"{hour:02d}:30:00" for hour in rng.integers(0, 24, ROWS)],
            "member": rng.random(ROWS) < 0.4,
        }
    )
    people.to_csv(folder / "people.csv", index=False)
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    assert stratsynth("schema", "draft", "people.csv", "-o", "schema.toml", cwd=folder).returncode == 0
    return folder


def test_a_draft_is_reviewed_and_its_types_come_back(place):
    text = (place / "schema.toml").read_text(encoding="utf-8")
    assert "'person_id' is left out" in text
    assert 'unit = { column = "person_id"' in text
    assert "bins of equal width would put" in text
    assert 'kind = "date"\nlower = "1960-01-01"' in text
    assert "reviewed_by" in complaint(stratsynth("fit", "recipe.toml", cwd=place), 2)
    reviewed = text.replace('origin = "private data"', 'origin = "private data"\nreviewed_by = "A. Reviewer"')
    (place / "schema.toml").write_text(reviewed, encoding="utf-8")
    checked = stratsynth("schema", "check", "people.csv", "--schema", "schema.toml", cwd=place)
    assert "1,200 rows, of which 0 would be left out" in checked.stdout
    done = stratsynth("fit", "recipe.toml", cwd=place)
    assert done.returncode == 0, done.stderr
    assert stratsynth("sample", "release", "-n", 500, "--as", "people.csv", "-o", "a.csv", cwd=place).returncode == 0
    rows, people = (pd.read_csv(place / name) for name in ("a.csv", "people.csv"))
    assert list(rows.columns) == list(people.columns)[1:]
    assert rows.dtypes.tolist() == people.dtypes.tolist()[1:]
    assert rows["born"].between("1960-01-01", "2009-12-31").all()
    assert rows["shift"].str.fullmatch(r"\d\d:\d\d:\d\d").all()
    assert (rows["bill"] == 0).mean() == pytest.approx(0.3, abs=0.1)
    assert set(rows["member"]) == {True, False}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('kind = "date"', 'kind = "dates"', "did you mean 'date'"),
        ('lower = "1960-01-01"', "lower = 1960", "lower must be a date, such as 2024-12-31, not a number"),
        ('lower = "1960-01-01"', 'lower = "1960-13-01"', "lower must be a date such as '2024-12-31'"),
        ("spikes = [0]", "spikes = [-5]", "spikes must lie between lower and upper"),
        ('shape = "log"', 'shape = "logg"', "did you mean 'log'"),
        ("digits = 2", "digits = 2.5", "digits must be a whole number"),
        ("spikes = [0]", "spike = [0]", "did you mean 'spikes'"),
    ],
)
def test_a_wrong_key_of_a_schema_is_named_with_its_column(place, capsys, old, new, says):
    text = (place / "schema.toml").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (place / "wrong.toml").write_text(text.replace(old, new), encoding="utf-8")
    assert cli.run(["schema", "check", str(place / "people.csv"), "--schema", str(place / "wrong.toml")]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "column b" in said
    assert len(said.splitlines()) <= 2


def test_a_table_without_a_column_to_draft_says_so(tmp_path):
    pd.DataFrame({"id": [f"P{i}" for i in range(2_000)]}).to_csv(tmp_path / "ids.csv", index=False)
    said = complaint(stratsynth("schema", "draft", "ids.csv", "-o", "s.toml", cwd=tmp_path), 2)
    assert "no column of this table can be drafted" in said
    assert not (tmp_path / "s.toml").exists()
