"""`python -m stratsynth.evaluation.means`, which `scripts/reproduce_means` runs."""

import sys

from stratsynth.evaluation.means.reproduce import main

sys.exit(main())
