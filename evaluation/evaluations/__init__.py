"""INTERNAL. All scores of one release together: as frames, as text, as files and as a page."""
