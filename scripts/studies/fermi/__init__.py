"""Paper 004's experiments on private fair classification, at true budgets."""

from studies.harness import Argument, Study, count, file

STUDY = Study(
    "fermi",
    "Paper 004's experiments on private fair classification, redone.",
    (
        file("--adult", "Adult (CSV), by sex"),
        file("--law", "law school data (CSV), by race"),
        file("--acs", "ACS person records (Parquet): income by sex (Retired Adult), employment by race and by sex"),
        file("--data", "any public table (CSV, Parquet) with --target and --by: Parkinson's, credit cards, your own"),
        Argument("--target", {"metavar": "COLUMN", "help": "what is predicted of --data, of two values"}),
        Argument("--by", {"metavar": "COLUMN", "help": "the sensitive attribute of --data"}),
        Argument("--above", {"metavar": "NUMBER", "type": float, "help": "predict if --target is above this number"}),
        Argument(
            "--leave",
            {"metavar": "COLUMN", "nargs": "+", "default": [], "help": "columns of --data that are no features"},
        ),
        Argument(
            "--only",
            {"choices": ("images",), "help": "a network on made-up images, in about ten minutes; needs PyTorch"},
        ),
        count("--seeds", None, "fits of each setting (10; images, and single fits of other mechanisms: 3)"),
        count("--iterations", 1000, "steps of a fit (1000)"),
    ),
    out="a new folder for the table (CSV) and pictures (PNG)",
)
