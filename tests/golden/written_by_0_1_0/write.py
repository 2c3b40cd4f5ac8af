"""Write what lies in this folder. Run by version 0.1.0 (commit b6cbf3c): `python write.py FOLDER`.

Five releases of a table that is made here, and a ledger with a fit that is done and one that was interrupted, its
journal beside it. `expected.json` holds what version 0.1.0 itself read from the releases.
"""

import json
import sys
from pathlib import Path

import pandas as pd

import stratsynth as ss
from stratsynth.recipes.recipe import Recipe

SCHEMA = ss.Schema(
    {
        "SEX": ss.Categorical(levels=("1", "2")),
        "GROUP": ss.Categorical(levels=("a", "b", "c")),
        "AGE": ss.Numeric(lower=0, upper=9, edges=(0, 3, 6, 10), integer=True),
        "WORK": ss.Categorical(levels=("N", "yes", "no"), not_applicable="N", outside="no"),
    }
)
RECIPE = """
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 120
{strata}
[mechanism]
{mechanism}
[budget]
epsilon = 2.0
delta = 1e-9
{ledger}
[release]
rows = 20
directory = "{name}"
seed = 7
"""
STRATA = '[strata]\nby = ["GROUP"]\n{merge}\n[weights]\nsource = "public"\npath = "shares.csv"\ncitation = "made up"\n'
MERGED = STRATA.format(merge='merge = { GROUP = { rest = ["b", "c"] } }')
PLAIN = STRATA.format(merge="")
LEDGER = 'ledger = "people.ledger"\nledger_epsilon = 9'
MEANS = 'name = "clipped_mean"\ncolumns = ["AGE"]'
RELEASES = {
    "mst": ("", 'name = "mst"'),
    "independent": (MERGED, 'name = "independent"'),
    "pooled": (PLAIN, 'name = "pooled"\nbase = { name = "aim", rounds = 2, model_cells = 512 }'),
    "gem": ("", 'name = "gem"\ncomponents = 8\nhidden = [8]\nlatent = 4\niterations = 20\nrounds = 2'),
    "clipped_mean": (PLAIN, MEANS),
}


def recipe(folder: Path, name: str, strata: str, mechanism: str, ledger: str = "") -> Recipe:
    """A recipe file in the folder, read back."""
    path = folder / f"{name}.toml"
    path.write_text(RECIPE.format(name=name, strata=strata, mechanism=mechanism, ledger=ledger), encoding="utf-8")
    return Recipe.read(path)


def said(release: ss.Release, name: str) -> object:
    """Content of a release: a few rows, or its estimates."""
    if name == "clipped_mean":
        return json.loads(release.estimates().to_json(orient="records", double_precision=12))
    return release.sample(6, seed=3).astype(str).to_numpy().tolist()


def write(folder: Path) -> None:
    """Everything."""
    folder.mkdir(parents=True, exist_ok=True)
    cycle = range(120)
    people = {
        "SEX": [("1", "2")[i % 2] for i in cycle],
        "GROUP": [("a", "a", "b", "c")[i % 4] for i in cycle],
        "AGE": [(7 * i) % 10 for i in cycle],
        "WORK": [("yes", "no", "N")[i % 3] for i in cycle],
    }
    pd.DataFrame(people).to_csv(folder / "people.csv", index=False)
    (folder / "shares.csv").write_text("GROUP,share\na,0.5\nb,0.25\nc,0.25\n", encoding="utf-8")
    SCHEMA.write_toml(folder / "schema.toml")
    expected = {}
    for name, (strata, mechanism) in RELEASES.items():
        made = recipe(folder, name, strata, mechanism)
        made.run(made.directory)
        (made.directory / "report.html").unlink(missing_ok=True)  # large, and read by people only
        expected[name] = said(ss.Release.load(made.directory), name)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1), encoding="utf-8")

    done = recipe(folder, "done", "", 'name = "independent"', LEDGER)
    done.run(folder / "done")
    open_ = recipe(folder, "interrupted", "", 'name = "mst"', LEDGER)
    moments = []

    def stop() -> None:
        moments.append(1)
        if len(moments) == 2:
            raise KeyboardInterrupt

    try:
        open_.run(folder / "interrupted", tick=stop)
    except KeyboardInterrupt:
        return
    raise AssertionError("nothing was interrupted")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
