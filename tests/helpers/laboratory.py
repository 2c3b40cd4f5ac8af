"""Scripts of the laboratory, which are not installed, in processes of their own."""

import os
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"


def environment():
    """Environment variables with which a process finds `studies` and `benches`, and the same stratsynth as here."""
    path = filter(None, [str(SCRIPTS), os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
