"""`python -m stratsynth`: the same as the command."""

from stratsynth.cli import main

main()
