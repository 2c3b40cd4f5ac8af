"""Constrained group objectives on simulated and public rows: the case studies of paper 002."""

from studies.harness import Study, count, file

STUDY = Study(
    "reductions",
    "Paper 002 on reductions, put to the test.",
    (
        file("--adult", "Adult (CSV), for equalized odds by sex"),
        file("--law", "the law school data (CSV), for equalized odds by race"),
        count("--runs", 5, "how many runs of each, with noise (5)"),
    ),
    out="a new folder for the tables (CSV) and a picture (PNG)",
)
