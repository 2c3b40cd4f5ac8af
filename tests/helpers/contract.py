"""Contract of mechanisms at the depth of the suite, on simulated tables that change with every commit."""

import hashlib
import importlib.metadata
import os
import subprocess
from functools import cache
from pathlib import Path

from stratsynth.testing import check_contract, worlds

DEEP = {"tables": 20, "neighbours": 10}
"""The depth of a user's own check, which `--slow` has too."""
REGISTERED = {"tables": 8, "neighbours": 6}
"""The depth of every registered mechanism alone; in strata, in another way, or a mechanism of the tests less deep: a
table of each world and one more, each beside two neighbours and two strangers. Tables change with every commit.

Two tables in both orders, each in a process of its own, take half of a short check: they are fitted in all worlds where
a mechanism is checked alone, and elsewhere in one world, another with every commit.
"""
NAME = "STRATSYNTH_TEST_SEED"
deep = []
"""Holds something in a run with `--slow`."""


def violations(build, *, tables=4, neighbours=4, orders=1, **settings):
    """All that breaks the contract, on this commit's tables: what is sound shows none on any."""
    depth = DEEP if deep else {"tables": tables, "neighbours": neighbours, "orders": orders}
    return check_contract(build, **depth, seed=table_seed(), **settings)


def caught(build, *, tables=4, neighbours=4, orders=None, among=None, **settings):
    """The kinds of what breaks the contract, on tables that are always the same: a planted bug shows every time.

    In one world, with `--slow` in all of them. What replay alone must find needs no `orders`.
    """
    depth = DEEP if deep else {"tables": tables, "neighbours": neighbours, "orders": orders}
    within = among or ([] if deep else list(worlds())[:1])
    return {finding.kind for finding in check_contract(build, **depth, among=within, **settings)}


@cache
def table_seed():
    """The seed of this commit's tables, or, of a copy without its history, of the installed wheel's."""
    if NAME in os.environ:
        return int(os.environ[NAME])
    git = ["git", "-C", str(Path(__file__).parents[2]), "rev-parse", "HEAD"]
    try:
        known = subprocess.run(git, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        known = str(importlib.metadata.distribution("stratsynth").read_text("RECORD")).encode()
    return int.from_bytes(hashlib.sha256(known).digest()[:4])
