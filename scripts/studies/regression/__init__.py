"""Group-aware regression on simulated people: the experiments of paper 000, many runs of noise side by side."""

from studies.harness import Study, count, file

STUDY = Study(
    "regression",
    "Paper 000's experiments on group-aware regression, redone.",
    (
        file("--law", "the law school data (CSV), as an experiment besides"),
        file("--credit", "UCI's Default of Credit Card Clients (CSV or Parquet), as an experiment besides"),
        count("--runs", 50, "how many runs of noise of each (50)"),
        count("--seeds", 10, "how many fits to the digits of each (10); 0 leaves them out", least=0),
    ),
    out="a new folder for the table (CSV) and pictures (PNG)",
)
