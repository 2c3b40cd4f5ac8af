"""Walks of fits through our own code: functions entered, files they lie in, and jumps from file to file.

`python -m helpers.walks` counts in a fresh process, so that imports and what is remembered are the same each time, and
prints JSON. Randomness is seeded there: what is drawn decides a few branches.

- A function counts once however often it is called; comprehensions and lambdas are parts of theirs, and the body of a
  class, which runs with an import, is none.
- A jump is a call whose caller, the nearest of our own functions on the stack, lies in another file.
- A recipe is counted after another fit of the same process, `independent`'s, has imported what every fit needs.
- A question is counted in the second fit of its kind: from the call of the driver to its answer, and from the moment
  at which a program yields it to the moment at which it is sent the answer. The first one of a fit has the rows loaded.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, ClassVar

DRIVER = ("driver/private.py", "PrivateAnswers.__call__")
"""The call that answers everything which is asked at one moment."""
PEOPLE = 1_000


@dataclass
class Walk:
    """Calls among the functions below one folder, counted while `on`."""

    root: str
    within: tuple[str, str] | None = None
    """The file and name of a function outside of whose calls nothing counts."""
    functions: set[tuple[str, str]] = field(default_factory=set)
    jumps: int = 0
    depth: int = 0
    names: dict[int, tuple[CodeType, tuple[str, str] | None]] = field(default_factory=dict)
    """Code by its `id`, kept alive here, and its `_name`: there are a hundred calls of each."""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Take note of a call or a return, as `sys.setprofile` has it."""
        if event not in ("call", "return"):
            return
        name = self._named(frame.f_code)
        if name is None:
            return
        if name == self.within:
            self.depth += 1 if event == "call" else -1
            if self.depth:  # the driver itself is where the walk begins: its call is no jump
                self.functions.add(name)
            return
        if event == "return" or (self.within is not None and not self.depth):
            return
        self.functions.add(name)
        caller = frame.f_back
        while caller is not None and self._named(caller.f_code) is None:
            caller = caller.f_back
        if caller is not None:
            self.jumps += self._file(caller.f_code) != name[0]

    @contextmanager
    def on(self) -> Iterator[Walk]:
        """Count."""
        sys.setprofile(self)
        try:
            yield self
        finally:
            sys.setprofile(None)

    @property
    def figures(self) -> dict[str, int]:
        """The counts."""
        files = {file for file, _ in self.functions}
        return {"functions": len(self.functions), "files": len(files), "jumps": self.jumps}

    def _file(self, code: CodeType) -> str:
        return code.co_filename[len(self.root) + 1 :]

    def _named(self, code: CodeType) -> tuple[str, str] | None:
        found = self.names.get(id(code))
        if found is None:
            found = self.names[id(code)] = (code, self._name(code))
        return found[1]

    def _name(self, code: CodeType) -> tuple[str, str] | None:
        """File and name of one of our own functions; None for all other code, modules, classes, parts of functions."""
        if not code.co_filename.startswith(f"{self.root}/") or code.co_name.startswith("<"):
            return None
        if not code.co_flags & CO_OPTIMIZED:  # the body of a class, which runs when its module is imported
            return None
        return self._file(code), code.co_qualname


def installed() -> str:
    """The folder of the package under test."""
    import stratsynth

    return str(Path(stratsynth.__file__).parent)


# Recipes

MECHANISMS = {
    "independent": "",
    "mst": "",
    "group_regression": 'groups = ["SEX"]\niterations = 20',
    "fermi": 'groups = ["SEX"]\npenalty = 1\ntarget = "PUBCOV"\niterations = 20\nsampling = 0.1',
}
STRATIFIED = {"independent", "mst"}
"""Mechanisms that are fitted in the strata of SEX, and draw rows."""
STRATA = """
[strata]
by = ["SEX"]

[weights]
source = "public"
path = "shares.csv"
citation = "made up for testing"
"""
RECIPE = """
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = {people}
{strata}
[mechanism]
name = "{name}"
{settings}

[budget]
epsilon = 1.0
delta = 1e-9
ledger = "people.ledger"

[release]
directory = "release"
seed = 7
{rows}
"""


