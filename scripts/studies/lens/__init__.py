"""Paper 001's experiments on excessive risk, in shape: simulated people and public data, and which claims hold."""

from studies.harness import Argument, Study, count, file

STUDY = Study(
    "lens",
    "Paper 001's experiments on excessive risk, redone.",
    (
        file("--adult", "Adult (CSV), by sex and by race"),
        file("--law", "law school data (CSV), by race"),
        file("--data", "any other data (CSV or Parquet), with the three that follow"),
        file("--schema", "their schema (TOML)"),
        Argument("--target", {"metavar": "COLUMN", "help": "their target, a column of two levels"}),
        Argument("--by", {"metavar": "COLUMN", "help": "the column of their groups"}),
        count("--runs", 30, "how many runs of noise of each (30)", least=2),
        count("--repeats", 10, "how many fits of each mitigation (10)", least=2),
    ),
    out="a new folder for tables (CSV) and pictures (PNG)",
)
