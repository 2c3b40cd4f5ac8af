"""`python -m stratsynth`, the command."""

from stratsynth.cli import main

main()
