"""`python -m stratsynth.evaluation.fermi`, which `scripts/reproduce_fermi` runs."""

import sys

from stratsynth.evaluation.fermi.reproduce import main

sys.exit(main())
