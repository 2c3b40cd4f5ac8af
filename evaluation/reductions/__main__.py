"""`python -m stratsynth.evaluation.reductions`, which `scripts/reproduce_reductions` runs."""

import sys

from stratsynth.evaluation.reductions.reproduce import main

sys.exit(main())
