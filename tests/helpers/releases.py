"""Releases to verify, damage and edit."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq

from helpers import small
from stratsynth.release.hashes import listed_files


def record_of(folder):
    return json.loads((Path(folder) / "certificate.json").read_text(encoding="utf-8"))


def write_record(folder, record):
    (Path(folder) / "certificate.json").write_text(json.dumps(record), encoding="utf-8")


def edited(folder, change):
    """Change a certificate as somebody would who has an editor."""
    record = record_of(folder)
    change(record)
    write_record(folder, record)


def tied_again(folder):
    """List the files that are there now, as a forger would who has changed one."""
    edited(folder, lambda record: record.update(files=listed_files(Path(folder))))


def copied(folder, target):
    return Path(shutil.copytree(folder, target))


def rewritten(path, change):
    """A Parquet file with another table in it."""
    pq.write_table(change(pq.read_table(path)), path)


def saved(how, folder, table=None, budget=small.BUDGET, **settings):
    """A release of a mechanism, in a folder."""
    from stratsynth import fit

    release = fit(how, table or small.table(), budget, seed=1)
    return release.save(folder, **settings)
