"""Budgets, charges, prices, accounts and ledgers: amounts spent on the privacy of data, and amounts left."""
