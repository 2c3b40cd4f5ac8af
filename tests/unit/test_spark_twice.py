"""Tasks that Spark runs twice at a time: a master and two workers of their own addresses on this machine."""

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.spark import MARKS, settings_of

pytestmark = [*MARKS, pytest.mark.slow]
SCRIPT = """
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from stratsynth import Categorical, Schema, open_table

master, marks = sys.argv[1:]
settings = {
    "spark.speculation": "true", "spark.speculation.interval": "100ms", "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.5", "spark.speculation.minTaskRuntime": "100ms", "spark.executor.memory": "512m",
}
builder = SparkSession.builder.master(master)
for key, value in settings.items():
    builder = builder.config(key, value)
session = builder.getOrCreate()

def slow(batches):
    import time
    from pathlib import Path
    from pyspark import TaskContext

    context = TaskContext.get()
    name = f"partition-{context.partitionId()}-attempt-{context.attemptNumber()}"
    Path(marks, name).touch()
    yield from batches
    if context.partitionId() == 0 and context.attemptNumber() == 0:
        time.sleep(100)

schema = Schema({"A": Categorical(levels=("x", "y", "z"))})
rows = session.createDataFrame(pa.table({"A": ["x", "y", "z", "x"] * 250})).repartition(4)
table = open_table(rows.mapInArrow(slow, rows.schema), schema=schema, engine="spark")
[[found]] = table.backend.rows().counts([((), [("A",)])])
print("COUNTED", found.tolist(), flush=True)
session.stop()
"""


@contextlib.contextmanager
def started(command, settings):
    process = subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def said(process, pattern):
    """Output of a process that fits; it comes within a minute."""
    until = time.monotonic() + 60
    while time.monotonic() < until and (line := process.stdout.readline()):
        if found := re.search(pattern, line):
            return found[0]
    raise AssertionError(f"it never said {pattern}")


def test_a_task_that_runs_twice_at_a_time_counts_once(tmp_path):
    """Spark runs a slow task again on another machine and takes the answer of whichever ends first."""
    settings = {**os.environ, **settings_of(tmp_path / "spark"), "SPARK_NO_DAEMONIZE": "1"}
    spark_class = Path(settings["SPARK_HOME"], "bin", "spark-class")
    place = "org.apache.spark.deploy"
    (tmp_path / "marks").mkdir()
    with contextlib.ExitStack() as running:
        ports = ["--port", "0", "--webui-port", "0"]
        master = running.enter_context(
            started([spark_class, f"{place}.master.Master", "--host", "127.0.0.1", *ports], settings)
        )
        address = said(master, r"spark://127\.0\.0\.1:\d+")
        for host in ("127.0.0.1", "127.0.0.2"):
            own = {**settings, "SPARK_LOCAL_IP": host}
            worker = [spark_class, f"{place}.worker.Worker", "--host", host, *ports, "-c", "1", "-m", "1g", address]
            said(running.enter_context(started(worker, own)), "Successfully registered with master")
        command = [sys.executable, "-P", "-c", SCRIPT, address, str(tmp_path / "marks")]
        made = subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=95)
    assert "COUNTED [500, 250, 250]" in made.stdout, made.stderr
    assert (tmp_path / "marks" / "partition-0-attempt-1").exists()
