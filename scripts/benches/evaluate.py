"""`evaluate`: all three-way marginals of 20 columns, for everybody and 18 groups."""

from __future__ import annotations

from math import comb

from benches.figures import seconds, timed
from stratsynth import census
from studies.figures import Figure, limited, peak_megabytes

ROWS = 100_000
COLUMNS = 20
BY = ("SEX", "RAC1P")


def run() -> list[Figure]:
    """Score a second sample of simulated people as if it were a release."""
    from stratsynth.evaluation import parity_error, workload_error
    from stratsynth.evaluation.tables import EncodedRows

    schema = census.schema()
    schema = schema.restrict(schema.names[:COLUMNS])
    frames = census.make(ROWS), census.holdout(ROWS)
    before = peak_megabytes()
    reading = timed(lambda: [EncodedRows.read(frame, schema) for frame in frames], 3)
    real, other = (EncodedRows.read(frame, schema) for frame in frames)
    groups = timed(lambda: workload_error(real, other, schema, 3, BY), 3, warm=False)
    alone = timed(lambda: workload_error(real, other, schema, 3), 3, warm=False)
    peak = peak_megabytes()
    means = timed(lambda: parity_error(real, other, schema, BY), 3)
    what = f"{comb(COLUMNS, 3):,} three-way marginals of two tables of {ROWS:,}"
    return [
        seconds(f"two frames of {ROWS:,} rows x {COLUMNS} columns to level numbers", reading),
        seconds(f"{what}, everybody and 18 groups", groups, at_most=20),
        seconds("  the same for everybody alone", alone),
        limited("  peak memory, the frames included", peak, 1000, "MB", 3),
        Figure("  of which before the scores were begun", before, "MB"),
        seconds("parity error of all means by 18 groups", means),
    ]
