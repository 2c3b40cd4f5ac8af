"""Mutated files: releases, schemas, recipes, shares, ledgers and data are refused in our words, or read."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import stratsynth as ss
from fuzzing import world
from fuzzing.harness import Outcomes
from fuzzing.mutate import hashed_anew, mutated_bytes, mutated_json
from stratsynth.adapters import Independent

if TYPE_CHECKING:
    from pathlib import Path

WEIGHTS = {
    "rows": 4,
    "predicts": 3,
    "schema.toml": 3,
    "recipe.toml": 3,
    "shares.csv": 2,
    "people.csv": 1,
    "people.parquet": 1,
    "people.ledger": 2,
}
"""Chance of each file or folder to be mutated."""


def fuzz(folder: Path, cases: int, seed: int) -> Outcomes:
    """Mutate one file a case and do all that reads it; return the outcomes."""
    rng, outcomes = random.Random(seed), Outcomes()  # noqa: S311 - cases, no noise # nosec B311
    (folder / "made").mkdir()
    sound = world.place(folder / "made")
    for number in range(cases):
        place = folder / "case"
        shutil.copytree(sound, place)
        name = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        target = place / name
        if target.is_dir():
            target = rng.choice(sorted(path for path in target.rglob("*") if path.is_file() and path.suffix != ".html"))
        content = target.read_bytes()
        change = mutated_json if target.suffix == ".json" and rng.random() < 0.7 else mutated_bytes
        target.write_bytes(change(content, rng))
        if (place / name).is_dir() and rng.random() < 0.7:
            hashed_anew(place / name)
        said = f"case {number}, {target.relative_to(place)}"
        ledger = (place / "people.ledger").read_bytes()
        for words, work in _readers(place, name):
            outcomes.case(f"{said}: {words}", work, partial(_charged, place, ledger))
        shutil.rmtree(place)
    return outcomes


def _charged(place: Path, before: bytes) -> bool:
    """True if a ledger holds more charges than before."""
    return (place / "people.ledger").read_bytes().count(b'"kind":"charge"') > before.count(b'"kind":"charge"')


def _readers(place: Path, name: str) -> list[tuple[str, Callable[[], object]]]:
    """Return what reads this file or folder, with words for it."""
    recipe = place / "recipe.toml"
    if name in ("rows", "predicts"):
        use = partial(_used, place / name)
        return [("verify", partial(ss.verify, place / name, ledger=place / "people.ledger")), ("load and use", use)]
    if name == "people.ledger":
        return [("verify", partial(ss.verify, place / "rows", ledger=place / name)), ("fit", partial(_fit, recipe))]
    if name == "people.parquet":
        return [("fit", partial(_fit_frame, place / name))]
    return [("plan", partial(_plan, recipe)), ("fit", partial(_fit, recipe))]


def _used(folder: Path) -> None:
    """Load a release and use it in every way."""
    release = ss.Release.load(folder)
    repr(release)
    release._repr_html_()
    release.cite()
    release.certificate._repr_html_()
    if folder.name == "predicts":
        release.predict(world.people()[:5])
        return
    release.sample(10, seed=1)
    release.query(["AGE"], by=["SEX"])
    release.query(["AGE"], statistic="mean")


def _fit(recipe: Path) -> None:
    """Run a recipe to its release."""
    ss.Recipe.read(recipe).run(recipe.with_name("out"))


def _plan(recipe: Path) -> None:
    """Plan a recipe, as text."""
    found = ss.Recipe.read(recipe)
    str(ss.plan(found.how(), found.schema(), found.budget(), declared_size=world.ROWS))


def _fit_frame(data: Path) -> None:
    """Fit a Parquet file, without a ledger."""
    table = ss.open_table(data, schema=world.SCHEMA, declared_size=world.ROWS)
    ss.fit(Independent(), table, world.BUDGET, seed=1)
