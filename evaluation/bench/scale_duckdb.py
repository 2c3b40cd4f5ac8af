"""Counting in DuckDB, a GROUP BY for each table, against reading its rows once and counting them ourselves.

Of a database with the same people. Groups are of values as they lie in the database; their encoding, which a counter
there would need as well, is left out, so that DuckDB is judged at its best. Measured once, of 3 million people and 25
columns, in seconds of processors: reading 1.6; then 1, 10 and 300 pairs 0.01, 0.02 and 0.2, against 0.015, 0.13 and
5.4 in DuckDB. So its groups are sooner for fewer than about a hundred tables, and fits ask for more: MST for over 300.
"""

from __future__ import annotations

import itertools
import time
from importlib.util import find_spec
from pathlib import Path

from stratsynth.evaluation.bench.figures import Figure

TABLES = (1, 10, 300)
"""How many pairs of columns are counted."""


def databases(parquet: Path, rows: int) -> list[Figure]:
    """Time of processors for some pairs, both ways; nothing where DuckDB is not installed."""
    if find_spec("duckdb") is None:
        return [Figure("engine duckdb: DuckDB is not installed (pip install 'stratsynth[duckdb]')", 0, "tables", 0)]
    import duckdb

    from stratsynth import census
    from stratsynth.data.duckdb_query import quoted, select
    from stratsynth.data.duckdb_source import DuckDBSource
    from stratsynth.data.fingerprint import fingerprint
    from stratsynth.data.load import load_rows
    from stratsynth.files.scratch import Scratch

    path, schema = parquet.with_suffix(".duckdb"), census.schema()
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM read_parquet(?)", [str(parquet)])
    source, found = DuckDBSource(path, "people"), list[Figure]()
    start = time.process_time()
    fingerprint(source, b"k" * 32)
    found.append(Figure(f"engine duckdb, {rows:,} people: fingerprint", time.process_time() - start, "s of processors"))
    start = time.process_time()
    held = load_rows(schema, source, Scratch(), numbers=False)
    read = time.process_time() - start
    found.append(Figure("  reading and encoding", read, "s of processors"))
    pairs = list(itertools.combinations(schema.names, 2))
    for number in TABLES:
        start = time.process_time()
        held.counts([((), pairs[:number])])
        ours = time.process_time() - start
        with source.connected() as (connection, chosen):
            start = time.process_time()
            for pair in pairs[:number]:
                names = ", ".join(map(quoted, pair))
                connection.execute(f"{select(f'{names}, count(*)', chosen.base)} GROUP BY {names}").fetchall()
            theirs = time.process_time() - start
        found += [
            Figure(f"  {number} pairs counted by ourselves, after reading", ours, "s of processors"),
            Figure("    by DuckDB, a GROUP BY for each, of values that are not encoded", theirs, "s of processors"),
        ]
    path.unlink()
    return found
