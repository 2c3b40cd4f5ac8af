"""Small world to fit in: three columns, a hundred people, four groups, and the files of a recipe."""

import pandas as pd

from stratsynth import Budget, Categorical, Numeric, Schema, Stratified, Weights, fit, open_table
from stratsynth.adapters import Independent
from stratsynth.noise import SeededEntropy
from stratsynth.strata import crossing

SCHEMA = Schema(
    {
        "SEX": Categorical(levels=("1", "2")),
        "GROUP": Categorical(levels=("a", "b")),
        "AGE": Numeric(lower=0, upper=9, edges=(0, 3, 6, 10), integer=True),
        "WORK": Categorical(levels=("N", "yes", "no"), not_applicable="N", outside="no"),
    }
)
SIZE = 100
BUDGET = Budget(1, 1e-9)
SHARES = {("1", "a"): 0.4, ("1", "b"): 0.1, ("2", "a"): 0.5, ("2", "b"): 0.0}

RECIPE = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 100

[strata]
by = ["SEX", "GROUP"]

[weights]
source = "public"
path = "shares.csv"
citation = "made up for testing"

[mechanism]
name = "independent"

[budget]
epsilon = 1.0
delta = 1e-9

[release]
rows = 50
directory = "release"
seed = 7
"""


def people(rows=SIZE):
    """Rows that fit the schema, a few values outside it among them."""
    cycle = range(rows)
    return pd.DataFrame(
        {
            "SEX": [("1", "2")[i % 2] for i in cycle],
            "GROUP": [("a", "a", "b")[i % 3] for i in cycle],
            "AGE": [(7 * i) % 12 for i in cycle],
            "WORK": [("yes", "no", "N", "zebra")[i % 4] for i in cycle],
        }
    )


def shares_frame():
    return pd.DataFrame([{"SEX": s, "GROUP": g, "share": w} for (s, g), w in SHARES.items()])


def even(schema, *by):
    """Equal shares for the strata of some columns."""
    strata = crossing(schema, by)
    rows = [{**stratum.to_dict(), "share": 1 / len(strata)} for stratum in strata]
    return Weights.public(pd.DataFrame(rows), citation="made up for testing")


def stratified():
    return Stratified(Independent(), ["SEX", "GROUP"], Weights.public(shares_frame(), citation="made up for testing"))


def table(data=None):
    return open_table(people() if data is None else data, schema=SCHEMA, declared_size=SIZE)


def small_release(**settings):
    return fit(stratified(), table(), BUDGET, **settings)


def clear_release(how=None):
    """One with so little noise, the same every time, that every level which occurs has weight."""
    return fit(how or stratified(), table(), Budget(20, 1e-6, first=0), seed=3, entropy=SeededEntropy(1))


def write_recipe(folder):
    """The files of a recipe; returns the recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    people().to_csv(folder / "people.csv", index=False)
    SCHEMA.write_toml(folder / "schema.toml")
    shares_frame().to_csv(folder / "shares.csv", index=False)
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return folder / "recipe.toml"


def edit(path, old, new):
    """Replace a text that must be there once."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def tree(folder):
    """Every file below a folder with its content."""
    return {p.relative_to(folder): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}
