"""GEM: a generative network fitted to noisy marginals, in numpy and with slopes written by hand.

layout      rows of each column's probabilities in one matrix
network     parameters to probabilities, and gradients the way back
adam        the optimiser
fit         misfit of the noisy tables, and training
learner     a mixture that is refitted as tables come in
model       the fitted mixture as a table model
mechanism   questions and their prices
"""

from stratsynth.adapters.gem.mechanism import GEM
from stratsynth.adapters.gem.model import ProductMixture

__all__ = ["GEM", "ProductMixture"]
