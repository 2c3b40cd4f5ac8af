"""`python -m studies.lens`, which `scripts/reproduce_lens` runs."""

import sys

from studies.lens.reproduce import main

sys.exit(main())
