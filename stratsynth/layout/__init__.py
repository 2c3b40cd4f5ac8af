"""From declared groups, their weights and their budgets to the strata of a fit. Public facts only."""
