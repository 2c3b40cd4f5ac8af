"""`python -m studies.stratification`, which `scripts/reproduce_stratification` runs."""

import sys

from studies.stratification.reproduce import main

if __name__ == "__main__":  # worker processes import this file too
    sys.exit(main())
