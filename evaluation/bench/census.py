"""A state's person records with areas and occupations: time and memory of a fit, and what code lists in groups buy.

`--acs FILE` names a public-use file of person records of 2024; without it there is nothing to measure. Every column
that schemas know is fitted, by sex and race, at epsilon 1; shares are those of the file itself, for a benchmark. Errors
are L1 distances (0 to 2) between real and synthetic codes: single codes, also where groups of them were counted.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stratsynth.evaluation.bench.figures import Figure, fresh, limited

from stratsynth.schema import Nested

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

YEAR = 2024
BY = ("SEX", "RAC1P")
SECONDS, MEGABYTES, TRIPLES = 60.0, 2000.0, 64
FITS = (("mst", True), ("mst", False), ("pooled", True))
"""Mechanisms, and whether code lists may be counted in groups."""


def run(acs: str | None) -> list[Figure]:
    """Every fit in a process of its own."""
    figures = []
    for mechanism, grouped in FITS:
        found = fresh("census", {"acs": acs, "mechanism": mechanism, "grouped": grouped})
        name = f"{mechanism} by {' x '.join(BY)}, {found['columns']} columns{'' if grouped else ', every code counted'}"
        figures += [
            limited(f"{name}: seconds", found["seconds"], SECONDS if grouped else None, "s"),
            Figure(f"{name}: seconds of the processor", found["cpu"], "s"),
            limited(f"{name}: peak memory", found["peak"], MEGABYTES if grouped else None, "MB"),
            Figure(f"{name}: error of {TRIPLES} triples", found["triples"], "L1"),
            *(Figure(f"{name}: {column}, {levels} levels counted", error, "L1")
              for column, levels, error in found["lists"]),
        ]  # fmt: skip
    return figures


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    """One fit, and its errors."""
    from stratsynth.evaluation.bench.figures import peak_megabytes
    from stratsynth.evaluation.scores.marginals import coded, mean_l1, some_cliques

    import stratsynth as ss
    from stratsynth.census import acs
    from stratsynth.mechanisms import make
    from stratsynth.strata.groups import Groups
    from stratsynth.stratified import stratify

    schema, frame = data(wanted["acs"])
    if not wanted["grouped"]:
        plain = {n: replace(c, measure=0) if isinstance(c, Nested) else c for n, c in schema.columns.items()}
        schema = replace(schema, columns=plain)
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
        "seconds": seconds, "cpu": cpu, "peak": peak, "columns": len(schema.names), "triples": triples, "lists": lists,
    }  # fmt: skip


def data(path: str) -> tuple[Schema, pd.DataFrame]:
    """The columns of a file of one state that schemas know, with their schema."""
    import pandas as pd

    from stratsynth.census import acs
    from stratsynth.census.acs.catalogue import entries, states

    whole = pd.read_parquet(path) if path.endswith(".parquet") else pd.read_csv(path, dtype=str)
    [code] = {str(value).zfill(2) for value in whole["STATE"]}
    state = next(letters for letters, (own, _) in states().items() if own == code)
    known = {each.name for each in entries() if not each.refused and each.valid(YEAR)}
    schema = acs.schema([name for name in whole if name in known], year=YEAR, state=state)
    return schema, whole[list(schema.names)]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))) + "\n")
