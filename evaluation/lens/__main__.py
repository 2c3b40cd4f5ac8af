"""`python -m stratsynth.evaluation.lens`, which `scripts/reproduce_lens` runs."""

import sys

from stratsynth.evaluation.lens.reproduce import main

sys.exit(main())
