"""Prices of sampled steps under the contract suite's budget, cached: each takes seconds."""

from stratsynth.accounting.budget import Budget, Neighbours
from stratsynth.accounting.sampled import epsilon_sampled, least_noise

RATE, STEPS = 0.5, 3


def remember(notion=Neighbours.ADD_REMOVE):
    """Price what a fit and its certificate will ask for, so that processes started from this one know it too."""
    budget = Budget(3, 1e-6, notion)
    noise = least_noise(budget, rate=RATE, steps=STEPS)
    for steps in (STEPS, 2 * STEPS):  # a move is in the steps of two strata
        for neighbours in Neighbours:
            epsilon_sampled(noise, RATE, steps, budget.delta - budget.truncation_delta, neighbours)
