"""Paper 004's experiments on private fair classification, at true budgets."""

from studies.harness import Argument, Study, count, file

STUDY = Study(
    "fermi",
    "Paper 004's experiments on private fair classification, redone.",
    (
        file("--adult", "Adult (CSV), by sex"),
        file("--law", "law school data (CSV), by race"),
        file("--acs", "ACS person records (Parquet), by race and by sex"),
        Argument(
            "--only",
            {"choices": ("images",), "help": "a network on made-up images, in about ten minutes; needs PyTorch"},
        ),
        count("--seeds", None, "fits of each setting (10; images: 3)"),
        count("--iterations", 1000, "steps of a fit (1000)"),
    ),
    out="a new folder for the table (CSV) and pictures (PNG)",
)
