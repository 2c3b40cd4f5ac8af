"""`python -m stratsynth.evaluation.bench NAME [--json]`, which `scripts/bench` runs."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

NAMES = ("door", "synth", "evaluate")


def main() -> int:
    """Run one benchmark and print its figures."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure one part; figures with units.")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument("--acs", metavar="FILE", help="synth: NIST's excerpt of the ACS, instead of simulated people")
    parser.add_argument("--only", choices=("mst", "aim"), help="synth: one mechanism alone")
    arguments = parser.parse_args()
    from stratsynth.evaluation.bench.figures import show

    module = import_module(f"stratsynth.evaluation.bench.{arguments.name}")
    figures = module.run(arguments.acs, arguments.only) if arguments.name == "synth" else module.run()
    sys.stdout.write(show(figures, as_json=arguments.json) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
