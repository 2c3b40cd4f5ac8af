"""One model of everybody, which every stratum moves to where its own people differ.

mechanism     budgets of everybody and of strata, and refusals
specialised   questions of one stratum
raked         strata's models, moved together to everybody's tables
"""

from stratsynth.adapters.pooled.mechanism import Pooled

__all__ = ["Pooled"]
