"""`stratsynth demo`: the whole job on a small simulated table, in a folder that shows every file it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

SHARES = {
    "1": 0.72,
    "2": 0.127,
    "6": 0.058,
    "8": 0.05,
    "9": 0.033,
    "3": 0.009,
    "7": 0.002,
    "5": 0.0007,
    "4": 0.0003,
}
"""Made-up shares of nine groups, from most of the people down to three in ten thousand."""

SCHEMA = """\
format = "stratsynth-schema/1"
origin = "public"
unit = "record"

[columns.SEX]
kind = "categorical"
levels = ["1", "2"]
labels = { "1" = "Male", "2" = "Female" }

[columns.RAC1P]
kind = "categorical"
levels = ["1", "2", "3", "4", "5", "6", "7", "8", "9"]

[columns.AGEP]
kind = "numeric"
lower = 0
upper = 95
integer = true
edges = [0, 5, 10, 15, 18, 21, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 96]

[columns.MAR]
kind = "categorical"
levels = ["married", "was married", "never married"]

[columns.ESR]
kind = "categorical"
levels = ["N", "employed", "unemployed", "not in labour force"]
not_applicable = "N"
"""

RECIPE = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = {rows}

[strata]
by = ["SEX", "RAC1P"]

[weights]
source = "public"
path = "shares.csv"
citation = "made up for the demonstration"

[mechanism]
name = "independent"

[budget]
epsilon = 1.0
delta = 1e-9

[release]
rows = {rows}
directory = "release"
csv = true
"""


def people(rows: int) -> pd.DataFrame:
    """Simulated people, the same every time. Nobody's data."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(2026)
    group = rng.choice(list(SHARES), size=rows, p=list(SHARES.values()))
    sex = rng.choice(["1", "2"], size=rows)
    older = np.isin(group, ["1", "6"])
    age = np.clip(rng.gamma(2.4, np.where(older, 17, 14)), 0, 95).astype(int)
    married = rng.random(rows) < np.where(age < 18, 0, np.clip((age - 18) / 30, 0, 0.62))
    was = rng.random(rows) < np.where(age < 25, 0, np.clip((age - 25) / 120, 0, 0.6))
    works = rng.random(rows) < np.where(age > 67, 0.12, np.where(sex == "1", 0.74, 0.66)) - 0.1 * ~older
    seeks = rng.random(rows) < np.where(older, 0.08, 0.2)
    return pd.DataFrame(
        {
            "SEX": sex,
            "RAC1P": group,
            "AGEP": age,
            "MAR": np.select([married, was], ["married", "was married"], "never married"),
            "ESR": np.select([age < 16, works, seeks], ["N", "employed", "unemployed"], "not in labour force"),
        }
    )


def run_demo(out: Path | None, rows: int, echo: Callable[[str], None]) -> None:
    """Write data, schema, shares and recipe; fit; show what the groups got."""
    import pandas as pd

    from stratsynth.cli.work import fit_recipe
    from stratsynth.release.summary import summary

    folder = out if out is not None else _fresh("stratsynth-demo")
    if folder.exists():
        raise UsageError(f"{folder} exists already; name a new folder with --out.")
    folder.mkdir(parents=True)
    private = people(rows)
    private.to_csv(folder / "people.csv", index=False)
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE.format(rows=rows), encoding="utf-8")
    shares = [{"SEX": s, "RAC1P": g, "share": w / 2} for s in ("1", "2") for g, w in SHARES.items()]
    pd.DataFrame(shares).to_csv(folder / "shares.csv", index=False)

    echo(f"{rows:,} simulated people are in {folder / 'people.csv'}. Fitting {folder / 'recipe.toml'} ...\n")
    release, certificate = fit_recipe(folder / "recipe.toml", None)
    echo(summary(certificate))
    echo("\nEmployed, in percent of each group (the people are simulated, so we may look):\n")
    echo(_comparison(private, pd.read_parquet(release / "synthetic.parquet"), rows))
    echo(
        f"\nEverything is in {folder}: the synthetic table is release/synthetic.csv, the guarantee "
        f"release/certificate.json.\nNext: stratsynth sample {release} -n 1000 --where SEX=2 -o women.csv"
    )


def _fresh(name: str) -> Path:
    """A folder that does not exist yet: the name, or the name and a number."""
    number = 1
    while (path := Path(name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return path


def _comparison(private: pd.DataFrame, synthetic: pd.DataFrame, rows: int) -> str:
    """Groups from the largest to the smallest: how many people, and a rate in both tables."""
    lines = [f"{'RAC1P':>5} {'people':>7} {'private':>8} {'synthetic':>10}"]
    for group, share in SHARES.items():
        rates = []
        for table in (private, synthetic):
            members = table[table["RAC1P"].astype(str) == group]
            rates.append(f"{100 * (members['ESR'] == 'employed').mean():.1f}" if len(members) else "none")
        lines.append(f"{group:>5} {rows * share:>7.0f} {rates[0]:>8} {rates[1]:>10}")
    return "\n".join(lines)
