"""`python -m benches NAME [--json]`, which `scripts/bench` runs."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from studies.figures import Figure

NAMES = (
    "door",
    "synth",
    "pooled",
    "evaluate",
    "frames",
    "predict",
    "census",
    "weights",
    "answers",
    "intervals",
    "scale",
    "prior",
    "known",
    "strata",
    "first",
    "design",
    "ordered",
    "small",
    "exact",
    "fair",
    "linked",
)
MADE = ("independent", "mst", "aim", "pooled", "fixed", "samples", "tables", "speed")
PREDICT = ("reductions", "fermi", "attribute", "lens", "opacus", "linear")
ONLY = {
    "synth": ("mst", "aim", "gem"),
    "predict": PREDICT,
    "answers": MADE,
    "scale": ("mst", "aim", "duckdb", "spark"),
    "strata": ("independent", "pooled", "aim", "mst"),
    "prior": ("borrowed", "ladder"),
    "census": ("numbers",),
    "fair": ("more",),
}
"""The parts that can be measured alone."""


def _count(text: str) -> int:
    """Return a whole number from 1 on; argparse names the option where it is none."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure one part; figures with units.")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument(
        "--acs",
        metavar="FILE",
        help="synth, pooled, prior, known, answers: NIST's excerpt of the ACS (CSV) or person records (Parquet), "
        "not simulated people; of answers for --only tables; intervals, census: a state's person records of 2024; "
        "weights: person records with PWGTP (Parquet), besides simulated people; fair, linked: person records "
        "(Parquet); predict --only linear: incomes of NIST's excerpt (CSV)",
    )
    parser.add_argument(
        "--only",
        help="synth: mst, aim or gem alone; predict: reductions, fermi, attribute, lens or opacus alone, or "
        "`linear`, for linear regressions beside each other; answers: "
        "coverage of one mechanism alone, or `samples`, `tables` or `speed`; scale: mst or aim alone; `duckdb` or "
        "`spark` beside `stream`, of a database and on a local cluster of two workers; strata: one mechanism alone; "
        "prior: `borrowed`, for other constants of what groups borrow from the others, or `ladder`, for public samples "
        "from even to biased; census: `numbers`, for the "
        "errors of incomes, with or without --acs; fair: `more`, several groups and three classes",
    )
    parser.add_argument(
        "--base",
        choices=("mst", "aim", "gem", "independent", "pooled", "strata", "all"),
        default="mst",
        help="pooled: the mechanism that is pooled (mst, aim or gem); prior, known, ordered: the mechanism, or all of "
        "them",
    )
    parser.add_argument(
        "--households", metavar="FILE", help="linked: the household records that belong to those of --acs (Parquet)"
    )
    parser.add_argument("--prior", metavar="FILE", help="prior, known: the year before of the file of --acs (CSV)")
    parser.add_argument("--wrong", metavar="FILE", help="prior: a file that is no good prior for that of --acs (CSV)")
    parser.add_argument(
        "--epsilons",
        type=float,
        nargs="+",
        metavar="E",
        help="pooled, prior, frames, fair, ordered, small, linked, census --only numbers, predict --only linear: "
        "instead of the usual",
    )
    parser.add_argument(
        "--seeds",
        type=_count,
        metavar="N",
        help="pooled, prior, predict, first, ordered, small, exact, fair, answers, intervals, design, linked, frames, "
        "census --only numbers: repetitions, 5 by default, of fair 3, of exact 20, of answers and design 1,000, of "
        "intervals 300, of the last three 1",
    )
    parser.add_argument(
        "--jobs", type=_count, default=1, metavar="N", help="answers: fits at the same time, 1 by default"
    )
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        help="answers, fair: keep the results of fits here, to go on with after an interruption; fair draws them too",
    )
    parser.add_argument("--quick", action="store_true", help="fair: epsilon 1 alone")
    parser.add_argument("--samples", type=_count, default=20, metavar="N", help="weights: samples, 20 by default")
    parser.add_argument(
        "--rows",
        type=_count,
        metavar="N",
        help="pooled, prior: the number of simulated people, linked: of households; fair: most rows of a data set",
    )
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        metavar="N",
        help="census --only numbers: numbers of records that are drawn; 20,000, 40,000 and all of them by default",
    )
    parser.add_argument("--by", nargs="+", default=(), metavar="COLUMN", help="pooled: one grouping instead of two")
    parser.add_argument("--shares", type=float, nargs="+", default=(), metavar="S", help="pooled: these shares besides")
    parser.add_argument("--adult", metavar="FILE", help="predict: errors on Adult (CSV), beside other libraries'; fair")
    parser.add_argument("--law", metavar="FILE", help="predict: the same on law school data (CSV); fair")
    parser.add_argument(
        "--tables",
        nargs="+",
        default=(),
        metavar="FILE",
        help="frames, first, ordered, small: CSV or Parquet besides; "
        "prior --only ladder: private and public rows in turn",
    )
    parser.add_argument(
        "--millions",
        type=int,
        nargs="+",
        default=(1, 3, 10),
        metavar="N",
        help="scale: the sizes in million people, 1, 3 and 10 by default; files take 11 MB a million while it runs",
    )
    parser.add_argument(
        "--areas",
        type=int,
        nargs="+",
        metavar="N",
        help="strata: so many areas times 18 strata; 148 and 1,389 by default, which makes 2,664 and 25,002",
    )
    return parser


