"""Layout of a fit: from declared groups, weights and budgets to its strata, by public facts alone."""
