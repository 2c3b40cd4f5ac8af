"""`stratsynth demo`: the whole job on the built-in census, in a folder that shows every file it takes.

The people are simulated, so the demonstration may do what nobody may do with private data: look at the truth,
and compare a vanilla release with a stratified one, group by group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

STRATIFIED = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = {rows}

[strata]
by = ["RAC1P"]

[weights]
source = "public"
path = "shares.csv"
citation = "the built-in census of stratsynth, simulated"

[mechanism]
name = "mst"

[budget]
epsilon = 1.0
delta = 1e-9
ledger = "people.ledger"
ledger_epsilon = 2.0

[release]
rows = {rows}
directory = "stratified"
csv = true
"""
PAIRS = 60


def run_demo(out: Path | None, rows: int, echo: Callable[[str], None]) -> None:
    """Write data, schema, shares and two recipes; plan; fit both; show what each group got."""
    from stratsynth import census
    from stratsynth.cli.progress import fit_with_progress
    from stratsynth.planning import plan
    from stratsynth.planning.text import describe
    from stratsynth.recipe import Recipe

    folder = out if out is not None else _fresh("stratsynth-demo")
    if folder.exists():
        raise UsageError(f"{folder} exists already; name a new folder with --out.")
    folder.mkdir(parents=True)
    people = census.make(rows)
    people.to_csv(folder / "people.csv", index=False)
    census.schema().write_toml(folder / "schema.toml")
    census.shares(("RAC1P",)).to_csv(folder / "shares.csv", index=False)
    text = STRATIFIED.format(rows=rows)
    (folder / "stratified.toml").write_text(text, encoding="utf-8")
    (folder / "vanilla.toml").write_text(_vanilla(text), encoding="utf-8")

    echo(f"{rows:,} simulated people are in {folder / 'people.csv'}; nobody's data.\n")
    echo("The plan, from schema, public shares and declared size alone (stratsynth plan stratified.toml):\n")
    recipe = Recipe.read(folder / "stratified.toml")
    echo(describe(plan(recipe.how(), recipe.schema(), recipe.budget(), declared_size=rows)))
    for name in ("vanilla", "stratified"):
        echo(f"\nFitting {name}.toml at epsilon 1 (stratsynth fit {name}.toml) ...")
        fit_with_progress(Recipe.read(folder / f"{name}.toml"), folder / name)
    echo("\nWhat each group got. Error: mean L1 distance (0 to 2) of 60 two-way tables from the truth; `other people`")
    echo("is the error of as many other people of the same population, which no release need beat.\n")
    releases = [_synthetic(folder / name) for name in ("vanilla", "stratified")]
    echo(_comparison([people, *releases, census.make(rows, offset=rows)], census.schema(), rows))
    echo(
        f"\nEverything is in {folder}: recipes, ledger, and the releases vanilla and stratified, each with\n"
        "synthetic.csv, measurements.parquet and certificate.json. Next:\n"
        f"  stratsynth certificate {folder / 'stratified'}\n"
        f"  stratsynth ledger show {folder / 'people.ledger'}\n"
        f"  stratsynth sample {folder / 'stratified'} -n 1000 --where RAC1P=7 -o islanders.csv"
    )


def _vanilla(recipe: str) -> str:
    """The same recipe without strata and weights."""
    start, end = recipe.index("[strata]"), recipe.index("[mechanism]")
    return recipe[:start] + recipe[end:].replace('"stratified"', '"vanilla"')


def _fresh(name: str) -> Path:
    """A folder that does not exist yet: the name, or the name and a number."""
    number = 1
    while (path := Path(name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return path


def _synthetic(folder: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(folder / "synthetic.parquet")


def _comparison(tables: Sequence[pd.DataFrame], schema: Schema, rows: int) -> str:
    """Groups from the largest to the smallest: their size, the error of each release, and employment in each."""
    from stratsynth.evaluation.marginals import coded, mean_l1, members, some_cliques

    from stratsynth import census

    truth, *others = (coded(table, schema) for table in tables)
    pairs = some_cliques([name for name in schema.names if name != "RAC1P"], 2, PAIRS)
    truth_and_releases = f"{'truth':>8} {'vanilla':>8} {'stratified':>10}"
    lines = [
        f"{'':5} {'':>8}   {'error':^32}   {'employed, percent':^28}",
        f"{'RAC1P':5} {'people':>8}   {'vanilla':>8} {'stratified':>10} {'other people':>12}   {truth_and_releases}",
    ]
    shares = census.shares(("RAC1P",)).set_index("RAC1P")["share"].sort_values(ascending=False)
    groups = [(str(level), {"RAC1P": str(level)}, share) for level, share in shares.items()]
    for name, group, share in [*groups, ("all", {}, 1.0)]:
        mine, *theirs = (members(table, schema, group) for table in (truth, *others))
        vanilla, stratified, fresh = (mean_l1(mine, table, schema, pairs) for table in theirs)
        employed = [_percent(table["ESR"], schema.index("ESR", "1")) for table in (mine, *theirs[:2])]
        errors = f"{vanilla:>8.2f} {stratified:>10.2f} {fresh:>12.2f}"
        rates = f"{employed[0]:>8} {employed[1]:>8} {employed[2]:>10}"
        lines.append(f"{name:5} {rows * share:>8,.0f}   {errors}   {rates}")
    return "\n".join(lines)


def _percent(codes: object, level: int) -> str:
    """How many percent of the rows have a level; a dash where there are no rows."""
    import numpy as np

    column = np.asarray(codes)
    return f"{100 * float((column == level).mean()):.1f}" if column.size else "-"
