"""Paper 001's experiments on excessive risk, in shape: simulated people and public data, and which claims hold."""

from studies.harness import Study, count, file

STUDY = Study(
    "lens",
    "Paper 001's experiments on excessive risk, redone.",
    (
        file("--adult", "Adult (CSV), by sex and by race"),
        file("--law", "law school data (CSV), by race"),
        count("--runs", 30, "how many runs of noise of each (30)", least=2),
        count("--repeats", 10, "how many fits of each mitigation (10)", least=2),
    ),
    out="a new folder for tables (CSV) and pictures (PNG)",
)
