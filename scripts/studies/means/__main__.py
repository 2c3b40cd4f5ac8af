"""`python -m studies.means`, which `scripts/reproduce_means` runs."""

import sys

from studies.means.reproduce import main

sys.exit(main())
