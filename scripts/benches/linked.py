"""Households with their persons, fitted as two linked tables: errors of structure, broken rules, time and memory.

`--acs FILE --households FILE` names a state's person and household records of 2024, as `census load` writes them;
without them households of the built-in census are fitted. `--rows N` fits so many of either; of records by both orders
of drawing. Errors are total variation, 0 to 1, means over tables:
H of households, HP of households and persons, P2 and P3 of persons, W within households, S by size, G by race of the
reference person. Their floor is a bootstrap sample of the same households, their ceiling persons assigned at random.
There are the prototype's tables as well, by which the targets were set: in its bands, 28 of P2, 20 of W, and of
these the 12 that its report has figures of, and 10 of S (`benches.linked_lists`).
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from benches.figures import fresh
from studies.figures import Figure, limited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stratsynth.evaluation.linked.rows import LinkedCodes
    from stratsynth.schema.linked import LinkedSchema

EPSILONS = (1.0, 4.0)
DELTA = 1e-9
ROWS = 50_000
SECONDS, MEGABYTES, DRAWN = 120.0, 2000.0, 30.0
"""Most seconds and megabytes of a fit with its sample, and seconds of drawing `HOUSEHOLDS`."""
HOUSEHOLDS = 100_000
LISTS = {"P2": "28 pairs of persons", "W": "20 tables within households", "S": "10 tables by size"}
NAMED = "12 of these 20, of which the prototype has .080 and .048"
"""Label of the figures of the prototype's tables."""
TARGETS = {
    1.0: {
        "H": 0.035,
        "children": 0.02,
        "AGEP: difference, first x second": 0.05,
        LISTS["P2"]: 0.04,
        LISTS["W"]: 0.07,
        LISTS["S"]: 0.17,
    },
    4.0: {
        "H": 0.028,
        "children": 0.005,
        "AGEP: difference, first x second": 0.05,
        LISTS["P2"]: 0.025,
        LISTS["W"]: 0.045,
        LISTS["S"]: 0.08,
    },
}
"""Errors to reach on Pennsylvania, by epsilon: of kinds of tables, of tables by how their names begin, and of the
prototype's tables."""


def run(
    acs: str | None = None,
    households: str | None = None,
    rows: int | None = None,
    seeds: int = 1,
    epsilons: Sequence[float] = EPSILONS,
) -> list[Figure]:
    """Fit at each epsilon as often as `seeds` says, each in a process of its own.

    With records, `rows` is a number of their households: both orders of drawing are fitted to a sample of so many.
    """
    some = acs is not None and rows is not None
    where = "census" if acs is None else f"{rows:,} households of the records" if some else "records"
    targets = {} if acs is None or some else TARGETS
    figures = []
    for epsilon, children, seed in product(epsilons, ("chain", "independent") if some else ("auto",), range(seeds)):
        wanted = {"acs": acs, "households": households, "epsilon": epsilon, "seed": seed}
        found = fresh("linked", {**wanted, "rows": rows, "children": children})
        name = f"{where}, epsilon {epsilon:g}" + (f", {children}" if some else "")
        figures += _figures(name + (f", fit {seed + 1}" if seeds > 1 else ""), found, targets.get(epsilon, {}))
    return figures