def main() -> int:
    """Run one benchmark and print its figures."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.only is not None and arguments.only not in ONLY.get(arguments.name, ()):
        parser.error(f"{arguments.name} has no part {arguments.only}: see --help.")
    files = (arguments.acs, arguments.adult, arguments.law, arguments.prior, arguments.wrong, arguments.households)
    for path in (*files, *arguments.tables):
        if path is not None and not Path(path).is_file():
            parser.error(f"there is no file {path}.")
    if arguments.name == "census" and arguments.acs is None and arguments.only is None:
        parser.error("census needs --acs FILE, a state's person records of 2024; --only numbers does without.")
    if (arguments.households is not None) != (arguments.name == "linked" and arguments.acs is not None):
        parser.error("linked takes --households and --acs, the records of both, or neither; other parts take none.")
    if arguments.only in {"lens", "attribute", "opacus"} and (arguments.adult or arguments.law):
        parser.error(f"{arguments.only} is measured on simulated people: leave --adult and --law out.")
    from studies.figures import show

    sys.stdout.write(show(_measured(arguments), as_json=arguments.json) + "\n")
    return 0


def _measured(arguments: argparse.Namespace) -> Sequence[Figure]:
    """The figures of one part."""
    name, only = arguments.name, arguments.only
    module = import_module(f"benches.{only or name if name in {'predict', 'prior', 'census'} else name}")
    if name == "fair" and only:
        module = import_module("benches.fair_more")
    usual = {"answers": 1_000, "design": 1_000, "intervals": 300}
    seeds = arguments.seeds if arguments.seeds is not None else usual.get(name, 5)
    epsilons = {"epsilons": arguments.epsilons} if arguments.epsilons else {}
    numbers = {"acs": arguments.acs, "sizes": arguments.sizes, "seeds": arguments.seeds or 1, **epsilons}
    settings: dict[str, Any] = {
        "census": numbers if only == "numbers" else {"acs": arguments.acs},
        "synth": {"acs": arguments.acs, "only": only},
        "pooled": {
            "acs": arguments.acs,
            "base": arguments.base,
            "seeds": seeds,
            "rows": arguments.rows,
            "by": arguments.by,
            "shares": arguments.shares,
            **epsilons,
        },
        "prior": {
            "tables": arguments.tables,
            "acs": arguments.acs,
            "prior": arguments.prior,
            "base": arguments.base,
            "seeds": seeds,
            **epsilons,
        }
        if only == "ladder"
        else {
            "acs": arguments.acs,
            "prior": arguments.prior,
            "wrong": arguments.wrong,
            "rows": arguments.rows,
            "base": arguments.base,
            "seeds": seeds,
            **epsilons,
        },
        "known": {
            "acs": arguments.acs,
            "prior": arguments.prior,
            "rows": arguments.rows,
            "base": arguments.base,
            "seeds": seeds,
            **epsilons,
        },
        "answers": {"seeds": seeds, "only": only, "acs": arguments.acs, "jobs": arguments.jobs, "out": arguments.out},
        "intervals": {"seeds": seeds, "acs": arguments.acs},
        "weights": {"samples": arguments.samples, "acs": arguments.acs},
        "scale": {"rows": [1_000_000 * number for number in arguments.millions], "only": only},
        "strata": {"only": only, **({"areas": arguments.areas} if arguments.areas else {})},
        "frames": {"tables": arguments.tables, "seeds": arguments.seeds or 1, **epsilons},
        "first": {"tables": arguments.tables, "seeds": seeds},
        "design": {"seeds": seeds},
        "exact": {"seeds": arguments.seeds or 20},
        "small": {"tables": arguments.tables, "seeds": seeds, **epsilons},
        "ordered": {
            "tables": arguments.tables,
            "base": arguments.base,
            "seeds": seeds,
            **epsilons,
        },
        "fair": {"seeds": arguments.seeds or 3, "adult": arguments.adult, "acs": arguments.acs}
        if only
        else {
            "seeds": arguments.seeds or 3,
            "rows": arguments.rows,
            **{key: getattr(arguments, key) for key in ("adult", "law", "acs", "out")},
            **({"epsilons": (1.0,)} if arguments.quick else epsilons),
        },
        "predict": {
            "seeds": seeds,
            **{key: path for key in ("adult", "law") if (path := getattr(arguments, key))},
            **({"acs": arguments.acs, **epsilons} if only == "linear" else {}),
        },
        "linked": {
            "acs": arguments.acs,
            "households": arguments.households,
            "rows": arguments.rows,
            "seeds": arguments.seeds or 1,
            **epsilons,
        },
    }
    found: Sequence[Figure] = module.run(**settings.get(name, {}))
    return found


if __name__ == "__main__":
    sys.exit(main())
