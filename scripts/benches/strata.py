"""`strata`: plans, fits and releases of thousands of strata, PUMA x SEX x RAC1P of simulated people.

The built-in census gets another column, areas of unequal sizes that are alike in all else. Its structural rules are
left out: models that hold them take a multiple of the time, in few strata as in many, and the figures that these are
compared with are of a file without rules. Planning, fitting with a ledger on disk, and reading the release again are a
process each, whose peak memory is its own. Times are of processors, which other programs disturb less than the time of
the day.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benches.figures import fresh
from studies.figures import Figure, limited, peak_megabytes

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.mechanisms import Mechanism
    from stratsynth.schema import Schema

PEOPLE = 210_000
AREAS = (148, 1_389)
"""Times two sexes and nine races: 2,664 and 25,002 strata."""
INSIDE = 18
"""Strata in one area."""
BY = ("PUMA", "SEX", "RAC1P")
MOST_PLAN = 10.0
"""Target for each plan at the fewest areas, in seconds."""
MOST_FIT = {"independent": 16.0, "pooled": 29.0, "aim": 53.0, "mst": 57.0}
"""Target for each fit with its release folder at the fewest areas, in seconds: earlier measurements."""
TIMES = 10.0
"""The target at the most areas: as many times the time of the fewest."""
STEPS = {
    "plan": ("plan", "its text"),
    "fit": ("fit", "saving the release"),
    "read": ("loading it", "sampling as many rows", "verifying it against the ledger"),
}
"""Timed steps of each process, by their names."""


def run(only: str | None = None, areas: Sequence[int] = AREAS, people: int = PEOPLE) -> list[Figure]:
    """Plan, fit and read again: with every mechanism, or `only` one."""
    found = [Figure("simulated people", people, "people")]
    for mechanism in MOST_FIT if only is None else (only,):
        first: dict[str, float] = {}
        for number in areas:
            found.append(Figure(f"{mechanism}, {' x '.join(BY)}", number * INSIDE, "strata"))
            with tempfile.TemporaryDirectory() as folder:
                wanted = {"mechanism": mechanism, "areas": number, "people": people, "folder": folder}
                got = {step: fresh("strata", {**wanted, "step": step}) for step in STEPS}
            most = {"plan": MOST_PLAN, "fit": MOST_FIT[mechanism]} if (number, people) == (AREAS[0], PEOPLE) else {}
            for step, names in STEPS.items():
                for name in names:
                    seconds = got[step]["seconds"][name]
                    target = TIMES * first[name] if name in first else most.get(name)
                    found.append(limited(f"  {name}", seconds, target, "s"))
                found.append(Figure("    peak memory", got[step]["peak"], "MB"))
                found += [Figure(f"    {name}", *size) for name, size in got[step]["sizes"].items()]
                first |= {} if first.keys() & set(names) else got[step]["seconds"]
    return found


def widened(areas: int) -> Schema:
    """The schema of the census without its rules, and with the areas."""
    from stratsynth import Categorical, census

    schema = census.schema()
    levels = tuple(f"{number:05}" for number in range(areas))
    return replace(schema, columns={BY[0]: Categorical(levels=levels), **schema.columns}, rules=())


def sizes_of(areas: int) -> NDArray[np.float64]:
    """The areas' shares of all people: the largest has twice as many as the smallest."""
    parts = (100 + np.arange(areas) * 37 % 101).astype(np.float64)
    shares: NDArray[np.float64] = parts / parts.sum()
    return shares


def make(people: int, areas: int) -> pd.DataFrame:
    """People of the census, each in an area that is drawn by the areas' shares."""
    from stratsynth import census

    drawn = np.random.default_rng(0).choice(areas, size=people, p=sizes_of(areas))
    frame = census.make(people)
    frame.insert(0, BY[0], [f"{number:05}" for number in drawn])
    return frame


def how(mechanism: str, areas: int) -> Mechanism[Any]:
    """The mechanism in strata, by the exact shares of the population."""
    import pandas as pd

    import stratsynth as ss
    from stratsynth import census
    from stratsynth.mechanisms import make as made

    inner, found = census.shares(BY[1:]), []
    for level, part in zip(widened(areas).levels(BY[0]), sizes_of(areas), strict=True):
        found.append(inner.assign(PUMA=level, share=inner["share"] * part))
    weights = ss.Weights.public(pd.concat(found), citation=census.CITATION)
    if mechanism == "pooled":
        return made("pooled", {"by": BY, "weights": weights})
    return ss.Stratified(made(mechanism, {}), BY, weights)


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    """Run one step, in this process."""
    areas, people, folder = wanted["areas"], wanted["people"], Path(wanted["folder"])
    seconds: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        done = work()
        seconds[name] = time.process_time() - start
        return done

    if wanted["step"] == "plan":
        sizes = _plan(timed, how(wanted["mechanism"], areas), widened(areas), people)
    elif wanted["step"] == "fit":
        sizes = _fit(timed, how(wanted["mechanism"], areas), widened(areas), people, folder)
    else:
        sizes = _read(timed, people, folder)
    return {"seconds": seconds, "peak": peak_megabytes(), "sizes": sizes}


Sizes = dict[str, tuple[float, str]]
Timed = Callable[[str, Callable[[], Any]], Any]


def _plan(timed: Timed, mechanism: Mechanism[Any], schema: Schema, people: int) -> Sizes:
    import stratsynth as ss
    from stratsynth.planning import plan

    budget = ss.Budget(epsilon=1, delta=1e-9)
    planned = timed("plan", lambda: plan(mechanism, schema, budget, declared_size=people))
    text = timed("its text", lambda: str(planned))
    return {"its text": (len(text.splitlines()), "lines")}


def _fit(timed: Timed, mechanism: Mechanism[Any], schema: Schema, people: int, folder: Path) -> Sizes:
    import stratsynth as ss

    make(people, len(schema.levels(BY[0]))).to_parquet(folder / "people.parquet", index=False)
    ledger, budget = folder / "people.ledger", ss.Budget(epsilon=1, delta=1e-9)
    table = ss.open_table(folder / "people.parquet", schema=schema, ledger=ledger, declared_size=people)
    release = timed("fit", lambda: ss.fit(mechanism, table, budget, progress=False))
    timed("saving the release", lambda: release.save(folder / "release", seed=0))
    files = {path.name: path.stat().st_size / 1e6 for path in (folder / "release").rglob("*") if path.is_file()}
    return {name: (size, "MB") for name, size in sorted(files.items()) if size >= 0.1}


def _read(timed: Timed, people: int, folder: Path) -> Sizes:
    import stratsynth as ss

    release = timed("loading it", lambda: ss.Release.load(folder / "release"))
    timed("sampling as many rows", lambda: release.sample(people, seed=0))
    ledger = folder / "people.ledger"
    verdict = timed("verifying it against the ledger", lambda: ss.verify(folder / "release", ledger=ledger))
    return {"findings": (len(verdict.findings), "")}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))) + "\n")
