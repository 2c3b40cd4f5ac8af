"""`door`: the parts that every fit uses: counting, noise, starting up."""

from __future__ import annotations

import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np

from benches.figures import Timing, seconds, started, timed
from stratsynth import census
from stratsynth.driver.rows import StoredRows
from stratsynth.noise import gaussian, laplace
from stratsynth.schema import Categorical, Schema
from stratsynth.schema.rows import CodedRows
from studies.figures import Figure

ROWS, COLUMNS = 1_000_000, 20
DRAWS = 1_000_000

RECIPE = """
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 27000
[strata]
by = ["SEX", "RAC1P"]
[weights]
source = "public"
path = "shares.csv"
citation = "simulated people"
[mechanism]
name = "independent"
[budget]
epsilon = 1
delta = 1e-9
"""


def run() -> list[Figure]:
    """Return all figures, in the order of the way in."""
    return [*counting(), *drawing(), *starting(), *simulating()]


def counting() -> list[Figure]:
    """All pair tables of 20 columns and a million rows, against `np.bincount(a * k + b)` on the same codes."""
    rng = np.random.default_rng(0)
    sizes = [int(k) for k in rng.integers(2, 21, COLUMNS)]
    schema = Schema({f"c{i}": Categorical(levels=tuple(map(str, range(k)))) for i, k in enumerate(sizes)})
    codes = {f"c{i}": rng.integers(0, k, ROWS).astype(np.uint8) for i, k in enumerate(sizes)}
    wide = {name: column.astype(np.int64) for name, column in codes.items()}
    pairs = list(combinations(schema.names, 2))
    rows = StoredRows([CodedRows(schema, codes, {}, ROWS)])

    def plain() -> None:
        for a, b in pairs:
            np.bincount(wide[a] * schema.size(b) + wide[b])

    ours, theirs = timed(lambda: rows.counts([((), pairs)])), timed(plain)
    ratio = theirs.median / ours.median
    return [
        seconds(f"{len(pairs)} pair tables of {ROWS:,} rows", ours),
        seconds("the same by np.bincount(a * k + b), int64 codes", theirs),
        Figure("speed against np.bincount", ratio, "x", len(ours.seconds), None, "at least 0.8", ratio >= 0.8),
    ]


def drawing() -> list[Figure]:
    """Exact integer noise from the operating system's entropy, one core."""
    found = []
    for sigma, least in ((5.8, 2e6), (1000.0, 2e6), (1e6, None), (1e12, None)):
        timing = timed(lambda sigma=sigma: gaussian.sample(sigma, DRAWS))  # type: ignore[misc]
        found.append(_rate(f"discrete Gaussian, sigma {sigma:g}", timing, least))
    found.append(_rate("discrete Laplace, scale 10", timed(lambda: laplace.sample(10, DRAWS)), None))
    return found


def _rate(name: str, timing: Timing, least: float | None) -> Figure:
    rate = DRAWS / timing.median
    target = "" if least is None else f"at least {least:,.0f}"
    reached = None if least is None else rate >= least
    return Figure(name, rate, "draws a second", len(timing.seconds), None, target, reached)


def starting() -> list[Figure]:
    """Times of fresh processes; an empty Python process is part of each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
        census.schema().write_toml(folder / "schema.toml")
        census.shares(("SEX", "RAC1P")).to_csv(folder / "shares.csv", index=False)
        command = "import sys; from stratsynth.cli import run; sys.exit(run(sys.argv[1:]))"
        return [
            seconds("python -c pass", started("-c", "pass")),
            seconds("import stratsynth", started("-c", "import stratsynth"), at_most=0.2),
            seconds("stratsynth --help", started("-c", command, "--help"), at_most=0.6),
            seconds("stratsynth plan", started("-c", command, "plan", str(folder / "recipe.toml")), at_most=2.5),
        ]


def simulating() -> list[Figure]:
    """The built-in census."""
    return [seconds("a million simulated people", timed(lambda: census.make(ROWS), 1, warm=False), at_most=5)]
