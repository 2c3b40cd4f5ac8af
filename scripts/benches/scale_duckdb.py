"""`scale --only duckdb`: people in a DuckDB database, fitted and scored there; and whether DuckDB should count them.

MST of the database beside MST of the Parquet file that it was made from. Then the error of that file's marginals
against the database's, from counts, as `evaluate --marginals-only` has it. Then counting in DuckDB, a GROUP BY for each
table, against reading its rows once and counting them ourselves. Groups are of values as they lie in the database;
their encoding, which a counter there would need as well, is left out, so that DuckDB is judged at its best.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benches.figures import fresh
from studies.figures import Figure, peak_megabytes

TABLES = (1, 10, 300)
"""Numbers of pairs of columns that are counted."""
BY = ("SEX", "RAC1P")
"""The groups in which marginals are scored."""


def compared(rows: Sequence[int]) -> list[Figure]:
    """Make the databases, fit and count each, and delete them."""
    from benches.scale import make
    from stratsynth.data.duckdb_source import library

    duckdb, found = library(), list[Figure]()
    with tempfile.TemporaryDirectory() as folder:
        parquet, path = Path(folder) / "people.parquet", Path(folder) / "people.duckdb"
        for number in sorted(rows):
            make(parquet, number)
            with duckdb.connect(str(path)) as connection:
                connection.execute("CREATE TABLE people AS SELECT * FROM read_parquet(?)", [str(parquet)])
            sizes = f"a file of {path.stat().st_size / 1e6:,.0f} MB, Parquet {parquet.stat().st_size / 1e6:,.0f} MB"
            found.append(Figure(f"{number:,} people in a DuckDB database", number / 1e6, "million rows", against=sizes))
            found += [*fits(parquet, path, number), *scores(parquet, path), *counting(path)]
            path.unlink()
            parquet.unlink()
    return found


def fits(parquet: Path, database: Path, rows: int) -> Iterator[Figure]:
    """MST in 18 strata of both, end to end, each in a process of its own."""
    for engine, more in (("stream", {"path": str(parquet)}), ("duckdb", {"path": str(database), "table": "people"})):
        got = fresh("scale", {"mechanism": "mst", "settings": {}, "engine": engine, "rows": rows, **more})
        yield Figure(f"  mst in 18 strata, end to end, engine {engine}", got["fit"], "s")
        yield Figure("    time of processors", got["cpu"], "s")
        yield Figure("    reading and encoding", got["load"], "s")
        yield Figure("    peak memory", got["peak"], "MB")


def scores(parquet: Path, database: Path) -> Iterator[Figure]:
    """The error of all pairs in 18 groups and for everybody, in a process of its own."""
    got = fresh("scale_duckdb", {"real": str(database), "synthetic": str(parquet)})
    yield Figure(f"  {got['pairs']} pairs scored from counts, in 18 groups and for everybody", got["seconds"], "s")
    yield Figure("    time of processors", got["cpu"], "s")
    yield Figure("    peak memory", got["peak"], "MB")


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    """The error of marginals, in this process; of the same people it is 0."""
    from stratsynth import census
    from stratsynth.data.duckdb_source import database
    from stratsynth.evaluation import streamed_workload_error

    before, start = time.process_time(), time.perf_counter()
    real = database(wanted["real"], table="people")
    found = streamed_workload_error(real, wanted["synthetic"], census.schema(), 2, BY, progress=False)
    assert found["value"].fillna(0).eq(0).all()  # noqa: S101 - the same rows on both sides
    return {
        "pairs": int(found["cliques"].iloc[-1]),
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - before,
        "peak": peak_megabytes(),
    }


def counting(database: Path) -> Iterator[Figure]:
    """Time of processors for some pairs, both ways."""
    from stratsynth import census
    from stratsynth.data.duckdb_query import quoted, select
    from stratsynth.data.duckdb_source import DuckDBSource
    from stratsynth.data.fingerprint import fingerprint
    from stratsynth.data.load import load_rows
    from stratsynth.files.scratch import Scratch

    schema, source = census.schema(), DuckDBSource(database, "people")
    start = time.process_time()
    fingerprint(source, b"k" * 32)
    yield Figure("  fingerprint", time.process_time() - start, "s of processors")
    start = time.process_time()
    held = load_rows(schema, source, Scratch(), numbers=False)
    yield Figure("  reading and encoding", time.process_time() - start, "s of processors")
    pairs = list(itertools.combinations(schema.names, 2))
    for number in TABLES:
        start = time.process_time()
        held.counts([((), pairs[:number])])
        yield Figure(
            f"  {number} pairs, counted by ourselves after reading", time.process_time() - start, "s of processors"
        )
        with source.connected() as (connection, chosen):
            start = time.process_time()
            for pair in pairs[:number]:
                names = ", ".join(map(quoted, pair))
                connection.execute(f"{select(f'{names}, count(*)', chosen.base)} GROUP BY {names}").fetchall()
            taken = time.process_time() - start
        yield Figure("    by DuckDB, a GROUP BY for each, of values that are not encoded", taken, "s of processors")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))) + "\n")
