"""`python -m studies.regression`, which `scripts/reproduce_regression` runs."""

import sys

from studies.regression.reproduce import main

sys.exit(main())
