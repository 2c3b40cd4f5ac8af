"""`python -m fuzzing [PART] [--cases N] [--seed S]`, which `scripts/fuzz` runs."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTS = {
    "arguments": (6_000, "malformed arguments of every public callable"),
    "files": (10_000, "mutated releases, schemas, recipes, shares, ledgers and data files"),
    "commands": (2_000, "malformed words of every command"),
}


def main(words: Sequence[str]) -> int:
    """Run the parts that are named, all by default; print counts and every fault; return 1 if there is a fault."""
    parser = argparse.ArgumentParser(
        prog="scripts/fuzz",
        description="; ".join(f"{name}: {text}" for name, (_, text) in PARTS.items()),
        epilog="A fault is an error that is none of ours, a hang, or a charge that a refused call left in a ledger.",
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--cases", type=int, help="cases of each part; by default 6,000, 10,000 and 2,000")
    parser.add_argument("--seed", type=int, help="another seed makes other cases; by default a random one")
    given = parser.parse_args(words)
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}")
    seed = time.time_ns() % 2**32 if given.seed is None else given.seed
    faults = 0
    for name in given.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            found = import_module(f"fuzzing.{name}").fuzz(Path(folder), given.cases or PARTS[name][0], seed)
        sys.stdout.write(f"{name}, seed {seed}: {found}\n")
        faults += found.faults
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
