"""`stratsynth demo`: the whole workflow on the built-in census, in a folder that shows every file it takes.

The people are simulated, so the demonstration may look at the truth, as nobody may with private data, and compare a
vanilla release with a stratified and with a pooled one, group by group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from stratsynth.inputs import output_path

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.evaluation.evaluations.evaluate import Evaluation

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
ledger_epsilon = 3.0

[release]
rows = {rows}
directory = "stratified"
csv = true
"""
PAIRS = 60
NAMES = ("vanilla", "stratified", "pooled")


def run_demo(out: Path | None, rows: int, echo: Callable[[str], None]) -> None:
    """Write `rows` people and recipes into `out` (None: a new folder), fit and evaluate; call `echo` with each text."""
    from stratsynth import census
    from stratsynth.cli.progress import fit_with_progress
    from stratsynth.evaluation.evaluations.output import write
    from stratsynth.evaluation.evaluations.page import ONE_RUN, everybody_and_groups
    from stratsynth.evaluation.report.groups import smallest_groups
    from stratsynth.planning import plan
    from stratsynth.recipes.recipe import Recipe
    from stratsynth.release.certificate import read_certificate

    folder = output_path(_fresh("stratsynth-demo") if out is None else out, "name a new folder with --out")
    folder.mkdir(parents=True)
    people = census.make(rows)
    people.to_csv(folder / "people.csv", index=False)
    census.schema().write_toml(folder / "schema.toml")
    census.shares(("RAC1P",)).to_csv(folder / "shares.csv", index=False)
    text = STRATIFIED.format(rows=rows)
    (folder / "stratified.toml").write_text(text, encoding="utf-8")
    (folder / "vanilla.toml").write_text(_vanilla(text), encoding="utf-8")
    (folder / "pooled.toml").write_text(_pooled(text), encoding="utf-8")

    echo(f"{rows:,} simulated people are in {folder / 'people.csv'}; nobody's data.\n")
    echo("The plan, from schema, public shares and declared size alone (stratsynth plan stratified.toml):\n")
    recipe = Recipe.read(folder / "stratified.toml")
    echo(str(plan(recipe.how(), recipe.schema(), recipe.budget(), declared_size=rows)))
    for name in NAMES:
        echo(f"\nFitting {name}.toml at epsilon 1 (stratsynth fit {name}.toml) ...")
        fit_with_progress(Recipe.read(folder / f"{name}.toml"), folder / name)
    found = _evaluated(folder, people)
    echo("\nError of each group: mean L1 distance (0 to 2) of 60 two-way tables from the truth; `chance` is")
    echo("the error of a perfect model of these people, sampled as often.\n")
    releases = [_synthetic(folder / name) for name in NAMES]
    echo(_comparison(found, [people, *releases]))
    groups, everybody = everybody_and_groups(found, "pooled")
    echo("\n" + fill(smallest_groups(groups, everybody, "stratified", "vanilla", "Stratification"), 110))
    pooled = smallest_groups(groups, everybody, "pooled", "vanilla", "Pooling", brief=True)
    echo("\n" + fill(f"{pooled} {ONE_RUN}", 110))
    certificate = read_certificate(folder / "pooled")
    write(found, folder / "evaluation", called="pooled", certificate=certificate)
    echo(
        f"\nEverything is in {folder}: recipes, ledger, and the releases vanilla, stratified and pooled, each with\n"
        "synthetic.csv, measurements.parquet, certificate.json and a report.html that may be published. Next:\n"
        f"  stratsynth certificate {folder / 'pooled'}\n"
        f"  stratsynth ledger show {folder / 'people.ledger'}\n"
        f"  stratsynth sample {folder / 'pooled'} -n 1000 --where RAC1P=7 -o islanders.csv\n\n"
        "The evaluation, to be read in a browser (INTERNAL, were these real people):\n"
        f"  {folder / 'evaluation' / 'report.html'}"
    )


def _evaluated(folder: Path, people: pd.DataFrame) -> Evaluation:
    """Evaluation on the frame `people` of the pooled release's table in `folder`, beside the other two.

    Without correlations, propensity and components.
    """
    from stratsynth import census
    from stratsynth.evaluation.evaluations.evaluate import evaluate

    *others, pooled = (folder / name / "synthetic.parquet" for name in NAMES)
    beside = dict(zip(NAMES, others, strict=False))
    return evaluate(people, pooled, census.schema(), ["RAC1P"], k=2, cliques=PAIRS, beside=beside, apart=False)


def _vanilla(recipe: str) -> str:
    """Return the recipe's text without strata and weights, and with `vanilla` as the folder of its release."""
    start, end = recipe.index("[strata]"), recipe.index("[mechanism]")
    return recipe[:start] + recipe[end:].replace('"stratified"', '"vanilla"')


def _pooled(recipe: str) -> str:
    """Return the recipe's text with the mechanism `pooled` on the base `mst`, and `pooled` as its folder."""
    return recipe.replace('name = "mst"', 'name = "pooled"\nbase = "mst"').replace('"stratified"', '"pooled"')


def _fresh(name: str) -> Path:
    """Path of a folder that does not exist yet: `name` here, or that and a number from 2."""
    number = 1
    while (path := Path(name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return path


def _synthetic(folder: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(folder / "synthetic.parquet")


def _comparison(found: Evaluation, tables: Sequence[pd.DataFrame]) -> str:
    """Text of a table: a line a group, largest first, then all: people, errors in an `Evaluation`, percentage employed.

    `tables` are the frames to count these percentages in: the people, then the releases in the order of `NAMES`.
    """
    from stratsynth.evaluation.evaluations.page import everybody_and_groups

    groups, everybody = everybody_and_groups(found, "pooled")
    heads = " ".join(f"{name:>10}" for name in NAMES)
    lines = [
        f"{'':5} {'':>8}   {'error':^41}   {'employed, percent':^39}",
        f"{'RAC1P':5} {'people':>8}   {heads} {'chance':>8}   {'truth':>6} {heads}",
    ]
    for group in [*sorted(groups, key=lambda s: -s.n), everybody]:
        level = group.levels.get("RAC1P")
        errors = " ".join(f"{_two(group.error(name).value):>10}" for name in NAMES)
        truth, *made = (_percent(table, level) for table in tables)
        rates = f"{truth:>6} " + " ".join(f"{rate:>10}" for rate in made)
        lines.append(f"{level or 'all':5} {int(group.n):>8,}   {errors} {_two(group.chance):>8}   {rates}")
    return "\n".join(lines)


def _two(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _percent(table: pd.DataFrame, level: str | None) -> str:
    """Percentage of the rows of the frame `table` in a group that are employed, as text: `61.2`; "-" without rows.

    `level` is the group's code of RAC1P; None is everybody.
    """
    rows = table if level is None else table[table["RAC1P"].astype(str) == level]
    return f"{100 * float((rows['ESR'].astype(str) == '1').mean()):.1f}" if len(rows) else "-"
