"""What was asked, what it costs, and who may still ask: budgets, charges, prices, ledgers."""
