"""GEM: a generative network fitted to noisy marginals, in numpy and with slopes written by hand.

layout      where each column's probabilities stand
network     parameters to probabilities, and slopes the way back
adam        the steps
fit         the distance from noisy tables, and its training
learner     a mixture that is fitted again and again
model       the fitted mixture as a table model
mechanism   what is asked, and what is paid for it
"""

from stratsynth.adapters.gem.mechanism import GEM
from stratsynth.adapters.gem.model import ProductMixture

__all__ = ["GEM", "ProductMixture"]
