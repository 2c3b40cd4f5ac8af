"""Private means: how good they are, on simulated mixtures and on census columns."""

from studies.harness import Study, count, file, switch

STUDY = Study(
    "means",
    "The papers' experiments on private means, redone on public data.",
    (
        file("--acs", "person records of the ACS, instead of simulated people"),
        count("--runs", 50, "how many runs of each experiment (50)"),
        count("--workers", 2, "how many processes (2)"),
        switch("--json", "print the figures as JSON, for programs"),
    ),
    out="a new folder for tables (CSV) and pictures (PNG)",
)
