"""`python -m stratsynth.evaluation.bench NAME [--json]`, which `scripts/bench` runs."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

NAMES = ("door", "synth", "pooled", "evaluate", "frames", "predict", "census", "weights", "answers", "scale")
MADE = ("independent", "mst", "aim", "pooled", "fixed", "samples", "tables", "speed")
PREDICT = ("reductions", "fermi", "attribute", "lens", "opacus")
ONLY = {"synth": ("mst", "aim", "gem"), "predict": PREDICT, "answers": MADE, "scale": ("mst", "aim", "spark")}
"""The parts that can be measured alone."""


def main() -> int:
    """Run one benchmark and print its figures."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure one part; figures with units.")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument(
        "--acs",
        metavar="FILE",
        help="synth, pooled, answers: NIST's excerpt of the ACS (CSV) or person records (Parquet), not simulated "
        "people; of answers for --only tables; census: a state's person records of 2024; weights: person records with "
        "PWGTP (Parquet), besides simulated people",
    )
    parser.add_argument(
        "--only",
        help="synth: mst, aim or gem alone; predict: reductions, fermi, attribute, lens or opacus alone; answers: "
        "coverage of one mechanism alone, or `samples`, `tables` or `speed`; scale: mst or aim alone; or "
        "`spark` beside `stream`, on a local cluster of two workers",
    )
    parser.add_argument(
        "--base", choices=("mst", "aim", "gem"), default="mst", help="pooled: the mechanism that is pooled"
    )
    parser.add_argument("--epsilons", type=float, nargs="+", metavar="E", help="pooled: instead of 0.1, 0.3, 1, 3, 10")
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="pooled, predict, answers: repetitions, 5 by default, of answers 1,000"
    )
    parser.add_argument("--samples", type=int, default=20, metavar="N", help="weights: samples, 20 by default")
    parser.add_argument("--rows", type=int, metavar="N", help="pooled: the number of simulated people")
    parser.add_argument("--by", nargs="+", default=(), metavar="COLUMN", help="pooled: one grouping instead of two")
    parser.add_argument("--shares", type=float, nargs="+", default=(), metavar="S", help="pooled: these shares besides")
    parser.add_argument("--adult", metavar="FILE", help="predict: errors on Adult (CSV), beside other libraries'")
    parser.add_argument("--law", metavar="FILE", help="predict: the same on law school data (CSV)")
    parser.add_argument("--tables", nargs="+", default=(), metavar="FILE", help="frames: CSV or Parquet files besides")
    parser.add_argument(
        "--millions", type=int, nargs="+", default=(1, 3, 10), metavar="N",
        help="scale: the sizes in million people, 1, 3 and 10 by default; files take 11 MB a million while it runs",
    )  # fmt: skip
    arguments = parser.parse_args()
    if arguments.only is not None and arguments.only not in ONLY.get(arguments.name, ()):
        parser.error(f"{arguments.name} has no part {arguments.only}: see --help.")
    seeds = arguments.seeds if arguments.seeds is not None else 1_000 if arguments.name == "answers" else 5
    from stratsynth.evaluation.bench.figures import show

    module = import_module(f"stratsynth.evaluation.bench.{arguments.name}")
    if arguments.name == "census":
        if arguments.acs is None:
            parser.error("census needs --acs FILE, a state's person records of 2024.")
        figures = module.run(arguments.acs)
    elif arguments.name == "synth":
        figures = module.run(arguments.acs, arguments.only)
    elif arguments.name == "pooled":
        epsilons = arguments.epsilons or module.EPSILONS
        figures = module.run(
            arguments.acs, base=arguments.base, epsilons=epsilons, seeds=seeds, rows=arguments.rows,
            by=arguments.by, shares=arguments.shares,
        )  # fmt: skip
    elif arguments.name == "answers":
        figures = module.run(seeds=seeds, only=arguments.only, acs=arguments.acs)
    elif arguments.name == "weights":
        figures = module.run(arguments.samples, arguments.acs)
    elif arguments.name == "scale":
        figures = module.run([1_000_000 * number for number in arguments.millions], arguments.only)
    elif arguments.name == "frames":
        figures = module.run(arguments.tables)
    elif arguments.name == "predict":
        module = import_module(f"stratsynth.evaluation.bench.{arguments.only or 'predict'}")
        data = {name: path for name in ("adult", "law") if (path := getattr(arguments, name)) is not None}
        if data and arguments.only in {"lens", "attribute", "opacus"}:
            parser.error(f"{arguments.only} is measured on simulated people: leave --adult and --law out.")
        figures = module.run(seeds=seeds, **data)
    else:
        figures = module.run()
    sys.stdout.write(show(figures, as_json=arguments.json) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
