"""Group-aware regression on simulated people: the experiments of paper 000, many runs of noise side by side."""
