"""Paper 003's synthesizers in strata at the stated budget: the grid, the authors' figures, which claims hold."""
