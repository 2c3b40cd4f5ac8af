"""Prior rows with new weights, such that noisy tables are met: the use of a prior in every table mechanism.

fit        weights that explain the tables and diverge least from the prior's
model      weighted rows as a table model
blocks     tables of weighted rows, several at a time
rounding   integer numbers of rows, near the weights in all pairs of columns
likened    weights of rows borrowed from other strata
learner    the rows between rounds of choosing and measuring, and the prior's trust in each table
blended    the mechanism's own model and the prior's rows, each with its share
arbiter    these shares, by how well the prior's rows predict paid answers
"""

from stratsynth.adapters.tilted.arbiter import Arbiter, arbitrated, tilted_to
from stratsynth.adapters.tilted.blended import Blended
from stratsynth.adapters.tilted.learner import TiltedLearner
from stratsynth.adapters.tilted.model import TiltedRows

__all__ = ["Arbiter", "Blended", "TiltedLearner", "TiltedRows", "arbitrated", "tilted_to"]
