"""A state's person records with areas and occupations: time and memory of a fit, and what code lists in groups buy.

`--acs FILE` names a public-use file of person records of 2024; without it there is nothing to measure. Every column
that schemas know is fitted, by sex and race, at epsilon 1; shares are those of the file itself, for a benchmark. Errors
are L1 distances (0 to 2) between real and synthetic codes: single codes, also where groups of them were counted.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benches.figures import fresh
from stratsynth.schema import Nested
from studies.figures import Figure, limited

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

Array: TypeAlias = NDArray[Any]
YEAR = 2024
BY = ("SEX", "RAC1P")
SECONDS, MEGABYTES, TRIPLES = 60.0, 2000.0, 64
PARTS, NOISE = (0.37, 0.2, 0.1, 0.05), 57.0
"""Shares of the file that its groups have, and the noise scale of a count in such a fit, in records."""
FITS = (("mst", True), ("mst", False), ("pooled", True))
"""Mechanisms, and whether public shares say how codes of a group are drawn, for which groups are counted sooner."""


def run(acs: str) -> list[Figure]:
    """Measure sizes from which groups of codes are worth more than codes, then fits, each in a process of its own."""
    figures = worth(acs)
    for mechanism, shared in FITS:
        found = fresh("census", {"acs": acs, "mechanism": mechanism, "shared": shared})
        ways = "codes drawn by public shares" if shared else "codes drawn evenly"
        name = f"{mechanism} by {' x '.join(BY)}, {found['columns']} columns, {ways}"
        figures += [
            limited(f"{name}: seconds", found["seconds"], SECONDS, "s"),
            Figure(f"{name}: seconds of the processor", found["cpu"], "s"),
            limited(f"{name}: peak memory", found["peak"], MEGABYTES, "MB"),
            Figure(f"{name}: error of {TRIPLES} triples", found["triples"], "L1"),
            *(
                Figure(f"{name}: {column}, {levels} levels counted", error, "L1")
                for column, levels, error in found["lists"]
            ),
        ]
    return figures


def worth(acs: str) -> list[Figure]:
    """Measure each code list once, of records drawn at random: errors if counted by codes, and by groups.

    Counts are brought to the nearest ones that are not below 0 and add up. Records of a group come back as codes
    evenly, or by the shares of as many other records, half a record added to each.
    """
    from stratsynth.evaluation.scores.marginals import coded

    schema, frame = data(acs)
    rng, rows = np.random.default_rng(0), coded(frame, schema)
    figures = []
    for name, column in schema.columns.items():
        if not isinstance(column, Nested) or not column.groupings:
            continue
        group, codes = np.array(column.grouped(1).places), rows[name]
        for part in PARTS:
            drawn, n = rng.permutation(len(codes)), round(len(codes) * part)
            own, other = (np.bincount(codes[some], minlength=column.size) for some in (drawn[:n], drawn[-n:]))
            ways = {
                "codes": _simplex(own + rng.normal(0, NOISE, len(own)), n),
                "groups, evenly": _back(own, np.ones(len(own)), group, n, rng),
                "groups, by shares": _back(own, other + 0.5, group, n, rng),
            }
            ratio = n / column.size / NOISE
            figures += [
                Figure(f"{name}, {ratio:.2g} x noise a code: {way}", float(abs(made - own).sum() / n), "L1")
                for way, made in ways.items()
            ]
    return figures


def _back(own: Array, shares: Array, group: Array, n: int, rng: np.random.Generator) -> Array:
    """Noisy counts of groups, as counts of codes."""
    noisy = np.bincount(group, own) + rng.normal(0, NOISE, group.max() + 1)
    found: Array = _simplex(noisy, n)[group] * shares / np.bincount(group, shares)[group]
    return found


def _simplex(counts: Array, n: int) -> Array:
    """The nearest counts that are not below 0 and add up to n."""
    ordered = np.sort(counts)[::-1]
    over = (np.cumsum(ordered) - n) / np.arange(1, len(counts) + 1)
    found: Array = np.maximum(counts - over[np.flatnonzero(ordered > over)[-1]], 0)
    return found


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    """Fit once; return times, memory and errors."""
    import stratsynth as ss
    from stratsynth.census import acs
    from stratsynth.evaluation.scores.marginals import coded, mean_l1, some_cliques
    from stratsynth.mechanisms import make
    from stratsynth.strata.groups import Groups
    from stratsynth.stratified import stratify
    from studies.figures import peak_megabytes

    schema, frame = data(wanted["acs"], shared=wanted["shared"])
    shares = acs.shares(wanted["acs"], BY, year=YEAR, weight=None)
    weights = ss.Weights.public(shares.frame, citation="the file itself, for a benchmark")
    settings = {"base": make("mst", {})} if wanted["mechanism"] == "pooled" else {}
    how = stratify(wanted["mechanism"], settings, BY, weights, Groups())
    table = ss.open_table(frame, schema=schema, declared_size=len(frame), public=True)
    start, cpu = time.perf_counter(), time.process_time()
    release = ss.fit(how, table, ss.Budget(epsilon=1, delta=1e-9))
    seconds, cpu, peak = time.perf_counter() - start, time.process_time() - cpu, peak_megabytes()
    real, made = coded(frame, schema), coded(release.sample(len(frame), seed=1), schema)

    def error(cliques: Any) -> float:
        return mean_l1(real, made, schema, cliques)

    lists = [(c["column"], c["levels"], error([(c["column"],)])) for c in release.certificate["code_lists"]]
    triples = error(some_cliques(schema.names, 3, TRIPLES))
    return {
        "seconds": seconds,
        "cpu": cpu,
        "peak": peak,
        "columns": len(schema.names),
        "triples": triples,
        "lists": lists,
    }


def data(path: str, *, shared: bool = False) -> tuple[Schema, pd.DataFrame]:
    """The columns of a file of one state that schemas know, with their schema.

    Public shares of codes are those of the file itself: good for times, and errors within groups then flatter.
    """
    import pandas as pd

    from stratsynth.census import acs
    from stratsynth.census.acs.catalogue import entries, states

    whole = pd.read_parquet(path) if path.endswith(".parquet") else pd.read_csv(path, dtype=str)
    [code] = {str(value).zfill(2) for value in whole["STATE"]}
    state = next(letters for letters, (own, _) in states().items() if own == code)
    known = {each.name for each in entries() if not each.refused and each.valid(YEAR)}
    names = [name for name in whole if name in known]
    schema = acs.schema(names, year=YEAR, state=state)
    if shared:
        lists = [name for name, column in schema.columns.items() if isinstance(column, Nested)]
        tables = [acs.shares(path, [name], year=YEAR, weight=None, state=state).frame for name in lists]
        schema = acs.schema(names, year=YEAR, state=state, within=tables, citation="the file itself, for a benchmark")
    return schema, whole[names]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))) + "\n")
