"""`python -m stratsynth.evaluation.regression`, which `scripts/reproduce_regression` runs."""

import sys

from stratsynth.evaluation.regression.reproduce import main

sys.exit(main())
