"""`python -m studies.reductions`, which `scripts/reproduce_reductions` runs."""

import sys

from studies.reductions.reproduce import main

sys.exit(main())
