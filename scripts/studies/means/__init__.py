"""Private means: how good they are, on simulated mixtures and on census columns."""
