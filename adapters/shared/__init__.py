"""Parts common to several adapters: workloads, rounds of choosing and measuring, models that are refitted."""
