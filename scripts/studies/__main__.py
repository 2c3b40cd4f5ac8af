"""`python -m studies NAME [ARGUMENT...]`, which `scripts/reproduce_NAME` runs."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from studies.harness import Study

if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    study: Study = import_module(f"studies.{name}").STUDY
    sys.exit(study.main(arguments))
