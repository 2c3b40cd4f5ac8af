"""`scale --only spark`: rows to exact tables on a local cluster of two workers, beside the engine `stream`.

The cluster's driver, its two workers and their Python processes share this machine's cores with everything else on it,
and so does `stream`, which counts with several threads: times are of the day, and their ratios say more than they do.
Each engine reads, encodes and counts; the tables are compared, and must be the same to the integer.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from studies.figures import Figure

MASTER = "local-cluster[2,1,1024]"
"""Two workers with a core and 1,024 MiB each, which the tests of Spark have too."""


def compared(rows: Sequence[int]) -> list[Figure]:
    """Make the files, count each with every engine, and delete them."""
    from benches.scale import BY, make
    from stratsynth import Numeric, Schema, census
    from stratsynth.data.spark import Spark
    from stratsynth.data.spark_source import SparkSource
    from stratsynth.strata import crossing

    schema = census.schema()
    start = time.perf_counter()
    session = _session()
    found = [Figure(f"starting Spark, {MASTER}", time.perf_counter() - start, "s")]
    start = time.perf_counter()
    small = Schema({"id": Numeric(lower=0, upper=3, bins=2)})
    Spark(SparkSource(session.range(4)), small, session).rows().counts([((), [("id",)])])
    found.append(Figure("the first job, which starts Python on the workers", time.perf_counter() - start, "s"))
    pairs = list(itertools.combinations(schema.names, 2))
    inside = [clique for clique in pairs if not set(clique) & set(BY)]
    strata = [((stratum,), inside) for stratum in crossing(schema, BY)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        for number in sorted(rows):
            make(path, number)
            for what, asked, tables in (
                (f"{len(pairs)} pairs of everybody", [((), pairs)], len(pairs)),
                (f"{len(inside)} pairs in each of {len(strata)} strata", strata, len(inside)),
            ):
                found += _compared(f"{number:,} people, {what}", session, path, asked, number * tables)
            path.unlink()
    session.stop()
    return found


def _compared(what: str, session: Any, path: Path, asked: Any, counted: int) -> list[Figure]:
    """The speeds of one set of tables, each row of a stratum counted in those of its own."""
    from stratsynth import census
    from stratsynth.data.backends import backend
    from stratsynth.data.sources import open_source

    first: list[Any] = []
    found = []
    ways = {
        "stream": (path, "stream"),
        "spark, the file": (path, "spark"),
        "spark, a DataFrame": (session.read.parquet(str(path)), "spark"),
    }
    for name, (data, engine) in ways.items():
        held = backend(engine, open_source(data), census.schema())
        start = time.perf_counter()
        tables = [table for those in held.rows(numbers=False).counts(asked) for table in those]
        seconds = time.perf_counter() - start
        first = first or tables
        if not all(map(np.array_equal, tables, first)):
            raise AssertionError(f"{name}: other tables than from stream")
        against = f"{seconds:.1f} s to read, encode and count; the same tables"
        found.append(Figure(f"{what}: {name}", counted / seconds / 1e6, "million rows x tables/s", against=against))
    return found


def _session() -> Any:
    """A local cluster of two workers, each a process of its own."""
    from stratsynth.data.spark_progress import quiet
    from stratsynth.data.spark_source import PRIVATE

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with quiet():
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(MASTER).appName("scale")
        for key, value in PRIVATE.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
