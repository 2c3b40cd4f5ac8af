"""One model of everybody, which every stratum moves to where its own people differ.

mechanism     what is spent on everybody and on strata, and what is refused
specialised   what one stratum asks
"""

from stratsynth.adapters.pooled.mechanism import Pooled

__all__ = ["Pooled"]
