"""`python -m stratsynth.evaluation.stratification`, which `scripts/reproduce_stratification` runs."""

import sys

from stratsynth.evaluation.stratification.reproduce import main

if __name__ == "__main__":  # worker processes import this file too
    sys.exit(main())
