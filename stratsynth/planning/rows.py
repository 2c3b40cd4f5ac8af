"""Memory, disk space and passes that the rows will take, from public facts.

Measured by `scripts/bench scale`: rows in memory take their codes, and as much again where a split sorts them; streams
keep the same on disk, and the process holds a few batches, whatever the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratsynth.data.backends import engine_of
from stratsynth.data.spark import Spark
from stratsynth.data.stream import Stream
from stratsynth.mechanisms.prepared import check_served
from stratsynth.mechanisms.with_sums import check_sums_served
from stratsynth.planning.rehearsal import rows_of
from stratsynth.questions import Split, Total
from stratsynth.schema.encoding import width

if TYPE_CHECKING:
    from stratsynth.mechanisms import Prepared
    from stratsynth.planning.rehearsal import Rehearsal

PROGRAM = 400.0
"""Memory in MB for the program with its libraries, and for the rows that are being read, texts among them."""
DATABASE = 512.0
"""Memory in MB that DuckDB takes for the pages of a database: see `data.duckdb_source`."""


@dataclass(frozen=True)
class RowsPlan:
    """Engine that holds the rows, with its memory, disk space and passes."""

    engine: str
    """`memory`, `stream`, `duckdb` or `spark`."""
    megabytes: float
    """Memory in MB of this process for the rows and the program, without answers and models."""
    scratch_megabytes: float
    """Disk space in MB under TMPDIR for as long as the fit runs; 0 in memory and in Spark."""
    passes: int
    """Number of passes over all rows: to encode and to sort them, and one for each moment that is answered.

    In Spark, once for each moment whose tables are not known yet; one with more cells than a pass counts takes several.
    """
    passed_megabytes: float
    """Codes in MB that one pass reads at most; the file is read twice, for its fingerprint and for its rows."""


def held_bytes(prepared: Prepared) -> float:
    """Return the number of bytes that a prepared fit's declared rows take, in memory or a scratch file.

    The result is twice as large if strata split the rows.
    """
    needs = prepared.mechanism.needs
    once = rows_of(prepared) * width(prepared.public.schema, numbers=Total in needs)
    return once * (2 if Split in needs else 1)


def rows_plan(prepared: Prepared, found: Rehearsal, engine: str) -> RowsPlan:
    """Return the `RowsPlan` of the fit `prepared` on `engine`: memory, disk space and passes, by its rehearsal `found`.

    Raises:
        Unsupported: An engine that cannot answer what the mechanism asks, as a fit would refuse.
    """
    size, schema, needs = rows_of(prepared), prepared.public.schema, prepared.mechanism.needs
    whole = size * width(schema, numbers=Total in needs) / 2**20
    held = held_bytes(prepared) / 2**20
    chosen = engine_of(engine, schema, prepared.public.size)
    if chosen == "spark":
        check_sums_served(prepared.mechanism, Spark.reads)
        check_served(prepared.mechanism.name, needs, Spark.reads, database=False)
        return RowsPlan(chosen, PROGRAM, 0.0, found.answers.passes, whole)
    if chosen != "memory":
        check_served(prepared.mechanism.name, needs, Stream.reads, database=chosen != "stream")
    passes = 1 + (Split in needs) + found.answers.moments
    if chosen != "memory":
        return RowsPlan(chosen, PROGRAM + DATABASE * (chosen == "duckdb"), held, passes, whole)
    return RowsPlan(chosen, PROGRAM + held, 0.0, passes, whole)
