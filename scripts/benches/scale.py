"""`scale`: simulated people by the million in a Parquet file, fitted out of memory; and the speed of counting alone.

Each fit is a process of its own, whose peak memory is its own. People are made a chunk at a time, so that memory does
not grow with their number; the files are deleted at the end of the run, and take about 11 bytes a person. Speeds of
counting are of processor time, which other programs on the machine disturb less than the time of the day.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benches.figures import fresh
from studies.figures import Figure, limited, peak_megabytes

ROWS = (1_000_000, 3_000_000, 10_000_000)
BY = ("SEX", "RAC1P")
CHUNK = 1 << 18
"""People made at a time."""
FITS = {"mst": {}, "aim": {"rounds": 25}}
"""Mechanisms with their settings; AIM goes without strata, MST by BY."""
LEAST_SPEED = 400
"""The target for counting on one core, in millions of rows x tables a second."""
MOST_MEMORY = {"mst": 2000, "aim": 3000}
"""The target at 100 million people, in MB, which fewer people must keep to as well."""
MEMORY_ROWS, MEMORY_MOST = 5_000_000, 800
"""The target for rows in memory: as many people, and MB."""


def run(rows: Sequence[int] = ROWS, only: str | None = None, engine: str = "stream") -> list[Figure]:
    """Make the files, fit each with the mechanisms or with `only` one, and delete them; or take them to an engine."""
    if only in {"spark", "duckdb"}:
        there: list[Figure] = import_module(f"benches.scale_{only}").compared(rows)
        return there
    found = counting()
    with tempfile.TemporaryDirectory() as folder:
        seconds: dict[str, list[tuple[float, float]]] = {}
        for number in sorted(rows):
            path = Path(folder) / "people.parquet"
            made_in = make(path, number)
            size = path.stat().st_size / 1e6
            found.append(
                Figure(f"{number:,} people made and written", made_in, "s", against=f"a file of {size:,.0f} MB")
            )
            for name, settings in FITS.items():
                if only not in {None, name}:
                    continue
                wanted = {"path": str(path), "mechanism": name, "settings": settings, "engine": engine, "rows": number}
                got = fresh("scale", wanted)
                seconds.setdefault(name, []).append((got["fit"], got["cpu"]))
                where = "in 18 strata" if name == "mst" else "of everybody, 25 rounds"
                found += [
                    Figure(f"  {name} {where}, end to end, engine {engine}", got["fit"], "s"),
                    Figure("    time of processors", got["cpu"], "s"),
                    Figure("      as the plan foretold", got["time"], "s"),
                    limited("    peak memory", got["peak"], MOST_MEMORY[name], "MB"),
                    Figure("      as the plan foretold", got["memory"], "MB"),
                    Figure("    reading and encoding", got["load"], "s"),
                ]
            if number == MEMORY_ROWS:
                wanted = {"path": str(path), "mechanism": "mst", "settings": {}, "engine": "memory", "rows": number}
                got = fresh("scale", wanted)
                found += [
                    Figure("  mst in 18 strata, engine memory", got["fit"], "s"),
                    Figure("    time of processors", got["cpu"], "s"),
                    limited("    peak memory", got["peak"], MEMORY_MOST, "MB"),
                ]
            path.unlink()
    if len(rows) > 1:
        millions = np.array(sorted(rows)) / 1e6
        for name, times in seconds.items():
            for what, taken in zip(("end to end", "processors"), zip(*times, strict=True), strict=True):
                slope, start = np.polyfit(millions, taken, 1)
                line = f"{name}, {what}: a straight line through the sizes"
                found.append(Figure(line, slope, "s/million", against=f"+ {start:.3g} s"))
                found.append(Figure("  which comes to, at 100 million", 100 * slope + start, "s"))
    return found


def counting(rows: int = 1 << 22) -> list[Figure]:
    """Rows x tables a second on one core, codes in memory: `np.bincount` alone, small tables, and wide ones."""
    from stratsynth import census
    from stratsynth.driver import counting as module
    from stratsynth.driver.rows import StoredRows
    from stratsynth.schema.rows import CodedRows

    schema, rng = census.schema(), np.random.default_rng(0)
    codes = {c: rng.integers(schema.size(c), size=rows).astype(np.uint8) for c in schema.names}
    pairs = list(itertools.combinations(schema.names, 2))
    triples = [c for c in itertools.combinations(schema.names, 3) if schema.cells(c) < module.WIDE]
    cell = np.ravel_multi_index([codes[c].astype(np.intp) for c in triples[0]], schema.shape(triples[0]))
    start = time.process_time()
    np.bincount(cell, minlength=schema.cells(triples[0]))
    plain = rows / (time.process_time() - start) / 1e6
    cores, many, module.cores = module.cores, module.MANY, lambda: 1
    try:
        found = [Figure("np.bincount of cell numbers in memory", plain, "million rows x tables/s")]
        for what, cliques, least in (
            ("triples, each counted by itself", triples[::40], rows + 1),
            ("pairs, in wide tables", pairs, 0),
            ("triples, in wide tables", triples, 0),
        ):
            module.MANY = least
            start = time.process_time()
            StoredRows([CodedRows(schema, codes, {}, rows)]).counts([((), cliques)])
            speed = rows * len(cliques) / (time.process_time() - start) / 1e6
            name = f"{len(cliques):,} {what}, of {rows:,} rows, one core"
            target = f"at least {LEAST_SPEED}"
            found.append(Figure(name, speed, "million rows x tables/s", 1, None, target, bool(speed >= LEAST_SPEED)))
    finally:
        module.cores, module.MANY = cores, many
    return found


def make(path: Path, rows: int) -> float:
    """Write simulated people as Parquet in constant memory; returns the seconds it took."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from stratsynth import census

    start, writer = time.perf_counter(), None
    for at in range(0, rows, CHUNK):
        table = pa.Table.from_pandas(census.make(min(CHUNK, rows - at), offset=at), preserve_index=False)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return time.perf_counter() - start


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    """Fit once on a file, public so that nothing is kept of it."""
    import stratsynth as ss
    from stratsynth import census
    from stratsynth.data import backends
    from stratsynth.mechanisms import make as made
    from stratsynth.planning import plan

    loads: list[float] = []
    load_rows = vars(backends)["load_rows"]

    def load(*given: Any, **settings: Any) -> Any:
        start = time.perf_counter()
        rows = load_rows(*given, **settings)
        loads.append(time.perf_counter() - start)
        return rows

    for module in (backends, sys.modules["stratsynth.data.stream"]):
        vars(module)["load_rows"] = load
    mechanism = made(wanted["mechanism"], wanted["settings"])
    stratified = wanted["mechanism"] == "mst"
    how = ss.Stratified(mechanism, BY, census.weights(BY)) if stratified else mechanism
    budget = ss.Budget(epsilon=1, delta=1e-9)
    foretold = plan(how, census.schema(), budget, declared_size=wanted["rows"], engine=wanted["engine"])
    before, start = time.process_time(), time.perf_counter()
    table = ss.open_table(
        wanted["path"],
        schema=census.schema(),
        declared_size=wanted["rows"],
        public=True,
        engine=wanted["engine"],
        table=wanted.get("table"),
    )
    ss.fit(how, table, budget, progress=False)
    return {
        "fit": time.perf_counter() - start,
        "cpu": time.process_time() - before,
        "peak": peak_megabytes(),
        "load": loads[0],
        "memory": foretold.rows_megabytes + sum(s.megabytes for s in foretold.strata),
        "time": foretold.seconds,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))) + "\n")
