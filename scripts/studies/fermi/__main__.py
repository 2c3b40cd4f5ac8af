"""`python -m studies.fermi`, which `scripts/reproduce_fermi` runs."""

import sys

from studies.fermi.reproduce import main

sys.exit(main())