def recipe(folder: Path, name: str) -> Path:
    """The files of a fit on all 25 columns of the census."""
    from stratsynth import census

    folder.mkdir()
    census.make(PEOPLE).to_csv(folder / "people.csv", index=False)
    census.schema().write_toml(folder / "schema.toml")
    census.shares(["SEX"]).to_csv(folder / "shares.csv", index=False)
    strata, rows = (STRATA, "rows = 300") if name in STRATIFIED else ("", "")
    text = RECIPE.format(people=PEOPLE, strata=strata, name=name, settings=MECHANISMS[name], rows=rows)
    (folder / "recipe.toml").write_text(text, encoding="utf-8")
    return folder / "recipe.toml"


def recipe_walk(folder: Path, name: str) -> dict[str, int]:
    """Count the walk from a recipe's file to a release folder."""
    from stratsynth.recipes.recipe import Recipe

    path = recipe(folder / name, name)
    with Walk(installed()).on() as walk:
        Recipe.read(path).run(folder / name / "release")
    return walk.figures


# Questions


def question_walks(folder: Path) -> dict[str, dict[str, int]]:
    """One `Counts` question of all columns of a CSV file, with its rows to be loaded, and one more."""
    import pandas as pd

    from helpers.toys import Toy
    from stratsynth import Budget, Categorical, Numeric, Schema, fit, open_table
    from stratsynth.adapters.independent import Independent, Product
    from stratsynth.questions import counts

    walks: list[Walk] = []

    @dataclass(frozen=True)
    class Twice(Toy):
        """Asks for every column, twice."""

        name: ClassVar[str] = "twice"
        driver: bool = True

        def rehearsal(self, public: Any, allot: Any, rng: Any) -> Any:
            return Independent().steps(public, allot, rng)

        def steps(self, public: Any, allot: Any, rng: Any) -> Any:
            walks.clear()
            for _ in range(2):
                walks.append(Walk(installed(), DRIVER if self.driver else None))
                asked = counts(public.schema.oneways, rho=allot.rho / 2)
                question = next(asked)
                with walks[-1].on():
                    tables = yield question
            return Product.of(public.schema, tables)

    schema = Schema(
        {
            "SEX": Categorical(levels=("1", "2")),
            "GROUP": Categorical(levels=("a", "b")),
            "AGE": Numeric(lower=0, upper=9, bins=3),
        }
    )
    cycle = range(100)
    frame = pd.DataFrame(
        {
            "SEX": ["12"[i % 2] for i in cycle],
            "GROUP": ["aab"[i % 3] for i in cycle],
            "AGE": [i % 10 for i in cycle],
        }
    )
    found = {}
    for driver, name in ((True, "a question, the driver's part"), (False, "a question, from program to program")):
        for turn in range(2):  # what is remembered of schemas and modules is there the second time
            path = folder / f"{driver}{turn}" / "people.csv"  # a copy beside it would be refused
            path.parent.mkdir()
            frame.to_csv(path, index=False)
            table = open_table(path, schema=schema, declared_size=100, ledger=path.with_suffix(".ledger"))
            fit(Twice(driver), table, Budget(1, 1e-9))
        for walk, what in zip(walks, ("", ", no rows to be loaded"), strict=True):
            found[f"{name}{what}"] = walk.figures
    return found


def main() -> None:
    """Every walk, by name, as JSON."""
    import numpy as np

    rng = np.random.default_rng(7)
    os.urandom = rng.bytes  # in this process alone: another draw may take another branch
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        found = {name: recipe_walk(folder, name) for name in MECHANISMS}
        found.pop("independent")  # it was the first, and had everything imported
        found |= question_walks(folder)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
