"""What several adapters build on: workloads, rounds of choosing and measuring, models that are fitted again."""
