"""`stratsynth demo`: the whole job on the built-in census, in a folder that shows every file it takes.

The people are simulated, so the demonstration may do what nobody may do with private data: look at the truth,
and compare a vanilla release with a stratified one, group by group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from stratsynth.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    from stratsynth.evaluation.whole import Evaluation

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
    from stratsynth.evaluation.output import write
    from stratsynth.evaluation.report.evaluated import in_a_paragraph

    from stratsynth import census
    from stratsynth.cli.progress import fit_with_progress
    from stratsynth.planning import plan
    from stratsynth.planning.text import describe
    from stratsynth.recipe import Recipe
    from stratsynth.release.certificate import read_certificate

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
    found = _evaluated(folder, people)
    echo("\nWhat each group got. Error: mean L1 distance (0 to 2) of 60 two-way tables from the truth; `chance` is")
    echo("the error of a perfect model of these people, sampled as often.\n")
    releases = [_synthetic(folder / name) for name in ("vanilla", "stratified")]
    echo(_comparison(found, [people, *releases]))
    echo("\n" + fill(in_a_paragraph(found, "stratified", "vanilla"), 110))
    certificate = read_certificate(folder / "stratified")
    write(found, folder / "evaluation", called="stratified", certificate=certificate)
    echo(
        f"\nEverything is in {folder}: recipes, ledger, and the releases vanilla and stratified, each with\n"
        "synthetic.csv, measurements.parquet, certificate.json and a report.html that may be published. Next:\n"
        f"  stratsynth certificate {folder / 'stratified'}\n"
        f"  stratsynth ledger show {folder / 'people.ledger'}\n"
        f"  stratsynth sample {folder / 'stratified'} -n 1000 --where RAC1P=7 -o islanders.csv\n\n"
        "The evaluation, to be read in a browser (INTERNAL, were these real people):\n"
        f"  {folder / 'evaluation' / 'report.html'}"
    )


def _evaluated(folder: Path, people: pd.DataFrame) -> Evaluation:
    """The stratified release beside the vanilla one, without what takes long."""
    from stratsynth.evaluation.whole import evaluate

    from stratsynth import census

    vanilla, stratified = (folder / name / "synthetic.parquet" for name in ("vanilla", "stratified"))
    return evaluate(
        people, stratified, census.schema(), ["RAC1P"], k=2, cliques=PAIRS, beside={"vanilla": vanilla}, apart=False
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


def _comparison(found: Evaluation, tables: Sequence[pd.DataFrame]) -> str:
    """Groups from the largest to the smallest: people, error of each release, employment."""
    from stratsynth.evaluation.report.evaluated import everybody_and_groups

    groups, everybody = everybody_and_groups(found, "stratified")
    truth_and_releases = f"{'truth':>8} {'vanilla':>8} {'stratified':>10}"
    lines = [
        f"{'':5} {'':>8}   {'error':^28}   {'employed, percent':^28}",
        f"{'RAC1P':5} {'people':>8}   {'vanilla':>8} {'stratified':>10} {'chance':>8}   {truth_and_releases}",
    ]
    for group in [*sorted(groups, key=lambda s: -s.n), everybody]:
        level = group.levels.get("RAC1P")
        vanilla, stratified = (group.error(name).value for name in ("vanilla", "stratified"))
        errors = f"{_two(vanilla):>8} {_two(stratified):>10} {_two(group.chance):>8}"
        employed = [_percent(table, level) for table in tables]
        rates = f"{employed[0]:>8} {employed[1]:>8} {employed[2]:>10}"
        lines.append(f"{level or 'all':5} {int(group.n):>8,}   {errors}   {rates}")
    return "\n".join(lines)


def _two(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _percent(table: pd.DataFrame, level: str | None) -> str:
    """How many percent of a group are employed; a dash where nobody is in it."""
    rows = table if level is None else table[table["RAC1P"].astype(str) == level]
    return f"{100 * float((rows['ESR'].astype(str) == '1').mean()):.1f}" if len(rows) else "-"
