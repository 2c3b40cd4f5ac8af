"""Local cluster of Spark: a driver, a master and two workers, each a process of its own on this machine."""

import contextlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

MASTER = "local-cluster[2,1,1024]"
"""Two workers with a core and 1,024 MiB each."""

MISSING = (
    "PySpark is not installed; scripts/test --with spark installs it"
    if importlib.util.find_spec("pyspark") is None
    else "there is no Java, which Spark runs on (Debian: openjdk-17-jre-headless)"
    if shutil.which("java") is None
    else ""
)
MARKS = [
    pytest.mark.spark,
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # PySpark's own sockets
]


def settings_of(folder: Path) -> dict[str, str]:
    """Environment variables by which all processes of a cluster keep their logs and working files in a folder.

    Workers write into the folder that Spark is installed in, so it is one of links to that.
    """
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    home = folder / "home"
    home.mkdir(parents=True)
    for entry in Path(spec.submodule_search_locations[0]).iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    return {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }


@contextlib.contextmanager
def cluster(folder: Path):
    """A session on a local cluster, which keeps its logs and its working files in a folder."""
    from helpers import network
    from stratsynth.data.spark_source import quiet

    network.loopback = True  # for good: what PySpark lets go of is closed whenever memory is tidied up
    os.environ |= settings_of(folder)
    (folder / "events").mkdir()
    settings = {
        "spark.master": MASTER,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "3",
    }
    with quiet():
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName("tests")
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
