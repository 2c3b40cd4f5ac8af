"""Paper 003's synthesizers in strata at the stated budget: the grid, the authors' figures, which claims hold."""

from studies.harness import Study, count, file, switch

STUDY = Study(
    "stratification",
    "Paper 003's synthesizers in strata, at the stated budget.",
    (
        file("--acs", "public person records of the ACS (with ESR), or NIST's excerpt; without, the built-in census"),
        switch("--full", "six epsilons and strata by sex too; otherwise three", exclusive=True),
        switch("--roads", "tables with models beside private predictors: which is better, for whom", exclusive=True),
        count("--seeds", 5, "how many repetitions (5)"),
        count("--workers", 2, "how many processes at a time (2)"),
    ),
    out="the folder of a run, new or to be continued (stratification, or roads)",
    resumes=True,
)
