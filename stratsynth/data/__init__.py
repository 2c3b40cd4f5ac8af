"""Where rows lie: files and frames, their fingerprint, and private tables as users hold them."""