def _figures(name: str, found: dict[str, Any], targets: dict[str, float]) -> list[Figure]:
    figures = []
    for kind, value, floor, ceiling in found["means"]:
        said = f"{name}: {kind}, floor {floor:.3f}, ceiling {ceiling:.3f}"
        figures.append(limited(said, value, targets[kind], "TV") if kind in targets else Figure(said, value, "TV"))
    for what, value, floor, ceiling in found["lists"]:
        said = f"{name}: the prototype's {what}, floor {floor:.3f}, ceiling {ceiling:.3f}"
        figures.append(limited(said, value, targets[what], "TV") if what in targets else Figure(said, value, "TV"))
    for table, value in found["tables"]:
        most = next((least for begin, least in targets.items() if len(begin) > 2 and table.startswith(begin)), None)
        said = f"{name}: {table}"
        figures.append(Figure(said, value, "TV") if most is None else limited(said, value, most, "TV"))
    figures += [
        Figure(f"{name}: {structure}, of {of}, {real:.4f} in truth", value, "share")
        for structure, of, real, value in found["shares"]
    ]
    return [
        *figures,
        limited(f"{name}: rows that break a rule", found["broken"], 0, "rows"),
        Figure(f"{name}: rows drawn without all that is known", found["backed_off"], "rows"),
        Figure(f"{name}: households with the sum in another band than drawn", found["other_bands"], "share"),
        limited(f"{name}: seconds of a fit", found["seconds"], SECONDS, "s"),
        limited(f"{name}: seconds of drawing {HOUSEHOLDS:,} households", found["drawn"], DRAWN, "s"),
        limited(f"{name}: peak memory", found["peak"], MEGABYTES, "MB"),
    ]


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    """Fit once; return errors, times and memory."""
    import numpy as np

    import stratsynth as ss
    from stratsynth.evaluation import LinkedColumns, broken_rules, household_shares, linked_errors, linked_means
    from stratsynth.evaluation.linked.rows import AGES, LinkedCodes
    from stratsynth.mechanisms import make
    from studies.figures import peak_megabytes

    schema, real = data(wanted)
    columns = replace(
        LinkedColumns.of(schema, group="RAC1P"),
        ends=AGES,
        counted={"children": {"AGEP": "..17"}, "married persons": {"MAR": "1"}},
    )
    table = ss.open_tables(*real, schema=schema, declared_size=len(real[0]))
    start = time.perf_counter()
    release = ss.fit(
        make("linked", {"base": wanted.get("base", "aim"), "children": wanted.get("children", "auto")}),
        table,
        ss.Budget(wanted["epsilon"], DELTA),
        seed=wanted["seed"],
    )
    made = release.sample_tables(len(real[0]), seed=1)
    seconds, peak = time.perf_counter() - start, peak_megabytes()
    counted: dict[str, Any] = {}
    start = time.perf_counter()
    release.model.linked_tables(HOUSEHOLDS, np.random.default_rng(2), counted)
    drawn = time.perf_counter() - start
    errors, shares = linked_errors(real, made, columns), household_shares(real, made, columns)
    means = linked_means(errors)
    within = errors[errors["kind"] == "W"]
    return {
        "means": means[["kind", "value", "floor", "ceiling"]].values.tolist(),
        "lists": _lists(LinkedCodes.read(*real, columns), LinkedCodes.read(*made, columns)),
        "tables": within[["table", "value"]].values.tolist(),
        "shares": shares[["structure", "of", "real", "synthetic"]].values.tolist(),
        "broken": sum(broken_rules(made, columns).values()),
        "backed_off": sum(counted["backed_off"].values()) + counted["relaxed"],
        "other_bands": counted["other_bands"] / counted["parents"],
        "seconds": seconds,
        "drawn": drawn,
        "peak": peak,
    }


def _lists(real: LinkedCodes, made: LinkedCodes) -> list[tuple[str, float, float, float]]:
    """Return (name, mean error, floor, ceiling) of each list of the prototype's tables; none without its columns."""
    import numpy as np

    from benches.linked_lists import NAMED_TABLES, lists, total_variation

    rng, n = np.random.default_rng(0), len(real.size)
    mixed, weights = real.shuffled(rng), np.bincount(rng.integers(0, n, n), minlength=n)
    by_kind: dict[str, list[tuple[float, float, float]]] = {}
    for table in lists(real.columns):
        own = table.cells(real)
        by_kind.setdefault(table.kind, []).append(
            (
                total_variation(own.shares(), table.cells(made).shares()),
                total_variation(own.shares(), own.shares(weights)),
                total_variation(own.shares(), table.cells(mixed).shares()),
            )
        )
    found = {LISTS[kind]: values for kind, values in by_kind.items()}
    if "W" in by_kind:
        found[NAMED] = by_kind["W"][:NAMED_TABLES]
    means = {what: np.mean(values, axis=0).tolist() for what, values in found.items()}
    return [(what, value, floor, ceiling) for what, (value, floor, ceiling) in means.items()]


def data(wanted: dict[str, Any]) -> tuple[LinkedSchema, tuple[Any, Any]]:
    """The schema, and households that persons live in, with all persons."""
    import pandas as pd

    from stratsynth import census
    from stratsynth.census import acs

    if wanted["acs"] is None:
        return census.linked_schema(), census.make_households(wanted["rows"] or ROWS)
    households, persons = (pd.read_parquet(wanted[key]) for key in ("households", "acs"))
    lived = (households["TYPEHUGQ"].astype("Int64") == 1) & (households["NP"] > 0)
    homes = households[lived]
    if wanted.get("children", "auto") != "auto":
        homes = homes.sample(wanted["rows"], random_state=wanted["seed"])
    return acs.linked_schema(year=2024), (homes, persons[persons["SERIALNO"].isin(homes["SERIALNO"])])


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))) + "\n")
