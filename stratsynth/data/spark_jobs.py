"""Jobs of Spark: a task for every partition, and their answers added up in this process.

An action of Spark delivers one answer of each partition, however often its task was tried or run twice, so nothing
is counted twice. Error messages are fixed sentences: Java's may hold values.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.data.spark_progress import quiet, watched
from stratsynth.data.spark_tasks import ANSWER, NOT_HERE, OTHER_VERSION, SUMS, VERSION
from stratsynth.errors import StratsynthError, Unsupported, UsageError
from stratsynth.progress import phase

EXTRA = 'engine "spark" needs PySpark: pip install ".[spark]", or the PySpark of your cluster\'s version.'
JAVA = "Spark needs Java 17 or newer: install it, or name its folder by JAVA_HOME."
PRIVATE = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.eventLog.enabled": "false"}
"""Settings of a session that is started here: no page shows, and no log keeps, how many rows a task has read."""
MOST_CELLS = 1 << 23
"""Largest number of cells that one task counts in one pass: 64 MiB of an executor's memory."""
TASKS = 2
"""Tasks per core of the cluster: more would make more partial tables, fewer leave cores waiting."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}


def spark_session() -> Any:
    """Return the active session of this process, or a new one by Spark's own settings.

    Raises:
        Unsupported: PySpark is not installed.
        UsageError: There is no Java, or Spark could not be started.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise Unsupported(EXTRA) from None
    running = SparkSession.getActiveSession()
    if running is not None:
        return refuse_connect(running)
    home = os.environ.get("JAVA_HOME")
    if shutil.which(str(Path(home) / "bin" / "java") if home else "java") is None:
        raise UsageError(JAVA)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's own default is any python3 on the path
    builder = SparkSession.builder.appName("stratsynth")
    for key, value in PRIVATE.items():
        builder = builder.config(key, value)
    try:
        with quiet():
            return refuse_connect(builder.getOrCreate())
    except Unsupported:
        raise
    except Exception as error:  # noqa: BLE001 - Java's, of many classes
        raise UsageError(f"Spark could not be started ({type(error).__name__}). {JAVA}") from None


def refuse_connect(held: Any) -> Any:
    """Return `held`, a Spark session or DataFrame, itself; Unsupported for Spark Connect, of other processes."""
    if "connect" in type(held).__module__:
        raise Unsupported(
            "Spark Connect counts in another process, which would see exact tables. Run in the driver's own process: a "
            "session with a master and without SPARK_REMOTE; or give df.toPandas() where rows fit into memory."
        )
    return held


def collected(frame: Any, task: Callable[..., Any], cells: int = 0) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """Run the function `task` on all partitions of a DataFrame, `frame`; return (hash sums, `cells` sums), exact.

    Returns:
        (tuple: the number of rows and the sums of their hashes modulo 2^64; array of `cells` sums of cells).
    """
    sums, total, session = dict[int, int](), np.zeros(cells, np.int64), frame.sparkSession
    with quiet(), phase("counting in Spark", lambda: tasks(session)) as done, watched(session, done):
        answers = frame.mapInArrow(task, ANSWER).toArrow()
    for first, found in zip(answers["first"].to_pylist(), answers["cells"], strict=True):
        if first == SUMS:
            for place, number in enumerate(np.frombuffer(found.as_buffer(), np.uint64).tolist()):
                sums[place] = (sums.get(place, 0) + number) % 2**64
        else:
            part = np.frombuffer(found.as_buffer(), np.int64)
            total[first : first + len(part)] += part
    return tuple(sums.values()), total


def tasks(session: Any) -> int:
    """Return the largest number of tasks, at least 2, that a job of a Spark session is split into."""
    return max(2, TASKS * int(session.sparkContext.defaultParallelism))


def cells_at_once(session: Any) -> int:
    """Return the most cells that a Spark session counts in a job, at least 1: partial tables must fit its limit."""
    said = session.sparkContext.getConf().get("spark.driver.maxResultSize", "1g")
    number, unit = re.fullmatch(r"(\d+) *([kmgtp]?)b?", said.strip().lower()).groups()  # type: ignore[union-attr]
    size = int(number) * _UNITS[unit] or 1 << 40  # none stands for no limit
    return max(1, min(MOST_CELLS, size // 2 // 8 // tasks(session)))


def before(error: Exception) -> StratsynthError:
    """Return (not raise) the StratsynthError of a job that failed before anything was charged, by what `error` says."""
    said = str(error)
    if OTHER_VERSION in said or "No module named 'stratsynth" in said or "No module named 'pyarrow'" in said:
        return UsageError(
            f"Spark's executors lack stratsynth {VERSION}: install the very version of the driver where they run, for "
            "the Python that PYSPARK_PYTHON (or spark.pyspark.python) names."
        )
    if NOT_HERE in said:
        return UsageError(
            "Spark's executors do not see the files as they are here: put them where every machine has them under the "
            "same path, or give them to Spark as a table (`table` instead of `path`)."
        )
    return StratsynthError("the data could not be read in Spark; its own log says more.")  # a class may tell of a row


def after() -> StratsynthError:
    """Return (not raise) the StratsynthError of a job that failed after a charge: one text, as it may tell of a row."""
    return StratsynthError(
        "the rows could not be counted in Spark; the charge stands. Spark's own log says more. With a ledger, the same "
        "fit of the same data is not charged again."
    )
