"""Prior rows, weighted anew so that noisy tables are met: how every mechanism of tables uses a prior.

fit        the weights: nearest to the prior's that explain the tables
model      weighted rows as a table model
blocks     tables of weighted rows, several at a time
rounding   whole numbers of rows, near the weights in all pairs of columns
learner    as rounds of choosing and measuring use it, with the trust that each table's answer earns
arbiter    this model or the mechanism's own, whichever foretells the next paid answers better
"""

from stratsynth.adapters.tilted.arbiter import Arbiter, against, arbitrated, tilted_to
from stratsynth.adapters.tilted.learner import TiltedLearner
from stratsynth.adapters.tilted.model import TiltedRows

__all__ = ["Arbiter", "TiltedLearner", "TiltedRows", "against", "arbitrated", "tilted_to"]
