"""Grids of fits, each scored and repeated: computed, paired, and shown as text and as a page."""
