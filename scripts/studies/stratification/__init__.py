"""Paper 003's synthesizers in strata at the stated budget: the grid, the authors' figures, which claims hold."""

from studies.harness import Study, count, file, switch

STUDY = Study(
    "stratification",
    "Paper 003's synthesizers in strata, at the stated budget.",
    (
        file("--acs", "public person records of the ACS (with ESR), or NIST's excerpt; without, the built-in census"),
        count("--year", 2018, "the survey year of person records (2018)", least=2014),
        count(
            "--rows", None, "people that are fitted, 196967 in the paper (50000 simulated; all of a file)", least=100
        ),
        switch("--full", "strata by sex too, pooled AIM and GEM, and five repetitions", exclusive=True),
        switch("--roads", "tables with models beside private predictors: which is better, for whom", exclusive=True),
        count("--seeds", None, "how many repetitions (3; 5 with --full and --roads)"),
        count("--workers", 2, "how many processes at a time (2)"),
    ),
    out="the folder of a run, new or to be continued (stratification, or roads)",
    resumes=True,
)
