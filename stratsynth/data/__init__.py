"""Sources of private rows: files and frames, their fingerprints, and tables as users hold them."""
